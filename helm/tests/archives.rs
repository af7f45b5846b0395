//! Archives that mean harm or are broken are refused with a reason, and nothing makes the library panic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use helm::chart::{ArchiveLimits, LoadError};
use helm::yaml::{self, Node};
use helm::{Chart, RenderOptions};
use proptest::prelude::{any, prop};
use proptest::{prop_assert_eq, prop_oneof, proptest};
use tar::{Builder, EntryType, Header};

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// One entry; the name is written as it is, which the library for archives would not do.
struct Item<'a> {
    name: &'a str,
    entry_type: EntryType,
    data: &'a [u8],
    /// What the header says when it does not say the truth.
    claimed_size: Option<u64>,
}

impl<'a> Item<'a> {
    fn file(name: &'a str, data: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            name,
            entry_type: EntryType::Regular,
            data: data.as_ref(),
            claimed_size: None,
        }
    }

    fn of_type(self, entry_type: EntryType) -> Self {
        Self { entry_type, ..self }
    }
}

fn archive(items: &[Item<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for item in items {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..item.name.len()].copy_from_slice(item.name.as_bytes());
        header.set_entry_type(item.entry_type);
        header.set_mode(0o644);
        header.set_size(item.claimed_size.unwrap_or(item.data.len() as u64));
        header.set_cksum();
        builder.append(&header, item.data).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn load(items: &[Item<'_>]) -> Result<Chart, LoadError> {
    Chart::from_archive(&archive(items), &ArchiveLimits::default())
}

fn error(items: &[Item<'_>]) -> String {
    load(items).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_plain_archive_loads() {
    let chart = load(&[
        Item::file("c/", "").of_type(EntryType::Directory),
        Item::file("c/Chart.yaml", CHART),
        Item::file("c/templates/a.yaml", "kind: A\nname: {{ .Release.Name }}\n"),
    ])
    .unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
    assert_eq!(
        rendering.stdout(),
        b"---\n# Source: c/templates/a.yaml\nkind: A\nname: r\n"
    );
}

#[test]
fn an_archive_within_the_archive_is_a_subchart() {
    let inner = archive(&[
        Item::file("x/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
        Item::file("x/templates/s.yaml", "kind: S\n"),
    ]);
    let chart = load(&[
        Item::file("c/Chart.yaml", CHART),
        Item::file("c/charts/sub-1.0.0.tgz", &inner),
    ])
    .unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
    assert_eq!(rendering.manifests[0].source, "c/charts/sub/templates/s.yaml");
}

#[test]
fn entries_that_point_elsewhere_are_empty_files_as_for_helm() {
    for entry_type in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::Block,
    ] {
        let chart = load(&[
            Item::file("c/Chart.yaml", CHART),
            Item::file("c/notes.txt", "").of_type(entry_type),
            Item::file("c/templates/t.yaml", "notes: {{ .Files.Get \"notes.txt\" | quote }}"),
        ])
        .unwrap();
        let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
        assert_eq!(
            rendering.stdout(),
            b"---\n# Source: c/templates/t.yaml\nnotes: \"\"\n",
            "{entry_type:?}"
        );
    }
    let item = Item::file("c/values.yaml", "").of_type(EntryType::new(b'Z'));
    let refused = error(&[Item::file("c/Chart.yaml", CHART), item]);
    assert!(refused.contains("neither a file nor a directory"), "{refused}");
}

#[test]
fn names_that_lead_out_of_the_chart_are_refused() {
    let chart = || Item::file("c/Chart.yaml", CHART);
    for (name, reason) in [
        ("c/../../etc/passwd", "chart illegally references parent directory"),
        ("c/a/../../x", "chart illegally references parent directory"),
        ("c//etc/passwd", "chart illegally contains absolute paths"),
        (
            "c",
            "chart illegally contains content outside the base directory: \"c\"",
        ),
        ("c/c:/windows", "chart contains illegally named files"),
        ("c\\..\\x", "chart illegally references parent directory"),
        ("Chart.yaml", "chart yaml not in base directory"),
    ] {
        assert_eq!(error(&[chart(), Item::file(name, "x")]), reason, "{name}");
    }
    let files = vec![("/Chart.yaml".to_owned(), CHART.into())];
    assert!(Chart::from_files(files, &ArchiveLimits::default()).is_err());
    let files = vec![("Chart.yaml".to_owned(), CHART.into()), ("../x".to_owned(), Vec::new())];
    assert!(Chart::from_files(files, &ArchiveLimits::default()).is_err());
}

#[test]
fn archives_beyond_the_limits_are_refused() {
    let limits = ArchiveLimits {
        total_bytes: 1_000,
        file_bytes: 600,
        entries: 3,
    };
    let chart = || Item::file("c/Chart.yaml", CHART);
    let load = |items: &[Item<'_>]| Chart::from_archive(&archive(items), &limits).map(|_| ());
    let half = [b'x'; 550];
    assert!(matches!(
        load(&[chart(), Item::file("c/a", &[b'x'; 601])]),
        Err(LoadError::FileTooLarge { name, limit: 600 }) if name == "c/a"
    ));
    assert!(matches!(
        load(&[chart(), Item::file("c/a", &half), Item::file("c/b", &half)]),
        Err(LoadError::TooLarge { limit: 1_000 })
    ));
    let many = [
        chart(),
        Item::file("c/a", "a"),
        Item::file("c/b", "b"),
        Item::file("c/d", "d"),
    ];
    assert!(matches!(load(&many), Err(LoadError::TooManyEntries { limit: 3 })));
    let inner = archive(&[Item::file("x/Chart.yaml", CHART), Item::file("x/b", "b")]);
    let nested = [chart(), Item::file("c/charts/x.tgz", &inner)];
    assert!(
        matches!(load(&nested), Err(LoadError::Subchart { problem, .. }) if matches!(*problem, LoadError::TooManyEntries { .. }))
    );
}

#[test]
fn an_archive_that_unpacks_to_much_more_than_it_is_stops_at_the_limit() {
    let chart = archive(&[Item::file("c/Chart.yaml", CHART)]);
    let mut bomb = chart.clone();
    // Zeros between the entries cost nothing packed and belong to no file.
    let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![0_u8; 1 << 20];
    for _ in 0..300 {
        zeros.write_all(&block).unwrap();
    }
    bomb.extend(zeros.finish().unwrap());
    assert!(bomb.len() < 1 << 20);
    // What is behind the end of the archive is not even read.
    assert!(Chart::from_archive(&bomb, &ArchiveLimits::default()).is_ok());

    let huge = Item {
        claimed_size: Some(1 << 40),
        ..Item::file("c/a", "x")
    };
    assert!(error(&[Item::file("c/Chart.yaml", CHART), huge]).contains("larger than the maximum file size"));
    let zeros = vec![0; 6 << 20];
    let wide = [Item::file("c/Chart.yaml", CHART), Item::file("c/a", &zeros)];
    assert!(error(&wide).contains("larger than the maximum file size"));
}

#[test]
fn archives_that_are_none_are_refused() {
    assert!(matches!(
        Chart::from_archive(b"plain text", &ArchiveLimits::default()),
        Err(LoadError::ReadArchive(_))
    ));
    assert_eq!(error(&[]), "no files in chart archive");
    assert_eq!(
        error(&[Item::file("c/values.yaml", "a: 1")]),
        "Chart.yaml file is missing"
    );
    let whole = archive(&[Item::file("c/Chart.yaml", CHART), Item::file("c/a", &[b'x'; 5_000])]);
    assert!(Chart::from_archive(&whole[..whole.len() / 2], &ArchiveLimits::default()).is_err());
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let below = level - 1;
        let line = format!(
            "a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}]\n"
        );
        text.push_str(&line);
    }
    assert!(yaml::read(text.as_bytes()).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        assert!(yaml::read(text.as_bytes()).is_err());
        assert!(helm::json::decode(text.as_bytes()).is_err());
    }
}

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
        if let Ok(chart) = load(&items) {
            let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
        }
    }

    #[test]
    fn no_change_of_an_archive_makes_the_library_panic(position in 0..2_000_usize, byte in any::<u8>()) {
        let mut builder = Builder::new(Vec::new());
        for (name, data) in [("c/Chart.yaml", CHART), ("c/templates/a.yaml", "a: {{ .Values.x }}")] {
            let mut header = Header::new_ustar();
            header.set_size(data.len() as u64);
            header.set_path(name).unwrap();
            header.set_cksum();
            builder.append(&header, data.as_bytes()).unwrap();
        }
        let mut tar = builder.into_inner().unwrap();
        let position = position % tar.len();
        tar[position] = byte;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&tar).unwrap();
        let _ = Chart::from_archive(&encoder.finish().unwrap(), &ArchiveLimits::default());
    }
}
