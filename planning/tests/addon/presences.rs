use crds::cluster_addon::ClusterAddonStatus;
use crds::labels::CONTAINS_GROUP_KINDS;
use crds::resource::Resource;
use planning::addon::{
    AddonSeen, ClassOwner, ClusterSeen, PausedBy, Pausing, Presence, is_begun, may_be_reached, presence,
};

use crate::given::{annotated, at, begun, cluster};
use ClassOwner::{Foreign, NotKnownYet, Ours};

fn alive() -> ClusterSeen {
    cluster("v1.33.1", "v1.33.1", "v1.33.1")
}

fn going() -> ClusterSeen {
    ClusterSeen {
        deleting: Some(at(0)),
        ..alive()
    }
}

/// As we leave it.
fn ours() -> AddonSeen {
    AddonSeen {
        owner: Some("uid-1".to_owned()),
        begun: true,
        ..AddonSeen::default()
    }
}

/// As the Go operator makes it.
fn predecessors() -> AddonSeen {
    AddonSeen { begun: false, ..ours() }
}

#[test]
fn a_cluster_of_our_class_has_a_cluster_addon_and_no_other_cluster_gets_one() {
    assert_eq!(presence(Some(&alive()), Ours, None), Presence::Create);
    assert_eq!(presence(Some(&alive()), Foreign, None), Presence::None);
    assert_eq!(presence(Some(&alive()), NotKnownYet, None), Presence::NotKnownYet);
    assert_eq!(presence(Some(&alive()), Ours, Some(&ours())), Presence::Tend);
    assert_eq!(presence(None, Foreign, None), Presence::None);
}

#[test]
fn what_the_go_operator_made_for_other_clusters_is_left_to_it_and_let_go_of_when_it_is_to_go() {
    let deleted = AddonSeen {
        deleting: true,
        ..predecessors()
    };
    assert_eq!(
        presence(Some(&alive()), Foreign, Some(&predecessors())),
        Presence::NotOurs
    );
    assert_eq!(
        presence(Some(&going()), Foreign, Some(&predecessors())),
        Presence::NotOurs
    );
    assert_eq!(presence(Some(&alive()), Foreign, Some(&deleted)), Presence::LetGo);
    assert_eq!(presence(None, Foreign, Some(&deleted)), Presence::LetGo);
    assert_eq!(presence(None, Foreign, Some(&predecessors())), Presence::NotOurs);
    // Of a class of ours it is taken over; before all classes are known nobody can tell.
    assert_eq!(presence(Some(&alive()), Ours, Some(&predecessors())), Presence::Tend);
    assert_eq!(
        presence(Some(&alive()), NotKnownYet, Some(&predecessors())),
        Presence::NotKnownYet
    );
}

#[test]
fn what_somebody_made_by_hand_for_no_cluster_is_left_and_told() {
    let by_hand = AddonSeen {
        owner: None,
        ..predecessors()
    };
    assert_eq!(presence(None, Foreign, Some(&by_hand)), Presence::Stray);
    assert_eq!(presence(Some(&alive()), Foreign, Some(&by_hand)), Presence::NotOurs);
    assert_eq!(presence(Some(&alive()), Ours, Some(&by_hand)), Presence::Tend);
}

#[test]
fn add_ons_that_we_began_stay_ours_when_the_release_of_the_class_is_gone() {
    assert_eq!(presence(Some(&alive()), Foreign, Some(&ours())), Presence::Tend);
    assert_eq!(presence(Some(&alive()), NotKnownYet, Some(&ours())), Presence::Tend);
}

/// Whoever may make ClusterAddons may annotate them.
#[test]
fn work_has_begun_on_a_cluster_addon_that_has_our_finalizer_besides_the_kinds_that_it_names() {
    assert!(is_begun(&begun()));
    assert!(!is_begun(&annotated(&[(CONTAINS_GROUP_KINDS, "ConfigMap")])));
    let mut predecessors = begun();
    predecessors.metadata.annotations = None;
    assert!(!is_begun(&predecessors));
}

#[test]
fn a_cluster_is_reached_while_its_class_is_ours_or_something_of_ours_is_in_it_and_by_no_mark_alone() {
    let applied = ClusterAddonStatus {
        resources: vec![Resource::default()],
        ..ClusterAddonStatus::default()
    };
    let nothing = ClusterAddonStatus::default();
    let reached = |class, addon: &AddonSeen, status| may_be_reached(&alive(), class, addon, status);
    for status in [None, Some(&nothing), Some(&applied)] {
        assert!(reached(Ours, &predecessors(), status), "{status:?}");
        for class in [Foreign, NotKnownYet] {
            let is_applied = status == Some(&applied);
            assert_eq!(reached(class, &ours(), status), is_applied, "{class:?} {status:?}");
            assert!(!reached(class, &predecessors(), status), "{class:?} {status:?}");
            for owner in [None, Some("uid-0".to_owned())] {
                let of_another = AddonSeen { owner, ..ours() };
                assert!(!reached(class, &of_another, status), "{class:?} {of_another:?}");
            }
        }
    }
}

#[test]
fn a_cluster_made_again_under_its_name_begins_anew() {
    let of_another = AddonSeen {
        owner: Some("uid-0".to_owned()),
        ..ours()
    };
    assert_eq!(presence(Some(&alive()), Ours, Some(&of_another)), Presence::Delete);
    let deleted = AddonSeen {
        deleting: true,
        ..of_another.clone()
    };
    assert_eq!(presence(Some(&alive()), Ours, Some(&deleted)), Presence::LetGo);
    assert_eq!(presence(None, Ours, Some(&ours())), Presence::Delete);
    // The owner counts, which `clusterctl move` writes anew; the reference it does not.
    let moved = AddonSeen {
        reference: Some("uid-0".to_owned()),
        ..ours()
    };
    assert_eq!(presence(Some(&alive()), Ours, Some(&moved)), Presence::Tend);
    let unowned = AddonSeen { owner: None, ..moved };
    assert_eq!(presence(Some(&alive()), Ours, Some(&unowned)), Presence::Delete);
    let by_hand = AddonSeen {
        reference: None,
        ..unowned
    };
    assert_eq!(presence(Some(&alive()), Ours, Some(&by_hand)), Presence::Tend);
}

#[test]
fn a_cluster_addon_deleted_by_hand_goes_at_once_and_is_made_again() {
    let deleted = AddonSeen {
        deleting: true,
        ..ours()
    };
    assert_eq!(presence(Some(&alive()), Ours, Some(&deleted)), Presence::LetGo);
    assert_eq!(presence(Some(&alive()), Ours, None), Presence::Create);
}

#[test]
fn a_cluster_addon_that_goes_with_its_cluster_first_does_what_comes_before() {
    let deleted = AddonSeen {
        deleting: true,
        ..ours()
    };
    assert_eq!(presence(Some(&going()), Ours, Some(&ours())), Presence::Tend);
    assert_eq!(presence(Some(&going()), Ours, Some(&deleted)), Presence::Tend);
    let released = ClusterSeen {
        ok_to_delete: true,
        ..going()
    };
    assert_eq!(presence(Some(&released), Ours, Some(&deleted)), Presence::LetGo);
    assert_eq!(presence(None, Ours, Some(&deleted)), Presence::LetGo);
}

#[test]
fn a_cluster_addon_deleted_right_before_its_cluster_is_made_again_until_cluster_api_was_told_that_it_may_go() {
    assert_eq!(presence(Some(&going()), Ours, None), Presence::Create);
    assert_eq!(presence(Some(&going()), NotKnownYet, None), Presence::NotKnownYet);
    assert_eq!(presence(Some(&going()), Foreign, None), Presence::None);
    // Where it was let go regularly, none is made again, and what never came up has nothing to take away.
    let told = ClusterSeen {
        ok_to_delete: true,
        ..going()
    };
    let never_up = ClusterSeen {
        initialized: false,
        ..going()
    };
    for cluster in [told, never_up] {
        assert_eq!(presence(Some(&cluster), Ours, None), Presence::None);
    }
    let paused = ClusterSeen {
        paused: Some(PausedBy::Spec),
        ..going()
    };
    let by_cluster = Presence::Paused(Pausing::Cluster(PausedBy::Spec));
    assert_eq!(presence(Some(&paused), Ours, None), by_cluster);
}

#[test]
fn a_pause_of_the_cluster_or_of_the_add_ons_stops_everything() {
    let paused = ClusterSeen {
        paused: Some(PausedBy::Spec),
        ..alive()
    };
    let held = AddonSeen { paused: true, ..ours() };
    let by_cluster = Presence::Paused(Pausing::Cluster(PausedBy::Spec));
    assert_eq!(presence(Some(&paused), Ours, None), by_cluster);
    assert_eq!(presence(Some(&paused), Ours, Some(&ours())), by_cluster);
    assert_eq!(
        presence(Some(&alive()), Ours, Some(&held)),
        Presence::Paused(Pausing::Addon)
    );
    assert_eq!(presence(None, Ours, Some(&held)), Presence::Paused(Pausing::Addon));
    // Whoever deletes what is of no Cluster any more waits for nothing.
    let going = AddonSeen {
        deleting: true,
        ..held.clone()
    };
    assert_eq!(presence(None, Ours, Some(&going)), Presence::LetGo);
    assert_eq!(
        presence(Some(&alive()), Ours, Some(&going)),
        Presence::Paused(Pausing::Addon)
    );
    // Not ours is not paused either: nothing is written to it.
    let foreign = AddonSeen { begun: false, ..held };
    assert_eq!(presence(Some(&paused), Foreign, Some(&foreign)), Presence::NotOurs);
}

#[test]
fn a_pause_that_was_meant_for_an_earlier_cluster_holds_up_nobody_who_has_its_name() {
    let held = AddonSeen {
        owner: Some("uid-0".to_owned()),
        paused: true,
        ..ours()
    };
    assert_eq!(presence(None, Foreign, Some(&held)), Presence::Paused(Pausing::Addon));
    assert_eq!(presence(Some(&alive()), Ours, Some(&held)), Presence::Delete);
    let deleted = AddonSeen {
        deleting: true,
        ..held.clone()
    };
    for cluster in [alive(), going()] {
        assert_eq!(presence(Some(&cluster), Ours, Some(&deleted)), Presence::LetGo);
    }
    // That of the Cluster itself is about the Cluster that is there.
    let paused = ClusterSeen {
        paused: Some(PausedBy::Spec),
        ..alive()
    };
    assert_eq!(
        presence(Some(&paused), Ours, Some(&held)),
        Presence::Paused(Pausing::Cluster(PausedBy::Spec))
    );
}

#[test]
fn what_clusterctl_moves_is_left_to_it() {
    let moving = ClusterSeen {
        moving: true,
        ..alive()
    };
    let moved = AddonSeen {
        moving: true,
        deleting: true,
        ..ours()
    };
    assert_eq!(presence(Some(&moving), Ours, None), Presence::Moving);
    assert_eq!(presence(Some(&alive()), Ours, Some(&moved)), Presence::Moving);
    assert_eq!(presence(None, Ours, Some(&moved)), Presence::Moving);
}
