//! Archives that mean harm or are broken are refused with a reason. What Helm makes of them stands in `helms`.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use helm::chart::{ArchiveLimits, LoadError};
use helm::yaml::Node;
use helm::{Chart, RenderOptions};
use tar::EntryType;

use crate::build::{CHART, Item, archive, packed, pax, tar};

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
        ("Chart.yaml/x", "chart yaml not in base directory"),
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
        ..ArchiveLimits::default()
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

    let huge = Item::file("c/a", "x").claiming(1 << 40);
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

/// So many megabytes of zeros, which a gzip may consist of in any number of parts.
fn megabytes(count: usize) -> Vec<u8> {
    let mut one = GzEncoder::new(Vec::new(), Compression::best());
    one.write_all(&vec![0; 1 << 20]).unwrap();
    one.finish().unwrap().repeat(count)
}

#[test]
fn ten_gigabytes_of_zeros_are_not_unpacked() {
    let chart = tar(&[Item::file("c/Chart.yaml", CHART)]);
    // Without the two empty blocks that end it.
    let chart = &chart[..chart.len() - 1024];
    let with = |name: &str, entry_type: EntryType| {
        let header = tar(&[Item::file(name, "").of_type(entry_type).claiming(10 << 30)]);
        [packed(chart), packed(&header[..512]), megabytes(10 << 10)].concat()
    };
    for (name, entry_type, reason) in [
        ("c/values.yaml", EntryType::Regular, "larger than the maximum file size"),
        ("././@LongLink", EntryType::GNULongName, "failed to read"),
        ("pax", EntryType::XHeader, "failed to read"),
        ("pax", EntryType::XGlobalHeader, "failed to read"),
    ] {
        let archive = with(name, entry_type);
        assert!(archive.len() < 16 << 20);
        let limits = ArchiveLimits {
            total_bytes: 10 << 20,
            entries: 100,
            ..ArchiveLimits::default()
        };
        let error = Chart::from_archive(&archive, &limits)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{entry_type:?}: {error}");
    }
}

#[test]
fn of_a_million_entries_the_first_ten_thousand_are_looked_at() {
    let thousand: Vec<_> = (0..1_000).map(|_| Item::file("c/templates/a", "")).collect();
    let thousand = tar(&thousand);
    let thousand = packed(&thousand[..thousand.len() - 1024]);
    let chart = tar(&[Item::file("c/Chart.yaml", CHART)]);
    let archive = [packed(&chart[..chart.len() - 1024]), thousand.repeat(1_000)].concat();
    let error = Chart::from_archive(&archive, &ArchiveLimits::default()).map(|_| ());
    assert!(
        matches!(error, Err(LoadError::TooManyEntries { limit: 10_000 })),
        "{error:?}"
    );
}

#[test]
fn names_that_are_no_utf_8_are_texts_in_files_and_a_broken_header_is_ignored() {
    let prints = "a: [{{ range $path, $_ := .Files }}{{ $path | quote }}, {{ end }}]\n";
    let chart = archive(&[
        Item::file("c/Chart.yaml", CHART),
        Item::file("c/templates/a.yaml", prints),
        Item::file(b"c/\xff", "x"),
        Item::file("pax", "no record\n").of_type(EntryType::XHeader),
        Item::file("c/z", "x"),
    ]);
    let chart = Chart::from_archive(&chart, &ArchiveLimits::default()).unwrap();
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns")).unwrap();
    assert_eq!(
        str::from_utf8(&rendering.stdout()).unwrap(),
        "---\n# Source: c/templates/a.yaml\na: [\"z\", \"\u{fffd}\", ]\n"
    );
}

#[test]
fn names_are_bounded_too() {
    let limits = ArchiveLimits {
        total_bytes: 1_000,
        ..ArchiveLimits::default()
    };
    let files = vec![("Chart.yaml".to_owned(), CHART.into()), ("x".repeat(2_000), Vec::new())];
    let error = Chart::from_files(files, &limits).map(|_| ());
    assert!(matches!(error, Err(LoadError::TooLarge { limit: 1_000 })), "{error:?}");
    // A header of a name is read before the name is known.
    let path = pax("path", &format!("c/{}", "x".repeat(2 << 20)));
    let long = [
        Item::file("c/Chart.yaml", CHART),
        Item::file("pax", &path).of_type(EntryType::XHeader),
        Item::file("c/a", "a"),
    ];
    let error = Chart::from_archive(&archive(&long), &ArchiveLimits::default()).map(|_| ());
    assert!(matches!(error, Err(LoadError::ReadArchive(_))), "{error:?}");
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_no_chart_or_a_smaller_one() {
    let whole = archive(&[
        Item::file("c/Chart.yaml", CHART),
        Item::file("c/a", &[b'x'; 3_000]),
        Item::file("c/templates/a.yaml", "a: {{ .Files.Get \"a\" | len }}\n"),
    ]);
    for length in 0..whole.len() {
        match Chart::from_archive(&whole[..length], &ArchiveLimits::default()) {
            Err(LoadError::ReadArchive(_) | LoadError::Empty) => {}
            Ok(_) if length + 16 > whole.len() => {}
            other => panic!("{length} of {} bytes: {other:?}", whole.len()),
        }
    }
}
