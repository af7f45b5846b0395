//! What is made of what Jobs and their Pods say in the end.

use serde_json::{Value, json};

use super::super::known::Stage;
use super::super::names;
use super::*;
use crate::stand_ins::{object, plan};
use crate::worker::document::{Document, Surroundings};

const UID: &str = "uid-of-the-job";

fn known(builds: bool) -> Known {
    let object = object("fleet", "ubuntu");
    let (id, attempt) = ("image-2".to_owned(), 2);
    let deed = if builds {
        Deed::Build { id, attempt }
    } else {
        Deed::Transfer {
            id,
            attempt,
            staged: false,
        }
    };
    Known {
        plan: plan(&object, deed),
        name: names::job(&object, attempt),
        uid: UID.to_owned(),
        stage: Stage::Begins,
        is_noted: false,
    }
}

fn report(known: &Known, outcome: &Result<Done, Failure>) -> String {
    let document = Document::of(&known.plan, Surroundings::default()).expect("a document");
    Report::of(&document, outcome).text()
}

/// A Pod whose container of this list ended so.
fn pod(field: &str, name: &str, state: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "pod", "namespace": "fleet",
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": UID, "controller": true }],
        },
        "status": { field: [{ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": state } }] },
    }))
    .expect("a Pod")
}

fn worker(code: i32, message: &str) -> Pod {
    pod(
        "containerStatuses",
        WORKER,
        &json!({ "exitCode": code, "message": message }),
    )
}

fn complete() -> Over {
    Over {
        is_complete: true,
        reason: String::new(),
        message: String::new(),
    }
}

fn failed(reason: &str) -> Over {
    Over {
        is_complete: false,
        reason: reason.to_owned(),
        message: String::new(),
    }
}

fn class(outcome: Result<Done, Failure>) -> FailureClass {
    outcome.expect_err("it failed").class
}

#[test]
fn what_the_program_says_of_itself_is_told() {
    let known = known(false);
    let done = worker(0, &report(&known, &Ok(Done::Sent)));
    assert_eq!(end(&known, &complete(), &[done], &Before::default()), Ok(Done::Sent));
    let quota = Err(Failure::new(FailureClass::Quota, "no room"));
    let full = worker(73, &report(&known, &quota));
    assert_eq!(
        end(&known, &failed("BackoffLimitExceeded"), &[full], &Before::default()),
        quota
    );
}

#[test]
fn the_result_of_a_stranger_is_not_believed() {
    let known = known(false);
    let said = report(&known, &Ok(Done::Sent));
    let mut other = known.clone();
    other.plan.object.uid = "another life".to_owned();
    let of_another = worker(0, &report(&other, &Ok(Done::Sent)));
    let silent = worker(0, "");
    for pods in [vec![of_another], vec![silent], Vec::new()] {
        assert_eq!(
            class(end(&known, &complete(), &pods, &Before::default())),
            FailureClass::JobVanished
        );
    }
    let mut stranger = worker(0, &said);
    stranger.metadata.owner_references.as_mut().expect("owners")[0].uid = "another job".to_owned();
    assert_eq!(
        class(end(&known, &complete(), &[stranger], &Before::default())),
        FailureClass::JobVanished
    );
    // A Job that failed is not done, whatever its program says.
    let outcome = end(
        &known,
        &failed("BackoffLimitExceeded"),
        &[worker(1, &said)],
        &Before::default(),
    );
    assert_eq!(class(outcome), FailureClass::JobVanished);
}

#[test]
fn a_build_that_fails_tells_its_last_lines() {
    let known = known(true);
    let log = "fetching\n\n  \u{1b}[31mdisk full\u{7}\r\nmake: *** [disk] Error 3\n";
    let failed_build = pod(
        "initContainerStatuses",
        BUILD,
        &json!({ "exitCode": 3, "reason": "Error", "message": log }),
    );
    let failure = end(
        &known,
        &failed("BackoffLimitExceeded"),
        &[failed_build],
        &Before::default(),
    )
    .expect_err("it failed");
    assert_eq!(failure.class, FailureClass::BuildFailed { exit: 3 });
    assert_eq!(
        failure.message,
        "the build ended with code 3; its last lines: fetching | [31mdisk full | make: *** [disk] Error 3"
    );
    let wordy = pod(
        "initContainerStatuses",
        BUILD,
        &json!({ "exitCode": 1, "message": "ä".repeat(4000) + " end" }),
    );
    let failure = end(&known, &failed("BackoffLimitExceeded"), &[wordy], &Before::default()).expect_err("it failed");
    assert!(failure.message.ends_with("end") && failure.message.chars().count() < 1300);
    let out_of_memory = pod(
        "initContainerStatuses",
        BUILD,
        &json!({ "exitCode": 137, "reason": "OOMKilled" }),
    );
    let failure = end(
        &known,
        &failed("BackoffLimitExceeded"),
        &[out_of_memory],
        &Before::default(),
    )
    .expect_err("it failed");
    assert!(
        failure.message.contains("raise spec.image.build.resources"),
        "{}",
        failure.message
    );
}

#[test]
fn a_program_that_was_killed_for_its_memory_says_what_to_do() {
    let killed = json!({ "exitCode": 137, "reason": "OOMKilled" });
    let killed = pod("containerStatuses", WORKER, &killed);
    let failure = end(
        &known(false),
        &failed("BackoffLimitExceeded"),
        &[killed],
        &Before::default(),
    )
    .expect_err("it failed");
    assert_eq!(failure.class, FailureClass::OutOfMemory);
    assert!(
        failure.message.contains("raise spec.job.resources"),
        "{}",
        failure.message
    );
}

#[test]
fn a_build_that_leaves_too_much_is_told_so_and_not_tried_again() {
    let evicted = |reason: &str, message: &str| {
        let mut pod = worker(0, "");
        let status = pod.status.as_mut().expect("a status");
        (status.container_statuses, status.reason) = (None, Some(reason.to_owned()));
        status.message = Some(message.to_owned());
        pod
    };
    let words = "Usage of EmptyDir volume \"artifact\" exceeds the limit \"64Mi\".";
    let too_much = [
        evicted("Evicted", &words.replace("EmptyDir", "emptyDir")),
        evicted("Evicted", words),
    ];
    for pod in too_much {
        let class = class(end(
            &known(true),
            &failed("BackoffLimitExceeded"),
            &[pod],
            &Before::default(),
        ));
        assert_eq!(class, FailureClass::BuildFailed { exit: 65 });
    }
    let mut driven = evicted("Evicted", "The node was low on resource: memory.");
    let killed = pod(
        "initContainerStatuses",
        BUILD,
        &json!({ "exitCode": 137, "reason": "Error" }),
    );
    driven.status.as_mut().expect("a status").init_container_statuses =
        killed.status.expect("a status").init_container_statuses;
    let failure = end(
        &known(true),
        &failed("BackoffLimitExceeded"),
        &[driven],
        &Before::default(),
    )
    .expect_err("it failed");
    assert_eq!(failure.class, FailureClass::JobVanished);
    assert!(failure.message.contains("low on resource"), "{}", failure.message);
}

#[test]
fn a_pod_that_somebody_ends_has_not_done_its_work_and_says_nothing_of_why() {
    let known = known(false);
    let why = StopReason::Draining;
    let told = report(&known, &Err(Failure::new(FailureClass::Stopped { why }, "told to end")));
    let ended = end(
        &known,
        &failed("BackoffLimitExceeded"),
        &[worker(1, &told)],
        &Before::default(),
    );
    assert_eq!(class(ended), FailureClass::JobVanished);
}

#[test]
fn a_job_that_took_too_long_is_told_so() {
    let stalled = FailureClass::Stopped {
        why: StopReason::Stalled,
    };
    assert_eq!(
        class(end(&known(false), &failed("DeadlineExceeded"), &[], &Before::default())),
        stalled
    );
    let before = Before {
        held: Some("no node takes it".to_owned()),
        sends: false,
    };
    let held = end(&known(true), &failed("DeadlineExceeded"), &[], &before).expect_err("it failed");
    assert!(
        held.message.ends_with("and was ended; before, no node takes it"),
        "{}",
        held.message
    );
}

#[test]
fn a_build_that_worked_is_not_at_fault_where_its_image_is_not_taken_in_time() {
    let sent = Before {
        held: None,
        sends: true,
    };
    let late =
        |builds, pods: &[Pod], before: &Before| class(end(&known(builds), &failed("DeadlineExceeded"), pods, before));
    assert_eq!(late(true, &[], &sent), FailureClass::Unavailable);
    let built = pod("initContainerStatuses", BUILD, &json!({ "exitCode": 0 }));
    assert_eq!(late(true, &[built], &Before::default()), FailureClass::Unavailable);
    let why = StopReason::Stalled;
    let killed = pod("initContainerStatuses", BUILD, &json!({ "exitCode": 137 }));
    assert_eq!(late(true, &[killed], &Before::default()), FailureClass::Stopped { why });
    assert_eq!(late(false, &[], &sent), FailureClass::Stopped { why });
}

#[test]
fn of_several_pods_the_last_one_counts() {
    let known = known(false);
    let at = |mut pod: Pod, second: u32| {
        let time = json!(format!("2026-01-01T00:00:{second:02}Z"));
        pod.metadata.creation_timestamp = serde_json::from_value(time).expect("a time");
        pod
    };
    let driven = at(worker(143, ""), 1);
    let done = at(worker(0, &report(&known, &Ok(Done::Sent))), 2);
    assert_eq!(
        end(&known, &complete(), &[done, driven], &Before::default()),
        Ok(Done::Sent)
    );
}
