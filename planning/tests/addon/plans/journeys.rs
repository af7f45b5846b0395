//! Single journeys, step by step: what is written when, and what is said meanwhile.

use crds::cluster_addon::{StagePhase, StageProgress};
use crds::conditions::{ConditionType, Reason, find};
use crds::labels::HOOK_CALLED;
use crds::policy::{DriftPolicy, PruneLimit};
use planning::addon::{AddonPlan, AddonWaiting, Connection};
use planning::next::Next;
use planning::object_key::GroupKind;

use super::cluster::{Cluster, stays};
use super::releases::{Chart, MOVED, SEED, broken, key};
use super::world::World;
use crate::given::listed;

fn settled(classes: &[usize]) -> World {
    let mut world = World::new();
    world.settle();
    world.assert_settled();
    for class in classes {
        world.set_class(*class);
        world.settle();
        world.assert_settled();
        assert_eq!(world.class, *class);
    }
    world
}

/// A world whose cluster answers, with this class.
fn answering(class: usize) -> World {
    let mut world = World::new();
    world.class = class;
    world.version = world.release().kubernetes_version;
    world.wanted = world.version;
    world.cluster_api();
    world
}

fn reason_of(world: &World, type_: ConditionType) -> Option<Reason> {
    let status = world.status();
    let reason = find(&status.conditions, type_)?.reason.clone();
    reason.and_then(|reason| reason.parse().ok())
}

#[test]
fn the_first_add_ons_cost_a_mark_an_inventory_their_objects_and_a_status() {
    let mut world = answering(6);
    world.reconcile();
    world.reconcile();
    world.reconcile();
    assert_eq!(
        world.journal,
        [
            "owner",
            "mark",
            "status",
            "apply Namespace cni of cluster-addon",
            "apply ConfigMap cni/cni of cluster-addon",
            "apply ConfigMap kube-system/extra of cluster-addon",
            "marks",
            "status"
        ]
    );
    assert!(world.status().ready);
}

#[test]
fn what_charts_draw_is_kept_before_anything_is_made_of_it_and_survives_a_restart() {
    let mut world = answering(0);
    world.settle();
    let secret = |world: &World| world.cluster.objects[&key("Secret cni/ca")].content.clone();
    let at = |world: &World, line: &str| world.journal.iter().position(|found| found.starts_with(line));
    assert!(
        at(&world, "memo") < at(&world, "apply Secret cni/ca"),
        "{:?}",
        world.journal
    );
    let drawn = secret(&world);
    world.restart();
    world.set_variable();
    world.settle();
    assert_eq!(secret(&world), drawn);
    assert_eq!(world.status().memo, world.memo);
}

/// A memo that somebody deleted is drawn anew, and whoever writes it is told to say so.
#[test]
fn a_memo_that_is_lost_is_drawn_anew_and_that_is_told() {
    let mut world = answering(0);
    world.settle();
    world.memo = None;
    world.restart();
    world.settle();
    assert!(world.journal.contains(&"memo anew".to_owned()), "{:?}", world.journal);
    world.assert_settled();
}

/// Otherwise whoever comes after this process would draw it anew.
#[test]
fn a_memo_that_somebody_deletes_while_it_is_known_is_written_back_at_once_and_nothing_changes() {
    let mut world = answering(0);
    world.settle();
    let (memo, before) = (world.memo.take(), world.journal.len());
    assert!(memo.is_some());
    world.settle();
    assert_eq!(world.memo, memo);
    let after = world.journal[before..].iter();
    let written: Vec<&String> = after.filter(|line| *line != "status").collect();
    assert_eq!(written, ["memo"]);
    world.assert_settled();
}

#[test]
fn a_stage_waits_for_what_must_hold_before_it_and_says_what_does_not() {
    let mut world = answering(1);
    world.unmet.insert("cni");
    world.reconcile();
    let status = world.status();
    assert_eq!(status.stages[0].phase, StagePhase::WaitingForPreCondition);
    assert_eq!(status.stages[0].message.as_deref(), Some("replicas of cni is 0"));
    assert_eq!(
        reason_of(&world, ConditionType::EvaluatedCEL),
        Some(Reason::FailedToEvaluatePreCondition)
    );
    assert_eq!(
        reason_of(&world, ConditionType::Ready),
        Some(Reason::FailedToEvaluatePreCondition)
    );
    assert!(world.cluster.objects.is_empty());
    world.unmet.clear();
    world.settle();
    world.assert_settled();
}

#[test]
fn an_object_that_moves_to_another_chart_stays_and_no_chart_deletes_it() {
    let mut world = settled(&[]);
    let uid = world.cluster.objects[&key(MOVED)].uid;
    for class in [1, 4, 5] {
        world.set_class(class);
        world.settle();
        world.assert_settled();
        assert_eq!(world.cluster.objects[&key(MOVED)].uid, uid, "{:#?}", world.journal);
    }
}

/// A cluster that gets another class before its creation is over; that class has the object in a chart that is applied in upgrades only.
#[test]
fn an_object_that_moves_to_a_chart_of_upgrades_stays_though_creation_does_not_come_by_that() {
    let mut world = answering(0);
    world.reconcile();
    let uid = world.cluster.objects[&key(MOVED)].uid;
    assert_eq!(world.status().applied, None);
    world.set_class(4);
    world.settle();
    world.assert_settled();
    assert_eq!(world.cluster.objects[&key(MOVED)].uid, uid, "{:#?}", world.journal);
    assert!(!world.cluster.objects.contains_key(&key(SEED)), "{:#?}", world.journal);
}

/// What a cluster has needs no chart of upgrades: it is ready, and what is left over waits.
#[test]
fn nothing_is_pruned_before_all_charts_that_stay_are_known_and_the_one_that_is_not_is_named() {
    let mut world = answering(0);
    world.reconcile();
    let widgets = world.releases[4].charts.insert("widgets", Chart::Broken);
    world.set_class(4);
    world.settle();
    let plan = world.decide().expect("a plan");
    let chart = "widgets".to_owned();
    assert_eq!(plan.waiting, [AddonWaiting::Chart { chart }]);
    assert!(world.status().ready, "{:#?}", world.status());
    assert!(world.cluster.objects.contains_key(&key(MOVED)) && world.cluster.objects.contains_key(&key(SEED)));
    world.releases[4].charts.extend(widgets.map(|chart| ("widgets", chart)));
    world.settle();
    world.assert_settled();
    assert!(!world.cluster.objects.contains_key(&key(SEED)), "{:#?}", world.journal);
}

#[test]
fn what_leaves_goes_once_all_stages_are_done_and_not_before() {
    let mut world = settled(&[]);
    let secret = key("Secret cni/ca");
    world.set_class(2);
    for _ in 0..5 {
        world.second += 60;
        world.reconcile();
    }
    assert!(!world.status().ready);
    assert!(
        world.cluster.objects.contains_key(&secret),
        "a faulty release takes nothing away"
    );
    world.unmet.insert("cni");
    world.set_class(1);
    for _ in 0..5 {
        world.second += 60;
        world.reconcile();
    }
    assert!(
        world.cluster.objects.contains_key(&secret),
        "nor does one whose stages wait"
    );
    world.unmet.clear();
    world.settle();
    world.assert_settled();
    assert!(!world.cluster.objects.contains_key(&secret));
}

#[test]
fn a_faulty_release_is_mended_by_the_next_and_by_going_back() {
    for (faulty, reason) in [(2, Reason::FailedToApplyObjects), (3, Reason::HelmChartMissing)] {
        for good in [0, 1] {
            let mut world = settled(&[]);
            world.set_class(faulty);
            for _ in 0..5 {
                world.second += 60;
                world.reconcile();
            }
            assert_eq!(
                reason_of(&world, ConditionType::Ready),
                Some(reason),
                "{:#?}",
                world.status()
            );
            assert!(find(&world.status().conditions, ConditionType::Stalled).is_some());
            let last = world.status().stages.last().map(|row| row.phase);
            assert_eq!(last, Some(StagePhase::ApplyingOrDeleting), "{reason}");
            world.set_class(good);
            world.settle();
            world.assert_settled();
        }
    }
}

#[test]
fn a_chart_that_does_not_render_holds_its_stage_and_those_after_it_and_stalls() {
    let mut world = answering(1);
    world.releases[1] = broken();
    world.reconcile();
    world.reconcile();
    let status = world.status();
    let phases: Vec<StagePhase> = status.stages.iter().map(|row| row.phase).collect();
    assert_eq!(phases, [StagePhase::Done, StagePhase::ApplyingOrDeleting]);
    assert_eq!(
        reason_of(&world, ConditionType::Ready),
        Some(Reason::TemplateNewClusterStackFailed)
    );
    assert_eq!(reason_of(&world, ConditionType::Stalled), Some(Reason::RenderFailed));
    assert!(!world.cluster.objects.contains_key(&key(MOVED)));
}

#[test]
fn class_and_version_in_two_steps_change_nothing_in_between() {
    let mut world = settled(&[1]);
    let objects = world.cluster.clone();
    world.set_class(4);
    let plan = world.reconcile().expect("a plan");
    assert_eq!(plan.waiting, [AddonWaiting::Version]);
    assert_eq!(reason_of(&world, ConditionType::Ready), Some(Reason::VersionMismatch));
    assert_eq!(world.cluster, objects);
    assert_eq!(world.status().target, world.status().applied);
    world.settle();
    world.assert_settled();
}

#[test]
fn the_same_add_ons_in_another_class_are_not_written_again() {
    let mut world = settled(&[4]);
    let objects = world.cluster.clone();
    world.set_class(5);
    world.settle();
    world.assert_settled();
    assert_eq!(world.cluster, objects);
}

/// For the way back no hook is called where Kubernetes stays as it is: what is left of a call would open the last moment of an upgrade at its beginning.
#[test]
fn a_call_of_a_hook_is_forgotten_once_the_cluster_wants_something_else() {
    let mut world = settled(&[4]);
    let noted = |world: &World| {
        let annotations = world.addon.as_ref()?.metadata.annotations.as_ref()?;
        annotations.get(HOOK_CALLED).cloned()
    };
    let called = format!("AfterClusterUpgrade@{}@{}", world.version, world.release().class);
    let addon = world.addon.as_mut().expect("a ClusterAddon");
    let annotations = addon.metadata.annotations.get_or_insert_default();
    annotations.insert(HOOK_CALLED.to_owned(), called.clone());
    let writes = world.writes;
    world.reconcile();
    assert_eq!((noted(&world), world.writes), (Some(called), writes));
    for class in [5, 4] {
        world.set_class(class);
        world.settle();
        world.assert_settled();
        assert_eq!(noted(&world).as_deref(), Some(""), "{class}");
    }
}

#[test]
fn a_connection_that_is_away_for_a_moment_is_no_news_and_one_that_stays_away_is() {
    let mut world = settled(&[]);
    let before = world.addon.clone();
    let since = world.now();
    let message = "no route to host".to_owned();
    world.connection = Connection::Suspect { since, message };
    world.second += 9;
    world.reconcile();
    assert!(world.addon == before);
    world.second += 1;
    world.reconcile();
    assert_eq!(
        reason_of(&world, ConditionType::ClusterReady),
        Some(Reason::ControlPlaneNotReady)
    );
    let rows = |addon: &Option<crds::cluster_addon::ClusterAddon>| {
        let status = addon.clone().and_then(|addon| addon.status).unwrap_or_default();
        (status.resources, status.stages, status.applied)
    };
    assert!(
        rows(&world.addon) == rows(&before),
        "what is known of the objects stays as it was"
    );
}

#[test]
fn a_kubeconfig_that_is_refused_stalls() {
    let mut world = settled(&[]);
    let message = "users[0].user.exec is not allowed".to_owned();
    world.connection = Connection::Refused { message };
    world.reconcile();
    assert_eq!(reason_of(&world, ConditionType::Ready), Some(Reason::KubeconfigRefused));
    assert_eq!(
        reason_of(&world, ConditionType::Stalled),
        Some(Reason::KubeconfigRefused)
    );
}

#[test]
fn a_stage_that_takes_too_long_stalls_and_recovers_by_itself() {
    let mut world = answering(1);
    world.unmet.insert("cni");
    world.reconcile();
    world.second += 1800;
    world.reconcile();
    assert_eq!(
        reason_of(&world, ConditionType::Stalled),
        Some(Reason::StageDeadlineExceeded)
    );
    assert_eq!(
        reason_of(&world, ConditionType::Ready),
        Some(Reason::StageDeadlineExceeded)
    );
    world.settle();
    world.assert_settled();
}

#[test]
fn a_stage_that_waits_for_what_cannot_be_stalls_at_once_and_goes_on_when_the_cluster_is_another() {
    let mut world = answering(1);
    world.unfit.insert("cni");
    world.reconcile();
    for type_ in [
        ConditionType::EvaluatedCEL,
        ConditionType::Ready,
        ConditionType::Stalled,
    ] {
        assert_eq!(reason_of(&world, type_), Some(Reason::ConditionInvalid), "{type_}");
    }
    let stage = &world.status().stages[0];
    assert_eq!(stage.reason.as_deref(), Some("ConditionInvalid"));
    assert_eq!(
        stage.message.as_deref(),
        Some("cni has no replica: did you mean replicas?")
    );
    world.second += 1800;
    world.reconcile();
    assert_eq!(
        reason_of(&world, ConditionType::Stalled),
        Some(Reason::ConditionInvalid)
    );
    assert!(world.cluster.objects.is_empty());
    world.unfit.clear();
    world.settle();
    world.assert_settled();
}

#[test]
fn a_new_target_in_the_middle_of_a_stage_takes_its_place_at_once() {
    let mut world = settled(&[]);
    world.unmet.insert("cni");
    world.set_class(1);
    world.reconcile();
    assert_eq!(world.status().stages[0].phase, StagePhase::WaitingForPreCondition);
    world.set_class(0);
    world.settle();
    world.assert_settled();
}

#[test]
fn stages_before_the_deletion_run_and_the_rest_goes_with_the_cluster() {
    let mut world = settled(&[1]);
    world.deleting = Some(world.second);
    world.generation += 1;
    for _ in 0..4 {
        world.second += 1;
        world.reconcile();
    }
    let status = world.status();
    assert!(
        status.stages.iter().all(|row| row.phase == StagePhase::Done),
        "{status:#?}"
    );
    assert!(
        !world
            .cluster
            .objects
            .contains_key(&key("ConfigMap kube-system/metrics"))
    );
    assert!(world.cluster.objects.contains_key(&key("Namespace cni")));
    world.assert_lets_go();
    world.ok_to_delete = true;
    world.second += 10;
    world.reconcile();
    let told = find(&world.status().conditions, ConditionType::Reconciling).map(|told| told.message.clone());
    let nothing_more = "the Cluster is being deleted, and its add-ons need nothing more before it goes";
    assert_eq!(told.flatten().as_deref(), Some(nothing_more));
    world.is_gone = true;
    world.reconcile();
    assert!(world.is_addon_deleted);
    world.reconcile();
    assert!(world.addon.is_none());
}

/// A cluster that is to go while a kind cannot be listed that its annotation names; where the stages are then.
fn going_without(kind: &str, words: Option<&'static str>) -> (World, AddonPlan) {
    let mut world = settled(&[1]);
    let kind: GroupKind = key(&format!("{kind} kube-system/any")).group_kind();
    world.group_kinds.get_or_insert_default().insert(kind.clone());
    world.unlistable.insert(kind, words);
    world.deleting = Some(world.second);
    world.generation += 1;
    works(&mut world, 10);
    let plan = world.decide().expect("a plan");
    (world, plan)
}

/// The stages before the deletion that are done, and what the first one that is not says.
fn stages_of(world: &World) -> (usize, Option<String>) {
    let stages = world.status().stages;
    let is_done = |row: &&StageProgress| row.phase == StagePhase::Done;
    let open = stages.iter().find(|row| !is_done(row));
    (
        stages.iter().filter(is_done).count(),
        open.and_then(|row| row.message.clone()),
    )
}

#[test]
fn a_kind_of_another_release_that_cannot_be_listed_holds_no_stage_up_that_deletes() {
    let (world, _) = going_without("Certificate.example.org", Some("its webhook is gone"));
    assert_eq!(stages_of(&world), (2, None));
    for deleted in ["ConfigMap kube-system/metrics", "ConfigMap cni/cni"] {
        assert!(!world.cluster.objects.contains_key(&key(deleted)), "{deleted}");
    }
}

#[test]
fn a_kind_that_its_chart_asks_for_holds_a_stage_up_that_deletes_until_it_is_listed() {
    let (mut world, _) = going_without("ConfigMap", Some("its webhook is gone"));
    let words = "objects may be left: ConfigMap cannot be watched: its webhook is gone";
    assert_eq!(stages_of(&world), (0, Some(words.to_owned())));
    assert!(
        !world
            .cluster
            .objects
            .contains_key(&key("ConfigMap kube-system/metrics")),
        "what is known goes"
    );
    world.unlistable.clear();
    works(&mut world, 10);
    assert_eq!(stages_of(&world), (2, None));
}

/// The inventory may have been lost with the objects of that kind in it.
#[test]
fn a_list_that_is_on_its_way_is_waited_for_and_it_is_looked_whether_it_has_failed() {
    let (mut world, plan) = going_without("Certificate.example.org", None);
    let words = "waits for the list of Certificate.example.org, of which objects may be left";
    assert_eq!(stages_of(&world), (0, Some(words.to_owned())));
    let soon = Next::At(crate::given::at(world.second + 60));
    assert_eq!(plan.next, soon);
    for said in world.unlistable.values_mut() {
        *said = Some("its webhook is gone");
    }
    world.second += 60;
    works(&mut world, 10);
    assert_eq!(stages_of(&world), (2, None));
}

/// The Cluster is deleted, and the operator works on it for so many seconds.
fn goes(world: &mut World, seconds: i64) {
    world.deleting = Some(world.second);
    world.generation += 1;
    works(world, seconds);
}

fn works(world: &mut World, seconds: i64) {
    for _ in 0..seconds {
        world.second += 1;
        world.reconcile();
    }
}

/// No chart of the release can be used any more.
fn lose_charts(world: &mut World, fault: &Chart) {
    let class = world.class;
    for chart in world.releases[class].charts.values_mut() {
        *chart = fault.clone();
    }
}

/// Somebody may delete what the values are made of together with the Cluster, and an operator that begins anew remembers none.
#[test]
fn stages_before_the_deletion_take_away_what_the_inventory_names_and_nothing_else_where_no_chart_can_be_rendered() {
    let faults: [fn(&mut World); 3] = [
        |world| world.is_unmade = true,
        |world| lose_charts(world, &Chart::Broken),
        |world| lose_charts(world, &Chart::Missing),
    ];
    let classes: [(usize, &[&str]); 2] = [(1, &["metrics", "cni"]), (4, &["extra"])];
    for (class, deleted) in classes {
        for fault in faults {
            for is_status_lost in [false, true] {
                let mut world = settled(&[class]);
                let mut left = world.cluster.objects.clone();
                left.retain(|key, live| stays(key) || !deleted.contains(&live.chart.as_str()));
                assert!(left.len() < world.cluster.objects.len(), "something is to go");
                world.restart();
                fault(&mut world);
                if is_status_lost {
                    world.lose_status();
                }
                goes(&mut world, 8);
                let told = format!("{:#?}\n{:#?}", world.status(), world.journal);
                assert_eq!(world.cluster.objects, left, "{told}");
                let rows = world.status().stages;
                assert!(rows.iter().all(|row| row.phase == StagePhase::Done), "{told}");
                world.assert_lets_go();
            }
        }
    }
}

#[test]
fn a_stage_that_cannot_apply_before_the_deletion_holds_up_what_is_to_go_for_its_time_and_keeps_what_is_its_own() {
    let mut world = World::new();
    world.releases[1].stages = listed(
        "{AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: metrics, action: apply}],
          BeforeClusterDelete: [{name: cni, action: apply}, {name: metrics, action: delete}]}",
    );
    world.settle();
    world.set_class(1);
    world.settle();
    world.assert_settled();
    world.restart();
    world.is_unmade = true;
    goes(&mut world, 4);
    let (metrics, own) = (key("ConfigMap kube-system/metrics"), key("ConfigMap cni/cni"));
    let there = |world: &World| [&metrics, &own].map(|key| world.cluster.objects.contains_key(key));
    assert_eq!(there(&world), [true, true]);
    assert_eq!(
        reason_of(&world, ConditionType::HelmChartTemplated),
        Some(Reason::TemplateNewClusterStackOverwriteFailed)
    );
    world.second += 600;
    works(&mut world, 4);
    assert_eq!(there(&world), [false, true], "{:#?}", world.status());
    world.assert_lets_go();
}

/// What was done before the deletion is not done again when the values are there again, or are not any more.
#[test]
fn values_that_are_lost_before_the_deletion_leave_what_was_done_as_it_was() {
    let mut world = settled(&[1]);
    goes(&mut world, 4);
    let before = world.status();
    for is_unmade in [true, false] {
        world.is_unmade = is_unmade;
        works(&mut world, 2);
        let now = world.status();
        assert_eq!(
            (&now.target, &now.stages),
            (&before.target, &before.stages),
            "{is_unmade}"
        );
    }
}

/// F15: the machines are gone by force, and nobody answers any more.
#[test]
fn a_cluster_that_is_gone_by_force_never_hangs() {
    let mut world = settled(&[1]);
    world.deleting = Some(world.second);
    world.generation += 1;
    let since = world.now();
    let message = "no route to host".to_owned();
    world.connection = Connection::Suspect { since, message };
    world.second += 11;
    world.reconcile();
    let hook = world.status().hook.expect("somebody looked");
    assert_eq!(hook.name, "BeforeClusterDelete");
    assert_eq!(
        hook.deadline.map(|deadline| deadline.0),
        Some(crate::given::at(world.second - 11 + 1200))
    );
    world.second += 1200;
    world.assert_lets_go();
}

/// kill -9 at every write of an upgrade with stages for every hook.
#[test]
fn an_upgrade_that_is_ended_before_any_of_its_writes_comes_out_alike() {
    let whole = settled(&[4]);
    for write in 0..25 {
        let mut world = settled(&[]);
        world.set_class(4);
        world.set_version();
        world.crash = Some(write);
        for _ in 0..20 {
            world.second += 1;
            world.cluster_api();
            world.reconcile();
        }
        world.settle();
        world.assert_settled();
        let contents = |world: &World| {
            let objects = world.cluster.objects.iter();
            objects
                .map(|(key, live)| (key.clone(), live.content.clone(), live.chart.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(contents(&world), contents(&whole), "ended before write {write}");
    }
}

/// Gives a chart of a release more objects than may always go at once.
fn crowd(world: &mut World, class: usize, chart: &str) {
    if let Some(Chart::Objects(objects)) = world.releases[class].charts.get_mut(chart) {
        let names = (0..=PruneLimit::ALWAYS_ALLOWED).map(|number| format!("ConfigMap kube-system/{chart}-{number:02}"));
        objects.extend(names.map(|name| (key(&name), "1".to_owned())));
    }
}

#[test]
fn many_objects_that_leave_wait_for_an_approval_and_those_of_a_stage_do_not() {
    let mut world = World::new();
    crowd(&mut world, 0, "cni");
    crowd(&mut world, 1, "metrics");
    world.settle();
    world.prune_limit = PruneLimit::Count(0);
    world.set_class(1);
    for _ in 0..5 {
        world.second += 60;
        world.reconcile();
    }
    let status = world.status();
    assert!(status.ready && status.applied == status.target);
    assert_eq!(
        reason_of(&world, ConditionType::Reconciling),
        Some(Reason::PruneNotApproved)
    );
    assert!(world.cluster.objects.contains_key(&key("Secret cni/ca")));
    let message = find(&status.conditions, ConditionType::Reconciling).and_then(|condition| condition.message.clone());
    let digest = message.as_deref().and_then(|message| message.rsplit(' ').next());
    world.approved_prune = digest.map(str::to_owned);
    for _ in 0..3 {
        world.reconcile();
    }
    assert!(!world.cluster.objects.contains_key(&key("Secret cni/ca")));
    world.approved_prune = None;
    world.set_class(4);
    world.settle();
    world.assert_settled();
    let left = world
        .cluster
        .objects
        .keys()
        .filter(|key| key.name.starts_with("metrics"));
    assert_eq!(left.count(), 0, "a stage takes away as many as there are");
}

#[test]
fn words_that_change_all_the_time_are_written_every_five_seconds() {
    let mut world = answering(1);
    world.unmet.insert("cni");
    world.reconcile();
    let writes = world.writes;
    for turn in 0..20 {
        world.second += 1;
        world.words = turn;
        world.reconcile();
    }
    assert_eq!(world.writes - writes, 4);
}

#[test]
fn a_pause_says_so_changes_nothing_else_and_holds_all_writes_back() {
    let mut world = settled(&[]);
    let (cluster, before) = (world.cluster.clone(), world.status());
    world.is_paused = true;
    world.set_class(1);
    let plan = world.reconcile().expect("a plan");
    assert_eq!(plan.waiting, [AddonWaiting::Paused]);
    assert_eq!(reason_of(&world, ConditionType::Ready), Some(Reason::Paused));
    let status = crds::cluster_addon::ClusterAddonStatus {
        conditions: before.conditions.clone(),
        ..world.status()
    };
    assert_eq!((status, &world.cluster), (before, &cluster));
    let writes = world.writes;
    world.reconcile();
    assert_eq!(world.writes, writes);
    world.is_paused = false;
    world.settle();
    world.assert_settled();
}

/// And the next add-ons have it as they want it.
#[test]
fn what_somebody_changes_or_deletes_is_put_back_or_left_as_the_policy_says() {
    let object = key("ConfigMap cni/cni");
    for (drift, is_deleted, content, is_told) in [
        (DriftPolicy::Correct, false, Some("1"), false),
        (DriftPolicy::Correct, true, Some("1"), false),
        (DriftPolicy::Warn, false, Some("edited"), true),
        (DriftPolicy::Warn, true, None, true),
        (DriftPolicy::Ignore, false, Some("edited"), false),
        (DriftPolicy::Ignore, true, None, true),
    ] {
        let mut world = settled(&[]);
        world.drift = drift;
        let meddle = if is_deleted { Cluster::remove } else { Cluster::edit };
        meddle(&mut world.cluster, &object);
        world.settle();
        let found = world.cluster.objects.get(&object).map(|live| live.content.as_str());
        let told = reason_of(&world, ConditionType::HelmChartApplied) == Some(Reason::Drifted);
        assert_eq!((found, told), (content, is_told), "{drift}");
        world.set_class(1);
        world.settle();
        world.assert_settled();
    }
}
