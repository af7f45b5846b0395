//! Which other releases hold or want the objects of a release: two versions of a stack may render the same node image, and two stacks in
//! different namespaces the same cluster-scoped object.

use std::collections::BTreeMap;

use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::object::ObjectKey;
use planning::release::{Holder, ObjectObserved, Rendering};

use super::inherited::key_among;
use crate::context::Context;

/// Fills in `holder` and `shared_with`. Asked only where it matters, because it means a look at all other releases.
pub(super) fn observe_sharing(
    context: &Context,
    release: &ClusterStackRelease,
    rendering: &Rendering,
    objects: &mut BTreeMap<ObjectKey, ObjectObserved>,
) {
    let wanted = |key: &ObjectKey| matches!(rendering, Rendering::Rendered { intents } if intents.contains_key(key));
    let matters =
        |key: &ObjectKey, object: &ObjectObserved| !wanted(key) || object.seen.as_ref().is_some_and(|seen| !seen.ours);
    if !objects.iter().any(|(key, object)| matters(key, object)) {
        return;
    }
    let stays = |other: &ClusterStackRelease| {
        other.metadata.deletion_timestamp.is_none() && other.metadata.uid != release.metadata.uid
    };
    for other in context.releases.select_everywhere(stays) {
        let named = named(&other, objects);
        let mark = labels::part_of(
            "ClusterStackRelease",
            &other.namespace().unwrap_or_default(),
            &other.name_any(),
        );
        // Before its first status nobody knows what a release has applied.
        let unknown = other
            .status
            .as_ref()
            .is_none_or(|status| status.observed_generation.is_none());
        for (key, object) in objects.iter_mut() {
            let digest = named.get(key);
            if digest.is_some() && !wanted(key) {
                object.shared_with.insert(other.name_any());
            }
            let marked = || context.objects.get(key).is_some_and(|seen| *seen.part_of == *mark);
            if (digest.is_some() || unknown) && marked() {
                object.holder = Some(Holder {
                    release: other.name_any(),
                    digest: digest.cloned().unwrap_or_default(),
                });
            }
        }
    }
}

/// What another release says it applied, as far as it is among these objects.
fn named(other: &ClusterStackRelease, objects: &BTreeMap<ObjectKey, ObjectObserved>) -> BTreeMap<ObjectKey, String> {
    let namespace = other.namespace().unwrap_or_default();
    let rows = other.status.iter().flat_map(|status| &status.resources);
    rows.map(|row| (key_among(objects, &namespace, row), row.digest.clone()))
        .filter(|(key, _)| objects.contains_key(key))
        .collect()
}
