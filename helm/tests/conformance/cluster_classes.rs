//! The charts of cluster classes, which the operator renders: those of our own stacks and, where the corpus is there, real ones.

use std::path::{Path, PathBuf};

use helm::Profile;

use crate::call::{Call, Source, difference, for_each};
use crate::lab;
use crate::table::table;

/// The charts with their release names: the first four parts of the tag.
pub(crate) fn cluster_classes(corpus: Option<&Path>) -> Vec<Call> {
    let mut calls = Vec::new();
    let own = class_folders(&lab::room().join("../e2e/stacks"));
    for chart in own.into_iter().filter(|chart| !has_other_languages(chart)) {
        let name = chart.strip_prefix(lab::room().join("../e2e/stacks")).unwrap();
        calls.push(class(name.display().to_string(), &chart, "docker-harbor-1-34"));
    }
    let Some(corpus) = corpus else { return calls };
    for release in lab::entries(&corpus.join("releases")) {
        let tag = file_name(&release);
        let stack: Vec<&str> = tag.splitn(5, '-').take(4).collect();
        for chart in lab::entries(&release).iter().filter(|path| is_class(path)) {
            calls.push(class(file_name(chart), chart, &stack.join("-")));
        }
    }
    for chart in lab::entries(&corpus.join("charts"))
        .iter()
        .filter(|path| is_class(path))
    {
        calls.push(class(file_name(chart), chart, "docker-scs-1-30"));
    }
    calls
}

fn class(name: String, chart: &Path, stack: &str) -> Call {
    Call {
        release: stack.to_owned(),
        namespace: "cluster".to_owned(),
        ..Call::new(name, Source::Path(chart.to_owned()))
    }
}

/// Folders named `cluster-class`, however deep.
fn class_folders(below: &Path) -> Vec<PathBuf> {
    let folders = lab::entries(below).into_iter().filter(|path| path.is_dir());
    folders
        .flat_map(|folder| {
            if folder.ends_with("cluster-class") {
                vec![folder]
            } else {
                class_folders(&folder)
            }
        })
        .collect()
}

/// Whether a chart has templates that are not Helm's, which Helm takes for its own.
fn has_other_languages(chart: &Path) -> bool {
    let templates = lab::entries(&chart.join("templates"));
    templates
        .iter()
        .any(|path| path.extension().is_some_and(|end| end == "tera"))
}

/// Whether an archive is the chart of a cluster class.
fn is_class(path: &Path) -> bool {
    path.to_string_lossy().contains("cluster-class") && path.extension().is_some_and(|end| end == "tgz")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn cluster_classes_render_as_helm_renders_them() {
    let binary = lab::helm(Profile::V3_19);
    let corpus = lab::corpus("cluster classes against helm");
    let calls = cluster_classes(corpus.as_deref());
    let answers = for_each(&calls, |call| (call.ours(), call.theirs(&binary)));
    let (mut rows, mut differences) = (Vec::new(), Vec::new());
    for (call, (ours, theirs)) in calls.iter().zip(answers) {
        // A chart that helm refuses proves nothing here.
        assert!(!theirs.starts_with("Error: "), "{}: {theirs}", call.name);
        let difference = difference(&ours, &theirs);
        let verdict = difference.as_ref().and_then(|difference| difference.lines().next());
        rows.push([
            call.name.clone(),
            theirs.len().to_string(),
            verdict.unwrap_or("equal").to_owned(),
        ]);
        differences.extend(difference.map(|difference| format!("{}: {difference}", call.name)));
    }
    lab::say(&table(["cluster class", "bytes", "against Helm 3.19.0"], &rows));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let least = if corpus.is_some() { 12 } else { 3 };
    assert!(calls.len() >= least, "only {} cluster classes were found", calls.len());
}
