//! Which other releases hold or want the objects of a release: two versions of a stack may render the same node image, and two stacks in
//! different namespaces the same cluster-scoped object.

use std::collections::BTreeMap;

use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::object::ObjectKey;
use planning::release::{Claim, ObjectObserved, Rendering, holder};

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
    let mut claims: BTreeMap<ObjectKey, Vec<Claim>> = BTreeMap::new();
    for other in context.releases.select_everywhere(stays) {
        let named = named(&other, objects);
        let mark = labels::part_of(
            "ClusterStackRelease",
            &other.namespace().unwrap_or_default(),
            &other.name_any(),
        );
        let silent = other
            .status
            .as_ref()
            .is_none_or(|status| status.observed_generation.is_none());
        if named.is_empty() && !silent {
            continue;
        }
        for (key, object) in objects.iter_mut() {
            let digest = named.get(key);
            if digest.is_some() && !wanted(key) {
                object.shared_with.insert(other.name_any());
            }
            if digest.is_some() || silent {
                claims.entry(key.clone()).or_default().push(Claim {
                    release: other.name_any(),
                    marked: context.objects.get(key).is_some_and(|seen| *seen.part_of == *mark),
                    digest: digest.cloned(),
                    silent,
                });
            }
        }
    }
    let ours = named(release, objects);
    for (key, claims) in claims {
        let applied = ours.get(&key).is_some_and(|digest| !digest.is_empty());
        if let Some(object) = objects.get_mut(&key) {
            object.holder = holder(claims, applied);
        }
    }
}

/// What a release says it applied, as far as it is among these objects.
fn named(release: &ClusterStackRelease, objects: &BTreeMap<ObjectKey, ObjectObserved>) -> BTreeMap<ObjectKey, String> {
    let namespace = release.namespace().unwrap_or_default();
    let rows = release.status.iter().flat_map(|status| &status.resources);
    rows.map(|row| (key_among(objects, &namespace, row), row.digest.clone()))
        .filter(|(key, _)| objects.contains_key(key))
        .collect()
}
