//! What a cluster has stays, and comes back, until it is to go.

use std::sync::Arc;

use http::Method;
use operator_kit::in_memory::{Key, WORKLOAD};
use operator_kit::workload::Dial;
use tempfile::TempDir;

use super::super::{STACK, operated_over, publish, until};
use super::lives::predecessors;
use super::stages::{NEWER, Reached, STAGES, UNCONDITIONAL, is_there, lathe, reaching, reaching_through, soon, tide};
use super::*;
use crate::workloads::tests::{Wires, good_kubeconfig};

/// Else the next process would draw every password anew.
#[test]
fn what_charts_drew_is_written_back_when_somebody_deletes_its_secret_and_nothing_in_the_cluster_changes() {
    let root = TempDir::new().expect("a folder");
    let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
    let files = STACK.into_iter().filter(is_of_class).chain(STAGES);
    let text = |(path, text): (&'static str, &'static str)| match path {
        "clusteraddon.yaml" => (path, UNCONDITIONAL.replace("v1beta2", "v1beta1")),
        _ => (path, text.replace("mesh: fine", "mesh: {{ randAlphaNum 20 | quote }}")),
    };
    let files: Vec<_> = files.map(text).collect();
    publish(root.path(), "docker-harbor-1-34", &files, &["v1"]);
    reaching_through(root.path(), &[], 0, async |Reached { server, workload, .. }| {
        until(|| told(server, NAME, "Ready").starts_with("True/")).await;
        sleep(LONG).await;
        let memo = format!("{NAME}-memo");
        let (before, nets) = (server.find("Secret", &memo), workload.find("ConfigMap", "nets"));
        assert!(before["data"].is_object(), "{before:#}");
        server.delete("Secret", &memo);
        let somebody = json!({ "metadata": { "labels": { "looked-at": "again" } } });
        server.merge(ADDON, NAME, &somebody);
        until(|| !server.find("Secret", &memo).is_null()).await;
        let after = server.find("Secret", &memo);
        assert_ne!(uid(&after), uid(&before));
        assert_eq!(after["data"], before["data"]);
        sleep(LONG).await;
        assert_eq!(workload.find("ConfigMap", "nets"), nets);
        let is_told = |(key, event): (Key, Value)| key.0 == "Event" && event["reason"] == "MemoLost";
        assert!(!server.objects().into_iter().any(is_told), "nothing is lost");
    });
}

#[test]
fn what_somebody_takes_away_in_a_cluster_comes_back_at_once_and_of_a_cluster_that_is_gone_nothing_is_followed() {
    reaching(&[], async |Reached { server, workload, .. }| {
        lathe(workload);
        workload.apply(&tide("high"));
        sleep(LONG).await;
        let before = uid(&workload.find("ConfigMap", "nets"));
        workload.delete("ConfigMap", "nets");
        soon(|| is_there(workload)).await;
        assert_ne!(uid(&workload.find("ConfigMap", "nets")), before);
        sleep(LONG).await;
        assert!(workload.is_watched("ConfigMap", labels::PART_OF));
        server.delete(CLUSTER, "wharf");
        sleep(2 * LONG).await;
        assert_eq!(server.find(ADDON, NAME), Value::Null);
        assert!(!workload.is_watched("ConfigMap", labels::PART_OF));
        let calls = workload.calls();
        sleep(LONG).await;
        assert_eq!(workload.calls(), calls);
    });
}

/// To the Go operator the files of the release were enough, too.
#[test]
fn what_a_cluster_has_is_kept_right_while_its_release_is_not_ready() {
    reaching(&[], async |Reached { server, workload, .. }| {
        lathe(workload);
        workload.apply(&tide("high"));
        until(|| told(server, NAME, "Ready").starts_with("True/")).await;
        server.refuse(Method::PATCH, "ClusterClass", Some("not now"));
        server.delete("ClusterClass", TAG);
        let is_ready = || server.find("ClusterStackRelease", TAG)["status"]["ready"] == true;
        until(|| !is_ready()).await;
        workload.delete("ConfigMap", "nets");
        soon(|| is_there(workload)).await;
        sleep(LONG).await;
        assert!(!is_ready());
        assert!(told(server, NAME, "Ready").starts_with("True/"));
    });
}

/// Somebody deletes what the values are made of together with the Cluster, and who begins anew remembers none.
#[test]
fn what_is_to_go_before_a_deletion_goes_though_nobody_can_make_the_values_of_its_chart_any_more() {
    let root = TempDir::new().expect("a folder");
    let config = format!(
        "{}  BeforeClusterDelete:\n  - {{name: network, action: delete}}\n",
        UNCONDITIONAL.replace("v1beta2", "v1beta1")
    );
    let is_of_class = |(path, _): &(&str, &str)| !path.starts_with("cluster-addon");
    let files = STACK.into_iter().filter(is_of_class).chain(STAGES);
    let text = |(path, text): (&'static str, &'static str)| {
        let is_config = path == "clusteraddon.yaml";
        (path, if is_config { config.clone() } else { text.to_owned() })
    };
    publish(
        root.path(),
        "docker-harbor-1-34",
        &files.map(text).collect::<Vec<_>>(),
        &["v1"],
    );
    install_crypto();
    let (server, workload) = (begin(None), Server::new(&WORKLOAD, None));
    workload.apply(&super::super::namespace("fleet"));
    let wires = || -> Option<Arc<dyn Dial>> { Some(Arc::new(Wires::to(&workload))) };
    let stage = || server.find(ADDON, NAME)["status"]["stages"][0].clone();
    operated_over(wires(), &server, (root.path(), &[]), async |_| {
        with_class(&server);
        server.apply(&values("own", true));
        server.apply(&control_plane("wharf"));
        let mut wharf = with_control_plane(cluster("wharf", TAG));
        wharf["metadata"]["annotations"] = json!({ labels::VALUES_FROM: "secret/own" });
        server.apply(&wharf);
        server.apply(&good_kubeconfig("t"));
        until(|| is_there(&workload) && told(&server, NAME, "Ready").starts_with("True/")).await;
    });
    let finalizers = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
    server.merge(CLUSTER, "wharf", &finalizers);
    server.delete("Secret", "own");
    server.delete(CLUSTER, "wharf");
    operated_over(wires(), &server, (root.path(), &[]), async |_| {
        until(|| !is_there(&workload)).await;
        until(|| stage()["hook"] == "BeforeClusterDelete" && stage()["phase"] == "done").await;
    });
}

#[test]
fn what_was_applied_stays_in_sight_when_the_cluster_takes_a_class_of_somebody_else() {
    reaching(&[], async |Reached { server, workload, .. }| {
        lathe(workload);
        workload.apply(&tide("high"));
        until(|| told(server, NAME, "Ready").starts_with("True/")).await;
        server.apply(&with_control_plane(cluster("wharf", "somebody-elses")));
        sleep(LONG).await;
        assert_eq!(told(server, NAME, "Ready"), "False/ReleaseNotReady");
        assert!(told(server, NAME, "ClusterReady").starts_with("True/"));
        assert!(workload.is_watched("ConfigMap", labels::PART_OF));
    });
}

/// Nothing is put back in the cluster after this has become of the ClusterAddon, of which the watch tells nothing.
fn assert_nothing_is_put_back_after(becomes: impl Fn(&Server)) {
    reaching_through(NEWER.path(), &[], 0, async |Reached { server, workload, .. }| {
        until(|| told(server, NAME, "Ready").starts_with("True/")).await;
        server.stall(ADDON);
        becomes(server);
        let calls = server.calls_about(ADDON, NAME);
        workload.delete("ConfigMap", "nets");
        // A watch that tells nothing begins again after some minutes.
        sleep(Duration::from_secs(10)).await;
        assert!(server.calls_about(ADDON, NAME) > calls, "nobody has asked for it");
        assert!(!is_there(workload));
    });
}

#[test]
fn nothing_is_written_for_a_cluster_addon_that_another_one_took_the_place_of_whatever_the_watch_shows() {
    assert_nothing_is_put_back_after(|server| {
        let before = uid(&server.find(ADDON, NAME));
        server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
        server.delete(ADDON, NAME);
        server.create(ADDON, &predecessors(server, "wharf"));
        assert_ne!(uid(&server.find(ADDON, NAME)), before);
    });
}

#[test]
fn nothing_is_written_for_a_cluster_addon_that_is_being_deleted_while_its_cluster_stays_whatever_the_watch_shows() {
    assert_nothing_is_put_back_after(|server| {
        server.delete(ADDON, NAME);
        assert!(server.find(ADDON, NAME)["metadata"]["deletionTimestamp"].is_string());
    });
}
