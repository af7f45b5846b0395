//! A whole render: the input is files with lines of `=` between them, in the order of the list below.
#![no_main]

use std::sync::Arc;

use helm::answers::{Moment, Seeded};
use helm::chart::ArchiveLimits;
use helm::template::Limits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};
use libfuzzer_sys::fuzz_target;

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

fuzz_target!(|input: &[u8]| {
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
});
