//! Properties: no bytes, and no change of good ones, make the library panic or run on.

use helm::chart::ArchiveLimits;
use helm::yaml::{self, Node};
use helm::{Chart, Limits, RenderOptions};
use proptest::prelude::{ProptestConfig, any, prop};
use proptest::{prop_assert_eq, prop_oneof, proptest};

use crate::build::{CHART, File, Item, archive, file, packed, tar};

/// Data as charts have it: strings that need every kind of quoting, nested a little.
fn nodes() -> impl proptest::strategy::Strategy<Value = Node> {
    use proptest::strategy::Strategy as _;
    let leaf = prop_oneof![
        proptest::strategy::Just(Node::Null),
        any::<bool>().prop_map(Node::Bool),
        any::<i64>().prop_map(Node::Int),
        (-1e9..1e9_f64).prop_map(|number| Node::Float(number + 0.25)),
        // Without the characters that the reader refuses or folds.
        "[ -~\n\t\u{a0}-\u{2fff}\u{10000}-\u{10100}]{0,12}".prop_map(Node::Text),
        "(yes|no|0x1f|1e3|~|null|- a|a: b|a #b| a|a |[0-9_:.+-]{1,8}|(word ){15}\n?)".prop_map(Node::Text),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Node::List),
            // Go writes the key `<<` without quotes too, and then reads it as a merge.
            prop::collection::btree_map("[ -;=-~\n]{0,8}", inner, 0..6).prop_map(Node::Map),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_emitted_reads_back_as_the_same(node in nodes()) {
        let text = yaml::emit(&node);
        prop_assert_eq!(yaml::read(text.as_bytes()).map(|decoded| decoded.node), Ok(node), "{}", text);
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = yaml::read(&bytes);
        let _ = helm::json::decode(&bytes);
        let _ = Chart::from_archive(&bytes, &ArchiveLimits::default());
    }

    #[test]
    fn no_text_makes_the_yaml_reader_panic(text in "[ \n\t\r#&*!|>'\"%@`\\-?:,\\[\\]{}\\\\~<=.a-c0-3xuU/\u{85}\u{feff}]{0,40}") {
        let _ = yaml::read(text.as_bytes());
    }

    #[test]
    fn no_chart_makes_the_library_panic(
        metadata in "[a-z0-9:\\- \n\\[\\]{}]{0,30}",
        values in "[a-z0-9:\\- \n\\[\\]{}&*|>]{0,40}",
        template in "([a-z :\n-]|\\{\\{-? ?|-?\\}\\}|\\$x|:=|\\.Values\\.a|include |range |if |end|\"|`|\\|){0,20}",
    ) {
        let metadata = format!("{CHART}{metadata}");
        let items = [
            Item::file("c/Chart.yaml", &metadata),
            Item::file("c/values.yaml", &values),
            Item::file("c/templates/a.yaml", &template),
        ];
        if let Ok(chart) = Chart::from_archive(&archive(&items), &ArchiveLimits::default()) {
            let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
        }
    }
}

/// A chart with something of everything.
fn whole_chart() -> Vec<File> {
    let subchart = "name: sub\nversion: 1.2.3\n";
    let metadata = "description: d\nkubeVersion: '>=1.20-0'\nkeywords: [a]\nmaintainers: [{name: m}]\ndependencies:\n\
                    - {name: sub, version: '^1.0', alias: other, condition: other.enabled, tags: [t], import-values: [data]}\n";
    vec![
        file("Chart.yaml", format!("{CHART}{metadata}")),
        file(
            "values.yaml",
            "a: {b: [1, 2.5, x], c: null}\nother: {enabled: true}\nglobal: &g {k: v}\nagain: {<<: *g}\n",
        ),
        file("values.schema.json", include_str!("found/schema.json")),
        file(
            "templates/_h.tpl",
            "{{ define \"h\" }}{{ $d := dict \"a\" (list 1 \"b\" 2.5) }}{{ toJson (merge $d .Values) }}{{ end }}",
        ),
        file(
            "templates/a.yaml",
            "kind: A\nx: {{ include \"h\" . | quote }}\n{{- range $k, $v := .Values }}\n\
             y-{{ $k }}: {{ printf \"%-5v|%08.3f|%q\" $v 1.5 $k | trunc 40 | squote }}\n{{- else }}\nz: 1\n{{- end }}\n---\n\
             kind: B\nmetadata: {annotations: {helm.sh/hook: test}}\nf: {{ .Files.Get \"data\" | b64enc }}\n\
             t: {{ tpl \"{{ .Release.Name }}\" . }}\nr: {{ regexReplaceAll \"a(b*)\" \"abba\" \"<$1>\" }}\n\
             s: {{ semverCompare \">=1.2 || ^3\" \"1.2.3\" }}\nm: {{ fromToml \"a = [1, {b = 2}]\" | toYaml | nindent 2 }}\n",
        ),
        file(
            "templates/NOTES.txt",
            "{{ with .Values.a }}{{ .b | join \",\" }}{{ end }}",
        ),
        file("charts/sub/Chart.yaml", subchart),
        file("charts/sub/values.yaml", "exports: {data: {y: 1}}\n"),
        file(
            "charts/sub/templates/s.yaml",
            "kind: S\nv: {{ toYaml .Values | nindent 2 }}\n",
        ),
        file("crds/c.yaml", "kind: CustomResourceDefinition\n"),
        file("data", "line\n"),
    ]
}

/// What means something in one of the languages.
const TOKENS: [&str; 32] = [
    "{{",
    "}}",
    "{{- ",
    " -}}",
    "{{ end }}",
    "{{ define \"h\" }}",
    "include \"h\" .",
    "tpl ",
    ".Values",
    "$",
    "(",
    ")",
    "|",
    "\"",
    "`",
    ":=",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    "&a ",
    "*a",
    "!!binary ",
    "!x,",
    "|-\n",
    "<<: ",
    "\n",
    "\u{feff}",
    "\0",
    "9999999999",
];

#[derive(Clone, Debug)]
enum Change {
    Remove(usize),
    Double(usize),
    Insert(usize),
    Byte(u8),
}

/// Where in which file something changes, both as a share of all.
fn changes() -> impl proptest::strategy::Strategy<Value = Vec<(u16, u16, Change)>> {
    use proptest::strategy::Strategy as _;
    let change = prop_oneof![
        (1..40_usize).prop_map(Change::Remove),
        (1..40_usize).prop_map(Change::Double),
        (0..TOKENS.len()).prop_map(Change::Insert),
        any::<u8>().prop_map(Change::Byte),
    ];
    prop::collection::vec((any::<u16>(), any::<u16>(), change), 1..5)
}

fn change(data: &mut Vec<u8>, place: u16, change: &Change) {
    let place = usize::from(place) * data.len() / (usize::from(u16::MAX) + 1);
    match change {
        Change::Remove(length) => drop(data.drain(place..data.len().min(place + length))),
        Change::Double(length) => {
            let again = data[place..data.len().min(place + length)].to_vec();
            data.splice(place..place, again);
        }
        Change::Insert(token) => drop(data.splice(place..place, TOKENS[*token].bytes())),
        Change::Byte(byte) => data.splice(place..data.len().min(place + 1), [*byte]).for_each(drop),
    }
}

fn try_all(chart: &Chart) {
    let options = RenderOptions {
        limits: Limits {
            steps: 50_000,
            depth: 500,
            output: 1 << 20,
        },
        ..RenderOptions::new("r", "ns")
    };
    if let Ok(rendering) = chart.render(&Node::Null, &options) {
        for manifest in rendering.manifests.iter().chain(&rendering.hooks) {
            manifest.document();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_change_of_a_file_makes_a_chart_panic_or_run_on(changes in changes()) {
        let mut files = whole_chart();
        for (position, place, what) in &changes {
            let position = usize::from(*position) % files.len();
            change(&mut files[position].1, *place, what);
        }
        if let Ok(chart) = Chart::from_files(files, &ArchiveLimits::default()) {
            try_all(&chart);
        }
    }

    #[test]
    fn no_change_of_an_archive_makes_it_panic_or_run_on(changes in changes(), inside in any::<bool>()) {
        let files = whole_chart();
        let named: Vec<File> = files.into_iter().map(|(name, data)| (format!("c/{name}"), data)).collect();
        let items: Vec<Item<'_>> = named.iter().map(|(name, data)| Item::file(name, data)).collect();
        // Of the tar format there is only the checksum, behind the compression another one.
        let mut bytes = if inside { tar(&items) } else { archive(&items) };
        for (_, place, what) in &changes {
            change(&mut bytes, *place, what);
        }
        let bytes = if inside { packed(&bytes) } else { bytes };
        if let Ok(chart) = Chart::from_archive(&bytes, &ArchiveLimits::default()) {
            try_all(&chart);
        }
    }
}

#[test]
fn the_chart_that_changes_renders_as_it_is() {
    let chart = Chart::from_files(whole_chart(), &ArchiveLimits::default()).unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
    assert_eq!((rendering.manifests.len(), rendering.hooks.len()), (2, 1));
}
