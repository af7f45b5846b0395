//! Whether the objects of a release are where they may be: in the namespace of the release, as far as they have one.

use super::observed::ReleaseObserved;
use crate::object_key::ObjectKey;
use crate::objects::{KindScope, summary};

/// Says which objects are in another namespace than the release. It is no place for them: whoever may publish releases for one namespace must not
/// write into all. Of what has no namespace the operator's role decides, and of a kind that is not served nobody knows whether it has one.
pub(super) fn outside(observed: &ReleaseObserved) -> Option<String> {
    let intents = observed.rendering.intents()?;
    let own = &observed.namespace;
    let has_namespace = |key: &ObjectKey| {
        let object = observed.objects.get(key);
        object.is_some_and(|object| object.scope == KindScope::Namespaced)
    };
    let elsewhere: Vec<String> = intents
        .keys()
        .filter(|key| !key.namespace.is_empty() && key.namespace != *own && has_namespace(key))
        .map(|key| format!("{} {}/{}", key.kind, key.namespace, key.name))
        .collect();
    (!elsewhere.is_empty()).then(|| {
        format!(
            "the class chart puts objects into other namespaces than that of the release, {own}: {}; leave metadata.namespace out of the chart, and \
             publish a new version",
            summary(&elsewhere)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object_key::ObjectRef;
    use crate::objects::{Intent, ObjectObserved, Rendering};
    use crate::waves::wave_of;

    /// A release of `fleet` whose chart puts a Quay elsewhere.
    fn observed(served: bool, scope: KindScope) -> ReleaseObserved {
        let key = ObjectKey::new("harbor.example.org", "Quay", "kube-system", "a");
        let mut observed: ReleaseObserved = serde_json::from_value(json!({
            "tag": "docker-harbor-1-34-v1", "namespace": "fleet", "uid": "u", "generation": 1, "deleting": false, "finalizer": false,
            "group_kinds": [], "paused": false, "requested_at": null, "approved_prune": null,
            "spec": {}, "status": {}, "used_by": null, "assets": "NotRead",
            "provider": "NotWanted", "rendering": "NotRendered", "objects": {},
        }))
        .expect("what a look has found");
        let intent = Intent {
            object: ObjectRef {
                version: "v1".to_owned(),
                key: key.clone(),
            },
            digest: String::new(),
            wave: wave_of(&key.group_kind()),
        };
        observed.rendering = Rendering::Rendered {
            intents: [(key.clone(), intent)].into(),
        };
        let object = ObjectObserved {
            served,
            scope,
            ..ObjectObserved::default()
        };
        observed.objects.insert(key, object);
        observed
    }

    #[test]
    fn an_object_elsewhere_is_refused_as_soon_as_its_kind_is_known_to_have_namespaces() {
        for served in [true, false] {
            let message = outside(&observed(served, KindScope::Namespaced)).unwrap_or_default();
            assert!(message.contains("Quay kube-system/a"), "{message}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_kind_without_namespaces_or_one_that_nobody_knows() {
        for scope in [KindScope::ClusterWide, KindScope::Unknown] {
            assert_eq!(outside(&observed(true, scope)), None, "{scope:?}");
        }
    }
}
