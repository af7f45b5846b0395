//! What stands in the files: text that is no UTF-8, values of the wrong type, metadata that say everything twice.

use super::{Case, TEMPLATE, with};
use crate::build::{CHART, Item, archive};

/// Stands for bytes that are no UTF-8.
const BAD: &str = "BAD";

/// Places that have text: the file, and what is in it.
const PLACES: [(&str, &str, &str); 21] = [
    (
        "description",
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\ndescription: BAD\n",
    ),
    ("name", "c/Chart.yaml", "apiVersion: v2\nname: cBAD\nversion: 1.0.0\n"),
    (
        "key of the metadata",
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\nBAD: 1\n",
    ),
    (
        "comment of the metadata",
        "c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\n# BAD\n",
    ),
    ("value", "c/values.yaml", "a: BAD\n"),
    ("quoted value", "c/values.yaml", "a: \"BAD\"\n"),
    ("key of a value", "c/values.yaml", "BAD: 1\n"),
    ("comment of the values", "c/values.yaml", "a: 1 # BAD\n"),
    ("schema", "c/values.schema.json", "{\"required\": [\"BAD\"]}"),
    (
        "pattern of a schema",
        "c/values.schema.json",
        "{\"properties\": {\"a\": {\"pattern\": \"BAD\"}}}",
    ),
    ("text of a template", "c/templates/b.yaml", "kind: B\na: BAD\n"),
    (
        "comment in the text of a template",
        "c/templates/b.yaml",
        "kind: B\n# BAD\n",
    ),
    ("action", "c/templates/b.yaml", "kind: B\na: {{ \"BAD\" | quote }}\n"),
    (
        "length in an action",
        "c/templates/b.yaml",
        "kind: B\na: {{ len \"BAD\" }}\n",
    ),
    (
        "field of an action",
        "c/templates/b.yaml",
        "kind: B\na: {{ .Values.BAD }}\n",
    ),
    (
        "comment of an action",
        "c/templates/b.yaml",
        "kind: B\na: {{/* BAD */}}1\n",
    ),
    (
        "name of a definition",
        "c/templates/b.yaml",
        "{{ define \"BAD\" }}x{{ end }}kind: B\na: {{ include \"BAD\" . }}\n",
    ),
    ("notes", "c/templates/NOTES.txt", "BAD {{ .Release.Name }}\n"),
    ("definition", "c/crds/b.yaml", "kind: B\na: BAD\n"),
    ("lock", "c/Chart.lock", "digest: BAD\n"),
    ("ignored files", "c/.helmignore", "BAD\n"),
];

/// Bytes that are no UTF-8, in every place that has text.
pub(super) fn not_utf8() -> Vec<Case> {
    let bad = |text: &str| text.as_bytes().to_vec();
    let spoilt = |text: &str| -> Vec<u8> {
        let (before, after) = text.split_once(BAD).unwrap();
        let mut bytes = bad(before);
        bytes.extend_from_slice(b"x\xff\xc3");
        // A name may be there twice.
        match after.split_once(BAD) {
            Some((between, rest)) => [bytes, bad(between), b"x\xff\xc3".to_vec(), bad(rest)].concat(),
            None => [bytes, bad(after)].concat(),
        }
    };
    let mut cases: Vec<Case> = PLACES
        .iter()
        .map(|(place, file, text)| {
            let text = spoilt(text);
            let items = vec![Item::file(*file, &text)];
            let archive = if *file == "c/Chart.yaml" {
                archive(&[Item::file(*file, &text), Item::file("c/templates/a.yaml", TEMPLATE)])
            } else {
                with(items)
            };
            Case::of(format!("no UTF-8: {place}"), archive)
        })
        .collect();
    for (place, name) in [
        ("template", &b"c/templates/\xff.yaml"[..]),
        ("subchart", b"c/charts/\xff/Chart.yaml"),
    ] {
        cases.push(Case::of(
            format!("no UTF-8: name of a {place}"),
            with(vec![Item::file(name, "name: s\nversion: 1.0.0\n")]),
        ));
    }
    for function in [
        "Get \"x\" | quote",
        "Get \"x\" | b64enc",
        "Get \"x\" | toJson",
        "Get \"x\" | toYaml",
        "Get \"x\" | len",
        "Lines \"x\"",
        "GetBytes \"x\"",
        "AsConfig",
        "AsSecrets",
        "Get \"x\" | upper",
        "Get \"x\" | trunc 2 | quote",
        "Get \"x\" | sha256sum",
    ] {
        let call = match function {
            "AsConfig" | "AsSecrets" => format!("(.Files.Glob \"x\").{function}"),
            other => format!(".Files.{other}"),
        };
        let template = format!("kind: B\na: {{{{ {call} }}}}\n");
        let items = vec![
            Item::file("c/x", b"a\xff\xc3\nb\xe9"),
            Item::file("c/templates/b.yaml", &template),
        ];
        cases.push(Case::of(format!("no UTF-8: {function}"), with(items)));
    }
    cases
}

/// What may stand where something else is meant.
const KINDS: [(&str, &str); 8] = [
    ("nothing", ""),
    ("null", "null"),
    ("a number", "5"),
    ("a boolean", "true"),
    ("text", "text"),
    ("a list", "[a, 1]"),
    ("a map", "{a: b}"),
    ("a list of maps", "[{a: b}]"),
];

pub(super) fn metadata() -> Vec<Case> {
    let fields = [
        "apiVersion",
        "name",
        "version",
        "type",
        "description",
        "keywords",
        "sources",
        "maintainers",
        "dependencies",
        "annotations",
        "kubeVersion",
        "deprecated",
        "appVersion",
    ];
    let mut cases = Vec::new();
    for (kind, text) in KINDS {
        let whole = archive(&[Item::file("c/Chart.yaml", text)]);
        cases.push(Case::of(format!("type: metadata is {kind}"), whole));
        for field in fields {
            let others = CHART.split_inclusive('\n');
            let others: String = others.filter(|line| !line.starts_with(&format!("{field}:"))).collect();
            let metadata = format!("{others}{field}: {text}\n");
            let items = [
                Item::file("c/Chart.yaml", &metadata),
                Item::file("c/templates/a.yaml", TEMPLATE),
            ];
            cases.push(Case::of(format!("type: {field} is {kind}"), archive(&items)));
        }
    }
    cases
}

/// Metadata in two files, of which the second is laid over the first, and keys that nearly have a field's name.
pub(super) fn described_twice() -> Vec<Case> {
    const BOTH: &str = "kind: A\na: {{ toJson .Chart }}\n";
    const SUBCHART: &str = "apiVersion: v2\nname: b\nversion: 1.0.0\n";
    let metadata = |more: &str| format!("{CHART}{more}");
    let first = "dependencies: [{name: b, version: 1.0.0, condition: x.on, tags: [u, v], repository: \"https://b\"}]\n\
                 maintainers: [{name: x}, {name: y}]\nkeywords: [a, null, b]\nannotations: {a: b, c: null}\n";
    let cases = [
        (
            "over",
            first,
            "dependencies: [{name: b, version: 1.0.0, tags: [w]}]\nmaintainers: [{email: z}]\n",
        ),
        (
            "shorter",
            first,
            "dependencies: [{name: b}]\nkeywords: [u]\nannotations: {d: e}\n",
        ),
        (
            "nulls",
            first,
            "dependencies: null\nkeywords: null\nannotations: null\nmaintainers: null\nname: null\n",
        ),
        (
            "empty lists",
            first,
            "dependencies: []\nkeywords: []\nannotations: {}\n",
        ),
        ("cases of keys", "AppVersion: x\nAPPVERSION: z\n", "appversion: u\n"),
        ("later case wins", "appVersion: x\nappversion: z\n", ""),
        ("several misfits", "name: [1]\nannotations: [2]\nversion: {}\n", ""),
        (
            "misfits within",
            "maintainers: [{url: [1]}, 7]\nhome: [1]\nkeywords: [[]]\n",
            "",
        ),
        ("numbers too large", "appVersion: 1e100\ndescription: -3.5e39\n", ""),
        (
            "unprintable",
            "description: \"a\\u200bb\\u00adc\\u2028d\\u3000e\\ue000f\\u00a0g\"\n",
            "",
        ),
    ];
    let cases = cases.iter().map(|(name, first, second)| {
        let described = metadata(first);
        let mut items = vec![
            Item::file("c/Chart.yaml", &described),
            Item::file("c/templates/a.yaml", BOTH),
            Item::file("c/charts/b/Chart.yaml", SUBCHART),
        ];
        if !second.is_empty() {
            items.push(Item::file("c/requirements.yaml", *second));
        }
        Case::of(format!("described: {name}"), archive(&items))
    });
    cases.collect()
}

pub(super) fn locks() -> Vec<Case> {
    let mut cases = Vec::new();
    for file in ["Chart.lock", "requirements.lock"] {
        for text in [
            "",
            "text",
            "[]",
            "generated: garbage",
            "generated: 2024-13-01T00:00:00Z",
            "generated: 2024-01-01",
            "generated: \"2024-01-01T00:00:00.5+02:00\"",
            "generated: 7\ndigest: []",
            "generated: null\ndigest: {}\ndependencies: 7",
            "dependencies: [{name: []}]\ndigest: []",
            "dependencies: [7, null]",
            "a: [",
        ] {
            let path = format!("c/{file}");
            let lock = with(vec![Item::file(path.as_str(), text)]);
            cases.push(Case::of(format!("lock: {file} {text:?}"), lock));
        }
    }
    let inner = |text| with(vec![Item::file("c/charts/b/Chart.yaml", text)]);
    cases.push(Case::of("subchart described by a text", inner("bad")));
    cases.push(Case::of("subchart described by a list", inner("[1]")));
    cases.push(Case::of(
        "subchart that is an empty file",
        with(vec![Item::file("c/charts/b.tgz", "")]),
    ));
    cases
}

/// Every way in which octets can fail to be UTF-8, in the middle, before a line break and at the end.
pub(super) fn octets() -> Vec<Case> {
    let mut cases = Vec::new();
    for octets in [
        &b"\x80"[..],
        b"\xc3",
        b"\xc3(",
        b"\xe2\x82",
        b"\xe2(\x82",
        b"\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xff",
    ] {
        for (before, after) in [
            ("a: ", ""),
            ("a: ", "\n"),
            ("a: \"", "\"\n"),
            ("# ", "\na: b\n"),
            ("a: [", "]"),
        ] {
            let text = [before.as_bytes(), octets, after.as_bytes()].concat();
            for file in ["c/values.yaml", "c/templates/b.yaml"] {
                let shown = text.escape_ascii();
                let items = vec![Item::file(file, &text)];
                cases.push(Case::of(format!("octets: {file} {shown}"), with(items)));
            }
        }
    }
    cases
}

pub(super) fn values() -> Vec<Case> {
    let metadata = format!(
        "{CHART}dependencies: [{{name: s, version: 1.0.0, condition: s.on, tags: [t], import-values: [data, {{child: a, parent: p}}]}}]\n"
    );
    let mut cases = Vec::new();
    for (kind, text) in KINDS {
        cases.push(Case::of(
            format!("type: values are {kind}"),
            with(vec![Item::file("c/values.yaml", text)]),
        ));
        let lines = [
            "s: X",
            "global: X",
            "tags: X",
            "tags: {t: X}",
            "s: {on: X}",
            "s: {exports: X}",
            "s: {exports: {data: X}}",
            "s: {a: X}",
            "s: {deep: X}",
            "s: {global: X}",
            "p: X",
        ];
        for line in lines {
            let values = line.replace('X', if text.is_empty() { "~" } else { text });
            let items = [
                Item::file("c/Chart.yaml", &metadata),
                Item::file("c/templates/a.yaml", TEMPLATE),
                Item::file("c/values.yaml", &values),
                Item::file("c/charts/s/Chart.yaml", "name: s\nversion: 1.0.0\n"),
                Item::file(
                    "c/charts/s/values.yaml",
                    "deep: {er: {k: 1}}\nexports: {data: {y: 1}}\na: {z: 1}\nglobal: {g: 1}\n",
                ),
                Item::file("c/charts/s/templates/s.yaml", TEMPLATE),
            ];
            if kind != "nothing" {
                cases.push(Case::of(format!("type: {line} where X is {kind}"), archive(&items)));
            }
        }
    }
    for key in [
        "~",
        "1",
        "1.5",
        "true",
        "[a]",
        "{a: b}",
        "0x1f",
        "2020-01-01",
        "!!binary aGk=",
        "\"\"",
        "<<",
    ] {
        let values = format!("? {key}\n: {{x: 1}}\n");
        cases.push(Case::of(
            format!("type: key {key}"),
            with(vec![Item::file("c/values.yaml", &values)]),
        ));
    }
    cases
}

pub(super) fn user_values() -> Vec<Case> {
    let texts: Vec<(String, Vec<u8>)> = KINDS
        .iter()
        .map(|(kind, text)| (format!("type: user values are {kind}"), text.as_bytes().to_vec()))
        .chain([
            ("no UTF-8: user values".to_owned(), b"a: \xff\n".to_vec()),
            ("no UTF-8: comment of user values".to_owned(), b"a: 1 # \xff\n".to_vec()),
            ("user values with a tab".to_owned(), b"a:\n\tb: 1\n".to_vec()),
            ("user values with a zero".to_owned(), b"a: \0\n".to_vec()),
            (
                "user values with a tag and a comma".to_owned(),
                b"a: [!x, b]\n".to_vec(),
            ),
            (
                "user values in UTF-16".to_owned(),
                b"\xff\xfea\0:\0 \x001\0\n\0".to_vec(),
            ),
            (
                "user values in broken UTF-16".to_owned(),
                b"\xff\xfea\0:\0 \0\0\xd8\n\0".to_vec(),
            ),
            (
                "user values with an anchor in itself".to_owned(),
                b"a: &a [*a]\n".to_vec(),
            ),
        ])
        .collect();
    let case = |(name, values)| Case {
        name,
        archive: with(vec![Item::file("c/values.yaml", "a: {b: 1}\nc: [1]\n")]),
        values: Some(values),
        differs: false,
    };
    texts.into_iter().map(case).collect()
}
