//! Images that are built in Jobs, by a stand-in for a cluster that runs them: what a node would do is done here, by the code that the program of a Job
//! has, and the API server is told as a node tells it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crds::labels;
use operator_kit::in_memory::{Fault, Server, Write};
use planning::image::{Done, Failure, FailureClass};
use provider_filestore::FileStores;
use provider_plugin::Identity;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{FEWEST, IMAGE, LONG, begin, disk, files, operated, paused};
use crate::clock::Steady;
use crate::executor::{Order, Pace, errand};
use crate::identity::Connection;
use crate::progress::Ledgers;
use crate::stand_ins::{Anywhere, Disk};
use crate::worker::document::Document;
use crate::worker::report::Report;

const FLAGS: [&str; 3] = ["--jobs", "--worker-image=here", "--job-volume=default=host:/srv"];

/// How often a node looks for work.
const PAUSE: Duration = Duration::from_secs(1);

/// What becomes of the builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builds {
    Well,
    Badly,
    /// They never end.
    Never,
}

fn image() -> Value {
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": { "name": "ubuntu", "namespace": "fleet" },
        "spec": { "store": "default", "image": { "url": "", "name": "ubuntu.raw", "format": "raw", "build": {
            "image": "builder.example/mkosi", "command": ["make", "disk"], "sizeLimit": "64Mi",
        } } },
    })
}

/// The Jobs that nobody has run yet.
fn waiting(server: &Server) -> Vec<Value> {
    let objects = server.objects().into_iter().filter(|(key, _)| key.0 == "Job");
    let is_new = |job: &Value| job["status"].is_null() && job["metadata"]["deletionTimestamp"].is_null();
    objects.map(|(_, job)| job).filter(is_new).collect()
}

/// Runs Jobs for so long.
async fn node(server: &Server, store: &Path, builds: Builds, time: Duration) {
    let mut left = time;
    while left > Duration::ZERO {
        for job in waiting(server) {
            run(server, store, builds, &job).await;
        }
        sleep(PAUSE).await;
        left = left.saturating_sub(PAUSE);
    }
}

async fn run(server: &Server, store: &Path, builds: Builds, job: &Value) {
    let told = &job["spec"]["template"]["metadata"]["annotations"][labels::PLAN];
    let document = Document::read(told.as_str().expect("a plan")).expect("a plan");
    let outcome = match builds {
        Builds::Never => return status(server, job, &json!({ "active": 1, "ready": 0 })),
        Builds::Badly => None,
        Builds::Well => Some(sent(server, store, &document).await),
    };
    let (field, container) = if let Some(outcome) = &outcome {
        let code = i32::from(outcome.is_err());
        let ended = json!({ "exitCode": code, "message": Report::of(&document, outcome).text() });
        (
            "containerStatuses",
            json!({ "name": "worker", "state": { "terminated": ended } }),
        )
    } else {
        let ended = json!({ "exitCode": 3, "message": "no such\nmakefile" });
        (
            "initContainerStatuses",
            json!({ "name": "build", "state": { "terminated": ended } }),
        )
    };
    pod(server, job, field, container);
    let type_ = if matches!(outcome, Some(Ok(_))) {
        "Complete"
    } else {
        "Failed"
    };
    let condition = json!({ "type": type_, "status": "True", "reason": "BackoffLimitExceeded" });
    status(server, job, &json!({ "conditions": [condition] }));
}

/// What the program of the Job does.
async fn sent(server: &Server, store: &Path, document: &Document) -> Result<Done, Failure> {
    let option = format!("default={}", store.display());
    let identity = Identity {
        name: document.cloud.clone(),
        data: std::collections::BTreeMap::new(),
        version: "mounted".to_owned(),
    };
    let stores = FileStores::parse([option.as_str()]).expect("a store");
    let order = Order {
        plan: document.plan(),
        connection: Arc::new(Connection::new(Arc::new(stores), identity, Arc::new(Anywhere)).expect("a connection")),
        files: Some(Disk::of(disk()).files()),
        job: None,
    };
    let ledgers = Ledgers::new(server.client(), "pod-1".to_owned());
    let pace = Pace::new(Steady::start(), order.connection.counts().clone());
    let worked = errand::run(&order, pace, ledgers.open(&order.plan), Box::new(|| true)).await;
    worked.outcome.map_err(|failed| failed.failure)
}

/// Another Pod may have been there, of an earlier Job of this name.
fn pod(server: &Server, job: &Value, field: &str, mut container: Value) {
    for (name, value) in [
        ("image", json!("")),
        ("imageID", json!("")),
        ("ready", json!(false)),
        ("restartCount", json!(0)),
    ] {
        container[name] = value;
    }
    let uid = job["metadata"]["uid"].as_str().expect("a uid");
    server.create(
        "Pod",
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("pod-of-{uid}"), "namespace": "fleet",
                "labels": job["spec"]["template"]["metadata"]["labels"],
                "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid, "controller": true }],
            },
            "status": { field: [container] },
        }),
    );
}

fn status(server: &Server, job: &Value, status: &Value) {
    let name = job["metadata"]["name"].as_str().expect("a name");
    let mut now = server.find("Job", name);
    // Somebody may have deleted it meanwhile.
    if now["metadata"]["uid"] == job["metadata"]["uid"] {
        now["status"] = status.clone();
        server.write("Job", name, &Write::Status(&now));
    }
}

/// Names of everything that is of a Job.
fn of_jobs(server: &Server) -> Vec<String> {
    let kinds = ["Job", "Pod", "ServiceAccount", "Role", "RoleBinding"];
    let objects = server.objects().into_iter().map(|(key, _)| key);
    objects
        .filter(|key| kinds.contains(&key.0))
        .map(|key| format!("{} {}", key.0, key.2))
        .collect()
}

/// Goes the way with this fault: the image is built, and its object deleted. Gives the object in between, and how many calls there were.
fn play(fault: Option<(usize, Fault)>) -> (Value, Vec<(String, u64)>, usize) {
    let (server, store) = (begin(fault), TempDir::new().expect("a folder"));
    let when = || format!("with {fault:?}: {:?}", server.struck());
    let ended = operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        node(&server, store.path(), Builds::Well, LONG).await;
        let (built, files_then) = (server.find(IMAGE, "ubuntu"), files(store.path()));
        server.delete(IMAGE, "ubuntu");
        node(&server, store.path(), Builds::Well, LONG).await;
        assert!(server.find(IMAGE, "ubuntu").is_null(), "{}", when());
        assert_eq!((of_jobs(&server), files(store.path())), (vec![], vec![]), "{}", when());
        (built, files_then)
    });
    (ended.0, ended.1, server.calls())
}

fn assert_is_built((built, files, _): &(Value, Vec<(String, u64)>, usize), when: &str) {
    assert_eq!(built["status"]["ready"], true, "{when}: {built:#}");
    assert_eq!(files[0], ("ubuntu.raw".to_owned(), disk().len() as u64), "{when}");
    let execution = &built["status"]["execution"];
    assert_eq!(
        (&execution["form"], &execution["reason"]),
        (&json!("Job"), &json!("the image is built"))
    );
    let logs = execution["logs"].as_str().expect("a command");
    let job = execution["job"].as_str().expect("a name");
    assert_eq!(logs, format!("kubectl logs -n fleet job/{job} -c build"), "{when}");
}

#[test]
fn an_image_is_built_in_a_job_sent_by_it_and_goes_with_its_object() {
    let played = play(None);
    assert_is_built(&played, "without a fault");
    assert!(played.2 > FEWEST, "the journey has only {} calls", played.2);
}

fn every_call_may_fail(fault: Fault) {
    let (_, _, calls) = play(None);
    for at in 1..=calls {
        assert_is_built(&play(Some((at, fault))), &format!("with call {at} {fault:?}"));
    }
}

#[test]
fn whichever_call_is_refused_the_image_is_built() {
    every_call_may_fail(Fault::Refused);
}

#[test]
fn whichever_answer_is_lost_the_image_is_built() {
    every_call_may_fail(Fault::AnswerLost);
}

#[test]
fn a_build_that_fails_is_told_with_its_last_lines_and_tried_three_times() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        node(&server, store.path(), Builds::Badly, LONG).await;
        let status = server.find(IMAGE, "ubuntu")["status"].clone();
        assert_eq!(status["halted"]["reason"], "BuildFailed", "{status:#}");
        let message = status["lastFailure"]["message"].as_str().expect("a message");
        assert_eq!(
            message,
            "the build ended with code 3; its last lines: no such | makefile"
        );
        assert_eq!(status["phase"], "Failed", "{status:#}");
        // Its logs are there for who reads them, and nobody has its rights any more.
        let left = of_jobs(&server);
        assert_eq!(
            left.iter().filter(|name| name.starts_with("Job ")).count(),
            1,
            "{left:?}"
        );
        assert!(!left.iter().any(|name| name.starts_with("Role")), "{left:?}");
        assert!(files(store.path()).is_empty());
    });
}

#[test]
fn a_cancelled_build_leaves_nothing() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        node(&server, store.path(), Builds::Never, PAUSE * 60).await;
        let status = server.find(IMAGE, "ubuntu")["status"].clone();
        assert_eq!(status["phase"], "Building", "{status:#}");
        server.delete(IMAGE, "ubuntu");
        sleep(PAUSE * 60).await;
        assert!(server.find(IMAGE, "ubuntu").is_null());
        assert_eq!((of_jobs(&server), files(store.path())), (vec![], vec![]));
    });
}

#[test]
fn a_build_that_never_ends_is_ended() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        let mut image = image();
        image["spec"]["image"]["build"]["deadline"] = json!("1m");
        server.apply(&image);
        node(&server, store.path(), Builds::Never, PAUSE * 60 * 17).await;
        let failure = server.find(IMAGE, "ubuntu")["status"]["lastFailure"].clone();
        assert!(
            failure["message"].to_string().contains("longer than it may"),
            "{failure:#}"
        );
    });
}

#[test]
fn the_next_process_goes_on_with_the_job_of_the_last() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let jobs = || -> Vec<String> {
        let objects = server.objects().into_iter().filter(|(key, _)| key.0 == "Job");
        objects.map(|(_, job)| job["metadata"]["uid"].to_string()).collect()
    };
    server.apply(&image());
    let first = operated(&paused(), &server, store.path(), &FLAGS, async || {
        sleep(PAUSE * 30).await;
        jobs()
    });
    assert_eq!(first.len(), 1, "a process that ends leaves its Job alone");
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        sleep(PAUSE * 30).await;
        assert_eq!(jobs(), first, "it is the same one");
        node(&server, store.path(), Builds::Well, LONG).await;
        assert_eq!(server.find(IMAGE, "ubuntu")["status"]["ready"], true);
    });
}

#[test]
fn without_jobs_an_object_that_needs_one_says_what_is_missing() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let told = |flags: &[&str]| {
        operated(&paused(), &server, store.path(), flags, async || {
            server.apply(&image());
            sleep(LONG).await;
            let status = server.find(IMAGE, "ubuntu")["status"].clone();
            assert!(of_jobs(&server).is_empty());
            status["conditions"].to_string()
        })
    };
    let off = told(&[]);
    assert!(
        off.contains("JobsUnavailable") && off.contains("--worker-image"),
        "{off}"
    );
    let without_volume = told(&FLAGS[..2]);
    assert!(without_volume.contains("--job-volume"), "{without_volume}");
    server.deny("Job", false);
    let refused = told(&FLAGS);
    assert!(
        refused.contains("clusterstack-provider-operator-sight-of-jobs"),
        "{refused}"
    );
}

#[test]
fn the_end_of_a_stranger_is_not_that_of_the_job() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        sleep(PAUSE * 10).await;
        let job = waiting(&server).pop().expect("a Job");
        let told = job["spec"]["template"]["metadata"]["annotations"][labels::PLAN].clone();
        let document = Document::read(told.as_str().expect("a plan")).expect("a plan");
        let mut other = job.clone();
        other["metadata"]["uid"] = json!("of-somebody");
        let ended = json!({ "exitCode": 0, "message": Report::of(&document, &Ok(Done::Sent)).text() });
        pod(
            &server,
            &other,
            "containerStatuses",
            json!({ "name": "worker", "state": { "terminated": ended } }),
        );
        let condition = json!({ "type": "Complete", "status": "True" });
        status(&server, &job, &json!({ "conditions": [condition] }));
        sleep(PAUSE * 10).await;
        let status = server.find(IMAGE, "ubuntu")["status"].clone();
        assert_eq!(status["lastFailure"]["reason"], "Progressing", "{status:#}");
        assert!(
            status["lastFailure"]["message"].to_string().contains("left no Pod"),
            "{status:#}"
        );
        assert_ne!(status["ready"], true);
        // Another Job is made, and does it.
        node(&server, store.path(), Builds::Well, LONG).await;
        assert_eq!(server.find(IMAGE, "ubuntu")["status"]["ready"], true);
    });
}

#[test]
fn a_job_of_the_name_that_is_somebody_elses_is_left_alone() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        node(&server, store.path(), Builds::Badly, PAUSE * 30).await;
        let name = server.find(IMAGE, "ubuntu")["status"]["execution"]["job"].clone();
        let name = name.as_str().expect("a name").to_owned();
        server.delete("Job", &name);
        let stranger =
            json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "fleet" } });
        server.apply(&stranger);
        let uid = server.find("Job", &name)["metadata"]["uid"].clone();
        sleep(PAUSE * 120).await;
        assert_eq!(server.find("Job", &name)["metadata"]["uid"], uid);
        let failure = server.find(IMAGE, "ubuntu")["status"]["lastFailure"].clone();
        assert!(
            failure["message"].to_string().contains("not of this object"),
            "{failure:#}"
        );
        server.delete("Job", &name);
        node(&server, store.path(), Builds::Well, LONG).await;
        assert_eq!(server.find(IMAGE, "ubuntu")["status"]["ready"], true);
    });
}

/// A Job of the image that somebody has deleted, and that does not go: its node does not answer.
async fn on_a_dead_node(server: &Server, store: &Path) -> String {
    server.apply(&image());
    node(server, store, Builds::Never, PAUSE * 30).await;
    let name = server.find(IMAGE, "ubuntu")["status"]["execution"]["job"].clone();
    let name = name.as_str().expect("a name").to_owned();
    let held = json!({ "metadata": { "finalizers": ["foregroundDeletion"] } });
    server.merge("Job", &name, &held);
    server.delete("Job", &name);
    name
}

#[test]
fn a_job_on_a_node_that_does_not_answer_holds_up_the_image_no_longer_than_another_attempt() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        let name = on_a_dead_node(&server, store.path()).await;
        node(&server, store.path(), Builds::Well, LONG).await;
        assert!(!server.find("Job", &name).is_null(), "it is still there");
        let status = server.find(IMAGE, "ubuntu")["status"].clone();
        assert_eq!(
            (&status["ready"], &status["attempt"]),
            (&json!(true), &json!(2)),
            "{status:#}"
        );
    });
}

#[test]
fn a_job_on_a_node_that_does_not_answer_does_not_hold_up_the_end_of_its_object() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        let name = on_a_dead_node(&server, store.path()).await;
        server.delete(IMAGE, "ubuntu");
        sleep(LONG).await;
        assert!(!server.find("Job", &name).is_null(), "it is still there");
        assert!(server.find(IMAGE, "ubuntu").is_null());
        assert!(files(store.path()).is_empty());
    });
}

#[test]
fn a_failure_that_the_program_tells_is_told_in_its_words() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &FLAGS, async || {
        server.apply(&image());
        sleep(PAUSE * 10).await;
        let job = waiting(&server).pop().expect("a Job");
        let told = job["spec"]["template"]["metadata"]["annotations"][labels::PLAN].clone();
        let document = Document::read(told.as_str().expect("a plan")).expect("a plan");
        let failure = Failure {
            class: FailureClass::Quota,
            message: "the disk is full".to_owned(),
            request_id: Some("req-9".to_owned()),
            retry_after: None,
            quota: None,
        };
        let ended = json!({ "exitCode": 73, "message": Report::of(&document, &Err(failure)).text() });
        pod(
            &server,
            &job,
            "containerStatuses",
            json!({ "name": "worker", "state": { "terminated": ended } }),
        );
        let condition = json!({ "type": "Failed", "status": "True" });
        status(&server, &job, &json!({ "conditions": [condition] }));
        sleep(PAUSE * 10).await;
        let failure = server.find(IMAGE, "ubuntu")["status"]["lastFailure"].clone();
        assert_eq!(
            (&failure["reason"], &failure["requestId"]),
            (&json!("QuotaExceeded"), &json!("req-9")),
            "{failure:#}"
        );
        assert_eq!(failure["message"], "the disk is full");
    });
}
