//! What is said of each thing that can be the matter, of add-ons that were complete: nothing of them is touched meanwhile.

use crds::cluster_addon::{ClusterAddonStatus, StagePhase, StageProgress};
use crds::conditions::{ConditionStatus, ConditionType, Reason, Severity, find, lint};
use jiff::SignedDuration;
use planning::addon::{
    AddonObserved, AddonPlan, AddonWaiting, ChartSeen, ClassOwner, Connection, Layout, ReleaseSeen, Stages, Step,
    Values, plan,
};
use planning::next::Next;
use planning::objects::{ObjectAction, Rendering, key_of};
use planning::warnings::warnings;

use super::world::World;
use crate::given::at;

/// Add-ons that are complete.
fn complete() -> (World, AddonObserved) {
    let mut world = World::new();
    world.settle();
    world.set_class(1);
    world.settle();
    world.assert_settled();
    let observed = world.observe().expect("a ClusterAddon");
    (world, observed)
}

fn reason_of(plan: &AddonPlan, type_: ConditionType) -> Option<Reason> {
    let reason = find(&plan.status.conditions, type_)?.reason.clone()?;
    reason.parse().ok()
}

/// The condition that tells of it, with severity and reason; the reason of `Stalled`, where only somebody's action helps; what is waited for.
type Told = (ConditionType, Severity, Reason, Option<Reason>, AddonWaiting);

/// What is the matter.
type Change = fn(&mut AddonObserved);

fn matter(change: Change, told: Told) -> (Change, Told) {
    (change, told)
}

/// It is not known what the cluster shall have.
fn matters_of_the_target() -> Vec<(Change, Told)> {
    use ConditionType::{ClusterAddonConfigValidated, ClusterStackReleaseDownloaded, HelmChartApplied};
    vec![
        matter(
            |observed| observed.release = ReleaseSeen::Absent,
            (
                ClusterStackReleaseDownloaded,
                Severity::Warning,
                Reason::ReleaseNotReady,
                None,
                AddonWaiting::Release,
            ),
        ),
        matter(
            |observed| {
                let message = "it is being downloaded".to_owned();
                observed.release = ReleaseSeen::NotReady { message };
            },
            (
                ClusterStackReleaseDownloaded,
                Severity::Info,
                Reason::ReleaseNotReady,
                None,
                AddonWaiting::Release,
            ),
        ),
        matter(
            |observed| {
                if let Some(cluster) = &mut observed.cluster {
                    cluster.topology = None;
                }
            },
            (
                ClusterStackReleaseDownloaded,
                Severity::Error,
                Reason::InvalidSpec,
                Some(Reason::InvalidSpec),
                AddonWaiting::NoClass,
            ),
        ),
        matter(
            |observed| {
                let topology = observed.cluster.as_mut().and_then(|cluster| cluster.topology.as_mut());
                if let Some(topology) = topology {
                    "v1.32.0".clone_into(&mut topology.version);
                }
            },
            (
                HelmChartApplied,
                Severity::Warning,
                Reason::VersionMismatch,
                None,
                AddonWaiting::Version,
            ),
        ),
        matter(
            |observed| {
                let message = "clusteraddon.yaml:7: unknown action".to_owned();
                observed.layout = Layout::Wrong { message };
            },
            (
                ClusterAddonConfigValidated,
                Severity::Error,
                Reason::ParsingClusterAddonConfigFailed,
                Some(Reason::ParsingClusterAddonConfigFailed),
                AddonWaiting::Layout,
            ),
        ),
    ]
}

/// The values cannot be made, or may not be followed.
fn matters_of_the_values() -> Vec<(Change, Told)> {
    use ConditionType::HelmChartTemplated;
    vec![
        matter(
            |observed| {
                let message = "cluster-addon-values.yaml:3: no such field".to_owned();
                observed.values = Values::Failed { message };
            },
            (
                HelmChartTemplated,
                Severity::Error,
                Reason::TemplateNewClusterStackOverwriteFailed,
                Some(Reason::RenderFailed),
                AddonWaiting::BrokenValues,
            ),
        ),
        matter(
            |observed| {
                let held = |chart: &String| (chart.clone(), "cni/overwrite.yaml:3: no such field".to_owned());
                observed.values_held = observed.charts.keys().map(held).collect();
            },
            (
                HelmChartTemplated,
                Severity::Error,
                Reason::TemplateNewClusterStackOverwriteFailed,
                Some(Reason::RenderFailed),
                AddonWaiting::BrokenValues,
            ),
        ),
        matter(
            |observed| {
                let message = "the values changed three times".to_owned();
                observed.values = Values::Unstable { message };
            },
            (
                HelmChartTemplated,
                Severity::Warning,
                Reason::RenderingUnstable,
                Some(Reason::RenderingUnstable),
                AddonWaiting::UnstableValues,
            ),
        ),
    ]
}

/// The cluster cannot be reached.
fn matters_of_the_cluster() -> Vec<(Change, Told)> {
    use ConditionType::ClusterReady;
    vec![
        matter(
            |observed| observed.connection = Connection::Disconnected,
            (
                ClusterReady,
                Severity::Warning,
                Reason::ControlPlaneNotReady,
                None,
                AddonWaiting::Connection,
            ),
        ),
        matter(
            |observed| observed.connection = Connection::Connecting { since: at(0) },
            (
                ClusterReady,
                Severity::Info,
                Reason::ControlPlaneNotReady,
                None,
                AddonWaiting::Connection,
            ),
        ),
        matter(
            |observed| {
                let message = "no route to host".to_owned();
                observed.connection = Connection::Suspect { since: at(0), message };
            },
            (
                ClusterReady,
                Severity::Warning,
                Reason::ControlPlaneNotReady,
                None,
                AddonWaiting::Connection,
            ),
        ),
        matter(
            |observed| {
                let message = "users[0].user.exec is not allowed".to_owned();
                observed.connection = Connection::Refused { message };
            },
            (
                ClusterReady,
                Severity::Error,
                Reason::KubeconfigRefused,
                Some(Reason::KubeconfigRefused),
                AddonWaiting::Kubeconfig,
            ),
        ),
        matter(
            |observed| {
                if let Some(cluster) = &mut observed.cluster {
                    cluster.initialized = false;
                }
            },
            (
                ClusterReady,
                Severity::Info,
                Reason::ControlPlaneNotReady,
                None,
                AddonWaiting::ControlPlane,
            ),
        ),
    ]
}

#[test]
fn whatever_is_the_matter_one_condition_says_it_and_ready_repeats_it_and_nothing_is_touched() {
    let (world, complete) = complete();
    let matters = [
        matters_of_the_target(),
        matters_of_the_values(),
        matters_of_the_cluster(),
    ];
    for (change, (type_, severity, reason, stalled, waiting)) in matters.into_iter().flatten() {
        let mut observed = complete.clone();
        change(&mut observed);
        let plan = plan(&observed, world.now());
        let status = &plan.status;
        let told = format!("{type_} {reason}: {:#?}", status.conditions);
        let condition = find(&status.conditions, type_).expect(&told);
        assert_eq!(
            (condition.status, condition.severity),
            (ConditionStatus::False, Some(severity)),
            "{told}"
        );
        assert_eq!(reason_of(&plan, type_), Some(reason), "{told}");
        assert_eq!(reason_of(&plan, ConditionType::Ready), Some(reason), "{told}");
        assert!(
            condition.message.as_ref().is_some_and(|message| !message.is_empty()),
            "{told}"
        );
        assert_eq!(reason_of(&plan, ConditionType::Stalled), stalled, "{told}");
        let events = warnings(&complete.status.conditions, &status.conditions);
        let is_told = events.iter().any(|(event, _)| *event == reason);
        assert_eq!(is_told, severity != Severity::Info, "in an event: {told}");
        let goes_on = find(&status.conditions, ConditionType::Reconciling).is_some();
        assert_eq!(goes_on, stalled.is_none(), "{told}");
        assert_eq!(lint(&status.conditions, 1, 1), [], "{told}");
        assert_eq!(plan.waiting, [waiting]);
        assert_eq!(plan.steps, []);
        let before = &complete.status;
        assert!(!status.ready);
        assert_eq!(
            (&status.resources, &status.stages),
            (&before.resources, &before.stages),
            "{told}"
        );
        assert_eq!(
            (&status.target, &status.applied),
            (&before.target, &before.applied),
            "{told}"
        );
    }
}

/// A kubeconfig that nobody reads is not told to be missing.
#[test]
fn of_a_cluster_that_is_not_asked_it_is_told_so_and_not_that_its_kubeconfig_is_missing() {
    let (world, complete) = complete();
    let asked = AddonObserved {
        connection: Connection::Disconnected,
        release: ReleaseSeen::Absent,
        ..complete
    };
    let mut with_objects = asked.clone();
    with_objects.class = ClassOwner::Foreign;
    let mut without = with_objects.clone();
    without.status.resources.clear();
    for (observed, severity, words) in [
        (asked, Severity::Warning, "Secret web-kubeconfig"),
        (with_objects, Severity::Warning, "Secret web-kubeconfig"),
        (without, Severity::Info, "the cluster is not asked"),
    ] {
        let status = plan(&observed, world.now()).status;
        let condition = find(&status.conditions, ConditionType::ClusterReady).expect("a condition");
        let message = condition.message.as_deref().unwrap_or_default();
        assert!(message.contains(words), "{message}");
        assert_eq!(condition.severity, Some(severity), "{message}");
    }
}

/// Of the values of before nobody has to know that they are: what they make is looked after like everything else.
#[test]
fn what_is_made_with_the_values_of_before_is_put_right_and_what_has_none_is_left() {
    for is_held in [true, false] {
        let (mut world, complete) = complete();
        let key = complete.status.resources.first().map(key_of).expect("an object");
        world.cluster.objects.remove(&key);
        let mut observed = world.observe().expect("a ClusterAddon");
        let message = "cluster-addon-values.yaml:3: no such field".to_owned();
        if is_held {
            let held = |chart: &String| (chart.clone(), message.clone());
            observed.values_held = observed.charts.keys().map(held).collect();
        } else {
            observed.values = Values::Failed { message };
        }
        let plan = plan(&observed, world.now());
        // What is not there any more is looked for first.
        let mut actions = plan.steps.iter().flat_map(Step::on_objects);
        let is_looked_for = actions.any(|action| matches!(action, ObjectAction::Read { key: of } if *of == key));
        assert_eq!(is_looked_for, is_held, "{:#?}", plan.steps);
        let stalled = find(&plan.status.conditions, ConditionType::Stalled).expect("a condition");
        let words = stalled.message.as_deref().unwrap_or_default();
        let expected = if is_held {
            "are looked after with the values that they had before"
        } else {
            "is not looked after"
        };
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn what_is_about_to_pass_is_not_told() {
    let (world, complete) = complete();
    let now = world.now();
    let soon = now + SignedDuration::from_secs(10);
    let message = "no route to host".to_owned();
    let passing: [(AddonObserved, AddonWaiting, Next); 3] = [
        (
            AddonObserved {
                connection: Connection::Connecting { since: now },
                ..complete.clone()
            },
            AddonWaiting::Connection,
            Next::At(soon),
        ),
        (
            AddonObserved {
                connection: Connection::Suspect { since: now, message },
                ..complete.clone()
            },
            AddonWaiting::Connection,
            Next::At(soon),
        ),
        (
            AddonObserved {
                values: Values::Awaited,
                ..complete.clone()
            },
            AddonWaiting::Values,
            Next::Await,
        ),
    ];
    for (observed, waiting, next) in passing {
        let plan = plan(&observed, now);
        assert_eq!((plan.steps, plan.waiting, plan.next), (vec![], vec![waiting], next));
        assert_eq!(plan.status, complete.status);
    }
}

#[test]
fn values_that_cannot_be_made_are_no_fault_where_a_part_of_the_cluster_is_not_there_yet_or_not_any_more() {
    let (world, complete) = complete();
    let of_cluster: [Change; 2] = [
        |observed| {
            if let Some(cluster) = &mut observed.cluster {
                cluster.initialized = false;
            }
        },
        |observed| {
            if let Some(cluster) = &mut observed.cluster {
                (cluster.deleting, cluster.ok_to_delete) = (Some(at(0)), true);
            }
        },
    ];
    let missing: [Change; 2] = [
        |observed| {
            let message = "the control plane is not there".to_owned();
            observed.values = Values::Failed { message };
        },
        |observed| {
            for chart in observed.charts.values_mut() {
                let message = "the control plane has no version".to_owned();
                let transient = None;
                *chart = ChartSeen::Found(Rendering::Failed { message, transient });
            }
        },
    ];
    for of_cluster in of_cluster {
        for missing in missing {
            let mut observed = complete.clone();
            of_cluster(&mut observed);
            missing(&mut observed);
            let status = plan(&observed, world.now()).status;
            let errors = status
                .conditions
                .iter()
                .filter(|condition| condition.severity == Some(Severity::Error));
            assert_eq!(errors.count(), 0, "{:#?}", status.conditions);
            assert!(
                find(&status.conditions, ConditionType::Stalled).is_none(),
                "{status:#?}"
            );
            assert_eq!(lint(&status.conditions, 1, 1), []);
        }
    }
}

/// A cluster that is to go while nobody knows what its stages need.
fn going(release: ReleaseSeen, layout: Option<Layout>, after: i64) -> AddonPlan {
    let (world, mut observed) = complete();
    observed.release = release;
    observed.layout = layout.unwrap_or(observed.layout);
    if let Some(cluster) = &mut observed.cluster {
        cluster.deleting = Some(world.now());
        cluster.generation += 1;
    }
    plan(&observed, world.now() + SignedDuration::from_secs(after))
}

#[test]
fn a_cluster_whose_release_cannot_be_used_is_held_as_long_as_its_stages_may_take_and_no_longer() {
    let not_ready = || ReleaseSeen::NotReady {
        message: "it is being downloaded".to_owned(),
    };
    for (after, passed_over) in [(0, false), (1199, false), (1200, true)] {
        let plan = going(not_ready(), None, after);
        let rows = &plan.status.stages;
        assert_eq!(rows.len(), 2, "{rows:#?}");
        let last = rows.last().expect("a row");
        let StageProgress { phase, reason, .. } = last;
        assert_eq!(
            (*phase, reason.as_deref()),
            (StagePhase::Pending, Some("ReleaseNotReady"))
        );
        assert_eq!(last.message.as_deref(), Some("it is being downloaded"));
        assert_eq!(rows.iter().all(|row| row.passed_over), passed_over, "after {after} s");
        assert_eq!(
            plan.next != Next::Await,
            !passed_over,
            "{:?} after {after} s",
            plan.next
        );
        let hook = plan.status.hook.expect("somebody has looked");
        assert_eq!(hook.deadline, last.deadline);
    }
}

#[test]
fn a_cluster_whose_release_is_gone_or_has_no_stages_that_can_be_read_is_not_held() {
    let wrong = Layout::Wrong {
        message: "clusteraddon.yaml:7: unknown action".to_owned(),
    };
    let ready = ReleaseSeen::Ready {
        addon_version: "v2".to_owned(),
        kubernetes_version: "v1.33.1".to_owned(),
    };
    for plan in [going(ReleaseSeen::Absent, None, 0), going(ready, Some(wrong), 0)] {
        assert_eq!(plan.status.stages, []);
        assert!(
            plan.status.hook.is_some(),
            "whoever answers the hook knows that somebody has looked"
        );
    }
}

/// A release that nobody has seen yet is not gone: a cluster that goes would be let go without its stages, and for good.
#[test]
fn until_all_releases_are_known_nothing_is_touched_and_nothing_is_said() {
    let (world, mut alive) = complete();
    alive.release = ReleaseSeen::NotKnownYet;
    alive.layout = Layout::NotRead;
    alive.class = ClassOwner::NotKnownYet;
    let mut going = alive.clone();
    if let Some(cluster) = &mut going.cluster {
        cluster.deleting = Some(world.now());
        cluster.generation += 1;
    }
    for (observed, after) in [(&alive, 0), (&going, 0), (&going, 100_000)] {
        let plan = plan(observed, world.now() + SignedDuration::from_secs(after));
        assert_eq!(plan.steps, []);
        assert_eq!(plan.status, observed.status);
        assert_eq!((plan.waiting, plan.next), (vec![AddonWaiting::Releases], Next::Await));
    }
}

/// Of one that never answered the stages count as over.
#[test]
fn a_cluster_that_goes_is_not_taken_for_one_that_never_answered_before_its_control_plane_was_looked_at() {
    let (world, mut observed) = complete();
    let cluster = observed.cluster.as_mut().expect("a Cluster");
    cluster.deleting = Some(world.now());
    cluster.generation += 1;
    cluster.control_plane = None;
    cluster.initialized = false;
    let look = |observed: &AddonObserved| plan(observed, world.now() + SignedDuration::from_secs(30));
    let rows = look(&observed).status.stages;
    assert!(!rows.is_empty() && rows.iter().all(|row| row.passed_over));
    observed.cluster.as_mut().expect("a Cluster").control_plane_awaited = true;
    let plan = look(&observed);
    assert_eq!((&plan.steps, &plan.status), (&Vec::new(), &observed.status));
    assert_eq!(plan.waiting, [AddonWaiting::UnseenControlPlane]);
}

#[test]
fn what_is_known_of_stages_before_a_deletion_stands_while_nobody_can_go_on_with_them() {
    let (world, mut observed) = complete();
    let cluster = observed.cluster.as_mut().expect("a Cluster");
    cluster.deleting = Some(world.now());
    cluster.generation += 1;
    let ready = observed.release.clone();
    let look = |observed: &mut AddonObserved, after: i64| {
        let plan = plan(observed, world.now() + SignedDuration::from_secs(after));
        observed.status = plan.status;
    };
    look(&mut observed, 0);
    let begun = observed.status.clone();
    let phases = |observed: &AddonObserved| {
        let rows = observed.status.stages.iter();
        rows.map(|row| (row.phase, row.since.clone(), row.passed_over))
            .collect::<Vec<_>>()
    };
    assert_eq!(begun.stages[0].phase, StagePhase::ApplyingOrDeleting);
    let before = phases(&observed);
    let message = "it is being downloaded".to_owned();
    observed.release = ReleaseSeen::NotReady { message };
    // Its stages may take twice as long as whoever answers the hook waits by himself.
    for after in [30, 900] {
        look(&mut observed, after);
        assert_eq!(phases(&observed), before);
        assert_eq!(observed.status.stages[0].reason.as_deref(), Some("ReleaseNotReady"));
        let layout = std::mem::replace(&mut observed.layout, Layout::NotRead);
        look(&mut observed, after);
        assert_eq!(phases(&observed), before, "after {after} s");
        let deadline = |status: &ClusterAddonStatus| status.hook.as_ref().and_then(|hook| hook.deadline.clone());
        assert_eq!(deadline(&observed.status), deadline(&begun), "after {after} s");
        observed.layout = layout;
    }
    observed.release = ready;
    look(&mut observed, 30);
    assert_eq!(phases(&observed), before);
}

#[test]
fn a_cluster_whose_release_has_not_been_read_is_held_by_whoever_answers_the_hook() {
    let message = "it is being downloaded".to_owned();
    let plan = going(ReleaseSeen::NotReady { message }, Some(Layout::NotRead), 0);
    assert_eq!((plan.status.stages, plan.status.hook), (vec![], None));
}

#[test]
fn what_is_odd_about_a_release_stands_beside_what_is_ready() {
    let (_, observed) = complete();
    let now = at(100_000);
    let told = |change: &dyn Fn(&mut AddonObserved)| {
        let mut observed = observed.clone();
        change(&mut observed);
        let plan = plan(&observed, now);
        assert!(plan.status.ready, "{:?}", plan.status.conditions);
        let conditions = &plan.status.conditions;
        assert_eq!(lint(conditions, observed.generation, observed.generation), []);
        let validated = find(conditions, ConditionType::ClusterAddonConfigValidated).expect("it was read");
        assert_eq!(validated.status, ConditionStatus::True);
        let reason = reason_of(&plan, ConditionType::Ready);
        (reason, validated.message.clone().unwrap_or_default())
    };
    assert_eq!(told(&|_| {}), (None, String::new()));
    let note = "they get v1beta1";
    let said = told(&|observed| observed.values_note = Some(note.to_owned()));
    assert_eq!(said, (Some(Reason::ClusterVersionNotServed), note.to_owned()));
    let misspelt = |observed: &mut AddonObserved| {
        if let Layout::Known(Stages::Listed(config)) = &mut observed.layout {
            let stages = config.addon_stages.values().next().cloned().unwrap_or_default();
            config.addon_stages.insert("name".to_owned(), stages);
        }
    };
    let (reason, message) = told(&misspelt);
    assert_eq!(reason, Some(Reason::StagesNotUsed));
    assert!(
        message.contains("has stages under name, which are never run"),
        "{message}"
    );
    let (reason, message) = told(&|observed| {
        misspelt(observed);
        observed.values_note = Some(note.to_owned());
    });
    assert_eq!(reason, Some(Reason::StagesNotUsed));
    assert!(message.starts_with(note) && message.contains("never run"), "{message}");
}
