//! Add-ons in a cluster: what its API server tells of wakes those that it concerns, and nobody asks in between.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, LazyLock};

use http::Method;
use operator_kit::in_memory::WORKLOAD;
use operator_kit::workload::Dial;
use tempfile::TempDir;
use tokio::time::Instant;

use super::super::{RELEASES_DIRECTORY, STACK, operated_over, publish, until};
use super::*;
use crate::workloads::tests::{Wires, good_kubeconfig};

/// What differs from the small stack: a list of stages, the first of which waits for objects of others.
pub(super) const STAGES: [(&str, &str); 4] = [
    (
        "clusteraddon.yaml",
        "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages:\n  AfterControlPlaneInitialized:\n  - name: network\n    action: apply\n    \
         waitForPreCondition:\n      objects:\n      - {key: tide, apiVersion: v1, kind: ConfigMap, name: tide, namespace: fleet}\n      \
         - {key: lathe, apiVersion: example.org/v1, kind: Lathe, name: one, namespace: fleet}\n      \
         conditions: tide.data.level == \"high\" && lathe.spec.speed == 3\n",
    ),
    (
        "cluster-addon/network/Chart.yaml",
        "apiVersion: v2\nname: network\ntype: application\nversion: v0\n",
    ),
    ("cluster-addon/network/values.yaml", "{}\n"),
    (
        "cluster-addon/network/templates/nets.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nets, namespace: fleet}\ndata: {mesh: fine}\n",
    ),
];

pub(super) static STAGED: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
    let files: Vec<_> = STACK.into_iter().filter(is_of_class).chain(STAGES).collect();
    publish(root.path(), "docker-harbor-1-34", &files, &["v1"]);
    root
});

/// The same without anything to wait for, written for a version of Cluster API that the management cluster does not serve.
pub(super) const UNCONDITIONAL: &str = "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\nclusterApiVersion: v1beta2\naddonStages:\n  \
    AfterControlPlaneInitialized:\n  - {name: network, action: apply}\n";

pub(super) static NEWER: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
    let mut files: Vec<_> = STACK.into_iter().filter(is_of_class).chain(STAGES).collect();
    for (path, text) in &mut files {
        if *path == "clusteraddon.yaml" {
            *text = UNCONDITIONAL;
        }
    }
    publish(root.path(), "docker-harbor-1-34", &files, &["v1"]);
    root
});

/// The stage of the network has a minute and may fail, and another comes after it.
static FORGIVING: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let config = "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages:\n  AfterControlPlaneInitialized:\n  - name: network\n    \
        action: apply\n    timeout: 60s\n    onFailure: continue\n    waitForPreCondition:\n      objects:\n      \
        - {key: tide, apiVersion: v1, kind: ConfigMap, name: tide, namespace: fleet}\n      conditions: tide.data.level == \"high\"\n  \
        - {name: crane, action: apply}\n";
    let crane = [
        (
            "cluster-addon/crane/Chart.yaml",
            "apiVersion: v2\nname: crane\ntype: application\nversion: v0\n",
        ),
        ("cluster-addon/crane/values.yaml", "{}\n"),
        (
            "cluster-addon/crane/templates/crane.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crane, namespace: fleet}\n",
        ),
    ];
    let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
    let files = STACK.into_iter().filter(is_of_class).chain(STAGES).chain(crane);
    let text =
        |(path, text): (&'static str, &'static str)| (path, if path == "clusteraddon.yaml" { config } else { text });
    publish(
        root.path(),
        "docker-harbor-1-34",
        &files.map(text).collect::<Vec<_>>(),
        &["v1"],
    );
    root
});

/// The cluster says what its kinds have, of lathes an integer of this name.
pub(super) fn publish_kinds(workload: &Server, field: &str) {
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    workload.publish(
        "v1",
        "ConfigMap",
        &json!({ "type": "object", "properties": { "data": map } }),
    );
    let spec = json!({ "type": "object", "properties": { field: { "type": "integer" } } });
    workload.publish(
        "example.org/v1",
        "Lathe",
        &json!({ "type": "object", "properties": { "spec": spec } }),
    );
}

/// The management cluster, and one that is reached from there.
pub(super) struct Reached {
    pub(super) server: Server,
    pub(super) workload: Server,
    /// It takes requests and answers none.
    hangs: Arc<AtomicBool>,
    /// It refuses everything but the question for its version with this code.
    refuses: Arc<AtomicU16>,
}

/// What comes of a journey while an operator looks after the add-ons of `wharf` in a cluster that is there and answers.
pub(super) fn reaching<T>(flags: &[&str], journey: impl AsyncFnOnce(&Reached) -> T) -> T {
    reaching_through(STAGED.path(), flags, 0, journey)
}

/// The same with these releases, and a cluster that refuses with this code at first.
pub(super) fn reaching_through<T>(
    releases: &Path,
    flags: &[&str],
    code: u16,
    journey: impl AsyncFnOnce(&Reached) -> T,
) -> T {
    install_crypto();
    let (server, workload) = (begin(None), Server::new(&WORKLOAD, None));
    workload.apply(&super::super::namespace("fleet"));
    workload.hide(Some("example.org"));
    publish_kinds(&workload, "speed");
    let wires = Wires::to(&workload);
    let (hangs, refuses) = (Arc::clone(&wires.hangs), Arc::clone(&wires.refuses));
    refuses.store(code, Ordering::SeqCst);
    let wires: Arc<dyn Dial> = Arc::new(wires);
    let reached = Reached {
        server,
        workload,
        hangs,
        refuses,
    };
    let server = &reached.server;
    operated_over(Some(wires), server, (releases, flags), async |_| {
        with_class(server);
        with_wharf(server);
        server.apply(&good_kubeconfig("t"));
        sleep(LONG).await;
        journey(&reached).await
    })
}

pub(super) fn tide(level: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "tide", "namespace": "fleet" }, "data": { "level": level },
    })
}

/// From now on there are lathes, and there is one.
pub(super) fn lathe(workload: &Server) {
    workload.hide(None);
    workload.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "lathes.example.org" },
    }));
    workload.apply(&json!({
        "apiVersion": "example.org/v1", "kind": "Lathe", "metadata": { "name": "one", "namespace": "fleet" }, "spec": { "speed": 3 },
    }));
}

/// What the first stage waits for.
pub(super) fn waits_for(server: &Server) -> String {
    let addon = server.find(ADDON, NAME);
    let message = addon.pointer("/status/stages/0/message");
    message.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Waits until something is so, which takes less than a second: whoever is told of what happens needs no more.
pub(super) async fn soon(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    until(is_so).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

pub(super) fn is_there(workload: &Server) -> bool {
    !workload.find("ConfigMap", "nets").is_null()
}

#[test]
fn f46_a_stage_goes_on_as_soon_as_what_it_waits_for_is_so_and_nobody_asks_in_between() {
    reaching(&[], async |Reached { server, workload, .. }| {
        assert_eq!(waits_for(server), "the Lathe fleet/one is not there yet");
        // Discovery is read a moment after a CRD has come.
        lathe(workload);
        soon(|| waits_for(server) == "the ConfigMap fleet/tide is not there yet").await;
        assert!(workload.is_watched_by_name("ConfigMap", "tide"));
        // What comes of a CRD is followed for a while.
        sleep(LONG).await;
        let reads = workload.calls_about("ConfigMap", "tide");
        sleep(5 * LONG).await;
        assert_eq!(workload.calls_about("ConfigMap", "tide"), reads);
        assert!(workload.is_watched_by_name("Lathe", "one"));
        workload.apply(&tide("low"));
        soon(|| waits_for(server) == "`tide.data.level == \"high\"` is false: tide.data.level is \"low\"").await;
        workload.apply(&tide("high"));
        soon(|| is_there(workload)).await;
        sleep(LONG).await;
        assert!(told(server, NAME, "Ready").starts_with("True/"));
        assert!(
            !workload.is_watched_by_name("ConfigMap", "tide"),
            "nothing waits for it"
        );
        assert!(!workload.is_watched_by_name("Lathe", "one"));
    });
}

#[test]
fn without_a_watch_what_a_stage_waits_for_is_read_now_and_then() {
    reaching(&["--workload-watches=1"], async |Reached { workload, .. }| {
        assert!(!workload.is_watched_by_name("ConfigMap", "tide"));
        lathe(workload);
        sleep(LONG).await;
        workload.apply(&tide("high"));
        let begun = Instant::now();
        until(|| is_there(workload)).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    });
}

#[test]
fn without_a_watch_what_a_finalizer_kept_is_known_to_be_gone_soon_after_it_is() {
    reaching(&["--workload-watches=1"], async |Reached { workload, .. }| {
        lathe(workload);
        workload.apply(&tide("high"));
        until(|| is_there(workload)).await;
        let finalizers = |finalizers: Value| {
            let patch = json!({ "metadata": { "finalizers": finalizers } });
            workload.merge("ConfigMap", "nets", &patch);
        };
        finalizers(json!(["example.org/theirs"]));
        let before = uid(&workload.find("ConfigMap", "nets"));
        workload.delete("ConfigMap", "nets");
        // Its kind is listed in between.
        sleep(Duration::from_mins(15)).await;
        assert!(!workload.is_watched("ConfigMap", labels::PART_OF));
        assert_eq!(uid(&workload.find("ConfigMap", "nets")), before);
        finalizers(Value::Null);
        assert!(!is_there(workload));
        let begun = Instant::now();
        until(|| is_there(workload)).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    });
}

#[test]
fn a_stage_that_may_fail_holds_what_follows_for_its_time_and_is_done_when_it_can_be() {
    reaching_through(
        FORGIVING.path(),
        &[],
        0,
        async |Reached { server, workload, .. }| {
            let stage = || server.find(ADDON, NAME)["status"]["stages"][0].clone();
            assert!(
                !workload.find("ConfigMap", "crane").is_null(),
                "nothing waits for it any more"
            );
            assert!(!is_there(workload));
            assert_eq!(stage()["passedOver"], true, "{:#}", stage());
            assert!(told(server, NAME, "Ready").starts_with("False/"), "nor is all done");
            workload.apply(&tide("high"));
            soon(|| is_there(workload)).await;
            sleep(LONG).await;
            assert!(told(server, NAME, "Ready").starts_with("True/"));
            assert_eq!(
                (&stage()["phase"], &stage()["passedOver"]),
                (&json!("done"), &Value::Null)
            );
        },
    );
}

/// With its first release that could not be downloaded the Go operator ended, or never downloaded another one.
#[test]
fn f9_a_release_that_cannot_be_had_ends_nobody_and_its_add_ons_come_once_it_can() {
    let root = TempDir::new().expect("a folder");
    let files = |mesh: &'static str| {
        let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
        let files = STACK.into_iter().filter(is_of_class).chain(STAGES);
        let text = move |path: &str, text: &str| match path {
            "clusteraddon.yaml" => UNCONDITIONAL.replace("v1beta2", "v1beta1"),
            _ => text.replace("mesh: fine", mesh),
        };
        files
            .map(move |(path, given)| (path, text(path, given)))
            .collect::<Vec<_>>()
    };
    publish(root.path(), "docker-harbor-1-34", &files("mesh: fine"), &["v1"]);
    publish(root.path(), "docker-harbor-1-34", &files("mesh: coarse"), &["v2"]);
    let second = "docker-harbor-1-34-v2";
    let (there, away) = (
        root.path().join(RELEASES_DIRECTORY).join(second),
        root.path().join("away"),
    );
    fs::rename(&there, &away).expect("it is taken away");
    reaching_through(root.path(), &[], 0, async |Reached { server, workload, .. }| {
        let mesh = || workload.find("ConfigMap", "nets")["data"]["mesh"].clone();
        until(|| mesh() == "fine").await;
        server.apply(&stack(&["v1", "v2"]));
        server.apply(&with_control_plane(cluster("wharf", second)));
        sleep(LONG).await;
        assert!(
            told(server, NAME, "Ready").starts_with("False/"),
            "{:#}",
            server.find(ADDON, NAME)
        );
        assert_eq!(mesh(), "fine", "what is there stays");
        fs::rename(&away, &there).expect("it is given back");
        let now = json!({ "metadata": { "annotations": { labels::REQUESTED_AT: "now" } } });
        server.merge("ClusterStack", "harbor", &now);
        until(|| mesh() == "coarse" && told(server, NAME, "Ready").starts_with("True/")).await;
    });
}

#[test]
fn what_a_stage_waits_for_and_cannot_be_read_is_read_again_though_nothing_changes() {
    reaching(&[], async |Reached { server, workload, .. }| {
        lathe(workload);
        sleep(LONG).await;
        workload.refuse(Method::GET, "ConfigMap", Some("not now"));
        workload.apply(&tide("high"));
        soon(|| waits_for(server).contains("not now")).await;
        sleep(Duration::from_secs(10)).await;
        workload.refuse(Method::GET, "ConfigMap", None);
        until(|| is_there(workload)).await;
    });
}

#[test]
fn a_cluster_that_no_longer_answers_is_told_and_one_that_answers_again_is_looked_at() {
    reaching(
        &[],
        async |Reached {
                   server,
                   workload,
                   hangs,
                   ..
               }| {
            lathe(workload);
            sleep(LONG).await;
            assert!(told(server, NAME, "ClusterReady").starts_with("True/"));
            hangs.store(true, Ordering::SeqCst);
            until(|| told(server, NAME, "ClusterReady").starts_with("False/")).await;
            workload.apply(&tide("high"));
            sleep(LONG).await;
            assert!(!is_there(workload));
            hangs.store(false, Ordering::SeqCst);
            // It is asked again after a pause, and what happened meanwhile was told by nobody.
            until(|| is_there(workload)).await;
            sleep(LONG).await;
            assert!(told(server, NAME, "ClusterReady").starts_with("True/"));
        },
    );
}

#[test]
fn a_cluster_that_says_its_version_and_refuses_all_else_is_told_with_its_answer_and_without_news_of_it() {
    for code in [429, 503] {
        reaching_through(
            NEWER.path(),
            &[],
            code,
            async |Reached {
                       server,
                       workload,
                       refuses,
                       ..
                   }| {
                let said = || {
                    let addon = server.find(ADDON, NAME);
                    let conditions = addon["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    let applied = conditions.iter().find(|found| found["type"] == "HelmChartApplied");
                    applied.map(|found| found["message"].to_string()).unwrap_or_default()
                };
                let why =
                    "ConfigMap cannot be watched: failed to read which kinds the API server serves: not now, request ";
                until(|| said().contains(why)).await;
                let version = || server.find(ADDON, NAME)["metadata"]["resourceVersion"].clone();
                sleep(Duration::from_secs(30)).await;
                let before = version();
                // The stage has half an hour.
                sleep(Duration::from_mins(10)).await;
                assert_eq!(version(), before, "{}", said());
                refuses.store(0, Ordering::SeqCst);
                until(|| is_there(workload)).await;
            },
        );
    }
}

#[test]
fn values_that_get_the_cluster_in_another_version_than_the_release_names_are_told_beside_what_is_ready() {
    reaching_through(NEWER.path(), &[], 0, async |Reached { server, workload, .. }| {
        until(|| is_there(workload)).await;
        sleep(LONG).await;
        assert_eq!(told(server, NAME, "Ready"), "True/ClusterVersionNotServed");
        assert_eq!(
            told(server, NAME, "ClusterAddonConfigValidated"),
            "True/ClusterVersionNotServed"
        );
    });
}
