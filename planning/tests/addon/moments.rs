use std::collections::BTreeSet;

use planning::addon::{ClusterSeen, Hook, HookCalled, due};

use crate::given::{at, cluster};

/// The last hook of an upgrade that is due.
fn last(cluster: &ClusterSeen, called: Option<&str>) -> Option<Hook> {
    let called = called.map(|value| HookCalled::parse(&format!("{value}@{}", cluster.class())).expect("a call"));
    let due = due(cluster, called.as_ref());
    let upgrade = || Hook::ALL[2..8].iter().copied();
    let last = upgrade().filter(|hook| due.contains(hook)).max();
    // A moment that has passed without its stages being done has still come.
    assert!(
        upgrade().all(|hook| due.contains(&hook) == last.is_some_and(|last| hook <= last)),
        "{due:?}"
    );
    last
}

#[test]
fn before_an_upgrade_its_first_two_hooks_are_due_as_soon_as_cluster_api_would_begin() {
    let begun = Some(Hook::BeforeControlPlaneUpgrade);
    let waiting = cluster("v1.34.0", "v1.33.1", "v1.33.1");
    assert_eq!(last(&waiting, None), begun);
    assert_eq!(
        last(&cluster("v1.34.0", "v1.33.1", "v1.33.0"), None),
        None,
        "an upgrade before it is not over"
    );
    let mut rolling = waiting.clone();
    rolling.workers_roll = true;
    assert_eq!(last(&rolling, None), None);
    assert_eq!(
        last(&rolling, Some("BeforeClusterUpgrade@v1.34.0")),
        begun,
        "Cluster API knows better"
    );
    assert_eq!(
        last(&rolling, Some("BeforeClusterUpgrade@v1.33.1")),
        None,
        "a call about another version"
    );
    // One of a later moment is written over it, and may be forged.
    assert_eq!(last(&rolling, Some("AfterWorkersUpgrade@v1.34.0")), begun);
}

#[test]
fn while_the_control_plane_rolls_only_what_was_to_come_before_is_due() {
    let rolling = cluster("v1.34.0", "v1.34.0", "v1.33.1");
    let before = Some(Hook::BeforeControlPlaneUpgrade);
    assert_eq!(last(&rolling, None), before);
    assert_eq!(last(&rolling, Some("AfterClusterUpgrade@v1.34.0")), before);
    let mut unread = rolling;
    unread.control_plane = None;
    assert_eq!(last(&unread, None), None);
}

#[test]
fn stages_whose_hook_was_never_called_are_due_at_the_next_moment_that_can_be_seen() {
    let mut there = cluster("v1.34.0", "v1.34.0", "v1.34.0");
    assert_eq!(
        last(&there, None),
        Some(Hook::AfterClusterUpgrade),
        "no hook is owed: there are none, or all were called"
    );
    there.reconciled = false;
    assert_eq!(
        last(&there, None),
        Some(Hook::BeforeWorkersUpgrade),
        "the workers are still to be told"
    );
}

#[test]
fn an_upgrade_is_over_when_cluster_api_says_so_in_its_minor() {
    let before = Some(Hook::BeforeWorkersUpgrade);
    let after = Some(Hook::AfterClusterUpgrade);
    let upgrade = Hook::AfterClusterUpgrade;
    let (early, late) = (true, false);
    for (pending, reconciled, rolls, called, expected) in [
        // Before 1.12 the last hook is owed until it is called, and the condition is true while workers still roll.
        (vec![upgrade], early, false, None, before),
        (vec![upgrade], early, false, Some("AfterClusterUpgrade@v1.34.0"), after),
        (vec![], early, true, None, before),
        (vec![], early, false, None, after),
        // Since 1.12 it is owed until it is answered with yes, and the workers' hooks are owed until then.
        (
            vec![Hook::AfterControlPlaneUpgrade, Hook::BeforeWorkersUpgrade, upgrade],
            late,
            false,
            None,
            before,
        ),
        (vec![Hook::AfterWorkersUpgrade, upgrade], late, false, None, before),
        (
            vec![Hook::AfterWorkersUpgrade, upgrade],
            late,
            false,
            Some("AfterWorkersUpgrade@v1.34.0"),
            after,
        ),
        // So it is at the very beginning, when the others are not owed yet, as at the end.
        (vec![upgrade], late, false, None, before),
        (vec![upgrade], late, false, Some("AfterClusterUpgrade@v1.34.0"), after),
        (vec![upgrade], late, true, None, before),
    ] {
        let mut cluster = cluster("v1.34.0", "v1.34.0", "v1.34.0");
        cluster.pending = pending.into_iter().collect();
        cluster.reconciled = reconciled;
        cluster.workers_roll = rolls;
        assert_eq!(last(&cluster, called), expected, "{cluster:?} {called:?}");
    }
}

/// Cluster API calls no hook for it, and the class of the upgrade before may have been called about.
#[test]
fn a_call_about_the_class_before_ends_no_upgrade_of_the_same_kubernetes() {
    let mut cluster = cluster("v1.34.0", "v1.34.0", "v1.34.0");
    cluster.workers_roll = true;
    let due_after = |class: &str| {
        let called = HookCalled::parse(&format!("AfterClusterUpgrade@v1.34.0@{class}")).expect("a call");
        due(&cluster, Some(&called)).contains(&Hook::AfterWorkersUpgrade)
    };
    assert!(due_after(cluster.class()), "Cluster API knows better");
    assert!(!due_after("docker-scs-1-33-v0"));
    assert_eq!(HookCalled::parse("AfterClusterUpgrade@v1.34.0"), None, "of no class");
}

#[test]
fn a_cluster_whose_api_server_never_answered_has_nothing_due() {
    let mut cluster = cluster("v1.34.0", "v1.34.0", "v1.34.0");
    cluster.initialized = false;
    assert_eq!(due(&cluster, None), BTreeSet::new());
    cluster.initialized = true;
    assert!(due(&cluster, None).contains(&Hook::AfterControlPlaneInitialized));
}

#[test]
fn a_cluster_that_is_to_go_has_its_last_hook_due_until_it_may_go() {
    let mut cluster = cluster("v1.34.0", "v1.33.1", "v1.33.1");
    cluster.deleting = Some(at(0));
    assert_eq!(due(&cluster, None), BTreeSet::from([Hook::BeforeClusterDelete]));
    cluster.ok_to_delete = true;
    assert_eq!(due(&cluster, None), BTreeSet::new());
}

#[test]
fn hooks_are_known_by_their_exact_names_only() {
    for hook in Hook::ALL {
        assert_eq!(Hook::named(hook.name()), Some(hook));
    }
    assert!(Hook::ALL.is_sorted());
    for name in ["", "name", "beforeclusterupgrade", "BeforeClusterUpgrade "] {
        assert_eq!(Hook::named(name), None, "{name}");
    }
}
