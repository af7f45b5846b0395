//! Secrets in the namespaces of Clusters: which are read and watched, and from when on.

use crds::redaction;
use http::Method;

use super::super::until;
use super::lives::{foreign, predecessors};
use super::stages::{NEWER, Reached, reaching_through};
use super::*;
use crate::workloads::tests::good_kubeconfig;

#[test]
fn f39_secrets_are_asked_for_from_the_first_cluster_of_ours_on() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        for cluster in foreign() {
            server.apply(&cluster);
        }
        sleep(LONG).await;
        assert_eq!(server.calls_about("Secret", ""), 0);
        for name in ["classic", "foreign", "alike"] {
            for secret in [format!("{name}-kubeconfig"), format!("cluster-addon-{name}-memo")] {
                assert_eq!(server.calls_about("Secret", &secret), 0, "{secret}");
            }
        }
        with_wharf(&server);
        sleep(LONG).await;
        assert!(server.is_watched("Secret", ""));
    });
}

/// Whoever may make ClusterAddons need not have the right to read Secrets.
#[test]
fn f39_no_kubeconfig_is_read_for_a_cluster_of_somebody_elses_class_whatever_is_on_a_cluster_addon_made_by_hand() {
    for has_all in [false, true] {
        let server = begin(None);
        server.apply(&control_plane("foreign"));
        server.apply(&with_control_plane(cluster("foreign", "somebody-elses")));
        let mut by_hand = predecessors(&server, "foreign");
        by_hand["metadata"]["annotations"] = json!({ labels::CONTAINS_GROUP_KINDS: "ConfigMap" });
        if !has_all {
            by_hand["metadata"]["finalizers"] = json!([]);
        }
        server.create(ADDON, &by_hand);
        looked_after(&server, &[], async |_| {
            with_class(&server);
            sleep(LONG).await;
            let somebody = json!({ "metadata": { "labels": { "looked-at": "again" } } });
            server.merge(ADDON, "cluster-addon-foreign", &somebody);
            sleep(LONG).await;
        });
        for secret in ["foreign-kubeconfig", "cluster-addon-foreign-memo"] {
            assert_eq!(server.calls_about("Secret", secret), 0, "{secret}");
        }
        let kept = server.find(ADDON, "cluster-addon-foreign");
        assert_eq!(kept["status"].is_null(), !has_all, "{kept:#}");
    }
}

#[test]
fn f39_the_way_to_a_cluster_ends_when_it_takes_a_class_of_somebody_else_before_anything_was_applied() {
    for is_begun in [false, true] {
        let server = begin(None);
        looked_after(&server, &[], async |_| {
            with_class(&server);
            with_wharf(&server);
            sleep(LONG).await;
            if is_begun {
                begun(&server, NAME);
                sleep(LONG).await;
            }
            assert!(server.is_watched("Secret", ""));
            server.apply(&with_control_plane(cluster("wharf", "somebody-elses")));
            sleep(LONG).await;
            assert!(!server.is_watched("Secret", ""), "{is_begun}");
            let calls = server.calls_about("Secret", "wharf-kubeconfig");
            server.apply(&good_kubeconfig("t"));
            sleep(LONG).await;
            assert_eq!(server.calls_about("Secret", "wharf-kubeconfig"), calls, "{is_begun}");
        });
    }
}

#[test]
fn f39_no_kubeconfig_is_looked_for_by_a_process_that_begins_while_a_cluster_or_its_add_ons_are_paused() {
    let annotated = json!({ "metadata": { "annotations": { labels::PAUSED: "" } } });
    let continued = json!({ "metadata": { "annotations": { labels::PAUSED: null } } });
    for paused in [CLUSTER, ADDON] {
        let server = begin(None);
        let name = if paused == ADDON { NAME } else { "wharf" };
        looked_after(&server, &[], async |_| {
            with_class(&server);
            with_wharf(&server);
            sleep(LONG).await;
        });
        server.merge(paused, name, &annotated);
        let calls = || server.calls_about("Secret", "wharf-kubeconfig");
        let before = calls();
        looked_after(&server, &[], async |_| {
            sleep(LONG).await;
            assert_eq!(told(&server, NAME, "Paused"), "True/Paused");
            assert!(!server.is_watched("Secret", ""), "{paused}");
            assert_eq!(calls(), before, "{paused}");
            server.merge(paused, name, &continued);
            sleep(LONG).await;
            assert!(server.is_watched("Secret", ""), "{paused}");
        });
    }
}

/// Policies repeat what they are shown.
#[test]
fn what_the_api_server_of_a_cluster_says_to_an_object_is_told_without_what_the_cluster_took_from_a_secret() {
    reaching_through(NEWER.path(), &[], 0, async |Reached { server, workload, .. }| {
        server.apply(&values("own", true));
        let named = json!({ "metadata": { "annotations": { labels::VALUES_FROM: "secret/own" } } });
        server.merge(CLUSTER, "wharf", &named);
        sleep(LONG).await;
        assert!(told(server, NAME, "Ready").starts_with("True/"));
        workload.refuse(Method::PATCH, "ConfigMap", Some("denied: data.mesh may not be open"));
        workload.delete("ConfigMap", "nets");
        let said = || server.find(ADDON, NAME)["status"].to_string();
        until(|| said().contains("denied: ")).await;
        let words = format!("denied: data.mesh may not be {}", redaction::HIDDEN);
        assert!(said().contains(&words), "{}", said());
        let objects = server.objects().into_iter().filter(|((kind, ..), _)| *kind != "Secret");
        let repeated = objects.map(|(_, object)| object.to_string());
        assert_eq!(repeated.filter(|object| object.contains("may not be open")).count(), 0);
    });
}

#[test]
fn what_a_cluster_takes_values_from_is_watched_by_its_label_once_one_names_it_and_wakes_nobody_else() {
    const SOON: Duration = Duration::from_secs(10);
    const REFUSED: &str = "False/TemplateNewClusterStackOverwriteFailed";
    let server = begin(None);
    looked_after(&server, &[], async |registry| {
        with_class(&server);
        with_wharf(&server);
        sleep(LONG).await;
        assert!(!server.is_watched("Secret", labels::VALUES));
        let named = json!({ "metadata": { "annotations": { labels::VALUES_FROM: "secret/own" } } });
        server.merge(CLUSTER, "wharf", &named);
        sleep(LONG).await;
        assert!(server.is_watched("Secret", labels::VALUES));
        assert_eq!(told(&server, NAME, "HelmChartTemplated"), REFUSED);
        server.apply(&values("own", true));
        sleep(SOON).await;
        assert_eq!(told(&server, NAME, "HelmChartTemplated"), "/");
        sleep(LONG).await;
        let before = reconciles(registry);
        server.apply(&values("other", true));
        sleep(SOON).await;
        assert_eq!(reconciles(registry), before);
        // Nothing else but the watch tells that consent is taken back.
        server.apply(&values("own", false));
        sleep(SOON).await;
        assert_eq!(told(&server, NAME, "HelmChartTemplated"), REFUSED);
        server.apply(&values("own", true));
        sleep(SOON).await;
        assert_eq!(told(&server, NAME, "HelmChartTemplated"), "/");
        server.delete(CLUSTER, "wharf");
        sleep(LONG).await;
        assert!(
            !server.is_watched("Secret", ""),
            "nobody is left who could take anything"
        );
    });
}
