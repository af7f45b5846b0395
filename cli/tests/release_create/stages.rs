//! The stages of add-ons and their conditions: each mistake has its place in the file of the stack, and what cannot be checked is noted.

use std::fs;

use tempfile::TempDir;

use crate::fixture::{create, path, stack_with, text};

#[test]
fn mistakes_in_the_stages_have_a_line_each_with_the_file_of_the_stack_and_status_1() {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let file = stack.path().join("clusteraddon.yaml");
    let stages = fs::read_to_string(&file).unwrap();
    let stages = stages.replacen("action: apply", "action: \"a\\nb\"", 1).replacen(
        "agent.status.numberReady",
        "agent.status.numberRead",
        1,
    );
    fs::write(&file, stages).unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!((made.status.code(), text(&made.stdout)), (Some(1), ""));
    let told: Vec<_> = text(&made.stderr).lines().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    for (line, place) in told.iter().zip(["6: addonStages.", "16:19: waitForPreCondition "]) {
        let start = format!("error: {}:{place}", file.display());
        assert!(line.starts_with(&start), "{line}");
    }
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn what_could_not_be_checked_of_a_condition_is_noted() {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let file = stack.path().join("clusteraddon.yaml");
    let stages = fs::read_to_string(&file).unwrap();
    let of_others = stages.replacen(
        "apiVersion: apps/v1\n        kind: DaemonSet",
        "apiVersion: cilium.io/v2\n        kind: CiliumNode",
        1,
    );
    assert_ne!(of_others, stages);
    fs::write(&file, of_others).unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(
        text(&made.stderr),
        format!(
            "note: {}:16:19: waitForPreCondition of the stage \"welcome\" of AfterControlPlaneInitialized: agent: no schema \
             of CiliumNode in cilium.io/v2 is known: its fields are not checked\n",
            file.display()
        )
    );
}
