//! What is read of calls, which handlers are named, and what a call leaves behind.

use crds::cluster_addon::ClusterAddon;
use crds::labels::{HOOK_CALLED, PAUSED};
use planning::addon::{
    Call, FailurePolicy, Handler, Hook, HookAnswer, HookSet, HookStatus, Listed, ReleaseListed, Waits, answer, noted,
};
use serde_json::{Value, json};

use crate::given::{CLASS, annotated, at, cluster_value, owner, target};

fn request(cluster: &Value) -> Value {
    json!({ "cluster": cluster, "toKubernetesVersion": "v1.34.0", "settings": { "a": "b" } })
}

fn call(hook: Hook, version: &str) -> Call {
    let request = json!({ "cluster": cluster_value(CLASS, "v1.34.0"), "kubernetesVersion": version });
    Call::of(hook, &request).expect("a call")
}

/// The add-on of the Cluster of [`call`], led to what that wants.
fn led(annotations: &[(&str, &str)]) -> ClusterAddon {
    let mut addon = annotated(annotations);
    addon.metadata.owner_references = Some(vec![owner("uid-1")]);
    let status = addon.status.get_or_insert_default();
    status.target = Some(target("v1", "v1.34.0").recorded());
    addon
}

fn held() -> HookAnswer {
    HookAnswer {
        status: HookStatus::Success,
        retry_after_seconds: 5,
        message: String::new(),
    }
}

#[test]
fn a_call_that_is_read_from_bytes_is_answered_as_one_of_which_everything_is_known() {
    let mut large = cluster_value(CLASS, "v1.34.0");
    large["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    large["spec"]["topology"]["variables"] = json!([{ "name": "large", "value": "x".repeat(1 << 20) }]);
    let mut by_reference = cluster_value(CLASS, "v1.34.0");
    by_reference["spec"]["topology"]["class"] = Value::Null;
    by_reference["spec"]["topology"]["classRef"] = json!({ "name": CLASS, "namespace": "fleet" });
    for cluster in [cluster_value("quick-start", "v1.34.0"), by_reference, large] {
        let request = request(&cluster);
        for hook in Hook::ALL {
            let whole = Call::of(hook, &request).expect("a call");
            let read = Call::read(hook, request.to_string().as_bytes()).expect("a call");
            assert_eq!(
                (&read.cluster.topology, &read.version),
                (&whole.cluster.topology, &whole.version)
            );
            for addons in [false, true] {
                let release = ReleaseListed::Present;
                let listed = Listed {
                    addons,
                    release,
                    unmade: None,
                    never_initialized: false,
                    waits: Waits::Unseen,
                };
                let of = |call| answer(call, None, listed, at(100));
                assert_eq!(of(&read), of(&whole), "{hook}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_request_about_a_cluster_are_no_call() {
    for bytes in [
        "",
        "{",
        "null",
        "[]",
        "{}x",
        r#"{"cluster":null}"#,
        r#"{"cluster":{"metadata":{"name":"web"}}}"#,
    ] {
        assert_eq!(
            Call::read(Hook::BeforeClusterUpgrade, bytes.as_bytes()),
            None,
            "{bytes}"
        );
    }
}

#[test]
fn a_cluster_in_a_namespace_that_the_operator_does_not_look_after_goes_on_at_once() {
    let listed = Listed {
        addons: false,
        release: ReleaseListed::OutOfScope,
        unmade: None,
        never_initialized: false,
        waits: Waits::Unseen,
    };
    for hook in Hook::ALL {
        assert_eq!(
            answer(&call(hook, "v1.34.0"), None, listed, at(0)).retry_after_seconds,
            0,
            "{hook}"
        );
    }
}

/// One handler that a manager does not know costs it all of them.
#[test]
fn a_minor_is_named_the_hooks_that_it_knows_under_the_names_of_the_go_operator() {
    let named = |set: HookSet| set.handlers().map(|handler| handler.name).collect::<Vec<_>>();
    let old = [
        "before-cluster-create",
        "after-control-plane-initialized",
        "before-cluster-upgrade",
        "after-control-plane-upgrade",
        "after-cluster-upgrade",
        "before-cluster-delete",
    ];
    assert_eq!(named(HookSet::of_classes(false)), old);
    let new = named(HookSet::of_classes(true));
    let added = [
        "before-control-plane-upgrade",
        "before-workers-upgrade",
        "after-workers-upgrade",
    ];
    assert!(
        new.len() == 9
            && old
                .iter()
                .chain(&added)
                .all(|name| new.iter().any(|named| named == name)),
        "{new:?}"
    );
}

#[test]
fn nobody_waits_for_an_operator_that_is_down_where_the_stages_can_run_later() {
    let waits = |hook: &Hook| Handler::of(*hook).failure_policy == FailurePolicy::Fail;
    let waiting: Vec<Hook> = Hook::ALL.into_iter().filter(waits).collect();
    let expected = [
        Hook::BeforeClusterUpgrade,
        Hook::BeforeControlPlaneUpgrade,
        Hook::AfterControlPlaneUpgrade,
        Hook::BeforeWorkersUpgrade,
        Hook::BeforeClusterDelete,
    ];
    assert_eq!(waiting, expected);
}

#[test]
fn a_call_is_noted_once_where_nothing_else_may_show_its_moment() {
    let addon = led(&[]);
    let text = |hook, version| noted(&call(hook, version), &addon, &held()).map(|called| called.text());
    let opening = [
        Hook::BeforeClusterUpgrade,
        Hook::BeforeControlPlaneUpgrade,
        Hook::AfterWorkersUpgrade,
        Hook::AfterClusterUpgrade,
    ];
    for hook in Hook::ALL {
        let expected = opening.contains(&hook).then(|| format!("{hook}@v1.34.0@{CLASS}"));
        assert_eq!(text(hook, "v1.34.0"), expected);
    }
    assert_eq!(
        text(Hook::AfterWorkersUpgrade, "v1.33.5"),
        None,
        "a step is not the end"
    );
    assert!(text(Hook::BeforeControlPlaneUpgrade, "v1.33.5").is_some());

    let before = |version: &str, class: &str| {
        let called = format!("BeforeClusterUpgrade@{version}@{class}");
        led(&[(HOOK_CALLED, called.as_str())])
    };
    let noted_before = before("v1.34.0", CLASS);
    let again = |hook| noted(&call(hook, "v1.34.0"), &noted_before, &held());
    assert_eq!(
        (
            again(Hook::BeforeClusterUpgrade),
            again(Hook::BeforeControlPlaneUpgrade)
        ),
        (None, None)
    );
    assert!(again(Hook::AfterWorkersUpgrade).is_some());
    for earlier in [before("v1.33.0", CLASS), before("v1.34.0", "docker-scs-1-33-v0")] {
        assert!(noted(&call(Hook::BeforeClusterUpgrade, "v1.34.0"), &earlier, &held()).is_some());
    }
}

#[test]
fn a_call_is_not_noted_where_that_changes_nothing_or_somebody_said_hands_off() {
    let call = call(Hook::BeforeClusterUpgrade, "v1.34.0");
    let goes_on = HookAnswer {
        retry_after_seconds: 0,
        ..held()
    };
    assert_eq!(noted(&call, &led(&[]), &goes_on), None);
    assert_eq!(noted(&call, &led(&[(PAUSED, "")]), &held()), None);
    assert!(noted(&call, &led(&[]), &held()).is_some());
    let mut of_another = led(&[]);
    of_another.metadata.owner_references = Some(vec![owner("uid-0")]);
    assert_eq!(noted(&call, &of_another, &held()), None);
}

/// Anybody who reaches the port calls as he likes: once each moment of the version that the Cluster has was noted, no call leads to another write.
#[test]
fn whatever_forged_calls_say_no_more_is_noted_than_the_moments_of_one_upgrade() {
    let mut addon = led(&[]);
    let cluster = |uid: &str, version: &str, class: &str| {
        let mut cluster = cluster_value(class, version);
        cluster["metadata"]["uid"] = json!(uid);
        cluster
    };
    let large = format!("v1.34.0-{}", "x".repeat(200_000));
    let versions = ["v1.34.0", "v1.33.0", "v1.35.0", "", large.as_str()];
    let asked = versions.map(|version| [CLASS, "docker-scs-1-33-v0"].map(|class| (version, class)));
    let mut written = Vec::new();
    for _ in 0..3 {
        for hook in Hook::ALL {
            for uid in ["", "uid-0", "uid-1"] {
                for (version, class) in asked.into_iter().flatten() {
                    let request = json!({ "cluster": cluster(uid, version, class), "toKubernetesVersion": version });
                    let call = Call::read(hook, request.to_string().as_bytes()).expect("a call");
                    let Some(called) = noted(&call, &addon, &held()) else {
                        continue;
                    };
                    assert_eq!(uid, "uid-1", "a Cluster of another uid: {}", called.text());
                    let annotations = addon.metadata.annotations.get_or_insert_default();
                    annotations.insert(HOOK_CALLED.to_owned(), called.text());
                    written.push(called.text());
                }
            }
        }
    }
    let moments = [Hook::BeforeClusterUpgrade, Hook::AfterWorkersUpgrade];
    assert_eq!(written, moments.map(|hook| format!("{hook}@v1.34.0@{CLASS}")));
}

#[test]
fn nothing_is_noted_of_a_cluster_that_owns_no_add_on_or_that_nobody_has_looked_at() {
    let call = call(Hook::BeforeClusterUpgrade, "v1.34.0");
    let mut unowned = led(&[]);
    unowned.metadata.owner_references = None;
    let mut unseen = led(&[]);
    unseen.status = None;
    let mut behind = led(&[]);
    let status = behind.status.get_or_insert_default();
    status.target = Some(target("v1", "v1.33.0").recorded());
    for addon in [unowned, unseen, behind] {
        assert_eq!(noted(&call, &addon, &held()), None, "{addon:?}");
    }
}
