//! Inputs that coverage-guided fuzzing found, as small as they can be, and those that it starts from. Each is tried as every kind of input.

use std::path::{Path, PathBuf};

use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};

use crate::build::{CHART, file};

#[path = "../../../fuzz/src/charts.rs"]
mod targets;

fn inputs() -> Vec<PathBuf> {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = room.join("../fuzz/seeds");
    let mut folders = vec![room.join("tests/hostile/found")];
    folders.extend(["template", "yaml", "chart", "render"].map(|target| seeds.join(target)));
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn what_was_found_once_is_answered() {
    let inputs = inputs();
    assert!(inputs.len() > 5, "only {} inputs", inputs.len());
    for path in inputs {
        let input = std::fs::read(&path).unwrap();
        eprintln!("{}", path.display());
        for target in [targets::template, targets::yaml, targets::chart, targets::render] {
            target(&input);
        }
        let names = ["templates/a.yaml", "values.yaml", "values.schema.json", "Chart.lock"];
        for name in names {
            let files = vec![file("Chart.yaml", CHART), file(name, &input)];
            if let Ok(chart) = Chart::from_files(files, &ArchiveLimits::default()) {
                let _ = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
            }
        }
        let _ = Chart::from_files(vec![file("Chart.yaml", &input)], &ArchiveLimits::default());
    }
}
