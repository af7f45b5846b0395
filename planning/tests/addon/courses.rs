use std::collections::BTreeSet;

use crds::cluster_addon::StagePhase::{
    self, ApplyingOrDeleting, Done, Pending, WaitingForPostCondition, WaitingForPreCondition,
};
use crds::conditions::{Reason, paused};
use crds::labels::{CLUSTER_ADDON_STAGE, CREATED_WITH};
use planning::addon::{
    ClusterSeen, ConditionSeen, Course, Hook, Kind, Marks, StageSeen, Stages, Work, charts_needed, charts_that_stay,
    kind, stages,
};
use planning::next::Next;
use serde_json::json;

use crate::given::{CLASS, Driven, annotated, at, cluster, cluster_value, listed, target};

fn phases(course: &Course) -> Vec<StagePhase> {
    course.stages.iter().map(|stage| stage.phase).collect()
}

fn done() -> StageSeen {
    StageSeen {
        work: Work::Done,
        pre: ConditionSeen::Holds,
        post: ConditionSeen::Holds,
    }
}

fn fails(message: &str) -> ConditionSeen {
    let message = message.to_owned();
    ConditionSeen::Fails { message }
}

fn there() -> ClusterSeen {
    cluster("v1.33.1", "v1.33.1", "v1.33.1")
}

/// The stages of a course, as `hook/index/name/action>moment`.
fn listing(kind: Kind, layout: &Stages) -> Vec<String> {
    let text = |stage: planning::addon::Stage| {
        let key = stage.key;
        format!("{}/{}/{}/{}>{}", key.hook, key.index, key.name, key.action, stage.opens)
    };
    stages(kind, layout).into_iter().map(text).collect()
}

const MANY: &str = "{
    AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: seed, action: apply}, {name: seed, action: delete}],
    AfterClusterUpgrade: [{name: metrics, action: apply}],
    BeforeClusterUpgrade: [{name: cni, action: apply}],
    BeforeClusterDelete: [{name: lb, action: delete}],
    name: [{name: nobody, action: apply}],
}";

#[test]
fn stages_keep_the_hooks_and_the_order_of_the_release_and_other_keys_are_no_hooks() {
    let layout = listed(MANY);
    assert_eq!(
        listing(Kind::Creation, &layout),
        [
            "AfterControlPlaneInitialized/0/cni/apply>AfterControlPlaneInitialized",
            "AfterControlPlaneInitialized/1/seed/apply>AfterControlPlaneInitialized",
            "AfterControlPlaneInitialized/2/seed/delete>AfterControlPlaneInitialized",
        ]
    );
    assert_eq!(
        listing(Kind::Upgrade, &layout),
        [
            "BeforeClusterUpgrade/0/cni/apply>BeforeClusterUpgrade",
            "AfterClusterUpgrade/0/metrics/apply>AfterClusterUpgrade",
        ]
    );
    assert_eq!(
        listing(Kind::Deletion, &layout),
        ["BeforeClusterDelete/0/lb/delete>BeforeClusterDelete"]
    );
}

#[test]
fn a_release_with_one_chart_applies_it_at_creation_and_before_every_upgrade() {
    let only = "AfterControlPlaneInitialized/0/cluster-addon/apply";
    assert_eq!(
        listing(Kind::Creation, &Stages::Single),
        [format!("{only}>AfterControlPlaneInitialized")]
    );
    assert_eq!(
        listing(Kind::Upgrade, &Stages::Single),
        [format!("{only}>BeforeClusterUpgrade")]
    );
    assert!(listing(Kind::Deletion, &Stages::Single).is_empty());
}

#[test]
fn a_release_that_names_no_upgrade_hook_is_upgraded_as_it_is_created() {
    let layout = listed("{AfterControlPlaneInitialized: [{name: cni, action: apply}]}");
    assert_eq!(
        listing(Kind::Upgrade, &layout),
        ["AfterControlPlaneInitialized/0/cni/apply>BeforeClusterUpgrade"]
    );
    let nothing = listed("{}");
    let kinds = [Kind::Creation, Kind::Upgrade, Kind::Deletion];
    assert!(kinds.iter().all(|kind| listing(*kind, &nothing).is_empty()));
}

#[test]
fn an_upgrade_keeps_what_its_stages_leave_applied_and_a_creation_all_that_the_release_applies() {
    let layout = listed(MANY);
    let names = |kind| charts_that_stay(kind, &layout).into_iter().collect::<Vec<_>>();
    assert_eq!(names(Kind::Upgrade), ["cni", "metrics"]);
    assert_eq!(names(Kind::Creation), ["cni", "metrics", "seed"]);
    let needed = |kind| charts_needed(kind, &layout).into_iter().collect::<Vec<_>>();
    for kind in [Kind::Creation, Kind::Upgrade] {
        assert!(names(kind).iter().all(|chart| needed(kind).contains(chart)));
    }
    let ends_in_delete = listed("{BeforeClusterUpgrade: [{name: a, action: apply}, {name: a, action: delete}]}");
    assert_eq!(charts_that_stay(Kind::Upgrade, &ends_in_delete), BTreeSet::new());
}

#[test]
fn an_upgrade_leaves_what_creation_alone_applies_and_takes_away_what_it_says_itself() {
    let layout = listed(
        "{AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: csi, action: apply}, {name: old, action: apply}],
          BeforeClusterUpgrade: [{name: ccm, action: apply}, {name: old, action: delete}]}",
    );
    let stay = charts_that_stay(Kind::Upgrade, &layout);
    assert_eq!(stay.into_iter().collect::<Vec<_>>(), ["ccm", "cni", "csi"]);
}

/// F5, F43: CSO called the add-ons ready with the second look.
#[test]
fn an_upgrade_that_waits_in_its_first_stage_runs_all_later_ones_before_it_is_done() {
    let layout = listed(
        "{BeforeClusterUpgrade: [{name: a, action: apply, waitForPostCondition: {conditions: x}}, {name: b, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    let waiting = StageSeen {
        post: fails("a.status.ready is 0"),
        ..done()
    };
    driven.see(0, waiting);
    for second in 0..3 {
        let course = driven.look(second);
        assert_eq!(phases(&course), [WaitingForPostCondition, Pending]);
        assert!(!course.is_over() && !course.is_done());
        let current = course.current().expect("it waits");
        assert_eq!(current.reason, Some(Reason::FailedToEvaluatePostCondition));
        assert_eq!(current.message.as_deref(), Some("a.status.ready is 0"));
        assert_eq!(current.since, at(0));
    }
    driven.see(0, done());
    assert_eq!(phases(&driven.look(3)), [Done, ApplyingOrDeleting]);
    driven.see(1, done());
    assert!(driven.look(4).is_done());
}

/// F6: CSO went on as if it were done.
#[test]
fn a_stage_that_failed_or_that_nobody_looked_at_is_not_done() {
    let layout = listed("{AfterControlPlaneInitialized: [{name: a, action: apply}, {name: b, action: apply}]}");
    let mut driven = Driven::new(Kind::Creation, layout, target("v1", "v1.33.1"), there());
    assert_eq!(phases(&driven.look(0)), [ApplyingOrDeleting, Pending]);
    let failed = |reason| StageSeen {
        work: Work::Failed {
            reason,
            message: "in its own words".to_owned(),
        },
        ..done()
    };
    for reason in [Reason::HelmChartMissing, Reason::TemplateNewClusterStackFailed] {
        driven.see(0, failed(reason));
        let course = driven.look(1);
        assert_eq!(phases(&course), [ApplyingOrDeleting, Pending]);
        let current = course.current().expect("it failed");
        assert_eq!(
            (current.reason, current.message.as_deref()),
            (Some(reason), Some("in its own words"))
        );
    }
    // A phase that another operator wrote, or none, is looked at like any other.
    driven.status.stages[0].phase = StagePhase::Unknown;
    assert_eq!(phases(&driven.look(2)), [ApplyingOrDeleting, Pending]);
}

#[test]
fn what_must_hold_before_is_asked_for_until_the_stage_has_begun() {
    let layout =
        listed("{AfterControlPlaneInitialized: [{name: a, action: apply, waitForPreCondition: {conditions: x}}]}");
    let mut driven = Driven::new(Kind::Creation, layout, target("v1", "v1.33.1"), there());
    let ongoing = |pre| StageSeen {
        work: Work::Ongoing {
            message: "1 of 2".to_owned(),
        },
        pre,
        post: ConditionSeen::Unknown,
    };
    driven.see(0, ongoing(ConditionSeen::Unknown));
    assert_eq!(phases(&driven.look(0)), [WaitingForPreCondition]);
    driven.see(0, ongoing(fails("x is 1")));
    assert_eq!(phases(&driven.look(1)), [WaitingForPreCondition]);
    driven.see(0, ongoing(ConditionSeen::Holds));
    assert_eq!(phases(&driven.look(2)), [ApplyingOrDeleting]);
    // The stage itself may have made it untrue.
    driven.see(0, ongoing(fails("x is 2")));
    assert_eq!(phases(&driven.look(3)), [ApplyingOrDeleting]);
}

#[test]
fn a_stage_with_nothing_left_to_do_is_not_asked_what_must_hold_before_it() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, waitForPreCondition: {conditions: x}}]}");
    for pre in [ConditionSeen::Unknown, fails("x is 1"), invalid("no field x")] {
        let mut driven = Driven::new(Kind::Upgrade, layout.clone(), target("v2", "v1.33.1"), there());
        driven.see(0, StageSeen { pre, ..done() });
        let course = driven.look(0);
        assert!(course.is_done(), "{:#?}", course.stages);
    }
}

#[test]
fn what_must_hold_after_has_to_hold_once_for_a_target_and_again_for_the_next() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, waitForPostCondition: {conditions: x}}]}");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.see(0, done());
    assert!(driven.look(0).is_done());
    let untrue = StageSeen {
        post: fails("a.status.ready is 0"),
        ..done()
    };
    driven.see(0, untrue);
    assert!(driven.look(1).is_done(), "it held for this target");
    driven.target = target("v3", "v1.33.1");
    let course = driven.look(2);
    assert_eq!(
        phases(&course),
        [WaitingForPostCondition],
        "what was done for another target counts for nothing"
    );
    assert_eq!(course.stages[0].since, at(2));
}

/// F11, F13: nothing of an older release is asked for, and what deletes is a stage like others.
#[test]
fn f11_f13_stages_that_are_new_or_gone_between_versions_are_those_of_the_target() {
    let layout = listed("{BeforeClusterUpgrade: [{name: old, action: delete}, {name: a, action: apply}]}");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.see(0, done());
    driven.see(1, done());
    assert!(driven.look(0).is_done());
    driven.layout = listed("{BeforeClusterUpgrade: [{name: new, action: apply}, {name: a, action: apply}]}");
    driven.target = target("v3", "v1.33.1");
    assert_eq!(phases(&driven.look(1)), [ApplyingOrDeleting, Pending]);
    driven.see(0, done());
    assert!(driven.look(2).is_done());
}

#[test]
fn the_same_chart_twice_in_one_hook_is_two_stages() {
    let layout = listed(
        "{AfterControlPlaneInitialized: [{name: a, action: apply}, {name: b, action: apply}, {name: a, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Creation, layout, target("v1", "v1.33.1"), there());
    driven.see(0, done());
    driven.see(1, done());
    assert_eq!(phases(&driven.look(0)), [Done, Done, ApplyingOrDeleting]);
    assert_eq!(phases(&driven.look(1)), [Done, Done, ApplyingOrDeleting]);
}

#[test]
fn a_stage_waits_for_its_moment_and_says_what_for() {
    let layout = listed(
        "{BeforeClusterUpgrade: [{name: a, action: apply}], AfterControlPlaneUpgrade: [{name: b, action: apply}]}",
    );
    let before = cluster("v1.34.0", "v1.33.1", "v1.33.1");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.34.0"), before);
    driven.see(0, done());
    driven.see(1, done());
    let course = driven.look(0);
    assert_eq!(phases(&course), [Done, Pending]);
    assert_eq!(course.open().count(), 0);
    let current = course.current().expect("it waits");
    assert_eq!(current.reason, Some(Reason::WaitingForCluster));
    assert_eq!(
        current.message.as_deref(),
        Some("waits until the control plane has Kubernetes v1.34.0")
    );
    assert_eq!(current.deadline, None, "a cluster may take its time");
    driven.cluster = cluster("v1.34.0", "v1.34.0", "v1.34.0");
    assert!(driven.look(1).is_done());
}

/// Cluster API asks providers for both fields; one that leaves them out would hold an upgrade up without a word.
#[test]
fn a_stage_of_an_upgrade_says_which_field_of_the_control_plane_it_misses() {
    let layout = || {
        listed(
            "{BeforeClusterUpgrade: [{name: a, action: apply}], AfterControlPlaneUpgrade: [{name: b, action: apply}]}",
        )
    };
    for (control_plane, words) in [
        (None, "spec.controlPlaneRef"),
        (Some(json!({"spec": {"version": "v1.33.1"}})), "has status.version"),
        (Some(json!({"status": {"version": "v1.33.1"}})), "has spec.version"),
    ] {
        let seen = ClusterSeen::of(&cluster_value(CLASS, "v1.34.0"), control_plane.as_ref());
        let mut driven = Driven::new(Kind::Upgrade, layout(), target("v2", "v1.34.0"), seen);
        let course = driven.look(0);
        let current = course.current().expect("it waits");
        let message = current.message.as_deref().unwrap_or_default();
        assert_eq!(current.reason, Some(Reason::WaitingForCluster));
        assert!(message.contains(words), "{message}");
    }
    // Stages of creation ask nothing of it.
    let creation = listed("{AfterControlPlaneInitialized: [{name: a, action: apply}]}");
    let seen = ClusterSeen::of(&cluster_value(CLASS, "v1.34.0"), None);
    let mut driven = Driven::new(Kind::Creation, creation, target("v2", "v1.34.0"), seen);
    assert!(driven.look(0).current().expect("it is at work").open);
}

/// What closes the moment of stages of an upgrade while Kubernetes stays as it is: an edit that Cluster API has not looked at, workers that roll, and a control
/// plane of which nobody knows anything.
fn closed_moments() -> [ClusterSeen; 3] {
    [
        ClusterSeen {
            reconciled: false,
            ..there()
        },
        ClusterSeen {
            workers_roll: true,
            ..there()
        },
        ClusterSeen {
            control_plane: None,
            ..there()
        },
    ]
}

/// The message of the first stage that waits.
fn waits_for(course: &Course) -> &str {
    let current = course.current().expect("it waits");
    assert_eq!(current.reason, Some(Reason::WaitingForCluster));
    current.message.as_deref().expect("it says what for")
}

#[test]
fn a_last_stage_of_an_upgrade_of_the_same_kubernetes_waits_for_the_stage_before_it_and_never_for_a_version() {
    let layout = || {
        listed("{BeforeClusterUpgrade: [{name: a, action: apply}], AfterClusterUpgrade: [{name: b, action: apply}]}")
    };
    let [edited, rolling, unknown] = closed_moments();
    let owed = ClusterSeen {
        pending: BTreeSet::from([Hook::AfterClusterUpgrade]),
        ..there()
    };
    for (closed, words) in [
        (
            edited,
            "waits until Cluster API has brought the rest of the class to the cluster",
        ),
        (rolling, "waits until no workers are being replaced"),
        (
            owed,
            "waits until Cluster API has ended the upgrade to Kubernetes v1.33.1",
        ),
    ] {
        let mut driven = Driven::new(Kind::Upgrade, layout(), target("v2", "v1.33.1"), there());
        driven.status.applied = Some(target("v1", "v1.33.1").recorded());
        let course = driven.look(0);
        assert_eq!(phases(&course), [ApplyingOrDeleting, Pending]);
        assert_eq!(course.stages[1].message, None, "it has not its turn");
        driven.cluster = closed.clone();
        driven.see(0, done());
        let course = driven.look(1);
        assert_eq!((phases(&course), waits_for(&course)), (vec![Done, Pending], words));
        driven.cluster = there();
        assert_eq!(phases(&driven.look(2)), [Done, ApplyingOrDeleting]);

        // From another Kubernetes, or from nobody knows which, it is the workers that are waited for.
        for applied in [None, Some(target("v1", "v1.32.9").recorded())] {
            let mut driven = Driven::new(Kind::Upgrade, layout(), target("v2", "v1.33.1"), there());
            driven.status.applied = applied;
            driven.see(0, done());
            driven.cluster = closed.clone();
            let course = driven.look(0);
            assert_eq!(waits_for(&course), "waits until all workers have Kubernetes v1.33.1");
        }
    }
    let mut driven = Driven::new(Kind::Upgrade, layout(), target("v2", "v1.33.1"), unknown);
    driven.status.applied = Some(target("v1", "v1.33.1").recorded());
    assert!(waits_for(&driven.look(0)).contains("spec.controlPlaneRef"));
}

const LAST: &str = "{AfterClusterUpgrade: [
    {name: a, action: delete, timeout: 60s, waitForPreCondition: {conditions: x}, waitForPostCondition: {conditions: y}},
    {name: b, action: apply}]}";

fn ongoing(pre: ConditionSeen) -> StageSeen {
    StageSeen {
        work: Work::Ongoing {
            message: "1 of 2".to_owned(),
        },
        pre,
        post: fails("y is 1"),
    }
}

#[test]
fn a_stage_that_has_begun_goes_on_when_its_moment_closes_and_its_time_does_not_begin_anew() {
    for closed in closed_moments() {
        let mut driven = Driven::new(Kind::Upgrade, listed(LAST), target("v2", "v1.33.1"), there());
        driven.see(0, ongoing(ConditionSeen::Holds));
        let course = driven.look(0);
        assert_eq!(
            (phases(&course), course.stages[0].deadline),
            (vec![ApplyingOrDeleting, Pending], Some(at(60)))
        );
        // The stage itself has made it untrue.
        driven.see(0, ongoing(fails("x is 2")));
        for (second, cluster) in [(10, closed.clone()), (20, there()), (30, closed.clone())] {
            driven.cluster = cluster;
            let course = driven.look(second);
            assert_eq!(phases(&course), [ApplyingOrDeleting, Pending], "{closed:?}");
            let stage = &course.stages[0];
            assert!(stage.open, "{closed:?}");
            assert_eq!((stage.since, stage.deadline), (at(0), Some(at(60))), "{closed:?}");
        }
        let late = driven.look(60).stages[0].reason;
        assert_eq!(late, Some(Reason::StageDeadlineExceeded), "{closed:?}");
        let untrue = StageSeen {
            post: fails("y is 1"),
            ..done()
        };
        driven.see(0, untrue);
        for second in [61, 62] {
            let course = driven.look(second);
            assert_eq!(phases(&course), [WaitingForPostCondition, Pending], "{closed:?}");
            assert_eq!(course.stages[0].since, at(61));
        }
        driven.see(0, done());
        let course = driven.look(63);
        assert_eq!(
            phases(&course),
            [Done, Pending],
            "{closed:?}: the next one waits for its moment"
        );
        assert_eq!(course.open().count(), 0);
    }
}

#[test]
fn a_stage_that_nobody_can_look_at_for_a_moment_is_as_far_as_it_was_and_has_been_since_then() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, waitForPostCondition: {conditions: y}}]}");
    let waiting = StageSeen {
        post: fails("y is 1"),
        ..done()
    };
    for (seen, phase) in [
        (ongoing(ConditionSeen::Unknown), ApplyingOrDeleting),
        (waiting, WaitingForPostCondition),
    ] {
        let mut driven = Driven::new(Kind::Upgrade, layout.clone(), target("v2", "v1.33.1"), there());
        driven.see(0, seen);
        driven.look(0);
        driven.seen.clear();
        let course = driven.look(5);
        assert_eq!((phases(&course), course.stages[0].since), (vec![phase], at(0)));
    }
}

#[test]
fn a_stage_that_has_not_begun_does_not_begin_when_its_moment_has_closed() {
    for closed in closed_moments() {
        let mut driven = Driven::new(Kind::Upgrade, listed(LAST), target("v2", "v1.33.1"), there());
        driven.see(0, ongoing(fails("x is 1")));
        assert_eq!(phases(&driven.look(0)), [WaitingForPreCondition, Pending]);
        driven.cluster = closed;
        driven.see(0, ongoing(ConditionSeen::Holds));
        let course = driven.look(1);
        assert_eq!((phases(&course), course.open().count()), (vec![Pending, Pending], 0));
        driven.cluster = there();
        assert_eq!(phases(&driven.look(2)), [ApplyingOrDeleting, Pending]);
        // What was begun for another target was not begun for this one.
        driven.cluster = closed_moments()[0].clone();
        driven.target = target("v3", "v1.33.1");
        assert_eq!(phases(&driven.look(3)), [Pending, Pending]);
    }
}

#[test]
fn a_stage_that_was_passed_over_holds_nobody_up_again_when_its_moment_closes() {
    let layout = listed(
        "{AfterClusterUpgrade: [
            {name: a, action: apply, timeout: 60s, onFailure: continue, waitForPreCondition: {conditions: x}},
            {name: b, action: apply, timeout: 60s}]}",
    );
    for closed in closed_moments() {
        for pre in [fails("x is 1"), ConditionSeen::Holds] {
            let mut driven = Driven::new(Kind::Upgrade, layout.clone(), target("v2", "v1.33.1"), there());
            driven.see(0, ongoing(pre));
            driven.see(1, ongoing(ConditionSeen::Unknown));
            driven.look(0);
            let before = driven.look(60);
            assert!(before.stages[0].passed_over && before.stages[1].open);
            driven.cluster = closed.clone();
            let after = driven.look(61);
            assert_eq!(phases(&after), phases(&before), "{closed:?}");
            assert!(after.stages[0].passed_over && after.stages[1].open, "{closed:?}");
            assert_eq!(after.stages[1].deadline, Some(at(120)));
        }
    }
}

#[test]
fn a_hook_is_worked_on_since_its_first_stage_has_its_turn_and_not_since_the_hook_before_it() {
    let layout = listed(
        "{BeforeClusterUpgrade: [{name: a, action: apply}],
          AfterClusterUpgrade: [{name: b, action: apply}, {name: c, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    let (first, last) = ("BeforeClusterUpgrade", "AfterClusterUpgrade");
    for (second, done_before, expected) in [
        (0, None, (first, at(0))),
        (5, None, (first, at(0))),
        (7, Some(0), (last, at(7))),
        (9, Some(1), (last, at(7))),
    ] {
        if let Some(number) = done_before {
            driven.see(number, done());
        }
        driven.look(second);
        let hook = driven.status.hook.as_ref().expect("a hook");
        assert_eq!((hook.name.as_str(), hook.since.0), expected);
    }
}

#[test]
fn nothing_is_gone_on_with_once_a_cluster_may_go() {
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there()
    };
    let mut driven = Driven::new(Kind::Deletion, listed(MANY), target("v1", "v1.33.1"), going);
    driven.see(0, ongoing(ConditionSeen::Holds));
    assert_eq!(driven.look(1).open().count(), 1);
    driven.cluster.ok_to_delete = true;
    let course = driven.look(2);
    assert!(course.is_over() && course.open().count() == 0);
    assert_eq!(driven.look(3).open().count(), 0);
}

#[test]
fn a_stage_that_takes_too_long_says_so_and_is_gone_on_with() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, timeout: 60s}, {name: b, action: apply}]}");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    let course = driven.look(0);
    assert_eq!(course.stages[0].deadline, Some(at(60)));
    assert_eq!(course.next(at(0)), Next::At(at(60)));
    let course = driven.look(60);
    assert_eq!(
        course.current().expect("it is late").reason,
        Some(Reason::StageDeadlineExceeded)
    );
    assert!(
        course.stages[0].open && !course.is_over(),
        "it is tried on, and all else waits"
    );
    assert_eq!(course.next(at(60)), Next::Await);
    driven.see(0, done());
    assert_eq!(phases(&driven.look(61)), [Done, ApplyingOrDeleting]);
}

#[test]
fn a_stage_that_may_fail_is_passed_over_when_it_takes_too_long() {
    let layout = listed(
        "{BeforeClusterUpgrade: [{name: a, action: apply, timeout: 60s, onFailure: continue}, {name: b, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.see(1, done());
    assert_eq!(phases(&driven.look(0)), [ApplyingOrDeleting, Pending]);
    let course = driven.look(60);
    assert_eq!(phases(&course), [ApplyingOrDeleting, Done]);
    assert!(
        course.is_over() && !course.is_done(),
        "nothing waits for it, and the target is not reached"
    );
    assert_eq!(course.open().count(), 1, "it is tried on");
    driven.see(0, done());
    assert!(driven.look(61).is_done());
}

/// A stage that may fail, of which nobody has done anything yet, and its layout.
fn forgiving(kind: Kind) -> Driven {
    let stages = "[{name: a, action: apply, timeout: 60s, onFailure: continue}, {name: b, action: apply}]";
    let layout = listed(&format!(
        "{{AfterControlPlaneInitialized: {stages}, BeforeClusterUpgrade: {stages}}}"
    ));
    let mut driven = Driven::new(kind, layout, target("v2", "v1.33.1"), there());
    let course = driven.look(0);
    assert_eq!(course.stages[0].deadline, Some(at(60)));
    driven
}

#[test]
fn a_stage_whose_time_was_up_while_nobody_was_at_work_has_it_anew_before_it_is_passed_over() {
    for kind in [Kind::Creation, Kind::Upgrade] {
        let mut driven = forgiving(kind);
        let course = driven.look(7200);
        let stage = &course.stages[0];
        assert_eq!(
            (stage.open, stage.passed_over, stage.reason, stage.deadline),
            (true, false, Some(Reason::ObjectsApplyingOngoing), Some(at(7260)))
        );
        assert!(driven.look(7260).stages[0].passed_over);
        // Somebody has noticed it: nothing begins anew.
        let course = driven.look(14_400);
        assert_eq!(
            (course.stages[0].passed_over, course.stages[0].deadline),
            (true, Some(at(7260)))
        );
        // Nor does it where somebody is at work who is only slow.
        let mut driven = forgiving(kind);
        assert!(driven.look(300).stages[0].passed_over);
    }
}

#[test]
fn the_time_of_a_stage_does_not_run_on_while_add_ons_are_paused() {
    for kind in [Kind::Creation, Kind::Upgrade] {
        let mut driven = forgiving(kind);
        let pause = |driven: &mut Driven, second: i64| {
            driven.status.conditions = paused(&[], Reason::Paused, "the annotation is set", at(second));
        };
        pause(&mut driven, 20);
        let course = driven.look(90);
        let stage = &course.stages[0];
        assert_eq!((stage.passed_over, stage.deadline), (false, Some(at(130))));
        // The status that was written then says nothing of the pause any more.
        driven.status.conditions.clear();
        assert_eq!(driven.look(100).stages[0].deadline, Some(at(130)));
        assert!(driven.look(130).stages[0].passed_over);
        // A pause that comes after its time was up changes nothing.
        pause(&mut driven, 140);
        let course = driven.look(1000);
        assert_eq!(
            (course.stages[0].passed_over, course.stages[0].deadline),
            (true, Some(at(130)))
        );
    }
}

fn invalid(message: &str) -> ConditionSeen {
    let message = message.to_owned();
    ConditionSeen::Invalid { message }
}

#[test]
fn a_stage_that_waits_for_what_cannot_be_says_so_at_once_and_at_its_deadline_and_begins_once_it_can_be() {
    let layout = listed(
        "{BeforeClusterUpgrade: [{name: a, action: apply, timeout: 60s, waitForPreCondition: {conditions: x}}, {name: b, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.see(0, ongoing(invalid("no field x")));
    for second in [0, 60, 600] {
        let course = driven.look(second);
        assert_eq!(phases(&course), [WaitingForPreCondition, Pending]);
        let stage = &course.stages[0];
        assert_eq!(
            (stage.reason, stage.message.as_deref(), stage.passed_over),
            (Some(Reason::ConditionInvalid), Some("no field x"), false)
        );
    }
    driven.see(0, ongoing(ConditionSeen::Holds));
    assert_eq!(phases(&driven.look(601)), [ApplyingOrDeleting, Pending]);
}

#[test]
fn what_cannot_be_after_a_stage_matters_when_that_has_done_its_work() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, waitForPostCondition: {conditions: y}}]}");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    let post = invalid("no field y");
    driven.see(
        0,
        StageSeen {
            post: post.clone(),
            ..ongoing(ConditionSeen::Unknown)
        },
    );
    let course = driven.look(0);
    assert_eq!(
        (phases(&course), course.stages[0].reason),
        (vec![ApplyingOrDeleting], Some(Reason::ObjectsApplyingOngoing))
    );
    driven.see(0, StageSeen { post, ..done() });
    let course = driven.look(1);
    assert_eq!(
        (phases(&course), course.stages[0].reason),
        (vec![WaitingForPostCondition], Some(Reason::ConditionInvalid))
    );
}

#[test]
fn a_stage_that_may_fail_is_passed_over_at_once_when_it_waits_for_what_cannot_be() {
    let layout = listed(
        "{BeforeClusterUpgrade: [
            {name: a, action: apply, timeout: 60s, onFailure: continue, waitForPreCondition: {conditions: x}},
            {name: b, action: apply}]}",
    );
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.see(0, ongoing(invalid("no field x")));
    let course = driven.look(0);
    assert_eq!(phases(&course), [WaitingForPreCondition, ApplyingOrDeleting]);
    assert!(course.stages[0].passed_over && course.stages[1].open);
    // It is no longer so.
    driven.see(0, ongoing(fails("x is 1")));
    let course = driven.look(1);
    assert!(!course.stages[0].passed_over && !course.stages[1].open);
}

#[test]
fn a_cluster_that_is_to_go_gives_a_stage_its_time_though_it_waits_for_what_cannot_be() {
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there()
    };
    let layout = listed(
        "{BeforeClusterDelete: [{name: lb, action: delete, timeout: 60s, waitForPreCondition: {conditions: x}}]}",
    );
    let mut driven = Driven::new(Kind::Deletion, layout, target("v1", "v1.33.1"), going);
    driven.see(0, ongoing(invalid("no field x")));
    for (second, is_over) in [(0, false), (59, false), (60, true)] {
        let course = driven.look(second);
        assert_eq!(
            (course.stages[0].reason, course.is_over()),
            (Some(Reason::ConditionInvalid), is_over)
        );
    }
}

#[test]
fn a_clock_that_was_set_back_makes_no_stage_longer_and_no_waiting_younger_than_now() {
    let layout = listed("{BeforeClusterUpgrade: [{name: a, action: apply, timeout: 60s}]}");
    let mut driven = Driven::new(Kind::Upgrade, layout, target("v2", "v1.33.1"), there());
    driven.look(100_000);
    let course = driven.look(0);
    assert_eq!(
        (course.stages[0].deadline, course.stages[0].since),
        (Some(at(60)), at(0))
    );
}

#[test]
fn a_cluster_that_is_to_go_waits_a_bounded_time_for_its_stages_whoever_loses_the_status() {
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there()
    };
    let layout = listed(MANY);
    let mut driven = Driven::new(Kind::Deletion, layout, target("v1", "v1.33.1"), going);
    let course = driven.look(30);
    assert_eq!(
        (phases(&course), course.ends),
        (vec![ApplyingOrDeleting], Some(at(600)))
    );
    let hook = driven.status.hook.clone().expect("a hook");
    assert_eq!((hook.name.as_str(), hook.since.0), ("BeforeClusterDelete", at(0)));
    driven.status = crds::cluster_addon::ClusterAddonStatus::default();
    assert!(!driven.look(599).is_over());
    driven.status = crds::cluster_addon::ClusterAddonStatus::default();
    let course = driven.look(600);
    assert!(course.is_over() && !course.is_done());
    // One that never answered has nothing to leave behind.
    driven.cluster.initialized = false;
    assert!(driven.look(31).is_over());
}

/// F14, F10: what led here is known without the status, and without the release that was before.
#[test]
fn f14_f10_whether_a_cluster_is_new_is_known_without_the_status() {
    let (v1, v2) = (target("v1", "v1.33.1"), target("v2", "v1.33.1"));
    let there = there();
    let marks = |annotations: &[(&str, &str)]| Marks::of(&annotated(annotations));
    let fresh = marks(&[]);
    assert_eq!(kind(&there, &fresh, &v1), Kind::Creation);
    let after = fresh.after(Kind::Creation, &v1);
    assert_eq!(after[CREATED_WITH], "v1@v1.33.1");
    assert_eq!(after[CLUSTER_ADDON_STAGE], "created");

    let created = marks(&[(CREATED_WITH, "v1@v1.33.1"), (CLUSTER_ADDON_STAGE, "created")]);
    assert!(created.after(Kind::Creation, &v1).is_empty());
    assert_eq!(kind(&there, &created, &v1), Kind::Creation);
    assert_eq!(kind(&there, &created, &v2), Kind::Upgrade);
    let mut other_class = v1.clone();
    other_class.class = "docker-scs-1-33-v9".to_owned();
    other_class.digest = "other values".to_owned();
    assert_eq!(kind(&there, &created, &other_class), Kind::Creation, "the same add-ons");
    assert_eq!(created.after(Kind::Upgrade, &v2)[CLUSTER_ADDON_STAGE], "upgraded");

    let upgraded = marks(&[(CREATED_WITH, "v1@v1.33.1"), (CLUSTER_ADDON_STAGE, "upgraded")]);
    assert_eq!(kind(&there, &upgraded, &v1), Kind::Upgrade, "going back is an upgrade");
    assert!(upgraded.after(Kind::Upgrade, &v1).is_empty());
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there
    };
    assert_eq!(kind(&going, &upgraded, &v1), Kind::Deletion);
}

/// F48, F10: of the state in the spec that the Go operator kept, the class is read until our annotation is there; nothing else of it decides.
#[test]
fn f48_f10_the_spec_of_the_go_operator_decides_only_whether_its_creation_is_over() {
    let v1 = target("v1", "v1.33.1");
    let there = there();
    let of = |class: &str, annotations: &[(&str, &str)]| {
        let mut addon = annotated(annotations);
        addon.spec.cluster_stack = Some(class.to_owned());
        addon.spec.version = Some("v7".to_owned());
        addon.spec.hook = Some("BeforeClusterUpgrade".to_owned());
        kind(&there, &Marks::of(&addon), &v1)
    };
    let created = (CLUSTER_ADDON_STAGE, "created");
    assert_eq!(of(&v1.class, &[created]), Kind::Creation);
    assert_eq!(of("docker-scs-1-33-v0", &[created]), Kind::Upgrade);
    assert_eq!(of("", &[created]), Kind::Creation);
    assert_eq!(
        of("docker-scs-1-33-v0", &[]),
        Kind::Creation,
        "its creation is not over"
    );
    assert_eq!(
        of("docker-scs-1-33-v0", &[created, (CREATED_WITH, "v1@v1.33.1")]),
        Kind::Creation
    );
}

#[test]
fn marks_that_are_written_wrongly_are_not_there() {
    let marks = Marks::of(&annotated(&[
        ("clusterstack.x-k8s.io/hook-called", "BeforeClusterUpgrade"),
        (
            "clusterstack.x-k8s.io/skip-hook",
            "x, Before@y, AfterClusterUpgrade@c,BeforeClusterUpgrade@d",
        ),
        (CLUSTER_ADDON_STAGE, "Upgraded"),
        (CREATED_WITH, ""),
    ]));
    assert_eq!(
        (marks.called.clone(), marks.upgraded, marks.created_with.clone()),
        (None, false, None)
    );
    assert!(marks.skips(Hook::AfterClusterUpgrade, "c") && marks.skips(Hook::BeforeClusterUpgrade, "d"));
    assert!(!marks.skips(Hook::BeforeClusterUpgrade, "c"));
}
