//! Steps of a release with a provider, for which the modelled world of the scenarios has no commands.

use jiff::Timestamp;
use serde_json::json;

use super::super::observed::Controlled;
use super::*;

const TAG: &str = "docker-harbor-1-34-v1";

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

/// A release that refers to its own provider's object.
fn observed(provider: Provider) -> ReleaseObserved {
    let mut observed: ReleaseObserved = serde_json::from_value(json!({
        "tag": TAG, "namespace": "fleet", "uid": "u", "generation": 1, "deleting": false, "finalizer": true,
        "group_kinds": [], "paused": false, "requested_at": null, "approved_prune": null, "status": {}, "used_by": null,
        "spec": { "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackRelease", "name": TAG,
        } },
        "assets": { "Missing": { "message": "it is far away" } }, "provider": "Missing", "rendering": "NotRendered", "objects": {},
    }))
    .expect("what a look has found");
    observed.provider = provider;
    observed
}

fn uncontrolled(uid: &str) -> Provider {
    Provider::Found {
        uid: uid.to_owned(),
        ready: false,
        controlled: false,
        foreign_controller: None,
        phase: None,
        message: None,
        progress: None,
    }
}

/// The identity of the provider's object that is taken.
fn taken(plan: &ReleasePlan) -> Option<String> {
    let mut actions = plan.steps.iter().flat_map(|step| &step.actions);
    actions.find_map(|action| match action {
        ReleaseAction::ControlProvider { uid } => Some(uid.clone()),
        _ => None,
    })
}

#[test]
fn the_provider_s_object_is_not_taken_again_before_the_watch_may_have_shown_it() {
    let mut observed = observed(uncontrolled("one"));
    assert_eq!(taken(&plan(&observed, now())).as_deref(), Some("one"));
    observed.controlled = Some(Controlled {
        uid: "one".to_owned(),
        at: now(),
    });
    let soon = plan(&observed, now());
    assert_eq!((taken(&soon), soon.next), (None, Next::At(now() + ECHO)));
    assert_eq!(taken(&plan(&observed, now() + ECHO)).as_deref(), Some("one"));

    observed.provider = uncontrolled("another");
    assert_eq!(taken(&plan(&observed, now())).as_deref(), Some("another"));
}
