use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus, StageAction, StagePhase, StageProgress};
use crds::conditions::{ConditionType, Finding, Reason, Severity, merge, with_ready};
use crds::labels::{CONTAINS_GROUP_KINDS, PAUSED, SKIP_HOOK};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use planning::addon::{Call, ClusterSeen, Hook, HookAnswer, HookStatus, Listed, ReleaseListed, Unmade, Waits, answer};
use serde_json::{Value, json};

use crate::given::{CLASS, annotated, at, begun, cluster_value, owner, target};

const PRESENT: Listed<'static> = Listed {
    addons: true,
    release: ReleaseListed::Present,
    unmade: None,
    never_initialized: false,
    waits: Waits::Unseen,
};
const ABSENT: Listed<'static> = Listed {
    addons: true,
    release: ReleaseListed::Absent,
    unmade: None,
    never_initialized: false,
    waits: Waits::Unseen,
};

fn call_of(hook: Hook, cluster: &Value, version: &str) -> Call {
    let field = if hook.name().starts_with("Before") {
        "toKubernetesVersion"
    } else {
        "kubernetesVersion"
    };
    Call::of(hook, &json!({"cluster": cluster, field: version})).expect("a call")
}

/// As Cluster API sends it from 1.11 on: without status.
fn call(hook: Hook) -> Call {
    let mut cluster = cluster_value(CLASS, "v1.34.0");
    cluster["status"] = Value::Null;
    call_of(hook, &cluster, "v1.34.0")
}

fn row(hook: Hook, name: &str, phase: StagePhase) -> StageProgress {
    StageProgress {
        name: name.to_owned(),
        action: StageAction::Apply,
        hook: Some(hook.name().to_owned()),
        phase,
        reason: Some("FailedToEvaluatePostCondition".to_owned()),
        since: Some(Time(at(10))),
        deadline: Some(Time(at(1810))),
        message: Some("x.status.ready is 0".to_owned()),
        passed_over: false,
    }
}

/// Ours, led to what the request of [`call`] wants.
fn addon(stages: Vec<StageProgress>) -> ClusterAddon {
    let mut addon = begun();
    addon.status = Some(ClusterAddonStatus {
        cluster_generation: Some(3),
        target: Some(target("v2", "v1.34.0").recorded()),
        stages,
        ..ClusterAddonStatus::default()
    });
    addon
}

fn answered(call: &Call, addon: &ClusterAddon) -> HookAnswer {
    answer(call, Some(addon), PRESENT, at(100))
}

fn goes_on(answer: &HookAnswer) -> bool {
    answer.status == HookStatus::Success && answer.retry_after_seconds == 0
}

#[test]
fn clusters_of_other_classes_go_on_at_once() {
    let foreign = call_of(
        Hook::BeforeClusterUpgrade,
        &cluster_value("quick-start", "v1.34.0"),
        "v1.34.0",
    );
    let unlisted = Listed {
        addons: false,
        release: ReleaseListed::NotYet,
        unmade: None,
        never_initialized: false,
        waits: Waits::Unseen,
    };
    assert!(goes_on(&answer(&foreign, None, unlisted, at(0))));
    // Named like ours, and of another tool: with what the Go operator made for it, too.
    let alike = call(Hook::BeforeClusterUpgrade);
    assert!(goes_on(&answer(&alike, None, ABSENT, at(0))));
    assert!(goes_on(&answer(&alike, Some(&annotated(&[])), ABSENT, at(0))));
    let by_hand = annotated(&[(CONTAINS_GROUP_KINDS, "ConfigMap")]);
    assert!(
        goes_on(&answer(&alike, Some(&by_hand), ABSENT, at(0))),
        "an annotation is anybody's"
    );
    // Of releases and ClusterAddons either may be listed last.
    for (addons, release) in [
        (false, ReleaseListed::NotYet),
        (true, ReleaseListed::NotYet),
        (false, ReleaseListed::Absent),
    ] {
        let unlisted = Listed {
            addons,
            release,
            ..unlisted
        };
        assert!(
            !goes_on(&answer(&alike, None, unlisted, at(0))),
            "whose it is is not known: {unlisted:?}"
        );
    }
    let mut begun = addon(vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Pending)]);
    assert!(!goes_on(&answer(&alike, Some(&begun), ABSENT, at(0))));
    begun.metadata.owner_references = Some(vec![owner("uid-0")]);
    assert!(
        goes_on(&answer(&alike, Some(&begun), ABSENT, at(0))),
        "an earlier Cluster of its name had add-ons of ours"
    );
}

#[test]
fn a_cluster_whose_add_on_cannot_be_made_is_told_why() {
    let create = call(Hook::BeforeClusterCreate);
    let refused = Listed {
        unmade: Some(Unmade {
            why: "failed to create the ClusterAddon cluster-addon-web: exceeded quota: few",
            namespace_ends: false,
        }),
        ..PRESENT
    };
    for (listed, words) in [
        (
            refused,
            "could not be made, and is tried again: failed to create the ClusterAddon cluster-addon-web: exceeded quota",
        ),
        (PRESENT, "has not been made yet; if that stays"),
    ] {
        let held = answer(&create, None, listed, at(0));
        assert!(!goes_on(&held) && held.message.contains(words), "{}", held.message);
    }
    // What it says is possible while there is no ClusterAddon that could be annotated.
    let held = answer(&create, None, refused, at(0));
    let words = format!("annotate --overwrite cluster web {SKIP_HOOK}=BeforeClusterCreate@{CLASS}");
    assert!(held.message.ends_with(&words), "{}", held.message);
    let call_with = |skip: &str| {
        let mut cluster = cluster_value(CLASS, "v1.34.0");
        cluster["metadata"]["annotations"] = json!({ SKIP_HOOK: skip });
        call_of(Hook::BeforeClusterCreate, &cluster, "v1.34.0")
    };
    let answered = |skip: &str| answer(&call_with(skip), None, refused, at(0));
    assert!(goes_on(&answered(&format!("BeforeClusterCreate@{CLASS}"))));
    assert!(!goes_on(&answered(&format!("BeforeClusterUpgrade@{CLASS}"))));
    assert!(!goes_on(&answered("BeforeClusterCreate@docker-scs-1-32-v9")));
    let made = addon(vec![row(Hook::BeforeClusterCreate, "a", StagePhase::Pending)]);
    assert_eq!(
        answer(&create, Some(&made), refused, at(0)),
        answer(&create, Some(&made), PRESENT, at(0))
    );
}

#[test]
fn a_hook_goes_on_when_no_stage_up_to_its_moment_is_left() {
    use Hook::{
        AfterClusterUpgrade, AfterControlPlaneInitialized, AfterControlPlaneUpgrade, AfterWorkersUpgrade,
        BeforeClusterCreate, BeforeClusterUpgrade, BeforeControlPlaneUpgrade, BeforeWorkersUpgrade,
    };
    for (left, goes) in [
        (
            AfterControlPlaneInitialized,
            vec![BeforeClusterCreate, AfterControlPlaneInitialized],
        ),
        (
            BeforeControlPlaneUpgrade,
            vec![BeforeClusterCreate, AfterControlPlaneInitialized],
        ),
        (
            BeforeWorkersUpgrade,
            vec![
                BeforeClusterCreate,
                AfterControlPlaneInitialized,
                BeforeClusterUpgrade,
                BeforeControlPlaneUpgrade,
            ],
        ),
        (
            AfterClusterUpgrade,
            vec![
                BeforeClusterCreate,
                AfterControlPlaneInitialized,
                BeforeClusterUpgrade,
                BeforeControlPlaneUpgrade,
                AfterControlPlaneUpgrade,
                BeforeWorkersUpgrade,
            ],
        ),
    ] {
        let addon = addon(vec![
            row(AfterControlPlaneInitialized, "a", StagePhase::Done),
            row(left, "b", StagePhase::WaitingForPostCondition),
        ]);
        for hook in &Hook::ALL[..8] {
            assert_eq!(
                goes_on(&answered(&call(*hook), &addon)),
                goes.contains(hook),
                "{hook} with {left} left"
            );
        }
    }
    let all_done = addon(vec![row(AfterWorkersUpgrade, "a", StagePhase::Done)]);
    assert!(
        Hook::ALL[..8]
            .iter()
            .all(|hook| goes_on(&answered(&call(*hook), &all_done)))
    );
}

/// F7: CSO held the upgrade for ever where the add-ons had nothing to do.
#[test]
fn add_ons_with_nothing_to_do_hold_nothing_up() {
    assert!(goes_on(&answered(
        &call(Hook::BeforeClusterUpgrade),
        &addon(Vec::new())
    )));
}

/// F8, and trap of an old object: what was done before says nothing about what is asked for now.
#[test]
fn done_for_another_class_or_version_or_an_earlier_cluster_is_not_done() {
    let done = || addon(vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Done)]);
    let call = call(Hook::BeforeClusterUpgrade);
    let change = |change: &dyn Fn(&mut ClusterAddonStatus)| {
        let mut addon = done();
        change(addon.status.as_mut().expect("a status"));
        addon
    };
    assert!(goes_on(&answered(&call, &done())));
    let older_class =
        change(&|status| status.target.as_mut().expect("a target").cluster_stack = "docker-scs-1-33-v0".to_owned());
    let older_version =
        change(&|status| status.target.as_mut().expect("a target").kubernetes_version = Some("v1.33.1".to_owned()));
    let unseen = change(&|status| status.cluster_generation = Some(2));
    let lost = change(&|status| *status = ClusterAddonStatus::default());
    let mut earlier = done();
    earlier.metadata.owner_references = Some(vec![OwnerReference {
        kind: "Cluster".to_owned(),
        uid: "uid-0".to_owned(),
        ..OwnerReference::default()
    }]);
    for addon in [older_class, older_version, unseen, lost, earlier] {
        let answer = answered(&call, &addon);
        assert_eq!(
            (answer.status, answer.retry_after_seconds),
            (HookStatus::Success, 2),
            "{answer:?}"
        );
    }
}

#[test]
fn the_same_question_has_the_same_answer_however_often_and_wherever_it_is_asked() {
    let addon = addon(vec![row(
        Hook::BeforeClusterUpgrade,
        "a",
        StagePhase::WaitingForPostCondition,
    )]);
    let call = call(Hook::BeforeClusterUpgrade);
    let copies = [addon.clone(), addon.clone(), addon];
    let answers = copies.iter().map(|addon| answered(&call, addon)).collect::<Vec<_>>();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn an_answer_that_holds_a_cluster_up_names_reason_since_deadline_and_the_way_round() {
    let addon = addon(vec![row(
        Hook::BeforeClusterUpgrade,
        "cni",
        StagePhase::WaitingForPostCondition,
    )]);
    let answer = answered(&call(Hook::BeforeClusterUpgrade), &addon);
    assert_eq!(answer.retry_after_seconds, 5);
    assert_eq!(
        answer.message,
        format!(
            "FailedToEvaluatePostCondition: stage cni (apply) of BeforeClusterUpgrade is waitingForPostCondition: x.status.ready is 0 (since {}, \
             deadline {}); to go on without it: kubectl --namespace team annotate --overwrite clusteraddon cluster-addon-web \
             clusterstack.x-k8s.io/skip-hook=BeforeClusterUpgrade@docker-scs-1-33-v1",
            at(10),
            at(1810),
        )
    );
}

#[test]
fn every_answer_that_holds_a_cluster_up_says_how_to_go_on_without_it() {
    let mut paused = addon(vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Pending)]);
    let annotations = paused.metadata.annotations.as_mut().expect("annotations");
    annotations.insert(PAUSED.to_owned(), String::new());
    let mut lost = addon(Vec::new());
    lost.status = None;
    for hook in [
        Hook::BeforeClusterUpgrade,
        Hook::AfterControlPlaneUpgrade,
        Hook::AfterClusterUpgrade,
    ] {
        for addon in [None, Some(&paused), Some(&lost)] {
            let answer = answer(&call(hook), addon, PRESENT, at(0));
            let way = format!("{SKIP_HOOK}={hook}@{CLASS}");
            let words = ["(since ", "deadline ", way.as_str()];
            assert!(
                answer.retry_after_seconds > 0 && words.iter().all(|word| answer.message.contains(word)),
                "{answer:?}"
            );
        }
    }
}

/// A call about the Cluster, which was made at the fifth second, and what is said of since when it is held up.
fn since(hook: Hook, addon: Option<&ClusterAddon>, waits: Waits) -> String {
    let mut cluster = cluster_value(CLASS, "v1.34.0");
    cluster["metadata"]["creationTimestamp"] = json!(at(5).to_string());
    cluster["status"] = Value::Null;
    let call = call_of(hook, &cluster, "v1.34.0");
    let message = answer(&call, addon, Listed { waits, ..PRESENT }, at(5000)).message;
    let (_, rest) = message.split_once("(since ").expect("a since");
    let (since, rest) = rest.split_once(", deadline ").expect("a deadline");
    assert!(rest.starts_with("none); to go on without it: kubectl "), "{message}");
    since.to_owned()
}

#[test]
fn what_nobody_has_looked_at_is_held_up_since_the_cluster_waits_and_not_since_it_was_asked() {
    let mut lost = addon(Vec::new());
    lost.status = None;
    let mut older = addon(Vec::new());
    older.status.as_mut().expect("a status").cluster_generation = Some(2);
    let upgrade = Hook::BeforeClusterUpgrade;
    for addon in [None, Some(&lost), Some(&older)] {
        for (waits, words) in [
            (Waits::Since(at(7)), at(7).to_string()),
            (Waits::NotYet, "just now".to_owned()),
            (Waits::Unseen, "unknown".to_owned()),
        ] {
            assert_eq!(since(upgrade, addon, waits), words, "{addon:?}");
        }
    }
    for waits in [Waits::Since(at(7)), Waits::NotYet, Waits::Unseen] {
        for addon in [None, Some(&lost)] {
            let made = since(Hook::BeforeClusterCreate, addon, waits);
            assert_eq!(made, at(5).to_string(), "nothing was made of it, ever");
        }
        let mut earlier = addon(Vec::new());
        earlier.metadata.owner_references = Some(vec![owner("uid-0")]);
        assert_eq!(since(upgrade, Some(&earlier), waits), at(5).to_string());
    }
    // What is written down comes first.
    let waiting = addon(vec![row(upgrade, "cni", StagePhase::WaitingForPostCondition)]);
    let answer = answer(
        &call(upgrade),
        Some(&waiting),
        Listed {
            waits: Waits::Since(at(7)),
            ..PRESENT
        },
        at(100),
    );
    let words = format!("(since {}, deadline {})", at(10), at(1810));
    assert!(answer.message.contains(&words), "{}", answer.message);
}

#[test]
fn a_cluster_waits_since_cluster_api_says_that_it_is_not_as_its_topology_says() {
    let asked = call(Hook::BeforeClusterUpgrade).cluster;
    let shown = |uid: &str, status: &str| {
        let mut cluster = cluster_value(CLASS, "v1.34.0");
        cluster["metadata"]["uid"] = json!(uid);
        cluster["status"]["conditions"] = json!([{
            "type": "TopologyReconciled", "status": status, "lastTransitionTime": at(7).to_string(),
        }]);
        ClusterSeen::of(&cluster, None)
    };
    for (shown, waits) in [
        (None, Waits::Unseen),
        (Some(shown("uid-0", "False")), Waits::Unseen),
        (Some(shown("uid-1", "True")), Waits::NotYet),
        (Some(shown("uid-1", "False")), Waits::Since(at(7))),
        (Some(shown("uid-1", "Unknown")), Waits::Since(at(7))),
    ] {
        assert_eq!(Waits::of(shown.as_ref(), &asked), waits, "{shown:?}");
    }
}

#[test]
fn a_cluster_goes_on_without_the_stages_of_a_hook_for_one_class_only() {
    let mut addon = addon(vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Pending)]);
    let mut skip = |value: &str| {
        let annotations = addon.metadata.annotations.as_mut().expect("annotations");
        annotations.insert(SKIP_HOOK.to_owned(), value.to_owned());
        goes_on(&answered(&call(Hook::BeforeClusterUpgrade), &addon))
    };
    assert!(skip(&format!("BeforeClusterUpgrade@{CLASS}")));
    assert!(!skip("BeforeClusterUpgrade@docker-scs-1-33-v0"), "the last upgrade");
    assert!(!skip(&format!("AfterClusterUpgrade@{CLASS}")));
    assert!(!skip("BeforeClusterUpgrade"));
}

#[test]
fn the_command_lets_the_cluster_still_go_on_without_what_it_goes_on_without_already() {
    let hooks = [Hook::BeforeClusterUpgrade, Hook::AfterControlPlaneUpgrade];
    let mut addon = addon(hooks.map(|hook| row(hook, "a", StagePhase::Pending)).to_vec());
    let mut skip = |value: &str| {
        let annotations = addon.metadata.annotations.get_or_insert_default();
        annotations.insert(SKIP_HOOK.to_owned(), value.to_owned());
        hooks.map(|hook| answered(&call(hook), &addon))
    };
    let past = "AfterControlPlaneUpgrade@docker-scs-1-33-v0, BeforeClusterUpgrad@x";
    let [before, after] = skip(&format!("BeforeClusterUpgrade@{CLASS}, {past}"));
    assert!(goes_on(&before) && !goes_on(&after));
    let way = format!("BeforeClusterUpgrade@{CLASS},AfterControlPlaneUpgrade@{CLASS}");
    let command = format!(" {SKIP_HOOK}={way}");
    assert!(after.message.ends_with(&command), "{}", after.message);
    assert!(skip(&way).iter().all(goes_on));
    // However much somebody wrote there.
    let much = format!("AfterControlPlaneUpgrad@{CLASS},").repeat(1_000);
    let [_, after] = skip(&format!("{much}BeforeClusterUpgrade@{CLASS}"));
    assert!(
        after.message.ends_with(&command) && after.message.len() < 2_000,
        "{}",
        after.message
    );

    // While there is no ClusterAddon, it is the annotation of the Cluster.
    let mut cluster = cluster_value(CLASS, "v1.34.0");
    cluster["metadata"]["annotations"] = json!({ SKIP_HOOK: format!("AfterControlPlaneUpgrade@{CLASS}") });
    let unmade = answer(
        &call_of(Hook::BeforeClusterUpgrade, &cluster, "v1.34.0"),
        None,
        PRESENT,
        at(0),
    );
    assert!(
        unmade.message.ends_with(&format!(" cluster web{command}")),
        "{}",
        unmade.message
    );
}

#[test]
fn an_annotation_that_names_no_hook_is_told_to_whoever_is_held_up() {
    let told = |value: &str| {
        let mut addon = addon(vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Pending)]);
        let annotations = addon.metadata.annotations.get_or_insert_default();
        annotations.insert(SKIP_HOOK.to_owned(), value.to_owned());
        answered(&call(Hook::BeforeClusterUpgrade), &addon).message
    };
    for misspelt in [
        format!("BeforeClusterUpgrad@{CLASS}"),
        "BeforeClusterUpgrade".to_owned(),
    ] {
        let value = format!("AfterClusterUpgrade@{CLASS}, {misspelt}");
        let words = format!("; no hook is meant by {misspelt:?} in the annotation {SKIP_HOOK} (since ");
        assert!(told(&value).contains(&words), "{}", told(&value));
    }
    for other in ["", ",", "BeforeClusterUpgrade@docker-scs-1-33-v0"] {
        assert!(!told(other).contains("no hook is meant"), "{}", told(other));
    }
    assert!(told(&"ü".repeat(10_000)).len() < 2_000, "it is cut");
}

#[test]
fn a_late_stage_holds_an_upgrade_up_unless_the_release_lets_it_fail() {
    let hook = Hook::BeforeClusterUpgrade;
    let late = row(hook, "a", StagePhase::ApplyingOrDeleting);
    let passed_over = StageProgress {
        passed_over: true,
        ..late.clone()
    };
    let answer = |row| answer(&call(hook), Some(&addon(vec![row])), PRESENT, at(4000));
    assert!(answer(late.clone()).message.contains("for too long"));
    assert!(!goes_on(&answer(late)));
    assert!(goes_on(&answer(passed_over)));
}

#[test]
fn steps_on_the_way_to_the_version_do_not_wait_for_what_comes_at_its_end() {
    let addon = addon(vec![row(Hook::AfterControlPlaneUpgrade, "a", StagePhase::Pending)]);
    let cluster = cluster_value(CLASS, "v1.34.0");
    let step = |hook, version| goes_on(&answered(&call_of(hook, &cluster, version), &addon));
    for hook in [
        Hook::AfterControlPlaneUpgrade,
        Hook::BeforeWorkersUpgrade,
        Hook::AfterWorkersUpgrade,
    ] {
        assert!(step(hook, "v1.33.5") && !step(hook, "v1.34.0"), "{hook}");
    }
}

#[test]
fn a_deletion_waits_for_its_stages_and_never_longer_than_they_may_take() {
    let hook = Hook::BeforeClusterDelete;
    let mut going = cluster_value(CLASS, "v1.34.0");
    going["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    let call = call_of(hook, &going, "");
    let looked = |second: i64, rows: Vec<StageProgress>, deadline: Option<i64>| {
        let mut addon = addon(rows);
        addon.status.as_mut().expect("a status").hook = deadline.map(|deadline| crds::cluster_addon::HookProgress {
            name: hook.name().to_owned(),
            since: Time(at(0)),
            deadline: Some(Time(at(deadline))),
            message: None,
        });
        goes_on(&answer(&call, Some(&addon), PRESENT, at(second)))
    };
    let left = || vec![row(hook, "lb", StagePhase::ApplyingOrDeleting)];
    assert!(!looked(10, left(), Some(1200)) && looked(1200, left(), Some(1200)));
    assert!(looked(10, Vec::new(), Some(600)), "it has no stages");
    // Nobody has looked: the operator may be gone altogether.
    let upgraded = || vec![row(Hook::BeforeClusterUpgrade, "a", StagePhase::Done)];
    assert!(!looked(10, upgraded(), None) && looked(600, upgraded(), None));
}

/// F15: somebody deleted the ClusterAddon right before the Cluster.
#[test]
fn a_deletion_waits_for_a_cluster_addon_that_is_made_again_and_for_none_that_cannot_be() {
    let hook = Hook::BeforeClusterDelete;
    let mut going = cluster_value(CLASS, "v1.34.0");
    going["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    let call = call_of(hook, &going, "");
    let held = answer(&call, None, PRESENT, at(10));
    assert!(!goes_on(&held));
    for words in [
        "the ClusterAddon has not been made yet".to_owned(),
        format!("(since {}, deadline {})", at(0), at(600)),
        format!("annotate --overwrite cluster web {SKIP_HOOK}={hook}@{CLASS}"),
    ] {
        assert!(held.message.contains(&words), "{}", held.message);
    }
    assert!(goes_on(&answer(&call, None, PRESENT, at(600))), "no longer than usual");
    assert!(goes_on(&answer(&call, None, ABSENT, at(10))), "another tool's");
    let unmade = |namespace_ends| Listed {
        unmade: Some(Unmade {
            why: "refused",
            namespace_ends,
        }),
        ..PRESENT
    };
    assert!(
        !goes_on(&answer(&call, None, unmade(false), at(10))),
        "it is tried again"
    );
    assert!(
        goes_on(&answer(&call, None, unmade(true), at(10))),
        "none is made there"
    );
    let never = Listed {
        never_initialized: true,
        ..PRESENT
    };
    assert!(goes_on(&answer(&call, None, never, at(10))), "there is nothing in it");
    let other = call_of(Hook::BeforeClusterCreate, &going, "v1.34.0");
    assert!(
        !goes_on(&answer(&other, None, never, at(10))),
        "that is about deletions"
    );
    going["metadata"]["annotations"] = json!({ SKIP_HOOK: format!("{hook}@{CLASS}") });
    assert!(goes_on(&answer(&call_of(hook, &going, ""), None, PRESENT, at(10))));
}

/// Uid first: everything on the ClusterAddon of an earlier Cluster is about that one.
#[test]
fn what_somebody_let_an_earlier_cluster_go_on_without_holds_the_one_that_has_its_name_now() {
    let skip = |hook: Hook| format!("{hook}@{CLASS}");
    let of_an_earlier = |hook: Hook| {
        let mut earlier = addon(vec![row(hook, "a", StagePhase::Done)]);
        earlier.metadata.owner_references = Some(vec![owner("uid-0")]);
        let annotations = earlier.metadata.annotations.get_or_insert_default();
        annotations.insert(SKIP_HOOK.to_owned(), skip(hook));
        earlier
    };
    let mut cluster = cluster_value(CLASS, "v1.34.0");
    cluster["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    for hook in [
        Hook::BeforeClusterCreate,
        Hook::BeforeClusterUpgrade,
        Hook::BeforeClusterDelete,
    ] {
        let earlier = of_an_earlier(hook);
        cluster["metadata"]["annotations"] = json!({});
        let held = answered(&call_of(hook, &cluster, "v1.34.0"), &earlier);
        let way = format!("annotate --overwrite cluster web {SKIP_HOOK}={}", skip(hook));
        assert!(!goes_on(&held) && held.message.ends_with(&way), "{}", held.message);
        cluster["metadata"]["annotations"] = json!({ SKIP_HOOK: skip(hook) });
        assert!(goes_on(&answered(&call_of(hook, &cluster, "v1.34.0"), &earlier)));
    }
    // Nor does it hold a deletion up for longer than none does.
    cluster["metadata"]["annotations"] = json!({});
    let call = call_of(Hook::BeforeClusterDelete, &cluster, "");
    let earlier = of_an_earlier(Hook::BeforeClusterDelete);
    assert!(goes_on(&answer(&call, Some(&earlier), PRESENT, at(600))));
}

#[test]
fn of_a_cluster_that_no_watch_shows_nobody_says_that_it_was_never_initialized() {
    let asked = call(Hook::BeforeClusterDelete).cluster;
    let shown = |uid: &str, initialized: bool| ClusterSeen {
        uid: uid.to_owned(),
        initialized,
        ..asked.clone()
    };
    for (shown, never) in [
        (None, false),
        (Some(shown("uid-0", false)), false),
        (Some(shown("uid-1", true)), false),
        (Some(shown("uid-1", false)), true),
    ] {
        assert_eq!(
            ClusterSeen::was_never_initialized(shown.as_ref(), &asked),
            never,
            "{shown:?}"
        );
    }
}

/// The rows may be those of an upgrade before: who is paused is not looked at.
#[test]
fn a_pause_holds_an_upgrade_up_though_no_stage_is_left_that_it_would_wait_for() {
    let done = vec![row(Hook::AfterControlPlaneInitialized, "cni", StagePhase::Done)];
    for stages in [Vec::new(), done] {
        let mut addon = addon(stages);
        for hook in [
            Hook::BeforeClusterUpgrade,
            Hook::AfterControlPlaneUpgrade,
            Hook::AfterClusterUpgrade,
        ] {
            addon.metadata.annotations.get_or_insert_default().remove(PAUSED);
            assert!(goes_on(&answered(&call(hook), &addon)), "{hook} without a pause");
            let annotations = addon.metadata.annotations.get_or_insert_default();
            annotations.insert(PAUSED.to_owned(), String::new());
            let held = answered(&call(hook), &addon);
            let told = format!("Paused: the annotation {PAUSED} of the ClusterAddon is set; remove it to go on (");
            assert!(!goes_on(&held) && held.message.starts_with(&told), "{hook}: {held:?}");
        }
    }
}

#[test]
fn a_deletion_that_a_pause_holds_up_says_what_to_remove_and_until_when_it_waits() {
    let hook = Hook::BeforeClusterDelete;
    let mut going = cluster_value(CLASS, "v1.34.0");
    going["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    let call = call_of(hook, &going, "");
    let paused = |rows: Vec<StageProgress>, is_looked_at: bool| {
        let mut addon = addon(rows);
        let annotations = addon.metadata.annotations.as_mut().expect("annotations");
        annotations.insert(PAUSED.to_owned(), String::new());
        addon.status.as_mut().expect("a status").hook = is_looked_at.then(|| crds::cluster_addon::HookProgress {
            name: hook.name().to_owned(),
            since: Time(at(0)),
            deadline: Some(Time(at(600))),
            message: None,
        });
        addon
    };
    let left = || vec![row(hook, "lb", StagePhase::ApplyingOrDeleting)];
    for addon in [paused(Vec::new(), false), paused(left(), true)] {
        let answer = answer(&call, Some(&addon), PRESENT, at(100));
        let told = format!(
            "Paused: the annotation {PAUSED} of the ClusterAddon is set; remove it to go on (since {}, deadline {});",
            at(0),
            at(600),
        );
        assert!(answer.message.starts_with(&told), "{}", answer.message);
        assert!(!goes_on(&answer));
        assert!(goes_on(&planning::addon::answer(&call, Some(&addon), PRESENT, at(600))));
    }
    assert!(
        goes_on(&answered(&call, &paused(Vec::new(), true))),
        "nothing is left to do"
    );
}

/// Of values nobody can say anything yet: they are made of objects, too, that come after it.
#[test]
fn the_making_of_a_cluster_waits_for_a_usable_release_and_for_neither_stages_nor_values() {
    let hook = Hook::BeforeClusterCreate;
    let addon = addon(vec![row(hook, "a", StagePhase::Pending)]);
    assert!(goes_on(&answered(&call(hook), &addon)));
    let without_target = |findings: Vec<Finding>| {
        let mut addon = addon.clone();
        let status = addon.status.as_mut().expect("a status");
        status.target = None;
        status.conditions = merge(&[], with_ready(findings), at(0));
        addon
    };
    let read = [
        ConditionType::ClusterStackReleaseDownloaded,
        ConditionType::ClusterAddonConfigValidated,
    ];
    let holds = || read.map(Finding::holds).to_vec();
    let fails = |type_, reason| Finding::fails(type_, Severity::Error, reason, "no");
    let mut failed = holds();
    failed.push(fails(
        ConditionType::HelmChartTemplated,
        Reason::TemplateNewClusterStackOverwriteFailed,
    ));
    let failed = without_target(failed);
    assert!(goes_on(&answered(&call(hook), &failed)));
    assert!(!goes_on(&answered(&call(Hook::BeforeClusterUpgrade), &failed)));
    let mut mismatched = holds();
    mismatched.push(fails(ConditionType::HelmChartApplied, Reason::VersionMismatch));
    let not_ready = vec![fails(
        ConditionType::ClusterStackReleaseDownloaded,
        Reason::ReleaseNotReady,
    )];
    for findings in [Vec::new(), mismatched.clone(), not_ready] {
        assert!(!goes_on(&answered(&call(hook), &without_target(findings))));
    }
    // Ready says this one, which holds nobody up.
    mismatched.push(fails(ConditionType::ClusterReady, Reason::ControlPlaneNotReady));
    let told = answered(&call(hook), &without_target(mismatched)).message;
    assert!(told.starts_with("VersionMismatch: no "), "{told}");
}

#[test]
fn a_request_about_no_cluster_is_no_call() {
    for request in [
        json!(null),
        json!({}),
        json!({"cluster": {}}),
        json!({"cluster": {"metadata": {"name": "web"}}}),
    ] {
        assert_eq!(Call::of(Hook::BeforeClusterUpgrade, &request), None, "{request}");
    }
}
