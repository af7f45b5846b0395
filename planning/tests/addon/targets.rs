use crds::cluster_addon::{AddonVersion, ClusterAddonStatus};
use planning::addon::{Change, ClusterSeen, ReleaseSeen, Target, Values, Wanted, change, needs_ready_release, wanted};
use serde_json::json;

use crate::given::{CLASS, at, cluster};

fn ready(addon_version: &str, kubernetes_version: &str) -> ReleaseSeen {
    ReleaseSeen::Ready {
        addon_version: addon_version.to_owned(),
        kubernetes_version: kubernetes_version.to_owned(),
    }
}

fn values(digest: &str) -> Values {
    let digest = digest.to_owned();
    Values::Known { digest }
}

fn target_of(class: &str, release: &ReleaseSeen, digest: &str) -> Target {
    let ReleaseSeen::Ready { kubernetes_version, .. } = release else {
        panic!("it is ready");
    };
    let mut cluster = cluster(kubernetes_version, kubernetes_version, kubernetes_version);
    class.clone_into(&mut cluster.topology.as_mut().expect("a class").class);
    match wanted(&cluster, release, &values(digest), None) {
        Wanted::Target(target) => target,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_class_and_a_version_written_one_after_the_other_lead_nowhere_in_between() {
    let between = cluster("v1.33.1", "v1.33.1", "v1.33.1");
    let release = ready("v2", "v1.34.0");
    let Wanted::VersionMismatch { message } = wanted(&between, &release, &values("a"), None) else {
        panic!("nothing fits yet");
    };
    assert!(
        message.contains("v1.34.0") && message.contains("v1.33.1") && message.contains(CLASS),
        "{message}"
    );
    // What has to be done before a cluster goes does not wait for that.
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..between
    };
    assert!(matches!(
        wanted(&going, &release, &values("a"), None),
        Wanted::Target(_)
    ));
}

#[test]
fn without_a_release_or_values_there_is_no_target() {
    let there = cluster("v1.33.1", "v1.33.1", "v1.33.1");
    let classic = ClusterSeen::of(&json!({"spec": {}}), None);
    assert_eq!(
        wanted(&classic, &ready("v1", "v1.33.1"), &values("a"), None),
        Wanted::NoClass
    );
    assert!(matches!(
        wanted(&there, &ReleaseSeen::Absent, &values("a"), None),
        Wanted::ReleaseNotReady { .. }
    ));
    assert_eq!(
        wanted(&there, &ready("v1", "v1.33.1"), &Values::Awaited, None),
        Wanted::ValuesAwaited
    );
}

#[test]
fn a_cluster_that_goes_has_a_target_without_values_too_and_what_was_done_for_the_last_one_counts() {
    let (there, release) = (cluster("v1.33.1", "v1.33.1", "v1.33.1"), ready("v1", "v1.33.1"));
    let last = target_of(CLASS, &release, "a").recorded();
    let message = "no such field".to_owned();
    let failed = Values::Failed {
        message: message.clone(),
    };
    assert_eq!(
        wanted(&there, &release, &failed, Some(&last)),
        Wanted::ValuesFailed {
            message: message.clone()
        }
    );
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there
    };
    for values in [failed, Values::Unstable { message }] {
        let target = |release: &ReleaseSeen, last: Option<&AddonVersion>| match wanted(&going, release, &values, last) {
            Wanted::Target(target) => target,
            other => panic!("{other:?}"),
        };
        assert_eq!(target(&release, Some(&last)).recorded(), last);
        let anew = target(&release, None);
        assert_eq!(target(&release, Some(&anew.recorded())), anew);
        let other = target(&ready("v2", "v1.33.1"), Some(&last)).recorded();
        assert_ne!(other.digest, last.digest);
    }
}

#[test]
fn a_release_has_to_be_ready_for_what_is_new_and_not_for_what_a_cluster_has_or_loses() {
    let there = cluster("v1.33.1", "v1.33.1", "v1.33.1");
    let towards = |class: &str| ClusterAddonStatus {
        target: Some(target_of(class, &ready("v1", "v1.33.1"), "a").recorded()),
        ..ClusterAddonStatus::default()
    };
    assert!(needs_ready_release(&there, None));
    assert!(needs_ready_release(&there, Some(&ClusterAddonStatus::default())));
    assert!(needs_ready_release(&there, Some(&towards("docker-scs-1-32-v9"))));
    assert!(!needs_ready_release(&there, Some(&towards(there.class()))));
    let going = ClusterSeen {
        deleting: Some(at(0)),
        ..there
    };
    assert!(!needs_ready_release(&going, None));
}

#[test]
fn the_same_add_ons_in_another_class_are_nothing_to_do() {
    let status = |target: &Target| ClusterAddonStatus {
        target: Some(target.recorded()),
        applied: Some(target.recorded()),
        ..ClusterAddonStatus::default()
    };
    let v2 = target_of("docker-scs-1-33-v2", &ready("v2", "v1.33.1"), "a");
    let v3 = target_of("docker-scs-1-33-v3", &ready("v2", "v1.33.1"), "a");
    assert_eq!(change(&v3, &status(&v2)), Change::SameAddons);
    assert_eq!(change(&v2, &status(&v2)), Change::None);
    assert_eq!(change(&v2, &ClusterAddonStatus::default()), Change::First);
    let other_values = target_of("docker-scs-1-33-v2", &ready("v2", "v1.33.1"), "b");
    let kubernetes = target_of("docker-scs-1-34-v1", &ready("v2", "v1.34.0"), "a");
    assert_eq!(
        change(&other_values, &status(&v2)),
        Change::Next { same_kubernetes: true }
    );
    assert_eq!(
        change(&kubernetes, &status(&v2)),
        Change::Next { same_kubernetes: false }
    );
}

#[test]
fn a_new_target_takes_the_place_of_one_that_is_not_complete() {
    let v1 = target_of("docker-scs-1-33-v1", &ready("v1", "v1.33.1"), "a");
    let v2 = target_of("docker-scs-1-33-v2", &ready("v2", "v1.33.1"), "a");
    let begun = ClusterAddonStatus {
        target: Some(v2.recorded()),
        applied: Some(v1.recorded()),
        ..ClusterAddonStatus::default()
    };
    let back = change(&v1, &begun);
    assert_eq!(back, Change::Preempts { same_kubernetes: true });
}
