//! The charts.

mod contents;

use tar::EntryType;

use crate::build::{CHART, Item, archive, packed, pax, tar};

/// A chart to render, with its defaults or with a file of values.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) archive: Vec<u8>,
    pub(super) values: Option<Vec<u8>>,
    /// We are known to answer otherwise.
    pub(super) differs: bool,
}

impl Case {
    fn of(name: impl Into<String>, archive: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            archive,
            values: None,
            differs: false,
        }
    }
}

/// What we answer otherwise, as `docs/reference/helm-differences.md` tells.
fn differences() -> Vec<Case> {
    let broken = Item::file("pax", "no record\n").of_type(EntryType::XHeader);
    let cases = [
        Case::of(
            "has names of files that are no UTF-8",
            with(vec![Item::file(b"c/\xff", "x")]),
        ),
        Case::of(
            "is an archive with a broken PAX header",
            with(vec![broken, Item::file("c/x", "x")]),
        ),
    ];
    cases.map(|case| Case { differs: true, ..case }).into()
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
        contents::not_utf8(),
        contents::octets(),
        contents::metadata(),
        contents::described_twice(),
        contents::locks(),
        contents::values(),
        contents::user_values(),
        differences(),
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
