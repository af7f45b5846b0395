//! Which Clusters are left alone, and whose ClusterAddon goes when.

use operator_kit::in_memory::Key;

use super::super::until;
use super::*;

const RELEASE: &str = "ClusterStackRelease";

/// What the Go operator makes, for whatever Cluster.
pub(super) fn predecessors(server: &Server, name: &str) -> Value {
    let uid = uid(&server.find(CLUSTER, name));
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": ADDON,
        "metadata": {
            "name": format!("cluster-addon-{name}"), "namespace": "fleet", "finalizers": [labels::ADDON_FINALIZER],
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "uid": uid }],
        },
        "spec": { "clusterRef": { "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "namespace": "fleet", "uid": uid } },
    })
}

/// A Cluster without a class, one of somebody else's class, and one of a class that is named like ours.
pub(super) fn foreign() -> [Value; 3] {
    let mut classic = with_control_plane(cluster("classic", ""));
    classic["spec"]["topology"] = Value::Null;
    [
        classic,
        with_control_plane(cluster("foreign", "somebody-elses")),
        with_control_plane(cluster("alike", "docker-ferrol-1-30-v1")),
    ]
}

/// Only a cluster that answers has stages before its deletion.
fn is_up(server: &Server) {
    let mut up = server.find(CLUSTER, "wharf");
    up["status"]["conditions"] = json!([{ "type": "ControlPlaneInitialized", "status": "True" }]);
    server.write(CLUSTER, "wharf", &Write::Status(&up));
}

fn addons(server: &Server) -> Vec<Key> {
    let objects = server.objects().into_iter().map(|(key, _)| key);
    objects.filter(|key| key.0 == ADDON).collect()
}

#[test]
fn a17_clusters_without_a_class_of_ours_get_no_add_ons_and_nobody_asks_about_them() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        for cluster in foreign() {
            server.apply(&cluster);
        }
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
        for name in ["classic", "foreign", "alike"] {
            assert_eq!(server.calls_about(CLUSTER, name), 0, "{name}");
        }
        assert!(
            !server.is_watched(PLANE, ""),
            "their control planes are nobody's business"
        );
        // One of ours beside them is not disturbed.
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        assert_eq!(addons(&server).len(), 1);
    });
}

#[test]
fn what_the_go_operator_made_for_foreign_clusters_stays_as_it_is_and_goes_when_it_is_to_go() {
    let server = begin(None);
    for cluster in foreign() {
        server.apply(&cluster);
    }
    let names = ["classic", "foreign", "alike"].map(|name| format!("cluster-addon-{name}"));
    for name in ["classic", "foreign", "alike"] {
        server.create(ADDON, &predecessors(&server, name));
    }
    looked_after(&server, &[], async |_| {
        with_class(&server);
        let before = names.clone().map(|name| server.find(ADDON, &name));
        sleep(LONG).await;
        assert_eq!(names.clone().map(|name| server.find(ADDON, &name)), before);
        for name in &names {
            server.delete(ADDON, name);
        }
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
    });
}

#[test]
fn what_the_go_operator_made_for_a_cluster_of_ours_is_kept_and_worked_on() {
    let server = begin(None);
    server.apply(&cluster("wharf", TAG));
    let mut addon = predecessors(&server, "wharf");
    addon["spec"]["clusterStack"] = json!(TAG);
    // Somebody made it by hand.
    addon["metadata"]["ownerReferences"] = json!([]);
    server.create(ADDON, &addon);
    let before = server.find(ADDON, NAME);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        sleep(LONG).await;
    });
    let after = server.find(ADDON, NAME);
    assert_eq!((uid(&after), &after["spec"]), (uid(&before), &before["spec"]));
    assert_eq!(told(&server, NAME, "ClusterReady"), "False/ControlPlaneNotReady");
    let owner = after.pointer("/metadata/ownerReferences/0/uid");
    assert_eq!(owner, Some(&json!(uid(&server.find(CLUSTER, "wharf")))));
}

#[test]
fn a_cluster_addon_that_somebody_made_for_no_cluster_is_told_so_once_and_left_as_it_is() {
    let server = begin(None);
    let by_hand = [("cluster-addon-warf", "warf"), ("wharf", "wharf")];
    let unused = || {
        let objects = server.objects().into_iter();
        let events = objects.filter(|(key, event)| key.0 == "Event" && event["reason"] == "ClusterAddonUnused");
        let mut told: Vec<Value> = events.map(|(_, event)| event["regarding"]["name"].clone()).collect();
        told.sort_by_key(Value::to_string);
        told
    };
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        // Of somebody else's Cluster nobody says anything.
        server.apply(&cluster("foreign", "somebody-elses"));
        for (name, of) in by_hand.into_iter().chain([("cluster-addon-foreign", "foreign")]) {
            let addon = json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": ADDON,
                "metadata": { "name": name, "namespace": "fleet" },
                "spec": { "clusterRef": { "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": of } },
            });
            server.create(ADDON, &addon);
        }
        sleep(LONG).await;
        assert_eq!(unused(), by_hand.map(|(name, _)| json!(name)));
        for (name, _) in by_hand {
            let somebody = json!({ "metadata": { "labels": { "looked-at": "again" } } });
            server.merge(ADDON, name, &somebody);
        }
        let before = by_hand.map(|(name, _)| server.find(ADDON, name));
        sleep(LONG).await;
        assert_eq!(by_hand.map(|(name, _)| server.find(ADDON, name)), before);
        assert_eq!(unused().len(), by_hand.len(), "told again");
        // Somebody makes the Cluster after all.
        server.apply(&cluster("warf", TAG));
        until(|| told(&server, "cluster-addon-warf", "ClusterReady") == "False/ControlPlaneNotReady").await;
    });
}

/// An operator that begins sees ClusterAddons and Clusters before it sees releases.
#[test]
fn a_cluster_that_is_to_go_is_not_let_go_by_an_operator_that_has_not_listed_the_releases() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        with_wharf(&server);
        sleep(LONG).await;
        begun(&server, NAME);
    });
    let finalizers = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
    server.merge(CLUSTER, "wharf", &finalizers);
    server.delete(CLUSTER, "wharf");
    server.deny(RELEASE, false);
    looked_after(&server, &[], async |_| {
        let before = server.find(ADDON, NAME);
        sleep(LONG).await;
        assert_eq!(server.find(ADDON, NAME), before);
        server.allow(RELEASE);
        // The end of the list is what wakes.
        until(|| server.find(ADDON, NAME)["status"]["hook"]["name"] == "BeforeClusterDelete").await;
    });
}

/// F15: what comes before the deletion of a cluster is owed by its ClusterAddon, which somebody deletes while nobody can make another one.
#[test]
fn a_cluster_that_goes_right_after_its_cluster_addon_gets_another_one_until_cluster_api_was_told_that_it_may_go() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        with_wharf(&server);
        is_up(&server);
        sleep(LONG).await;
    });
    let before = uid(&server.find(ADDON, NAME));
    let take_away = || {
        server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
        server.delete(ADDON, NAME);
    };
    take_away();
    let finalizers = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
    server.merge(CLUSTER, "wharf", &finalizers);
    server.delete(CLUSTER, "wharf");
    looked_after(&server, &[], async |_| {
        until(|| server.find(ADDON, NAME)["status"]["hook"]["name"] == "BeforeClusterDelete").await;
        assert_ne!(uid(&server.find(ADDON, NAME)), before);
        let may_go = json!({ "metadata": { "annotations": { labels::OK_TO_DELETE: "" } } });
        server.merge(CLUSTER, "wharf", &may_go);
        sleep(LONG).await;
        take_away();
        sleep(LONG).await;
        assert_eq!(addons(&server), [], "what was done is not done again");
    });
}

#[test]
fn no_cluster_addon_is_made_before_those_that_there_are_have_been_listed() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
    });
    server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
    server.delete(ADDON, NAME);
    server.deny(ADDON, false);
    looked_after(&server, &[], async |_| {
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
        server.allow(ADDON);
        until(|| addons(&server).len() == 1).await;
    });
}

#[test]
fn no_cluster_addon_is_made_for_a_cluster_that_is_gone_though_the_watch_shows_it_going() {
    const SOON: Duration = Duration::from_secs(10);
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        with_wharf(&server);
        is_up(&server);
        sleep(SOON).await;
        let finalizers = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
        server.merge(CLUSTER, "wharf", &finalizers);
        server.delete(CLUSTER, "wharf");
        sleep(SOON).await;
        server.stall(CLUSTER);
        server.merge(CLUSTER, "wharf", &json!({ "metadata": { "finalizers": null } }));
        assert_eq!(server.find(CLUSTER, "wharf"), Value::Null);
        // It goes with its Cluster.
        server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
        sleep(SOON).await;
        assert_eq!(addons(&server), []);
    });
}

#[test]
fn a16_a_cluster_has_add_ons_also_when_its_class_is_in_another_namespace() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&super::super::namespace("team"));
        let mut elsewhere = cluster("wharf", TAG);
        elsewhere["metadata"]["namespace"] = json!("team");
        // There is no such class in its own namespace.
        server.apply(&elsewhere);
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
        elsewhere["spec"]["topology"]["classNamespace"] = json!("fleet");
        server.apply(&elsewhere);
        sleep(LONG).await;
        assert_eq!(addons(&server), [(ADDON, "team".to_owned(), NAME.to_owned())]);
    });
}

#[test]
fn an_operator_of_one_namespace_leaves_clusters_elsewhere_alone() {
    let server = begin(None);
    looked_after(&server, &["--namespace=fleet"], async |_| {
        with_class(&server);
        server.apply(&super::super::namespace("team"));
        let mut elsewhere = cluster("reef", TAG);
        elsewhere["metadata"]["namespace"] = json!("team");
        elsewhere["spec"]["topology"]["classNamespace"] = json!("fleet");
        server.apply(&elsewhere);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        assert_eq!(addons(&server), [(ADDON, "fleet".to_owned(), NAME.to_owned())]);
    });
}

#[test]
fn clusters_that_are_there_before_the_operator_begins_get_their_cluster_addons() {
    let server = begin(None);
    install_crypto();
    // By an operator that does not look after add-ons.
    operated_with(&server, RELEASES.path(), &WITHOUT, async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
    });
    assert_eq!(addons(&server), []);
    looked_after(&server, &[], async |_| sleep(LONG).await);
    assert_eq!(addons(&server), [(ADDON, "fleet".to_owned(), NAME.to_owned())]);
}

#[test]
fn f15_a_cluster_addon_that_somebody_deletes_goes_and_is_made_anew() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        for is_begun in [false, true] {
            if is_begun {
                begun(&server, NAME);
            }
            let before = server.find(ADDON, NAME);
            server.delete(ADDON, NAME);
            sleep(LONG).await;
            let after = server.find(ADDON, NAME);
            assert!(!after.is_null() && uid(&after) != uid(&before), "{after:#}");
            assert_eq!(after.pointer("/metadata/deletionTimestamp"), None);
        }
    });
}

#[test]
fn a_cluster_addon_goes_with_its_cluster_and_a_cluster_of_the_same_name_gets_its_own() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        let before = server.find(ADDON, NAME);
        server.delete(CLUSTER, "wharf");
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        let after = server.find(ADDON, NAME);
        assert_ne!(uid(&after), uid(&before));
        let owner = after.pointer("/metadata/ownerReferences/0/uid");
        assert_eq!(owner, Some(&json!(uid(&server.find(CLUSTER, "wharf")))));
        server.delete(CLUSTER, "wharf");
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
    });
}

/// As another process leaves it that has seen what the watch of this one does not show.
fn given_to(server: &Server, uid: &str) {
    let mut owners = server.find(ADDON, NAME)["metadata"]["ownerReferences"].clone();
    owners[0]["uid"] = json!(uid);
    server.merge(ADDON, NAME, &json!({ "metadata": { "ownerReferences": owners } }));
    begun(server, NAME);
}

#[test]
fn no_cluster_addon_is_deleted_because_the_watch_of_clusters_is_behind() {
    // A watch that tells nothing begins again after some minutes: all of this is over by then.
    const SOON: Duration = Duration::from_secs(10);
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(SOON).await;
        let first = uid(&server.find(CLUSTER, "wharf"));
        server.stall(CLUSTER);
        server.delete(CLUSTER, "wharf");
        server.apply(&cluster("wharf", TAG));
        sleep(SOON).await;
        let owner = "/metadata/ownerReferences/0/uid";
        let made = server.find(ADDON, NAME);
        assert_eq!(made.pointer(owner), Some(&json!(first)), "the watch is behind");
        given_to(&server, &uid(&server.find(CLUSTER, "wharf")));
        sleep(SOON).await;
        let kept = server.find(ADDON, NAME);
        assert_eq!(uid(&kept), uid(&made));
        assert_eq!(kept.pointer("/metadata/deletionTimestamp"), None);
        // One of a Cluster that is not there any more is deleted.
        given_to(&server, "gone");
        sleep(SOON).await;
        assert_ne!(uid(&server.find(ADDON, NAME)), uid(&made));
    });
}

#[test]
fn a_deletion_that_comes_late_meets_no_cluster_addon_that_was_made_anew_or_given_to_another_cluster_meanwhile() {
    const SOON: Duration = Duration::from_secs(10);
    for is_made_anew in [true, false] {
        let server = begin(None);
        looked_after(&server, &[], async |_| {
            with_class(&server);
            server.apply(&cluster("wharf", TAG));
            sleep(SOON).await;
            begun(&server, NAME);
            sleep(SOON).await;
            // What this process sees from now on is that of the Cluster that goes.
            server.stall(ADDON);
            if is_made_anew {
                server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
                server.delete(ADDON, NAME);
            } else {
                // Else it would go with the Cluster.
                given_to(&server, "nobody");
            }
            server.delete(CLUSTER, "wharf");
            server.apply(&cluster("wharf", TAG));
            if is_made_anew {
                server.create(ADDON, &predecessors(&server, "wharf"));
            } else {
                given_to(&server, &uid(&server.find(CLUSTER, "wharf")));
            }
            let (made, calls) = (server.find(ADDON, NAME), server.calls_about(ADDON, NAME));
            sleep(SOON).await;
            assert_eq!(server.find(ADDON, NAME), made);
            assert!(server.calls_about(ADDON, NAME) > calls, "nobody has tried to delete it");
        });
    }
}

#[test]
fn add_ons_that_were_begun_stay_ours_when_the_cluster_takes_a_class_of_somebody_else() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        begun(&server, NAME);
        server.apply(&cluster("wharf", "somebody-elses"));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Ready"), "False/ReleaseNotReady");
    });
    // So it is for a process that sees both for the first time.
    looked_after(&server, &[], async |_| {
        sleep(LONG).await;
        server.merge(CLUSTER, "wharf", &json!({ "spec": { "paused": true } }));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Paused"), "True/Paused");
    });
}

#[test]
fn a_paused_cluster_gets_its_cluster_addon_after_the_pause() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        let mut paused = cluster("wharf", TAG);
        paused["spec"]["paused"] = json!(true);
        server.apply(&paused);
        sleep(LONG).await;
        assert_eq!(addons(&server), []);
        server.merge(CLUSTER, "wharf", &json!({ "spec": { "paused": false } }));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "ClusterReady"), "False/ControlPlaneNotReady");
        let held = json!({ "metadata": { "annotations": { labels::PAUSED: "" } } });
        server.merge(ADDON, NAME, &held);
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Paused"), "True/Paused");
        server.merge(ADDON, NAME, &json!({ "metadata": { "annotations": null } }));
        sleep(LONG).await;
        assert_eq!(told(&server, NAME, "Paused"), "/");
    });
}

#[test]
fn what_clusterctl_moves_away_is_left_to_it() {
    let server = begin(None);
    looked_after(&server, &[], async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
        let moved = json!({ "metadata": { "annotations": { labels::DELETE_FOR_MOVE: "" } } });
        server.merge(ADDON, NAME, &moved);
        server.merge(CLUSTER, "wharf", &moved);
        sleep(LONG).await;
        // It takes the finalizers away itself.
        let before = server.find(ADDON, NAME);
        server.delete(ADDON, NAME);
        sleep(LONG).await;
        let kept = server.find(ADDON, NAME);
        assert_eq!(kept["metadata"]["finalizers"], before["metadata"]["finalizers"]);
        server.merge(ADDON, NAME, &json!({ "metadata": { "finalizers": null } }));
        sleep(LONG).await;
        assert_eq!(addons(&server), [], "none is made anew");
    });
}

#[test]
fn nobody_makes_or_watches_cluster_addons_where_it_is_switched_off() {
    let server = begin(None);
    install_crypto();
    operated_with(&server, RELEASES.path(), &WITHOUT, async |_| {
        with_class(&server);
        server.apply(&cluster("wharf", TAG));
        sleep(LONG).await;
    });
    assert_eq!(addons(&server), []);
    assert!(!server.is_watched(ADDON, ""));
}
