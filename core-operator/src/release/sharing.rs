//! Which other releases hold or want the objects of a release: two versions of a stack may render the same node image or CRD, and two stacks in
//! different namespaces the same cluster-scoped object.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::names::ReleaseTag;
use crds::resource::Resource;
use kube::{Resource as _, ResourceExt};
use operator_kit::object::ObjectKey;
use planning::objects::{Inventoried, ObjectObserved, Rendering, Standing, key_of};
use planning::release::{Claim, Member, Word, holder, standing};

use super::claims::{is_silent, mark, mark_handle, object_handle, rows};
use crate::context::Context;

/// Fills in `holder` and `shared` where they matter. Only releases that have to do with these objects are looked at.
pub(super) fn observe_sharing(
    context: &Context,
    release: &ClusterStackRelease,
    rendering: &Rendering,
    objects: &mut BTreeMap<ObjectKey, ObjectObserved>,
) {
    let wanted = |key: &ObjectKey| matches!(rendering, Rendering::Rendered { intents } if intents.contains_key(key));
    let ours = named(release, objects);
    let applied = |key: &ObjectKey| matches!(Inventoried::of(ours.get(key).copied()), Inventoried::Applied(_));
    let matters = |(key, object): &(&ObjectKey, &ObjectObserved)| match &object.seen {
        _ if !wanted(key) => true,
        Some(seen) => !seen.ours,
        // Who is to make an object again that is gone.
        None => object.watched && applied(key),
    };
    let asked: Vec<ObjectKey> = objects.iter().filter(matters).map(|(key, _)| key.clone()).collect();
    if asked.is_empty() {
        return;
    }
    let others = others(context, release, &asked);
    let others: Vec<Other<'_>> = others.iter().map(|other| Other::of(release, other, objects)).collect();
    let told: Vec<_> = asked
        .into_iter()
        .map(|key| {
            let marked = context
                .management
                .objects
                .get(&key)
                .map(|seen| Arc::clone(&seen.part_of));
            let claims: Vec<Claim<'_>> = others
                .iter()
                .map(|other| other.claim(&key, marked.as_deref()))
                .collect();
            let shared = !wanted(&key) && claims.iter().any(Claim::names_it);
            let holder = holder(claims, applied(&key));
            (key, shared, holder)
        })
        .collect();
    for (key, shared, holder) in told {
        if let Some(object) = objects.get_mut(&key) {
            object.shared = shared;
            object.holder = holder;
        }
    }
}

/// The releases that stay and name one of these objects, or whose mark one carries.
fn others(context: &Context, release: &ClusterStackRelease, asked: &[ObjectKey]) -> Vec<Arc<ClusterStackRelease>> {
    let marks = asked.iter().filter_map(|key| context.management.objects.get(key));
    let marks: BTreeSet<String> = marks.map(|seen| mark_handle(&seen.part_of)).collect();
    let handles: Vec<String> = asked.iter().map(object_handle).chain(marks).collect();
    let in_use = OnceCell::new();
    // Whether it is not to go, or has to wait for Clusters that use it. Before these are known, every release has.
    let stays = |other: &ClusterStackRelease| {
        if other.metadata.deletion_timestamp.is_none() {
            return true;
        }
        let Ok(tag) = other.name_any().parse::<ReleaseTag>() else {
            return false;
        };
        let in_use: &Option<BTreeSet<_>> = in_use.get_or_init(|| context.clusters.in_use());
        let place = (other.namespace().unwrap_or_default(), tag);
        in_use.as_ref().is_none_or(|in_use| in_use.contains(&place))
    };
    let is_another = |other: &ClusterStackRelease| other.metadata.uid != release.metadata.uid && stays(other);
    context.releases.find_everywhere(&handles, is_another)
}

/// Another release, as this one sees it.
struct Other<'a> {
    release: &'a ClusterStackRelease,
    /// Its namespace, where that is not the one of this release.
    namespace: Option<&'a str>,
    mark: String,
    standing: Standing,
    named: BTreeMap<ObjectKey, &'a Resource>,
}

impl<'a> Other<'a> {
    fn of(
        this: &ClusterStackRelease,
        release: &'a ClusterStackRelease,
        objects: &BTreeMap<ObjectKey, ObjectObserved>,
    ) -> Self {
        let namespace = release.meta().namespace.as_deref();
        Self {
            release,
            namespace: namespace.filter(|_| release.meta().namespace != this.meta().namespace),
            mark: mark(release),
            standing: standing(member(this), member(release)),
            named: named(release, objects),
        }
    }

    /// What it has to do with an object that carries this mark.
    fn claim(&self, key: &ObjectKey, marked: Option<&str>) -> Claim<'_> {
        let word = match Inventoried::of(self.named.get(key).copied()) {
            Inventoried::No if is_silent(self.release) => Word::Awaited,
            said => Word::Given(said),
        };
        Claim {
            namespace: self.namespace,
            release: member(self.release).release,
            standing: self.standing,
            marked: marked == Some(&self.mark),
            word,
        }
    }
}

fn member(release: &ClusterStackRelease) -> Member<'_> {
    let meta = release.meta();
    Member {
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        stack: release.stacks().next().map(|stack| stack.name.as_str()),
        release: meta.name.as_deref().unwrap_or_default(),
    }
}

/// The rows of a release, as far as they are among these objects.
fn named<'a>(
    release: &'a ClusterStackRelease,
    objects: &BTreeMap<ObjectKey, ObjectObserved>,
) -> BTreeMap<ObjectKey, &'a Resource> {
    let namespace = release.namespace().unwrap_or_default();
    rows(release)
        .map(|row| (key_among(objects, &namespace, row), row))
        .filter(|(key, _)| objects.contains_key(key))
        .collect()
}

/// The key of a row of another release in this namespace, among objects whose keys are complete.
fn key_among<T>(objects: &BTreeMap<ObjectKey, T>, namespace: &str, row: &Resource) -> ObjectKey {
    let key = key_of(row);
    if !row.namespace.is_empty() || objects.contains_key(&key) {
        return key;
    }
    ObjectKey::new(key.group, key.kind, namespace, key.name)
}
