//! Secrets in the namespaces of Clusters: which are read and watched, and from when on.

use super::lives::{foreign, predecessors};
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
