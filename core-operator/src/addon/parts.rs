//! The objects that belong to Clusters of ours: control planes, and what providers make of a Cluster, of whatever kinds these Clusters name.

use std::collections::HashSet;
use std::sync::Arc;

use kube::Client;
use kube::api::DynamicObject;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::object::GroupKind;
use operator_kit::shallow::Shallow;
use planning::addon::ControlPlaneSeen;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::by_kind::{KindChange, WatchesByKind};
use crate::clusters::{Mark, Part};

/// What is kept of such an object: what decides, and what tells that values made of it may be others. A change of anything else wakes nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartSeen {
    /// Versions of a control plane; of other objects nothing.
    pub(crate) facts: ControlPlaneSeen,
    /// What tells that values made of it may be others.
    pub(crate) mark: Mark,
}

/// All watches of such kinds. A kind is followed as long as a Cluster whose add-ons are worked on names it.
pub(crate) struct Parts {
    watches: WatchesByKind<PartSeen>,
}

impl Parts {
    pub(crate) fn new(
        client: Client,
        discovery: Discovery,
        crds: CrdWatch,
        namespace: &str,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<KindChange>) {
        let project = |_: &GroupKind, object: &Shallow<DynamicObject>| project(object);
        let (watches, changes) = WatchesByKind::new(client, discovery, crds, namespace, project, cancel);
        (Self { watches }, changes)
    }

    /// Where changes of what Clusters name besides may be told too.
    pub(super) fn changes(&self) -> mpsc::UnboundedSender<KindChange> {
        self.watches.changes()
    }

    /// What is known of an object; nothing as long as its kind has not been listed. News of it wake whoever hangs on it, from now on.
    pub(crate) fn get(&self, part: &Part, namespace: &str) -> Option<Arc<PartSeen>> {
        self.watches.follow(&part.kind).get(namespace, &part.name)
    }

    /// Whether all objects of its kind are known: before that, absence means nothing.
    pub(crate) fn is_listed(&self, part: &Part) -> bool {
        self.watches.follow(&part.kind).synced()
    }

    /// Ends the watches of other kinds.
    pub(crate) fn follow_only(&self, named: &HashSet<GroupKind>) {
        self.watches.keep(|kind| named.contains(kind));
    }
}

fn project(object: &DynamicObject) -> PartSeen {
    // Facts are read from these two alone.
    let fields = ["spec", "status"].map(|field| {
        let value = object.data.get(field).cloned().unwrap_or_default();
        (field.to_owned(), value)
    });
    PartSeen {
        facts: ControlPlaneSeen::of(&Value::Object(fields.into_iter().collect())),
        mark: Mark::of(&object.metadata),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_control_plane_only_what_decides_or_goes_into_values_makes_a_difference() {
        let plane = json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
            "metadata": { "name": "wharf-abc", "namespace": "fleet", "generation": 3, "labels": { "a": "b" } },
            "spec": { "version": "v1.34.0", "replicas": 3 },
            "status": { "version": "v1.33.1", "initialized": true, "readyReplicas": 1 },
        });
        let seen = |plane: &Value| project(&serde_json::from_value(plane.clone()).expect("an object"));
        let first = seen(&plane);
        let facts = ControlPlaneSeen {
            wanted: Some("v1.34.0".to_owned()),
            reached: Some("v1.33.1".to_owned()),
            initialized: true,
        };
        assert_eq!(first.facts, facts);
        let mut busy = plane.clone();
        busy["status"]["readyReplicas"] = json!(2);
        busy["metadata"]["resourceVersion"] = json!("9");
        assert_eq!(seen(&busy), first);
        for (pointer, value) in [
            ("/status/version", json!("v1.34.0")),
            ("/metadata/generation", json!(4)),
            ("/metadata/labels/a", json!("c")),
        ] {
            let mut changed = plane.clone();
            *changed.pointer_mut(pointer).expect("a field") = value;
            assert_ne!(seen(&changed), first, "{pointer}");
        }
    }
}
