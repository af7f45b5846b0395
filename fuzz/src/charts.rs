//! What must hold of the chart engine, whatever it is given: nothing panics, overflows its stack, hangs, or takes more memory than its limits
//! promise. What it renders is compared with the real Helm elsewhere.

use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use helm::answers::{Moment, Seeded};
use helm::chart::ArchiveLimits;
use helm::template::Limits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions, json, yaml as documents};

/// Files of a chart, in the order in which an input has them, with lines of `=` between them.
const NAMES: [&str; 6] = [
    "templates/a.yaml",
    "values.yaml",
    "values.schema.json",
    "templates/_helpers.tpl",
    "charts/sub/values.yaml",
    "data.txt",
];

const METADATA: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n\
                        - {name: sub, version: '>0', alias: other, condition: on, import-values: [data]}\n";

/// The parser of templates takes any bytes. Files that begin with `_` are parsed and not executed.
pub(crate) fn template(text: &[u8]) {
    let files = vec![
        ("Chart.yaml".to_owned(), "name: c\nversion: 1.0.0\n".into()),
        ("templates/_t.tpl".to_owned(), text.to_vec()),
    ];
    let chart = Chart::from_files(files, &ArchiveLimits::default()).expect("any template loads");
    let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
}

/// The readers of documents take any bytes, and what is written of a document reads back.
pub(crate) fn yaml(text: &[u8]) {
    let _ = json::decode(text);
    let Ok(decoded) = documents::read(text) else { return };
    let written = documents::emit(&decoded.node);
    // Go writes `<<` as it is and then takes it for a merge.
    if !written.contains("<<") {
        documents::read(written.as_bytes()).expect("what is written can be read");
    }
}

/// Charts load from any archive or end with an error. The input is the tar format: compressed, chance would get no further than a checksum.
pub(crate) fn chart(archive: &[u8]) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(archive).expect("memory takes all bytes");
    let packed = packed.finish().expect("memory takes all bytes");
    let _ = Chart::from_archive(&packed, &ArchiveLimits::default());
    let _ = Chart::from_archive(archive, &ArchiveLimits::default());
}

/// A whole render.
pub(crate) fn render(input: &[u8]) {
    let mut files = vec![
        ("Chart.yaml".to_owned(), METADATA.into()),
        ("charts/sub/Chart.yaml".to_owned(), "name: sub\nversion: 1.0.0\n".into()),
    ];
    let mut rest = input;
    for name in NAMES {
        let end = rest.windows(3).position(|window| window == b"\n=\n");
        files.push((name.to_owned(), rest[..end.unwrap_or(rest.len())].to_vec()));
        rest = end.map_or(&[], |end| &rest[end + 3..]);
    }
    let Ok(chart) = Chart::from_files(files, &ArchiveLimits::default()) else {
        return;
    };
    let moment = Moment {
        seconds: 1_700_000_000,
        nanoseconds: 0,
    };
    let options = RenderOptions {
        limits: Limits {
            steps: 20_000,
            depth: 500,
            output: 1 << 20,
        },
        answers: Arc::new(Seeded::new([7; 32], moment)),
        ..RenderOptions::new("r", "ns")
    };
    let _ = chart.render(&Node::Null, &options).map(|rendering| rendering.stdout());
}
