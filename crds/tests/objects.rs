//! Objects as they come over the wire: ours, and those that the Go operator left behind.

use std::{env, fs, io::Write, path::PathBuf};

use crds::{
    ClusterAddon, ClusterStack, ClusterStackRelease,
    cluster_stack::ReleasePhase,
    conditions::Severity,
    providers::{
        docker::{DockerClusterStackRelease, DockerClusterStackReleaseTemplate, DockerNodeImageRelease},
        filestore::{FileStoreClusterStackRelease, FileStoreClusterStackReleaseTemplate, FileStoreNodeImageRelease},
        openstack::{OpenStackClusterStackRelease, OpenStackClusterStackReleaseTemplate, OpenStackNodeImageRelease},
    },
    resource::SyncStatus,
};
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

#[test]
fn good_objects_are_read_without_loss() {
    let mut count = 0;
    for entry in fs::read_dir(directory().join("good")).expect("the objects are there") {
        let path = entry.expect("the directory can be read").path();
        let object: Value = serde_yaml::from_str(&fs::read_to_string(&path).expect("a text file")).expect("YAML");
        let (read, name) = (read(&object), path.display());
        assert_contains(&read.expect("a good object"), &object, &name.to_string());
        count += 1;
    }
    assert!(count >= 10, "only {count} objects");
}

#[test]
fn every_bad_object_and_change_says_why_it_is_refused() {
    for directory in [directory().join("bad"), directory().join("changes")] {
        for entry in fs::read_dir(directory).expect("the objects are there") {
            let path = entry.expect("the directory can be read").path();
            let text = fs::read_to_string(&path).expect("a text file");
            let documents = text.split("\n---\n").count();
            let changes = path.parent().is_some_and(|parent| parent.ends_with("changes"));
            assert_eq!(documents, if changes { 2 } else { 1 }, "{}", path.display());
            let refused = text.lines().next().is_some_and(|line| line.starts_with("# refused: "));
            assert!(
                refused || path.to_string_lossy().ends_with("everything-else.yaml"),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn defaults_fill_in_what_an_older_stack_does_not_say() {
    let stack: ClusterStack = serde_json::from_value(json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": {"name": "old"},
        "spec": {"provider": "docker", "name": "scs", "kubernetesVersion": "1.30"},
    }))
    .expect("a stack");
    assert_eq!(
        serde_json::to_value(&stack.spec).expect("JSON"),
        json!({
            "provider": "docker", "name": "scs", "kubernetesVersion": "1.30", "channel": "stable", "autoSubscribe": true,
            "noProvider": false, "interval": "5m", "drift": "Correct", "helmProfile": "v3.19", "suspend": false, "pruneLimit": "50%",
        })
    );
    assert_eq!(stack.spec.poll_interval(), std::time::Duration::from_mins(5));
    assert_eq!(stack.spec.stem().expect("a stem").to_string(), "docker-scs-1-30");
}

#[test]
fn unknown_words_of_a_status_do_not_make_an_object_unreadable() {
    let release: ClusterStackRelease = serde_json::from_value(json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "metadata": {"name": "x"}, "spec": {},
        "status": {
            "ready": false, "future": 1,
            "resources": [{"kind": "Pod", "status": "half-synced", "health": "Dancing"}],
            "conditions": [{
                "type": "SomethingNew", "status": "False", "severity": "", "lastTransitionTime": "2026-11-21T10:45:08Z", "reason": "New",
            }],
        },
    }))
    .expect("a release");
    let status = release.status.expect("a status");
    assert_eq!(status.resources[0].status, Some(SyncStatus::NotSynced));
    assert_eq!(status.conditions[0].severity, None);
    assert_eq!(status.conditions[0].type_, "SomethingNew");
}

#[test]
fn times_that_are_none_and_unknown_phases_do_not_make_an_object_unreadable() {
    for time in [
        "2026-11-21T10:45:08+99:99",
        "2026-11-21T10:45:08x5Z",
        "9999-12-31T23:59:59.999999999Z",
    ] {
        let stack: ClusterStack = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": {"name": "x"},
            "spec": {"provider": "docker", "name": "scs", "kubernetesVersion": "1.30"},
            "status": {
                "summary": [{"name": "v1", "ready": false, "phase": "dancing"}],
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
            },
        }))
        .expect("a stack");
        let status = stack.status.expect("a status");
        assert_eq!(status.summary[0].phase, ReleasePhase::Unknown);
        assert_eq!(status.conditions[0].last_transition_time.0, Timestamp::UNIX_EPOCH);
        let addon: ClusterAddon = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon", "metadata": {"name": "x"},
            "spec": {"clusterRef": {}},
            "status": {
                "hook": {"name": "BeforeClusterUpgrade", "since": time, "deadline": time},
                "stages": [{"name": "cni", "action": "apply", "phase": "dancing", "since": time}],
            },
        }))
        .expect("an add-on");
        assert_eq!(addon.status.and_then(|status| status.hook?.deadline), None);
    }
}

#[test]
fn objects_of_the_go_operator_are_read_without_loss() {
    let Some(corpus) = env::var_os("STACKWRIGHT_CORPUS").map(PathBuf::from) else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is not set, so no objects of the Go operator are read\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return;
    };
    let mut conditions = Vec::new();
    for file in ["clusterstacks.yaml", "clusterstackreleases.yaml", "clusteraddons.yaml"] {
        let text = fs::read_to_string(corpus.join("takeover").join(file)).expect("the corpus has the file");
        let list: Value = serde_yaml::from_str(&text).expect("YAML");
        let items = list["items"].as_array().expect("a list");
        assert!(!items.is_empty(), "{file}");
        for item in items {
            assert_contains(&read(item).expect("an object of ours"), item, file);
            conditions.extend(item["status"]["conditions"].as_array().into_iter().flatten().cloned());
        }
    }
    let severities: Vec<Severity> = conditions
        .iter()
        .filter_map(|condition| {
            serde_json::from_value::<crds::conditions::Condition>(condition.clone())
                .expect("a condition")
                .severity
        })
        .collect();
    assert!(
        severities.contains(&Severity::Warning),
        "the corpus has a cluster without kubeconfig"
    );
}

/// Reads an object as the type of its kind and writes it again.
fn read(object: &Value) -> Result<Value, serde_json::Error> {
    fn through<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, serde_json::Error> {
        serde_json::to_value(serde_json::from_value::<K>(object.clone())?)
    }
    match object["kind"].as_str() {
        Some("ClusterStack") => through::<ClusterStack>(object),
        Some("ClusterStackRelease") => through::<ClusterStackRelease>(object),
        Some("ClusterAddon") => through::<ClusterAddon>(object),
        Some("OpenStackClusterStackRelease") => through::<OpenStackClusterStackRelease>(object),
        Some("OpenStackClusterStackReleaseTemplate") => through::<OpenStackClusterStackReleaseTemplate>(object),
        Some("OpenStackNodeImageRelease") => through::<OpenStackNodeImageRelease>(object),
        Some("FileStoreClusterStackRelease") => through::<FileStoreClusterStackRelease>(object),
        Some("FileStoreClusterStackReleaseTemplate") => through::<FileStoreClusterStackReleaseTemplate>(object),
        Some("FileStoreNodeImageRelease") => through::<FileStoreNodeImageRelease>(object),
        Some("DockerClusterStackRelease") => through::<DockerClusterStackRelease>(object),
        Some("DockerClusterStackReleaseTemplate") => through::<DockerClusterStackReleaseTemplate>(object),
        Some("DockerNodeImageRelease") => through::<DockerNodeImageRelease>(object),
        kind => Err(serde::de::Error::custom(format!("{kind:?} is none of ours"))),
    }
}

/// Everything of `part` is in `whole`; empty texts, lists and objects may be left out.
fn assert_contains(whole: &Value, part: &Value, path: &str) {
    match part {
        Value::Object(fields) => {
            for (key, value) in fields {
                let empty = value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty);
                if !(empty && whole[key].is_null()) {
                    assert_contains(&whole[key], value, &format!("{path}.{key}"));
                }
            }
        }
        Value::Array(items) => {
            assert_eq!(whole.as_array().map(Vec::len), Some(items.len()), "{path}");
            for (index, item) in items.iter().enumerate() {
                assert_contains(&whole[index], item, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(whole, part, "{path}"),
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/objects")
}
