//! Which other releases hold or want the objects of a release: two versions of a stack may render the same node image or CRD, and two stacks in
//! different namespaces the same cluster-scoped object.

use std::collections::BTreeMap;

use crds::names::ReleaseTag;
use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::object::ObjectKey;
use planning::release::{Claim, Member, ObjectObserved, Rendering, Standing, holder, key_of, standing};

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
    let matters = |key: &ObjectKey, object: &ObjectObserved| match &object.seen {
        _ if !wanted(key) => true,
        Some(seen) => !seen.ours,
        // Who is to make an object again that is gone.
        None => object.watched && has_applied(release, key),
    };
    if !objects.iter().any(|(key, object)| matters(key, object)) {
        return;
    }
    let stays = |other: &ClusterStackRelease| other.metadata.uid != release.metadata.uid && stays(context, other);
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
                    standing: standing_to(release, &other),
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

/// Whether a release is not to go, or has to wait for Clusters that use it. Before these are known, every release has.
fn stays(context: &Context, release: &ClusterStackRelease) -> bool {
    if release.metadata.deletion_timestamp.is_none() {
        return true;
    }
    let Ok(tag) = release.name_any().parse::<ReleaseTag>() else {
        return false;
    };
    let used_by = context.clusters.used_by(&release.namespace().unwrap_or_default());
    used_by.is_none_or(|used_by| used_by.contains_key(&tag))
}

/// Whether a release says that it applied an object.
fn has_applied(release: &ClusterStackRelease, key: &ObjectKey) -> bool {
    let mut rows = release.status.iter().flat_map(|status| &status.resources);
    rows.any(|row| !row.digest.is_empty() && key_of(row) == *key)
}

fn standing_to(this: &ClusterStackRelease, other: &ClusterStackRelease) -> Standing {
    let (here, there) = (
        this.namespace().unwrap_or_default(),
        other.namespace().unwrap_or_default(),
    );
    let (ours, theirs) = (this.name_any(), other.name_any());
    let member = |release, namespace, name| Member {
        namespace,
        stack: stack_of(release),
        release: name,
    };
    standing(member(this, &here, &ours), member(other, &there, &theirs))
}

/// The ClusterStack that a release is of.
fn stack_of(release: &ClusterStackRelease) -> Option<&str> {
    Some(&release.stacks().next()?.name)
}

/// What a release says it applied, as far as it is among these objects.
fn named(release: &ClusterStackRelease, objects: &BTreeMap<ObjectKey, ObjectObserved>) -> BTreeMap<ObjectKey, String> {
    let namespace = release.namespace().unwrap_or_default();
    let rows = release.status.iter().flat_map(|status| &status.resources);
    rows.map(|row| (key_among(objects, &namespace, row), row.digest.clone()))
        .filter(|(key, _)| objects.contains_key(key))
        .collect()
}
