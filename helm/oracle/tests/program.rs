//! What the program says when there is nothing to compare, or nowhere to write to.

use std::{
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
};

fn conformance(charts: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_helm-oracle"))
        .args(["conformance", "--profile", "v4.3", "--charts"])
        .arg(charts)
        .args(more)
        .output()
        .expect("the program is built with its tests")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere/report.json");
    for json in [nowhere.as_path(), folder.path()] {
        let output = conformance(folder.path(), &["--json", json.to_str().unwrap()]);
        let told = format!("error: unable to write {}: ", json.display());
        assert!(error(&output).starts_with(&told), "{}", error(&output));
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn nothing_to_render_is_a_failure_that_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let there_is_none = format!("error: there is no *.tgz below {}", folder.path().display());
    for (more, told) in [
        (&[][..], there_is_none.as_str()),
        (&["--chart", "web"], "error: no chart has web in its path"),
    ] {
        let output = conformance(folder.path(), more);
        let error = error(&output);
        let last = error.lines().last().unwrap_or_default();
        assert!(last.starts_with(told), "{error}");
        assert!(output.stdout.is_empty(), "a table of nothing");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_link_to_no_chart_is_answered_as_helm_answers_it() {
    let folder = tempfile::tempdir().unwrap();
    symlink("nowhere", folder.path().join("dangling.tgz")).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    let output = conformance(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let counts = error(&output).lines().any(|line| line.ends_with("renders of 1 chart"));
    assert!(counts, "{}", error(&output));
}
