//! The presence of ClusterAddons: which Clusters have one, and what becomes of it.

mod kept;
mod lives;
mod secrets;
mod served;
mod shards;
mod stages;

use std::time::Duration;

use crds::labels;
use operator_kit::client::install_crypto;
use operator_kit::in_memory::journey::{assert_same, end, with_every_call_failing};
use operator_kit::in_memory::{Fault, MOST, Server, Write};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{BESIDES, LONG, Part, Played, RELEASES, begin, operated_with, stack, template};

const ADDON: &str = "ClusterAddon";
const CLUSTER: &str = "Cluster";
const PLANE: &str = "KubeadmControlPlane";
const TAG: &str = "docker-harbor-1-34-v1";
/// The ClusterAddon of the Cluster `wharf`.
const NAME: &str = "cluster-addon-wharf";

/// What lets nobody look after add-ons.
const WITHOUT: [&str; 1] = ["--cluster-addons=false"];

/// The journey has more calls than this, or it is not the one that was meant.
const FEWEST: usize = 60;

/// What comes of a journey while an operator looks after add-ons.
fn looked_after<T>(server: &Server, flags: &[&str], journey: impl AsyncFnOnce(&Registry) -> T) -> T {
    install_crypto();
    let came = operated_with(server, RELEASES.path(), flags, journey);
    assert!(server.calls() < MOST, "the operator asks for ever");
    came
}

/// A class of ours.
fn with_class(server: &Server) {
    server.apply(&template("small"));
    server.apply(&stack(&["v1"]));
}

/// A Cluster of this class.
fn cluster(name: &str, class: &str) -> Value {
    let mut cluster = super::cluster(class);
    cluster["metadata"]["name"] = json!(name);
    cluster
}

/// The same with a control plane.
fn with_control_plane(mut cluster: Value) -> Value {
    let name = cluster["metadata"]["name"].clone();
    cluster["spec"]["controlPlaneRef"] = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": PLANE, "name": name, "namespace": "fleet",
    });
    cluster
}

/// A control plane whose API server has answered.
fn control_plane(name: &str) -> Value {
    json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": PLANE,
        "metadata": { "name": name, "namespace": "fleet" },
        "spec": { "version": "v1.34.0" }, "status": { "version": "v1.34.0", "initialized": true },
    })
}

/// The Cluster `wharf` is of a class of ours, and its API server has answered.
fn with_wharf(server: &Server) {
    server.apply(&control_plane("wharf"));
    server.apply(&with_control_plane(cluster("wharf", TAG)));
}

/// A condition of a ClusterAddon, as `status/reason`.
fn told(server: &Server, addon: &str, condition: &str) -> String {
    let addon = server.find(ADDON, addon);
    let conditions = addon["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|found| found["type"] == condition);
    let word = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default();
    format!("{}/{}", word("status"), word("reason"))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// A Secret from which Clusters may take values, or may not.
fn values(name: &str, allowed: bool) -> Value {
    let allows = if allowed { labels::VALUES_ALLOWED } else { "false" };
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": "fleet", "labels": { labels::VALUES: allows } },
        // sesame: open
        "data": { "values.yaml": "c2VzYW1lOiBvcGVu" },
    })
}

/// As if work on the add-ons had begun.
fn begun(server: &Server, addon: &str) {
    let mark = json!({ "metadata": { "annotations": { labels::CONTAINS_GROUP_KINDS: "" } } });
    server.merge(ADDON, addon, &mark);
}

/// The journey: a Cluster that is there before its class, its control plane, a ClusterAddon that somebody deletes, a pause, another Cluster of the name, the end.
async fn travel(server: &Server) -> Vec<Part> {
    let pause = |paused: bool| server.merge(CLUSTER, "wharf", &json!({ "spec": { "paused": paused } }));
    let parts: [&dyn Fn(); 6] = [
        &|| {
            server.apply(&cluster("wharf", TAG));
            with_class(server);
        },
        &|| {
            server.apply(&control_plane("wharf"));
            server.apply(&with_control_plane(cluster("wharf", TAG)));
        },
        &|| server.delete(ADDON, NAME),
        &|| {
            begun(server, NAME);
            pause(true);
        },
        &|| {
            pause(false);
            server.delete(CLUSTER, "wharf");
            server.apply(&cluster("wharf", TAG));
        },
        &|| {
            begun(server, NAME);
            server.delete(CLUSTER, "wharf");
        },
    ];
    let mut ended = Vec::new();
    for part in parts {
        let before = server.calls();
        part();
        sleep(LONG).await;
        ended.push(Part {
            end: end(server, &[]),
            calls: server.calls() - before,
        });
    }
    ended
}

fn play(fault: Option<(usize, Fault)>) -> Played<Part> {
    let server = begin(fault);
    let parts = looked_after(&server, &[], async |_| travel(&server).await);
    let (struck, calls) = server.struck();
    Played { parts, struck, calls }
}

/// Else equal ends might be equally wrong.
fn assert_is_the_journey(parts: &[Part]) {
    let addon = |part: usize| {
        let found = parts[part].end.iter().find(|(key, _)| key.0 == ADDON);
        found.map(|(_, addon)| addon.clone()).unwrap_or_default()
    };
    let says = |part: usize, word: &str| {
        let addon = addon(part);
        assert!(addon["status"].to_string().contains(word), "{part}: {addon:#}");
    };
    says(0, "ControlPlaneNotReady");
    says(3, "Paused");
    says(4, "ControlPlaneNotReady");
    assert_eq!(addon(4).pointer("/metadata/annotations"), None, "it is another one");
    assert_eq!(addon(5), Value::Null);
}

fn every_call_may_fail(fault: Fault) {
    assert_is_the_journey(&play(None).parts);
    with_every_call_failing(fault, FEWEST, play, |part, expected, when| {
        assert_same(&part.end, &expected.end, when);
        let most = expected.calls + BESIDES;
        assert!(part.calls <= most, "{when}: {} calls, at most {most}", part.calls);
    });
}

#[test]
fn whichever_call_about_add_ons_is_refused_the_end_is_the_same() {
    every_call_may_fail(Fault::Refused);
}

#[test]
fn whichever_answer_about_add_ons_is_lost_the_end_is_the_same() {
    every_call_may_fail(Fault::AnswerLost);
}

#[test]
fn a_cluster_addon_is_made_in_the_form_in_which_the_go_operator_makes_it() {
    let server = begin(None);
    looked_after(&server, &["--watch-filter=blue"], async |_| {
        for mut object in [template("small"), stack(&["v1"])] {
            object["metadata"]["labels"] = json!({ labels::WATCH_FILTER: "blue" });
            server.apply(&object);
        }
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
    });
    let (addon, cluster) = (server.find(ADDON, NAME), server.find(CLUSTER, "wharf"));
    let reference = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "wharf", "namespace": "fleet", "uid": uid(&cluster),
    });
    assert_eq!(addon["spec"], json!({ "clusterRef": reference }));
    let owner =
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "wharf", "uid": uid(&cluster) });
    assert_eq!(addon["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(addon["metadata"]["finalizers"], json!([labels::ADDON_FINALIZER]));
    assert_eq!(
        addon["metadata"]["labels"],
        json!({ labels::CLUSTER_NAME: "wharf", labels::WATCH_FILTER: "blue" })
    );
    assert_eq!(told(&server, NAME, "ClusterReady"), "False/ControlPlaneNotReady");
}

/// All reconciles of ClusterAddons so far.
fn reconciles(registry: &Registry) -> u64 {
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, registry).expect("a page");
    let lines = page
        .lines()
        .filter(|line| line.starts_with("stackwright_reconciles_total{kind=\"ClusterAddon\""));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[test]
fn what_changes_in_a_cluster_and_its_control_plane_without_being_a_fact_wakes_nobody() {
    let server = begin(None);
    looked_after(&server, &[], async |registry| {
        with_class(&server);
        with_wharf(&server);
        sleep(LONG).await;
        let before = reconciles(registry);
        for number in 0..30 {
            for (kind, field) in [(CLUSTER, "observedGeneration"), (PLANE, "readyReplicas")] {
                let mut object = server.find(kind, "wharf");
                object["status"][field] = json!(number);
                server.write(kind, "wharf", &Write::Status(&object));
            }
            sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(reconciles(registry), before);
        // A fact of the control plane does.
        let upgraded = json!({ "spec": { "version": "v1.35.0" } });
        server.merge(PLANE, "wharf", &upgraded);
        sleep(LONG).await;
        assert!(reconciles(registry) > before);
    });
}

#[test]
fn class_and_version_of_a_cluster_that_do_not_fit_together_are_told_until_they_do() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        let mut odd = cluster("wharf", TAG);
        odd["spec"]["topology"]["version"] = json!("v1.33.9");
        server.apply(&odd);
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Ready"), "False/VersionMismatch");
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Ready"), "False/ControlPlaneNotReady");
        // The release goes with its stack, but not as long as a Cluster uses it; without a way to it the add-ons say so.
        server.apply(&cluster("wharf", "docker-harbor-1-34-v2"));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "ClusterReady"), "False/ControlPlaneNotReady");
    });
}
