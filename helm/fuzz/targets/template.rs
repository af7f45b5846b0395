//! The parser of templates takes any bytes. Files that begin with `_` are parsed and not executed.
#![no_main]

use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let files = vec![
        ("Chart.yaml".to_owned(), "name: c\nversion: 1.0.0\n".into()),
        ("templates/_t.tpl".to_owned(), text.to_vec()),
    ];
    let chart = Chart::from_files(files, &ArchiveLimits::default()).expect("any template loads");
    let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
});
