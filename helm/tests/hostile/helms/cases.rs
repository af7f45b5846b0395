//! The charts.

use tar::EntryType;

use crate::build::{CHART, Item, archive, packed, pax, tar};

/// A chart to render, with its defaults or with a file of values.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) archive: Vec<u8>,
    pub(super) values: Option<Vec<u8>>,
}

impl Case {
    fn of(name: impl Into<String>, archive: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            archive,
            values: None,
        }
    }
}

/// Prints what was loaded.
const TEMPLATE: &str =
    "kind: A\nvalues: {{ toJson .Values }}\nfiles: [{{ range $path, $_ := .Files }}{{ $path | quote }}, {{ end }}]\n";

pub(super) fn all() -> Vec<Case> {
    [
        names(),
        entries(),
        sizes(),
        gzips(),
        subcharts(),
        not_utf8(),
        metadata(),
        values(),
        user_values(),
    ]
    .concat_all()
}

trait Concat {
    fn concat_all(self) -> Vec<Case>;
}

impl<const N: usize> Concat for [Vec<Case>; N] {
    fn concat_all(self) -> Vec<Case> {
        self.into_iter().flatten().collect()
    }
}

/// The chart with more entries.
fn with(items: Vec<Item<'_>>) -> Vec<u8> {
    let mut all = vec![
        Item::file("c/Chart.yaml", CHART),
        Item::file("c/templates/a.yaml", TEMPLATE),
    ];
    all.extend(items);
    archive(&all)
}

fn names() -> Vec<Case> {
    let odd: &[&[u8]] = &[
        b"c/../../etc/passwd",
        b"c/a/../../x",
        b"c/a/../b",
        b"c/..x",
        b"c/..",
        b"c/a/..",
        b"c//etc/passwd",
        b"/c/x",
        b"/x",
        b"x",
        b"c",
        b"c/.",
        b"c/./x",
        b"./c/x",
        b"../c/x",
        b"other/x",
        b"c/c:/windows",
        b"c/C:",
        b"c/c:x",
        b"c\\x",
        b"c\\a\\b",
        b"c\\..\\x",
        b"c\\c:\\x",
        b"c:\\c\\x",
        b"\\c\\x",
        b"c/a\\b",
        b"c/templates\\b.yaml",
        b"c/x\0y",
        b"c/a b",
        b"c/a\nb",
        b"c/ ",
        b"Chart.yaml",
        b"c/Chart.yaml/x",
        b"c/templates",
        b"c/charts/x",
        b"c/charts/README",
        b"c/charts/_x/Chart.yaml",
        b"c/charts/.x/Chart.yaml",
        b"c/charts/x.prov",
        b"c/charts",
        b"c/templates/",
    ];
    let case = |name: &&[u8]| {
        let shown = String::from_utf8_lossy(name).escape_debug().to_string();
        Case::of(format!("name {shown}"), with(vec![Item::file(*name, "")]))
    };
    let windows = [
        Item::file("c\\Chart.yaml", CHART),
        Item::file("c\\templates\\a.yaml", TEMPLATE),
    ];
    let whole = Case::of("names with backslashes only", archive(&windows));
    odd.iter().map(case).chain([whole]).collect()
}

fn entries() -> Vec<Case> {
    let types = [
        ("hard link", EntryType::Link),
        ("symbolic link", EntryType::Symlink),
        ("character device", EntryType::Char),
        ("block device", EntryType::Block),
        ("pipe", EntryType::Fifo),
        ("directory", EntryType::Directory),
        ("continuous file", EntryType::Continuous),
        ("unknown type", EntryType::new(b'Z')),
    ];
    let mut cases = Vec::new();
    for (name, entry_type) in types {
        cases.push(Case::of(
            format!("entry that is a {name}"),
            with(vec![Item::file("c/x", "").of_type(entry_type)]),
        ));
        cases.push(Case::of(
            format!("values that are a {name}"),
            with(vec![Item::file("c/values.yaml", "").of_type(entry_type)]),
        ));
    }
    let path = pax("path", "c/y");
    let away = pax("path", "c/../../y");
    let long = format!("c/{}", "x".repeat(300));
    cases.extend([
        Case::of(
            "path in a header",
            with(vec![
                Item::file("pax", &path).of_type(EntryType::XHeader),
                Item::file("c/x", "x"),
            ]),
        ),
        Case::of(
            "path in a header that leads away",
            with(vec![
                Item::file("pax", &away).of_type(EntryType::XHeader),
                Item::file("c/x", "x"),
            ]),
        ),
        Case::of(
            "path in a global header",
            with(vec![
                Item::file("pax", &path).of_type(EntryType::XGlobalHeader),
                Item::file("c/x", "x"),
            ]),
        ),
        Case::of(
            "long name",
            with(vec![
                Item::file("././@LongLink", &long).of_type(EntryType::GNULongName),
                Item::file("c/x", "x"),
            ]),
        ),
        Case::of(
            "two metadata",
            with(vec![Item::file("c/Chart.yaml", "description: second\n")]),
        ),
        Case::of(
            "two values",
            with(vec![
                Item::file("c/values.yaml", "a: 1\nb: 1\n"),
                Item::file("c/values.yaml", "a: 2\n"),
            ]),
        ),
        Case::of(
            "two templates of a name",
            with(vec![Item::file("c/templates/a.yaml", "kind: B\n")]),
        ),
        Case::of(
            "two files of a name",
            with(vec![Item::file("c/x", "1"), Item::file("c/x", "2")]),
        ),
        Case::of("no entries", archive(&[])),
        Case::of(
            "a directory only",
            archive(&[Item::file("c/", "").of_type(EntryType::Directory)]),
        ),
        Case::of("no metadata", archive(&[Item::file("c/values.yaml", "a: 1")])),
        Case::of(
            "bytes order marks",
            archive(&[
                Item::file("c/Chart.yaml", &format!("\u{feff}{CHART}")),
                Item::file("c/values.yaml", "\u{feff}a: 1\n"),
                Item::file("c/templates/a.yaml", &format!("\u{feff}{TEMPLATE}")),
            ]),
        ),
    ]);
    cases
}

fn sizes() -> Vec<Case> {
    let most = vec![b'x'; 5 << 20];
    let more = vec![b'x'; (5 << 20) + 1];
    vec![
        Case::of("file of the largest size", with(vec![Item::file("c/x", &most)])),
        Case::of("file beyond the largest size", with(vec![Item::file("c/x", &more)])),
        Case::of(
            "entry that claims more than there is",
            with(vec![Item::file("c/x", "x").claiming(4_000)]),
        ),
        Case::of(
            "entry that claims less than there is",
            with(vec![Item::file("c/x", &most[..2_000]).claiming(10)]),
        ),
        Case::of(
            "entry that claims a terabyte",
            with(vec![Item::file("c/x", "x").claiming(1 << 40)]),
        ),
    ]
}

fn gzips() -> Vec<Case> {
    let items = || {
        vec![
            Item::file("c/Chart.yaml", CHART),
            Item::file("c/templates/a.yaml", TEMPLATE),
        ]
    };
    let (plain, whole) = (tar(&items()), archive(&items()));
    let mut wrong_sum = whole.clone();
    let place = wrong_sum.len() - 6;
    wrong_sum[place] ^= 0xff;
    let mut wrong_length = whole.clone();
    let place = wrong_length.len() - 1;
    wrong_length[place] ^= 0xff;
    let mut damaged = plain.clone();
    damaged[0] ^= 1;
    vec![
        Case::of("gzip cut in half", whole[..whole.len() / 2].to_vec()),
        Case::of("gzip without its end", whole[..whole.len() - 8].to_vec()),
        Case::of("gzip with a wrong checksum", wrong_sum),
        Case::of("gzip with a wrong length", wrong_length),
        Case::of("gzip with more behind it", [&whole[..], b"more"].concat()),
        Case::of(
            "gzip in two parts",
            [packed(&plain[..700]), packed(&plain[700..])].concat(),
        ),
        Case::of("gzip of nothing", packed(b"")),
        Case::of("gzip of text", packed(b"text")),
        Case::of("gzip of a long text", packed(&b"text ".repeat(1_000))),
        Case::of("header of a gzip only", whole[..10].to_vec()),
        Case::of("no bytes", Vec::new()),
        Case::of("text", b"text\n".to_vec()),
        Case::of("tar without gzip", plain.clone()),
        Case::of("tar without its end", packed(&plain[..plain.len() - 1_024])),
        Case::of("tar cut in a header", packed(&plain[..1_200])),
        Case::of("tar cut in a file", packed(&plain[..1_600])),
        Case::of("tar with a wrong checksum", packed(&damaged)),
        Case::of("tar with more behind its end", packed(&[&plain[..], &plain].concat())),
    ]
}

fn subcharts() -> Vec<Case> {
    let inner = archive(&[
        Item::file("s/Chart.yaml", "name: s\nversion: 1.0.0\n"),
        Item::file("s/templates/s.yaml", "kind: S\n"),
    ]);
    let inside = |name: &str, data: &[u8]| with(vec![Item::file(name, data)]);
    vec![
        Case::of("subchart in an archive", inside("c/charts/s.tgz", &inner)),
        Case::of(
            "subchart in an archive of another name",
            inside("c/charts/other-9.tgz", &inner),
        ),
        Case::of("subchart in a hidden archive", inside("c/charts/.s.tgz", &inner)),
        Case::of("subchart in an archive in a folder", inside("c/charts/a/s.tgz", &inner)),
        Case::of(
            "subchart in an archive cut in half",
            inside("c/charts/s.tgz", &inner[..inner.len() / 2]),
        ),
        Case::of("subchart in an archive that is none", inside("c/charts/s.tgz", b"text")),
        Case::of(
            "subchart in an archive that leads away",
            inside("c/charts/s.tgz", &archive(&[Item::file("s/../../x", "")])),
        ),
        Case::of("subchart without metadata", inside("c/charts/s/values.yaml", b"a: 1")),
    ]
}

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
fn not_utf8() -> Vec<Case> {
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

fn metadata() -> Vec<Case> {
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

fn values() -> Vec<Case> {
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

fn user_values() -> Vec<Case> {
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
    };
    texts.into_iter().map(case).collect()
}
