//! What concerns the add-ons of Clusters. Nobody is woken where no add-ons are looked after.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::cluster_addon::ClusterAddon;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use operator_kit::object::GroupKind;
use operator_kit::projection::{Notice, Place};
use planning::election::shard_of;
use tokio::sync::{OwnedMutexGuard, mpsc};

use super::Triggers;
use crate::addon::{Addons, ClusterPlace, cluster_of, shard_of_addons};
use crate::by_kind::KindChange;
use crate::clusters::{ClusterFacts, Kept, Part};
use crate::context::Context;

impl Triggers {
    /// Something changed that the add-ons of a Cluster hang on, or whether it has any.
    pub(crate) fn cluster(&self, context: &Context, (namespace, name): &ClusterPlace) {
        let Some(addons) = &context.addons else { return };
        if !addons.namespace.is_empty() && addons.namespace != *namespace {
            return;
        }
        // A closed queue means that the process is about to end.
        match addons.of(namespace, name) {
            Some(addon) => self.addon(ObjectRef::from_obj(addon.as_ref())),
            None => drop(self.clusters.unbounded_send((namespace.clone(), name.clone()))),
        }
    }

    /// A closed queue means that the process is about to end.
    pub(super) fn addon(&self, addon: ObjectRef<ClusterAddon>) {
        let _ = self.addons.unbounded_send(addon);
    }

    /// A list has ended, or a task begins: whatever concerns a Cluster may have changed in a time that nobody tells of.
    pub(crate) fn every_cluster(&self, context: &Context) {
        self.clusters_in(context, |_| true);
    }

    /// All Clusters, with or without a ClusterAddon, and all ClusterAddons, with or without a Cluster, that are in such a shard.
    pub(super) fn clusters_in(&self, context: &Context, is_in: impl Fn(u16) -> bool) {
        let Some(addons) = &context.addons else { return };
        let watched = addons.objects.watched().into_iter();
        // Somebody may have made one under a name that no Cluster has one by.
        let (of_clusters, strays): (Vec<_>, Vec<_>) = watched.partition(|addon| cluster_of(addon).is_some());
        let mut places: BTreeSet<ClusterPlace> = of_clusters.iter().filter_map(|addon| cluster_of(addon)).collect();
        places.extend(context.clusters.with_facts(|_, _| true));
        let count = context.tenure.count();
        for place in places {
            if is_in(shard_of_addons(&place.0, &place.1, count)) {
                self.cluster(context, &place);
            }
        }
        for stray in strays {
            if is_in(shard_of(
                &stray.namespace().unwrap_or_default(),
                &stray.name_any(),
                count,
            )) {
                self.addon(ObjectRef::from_obj(stray.as_ref()));
            }
        }
    }

    /// A release changed, came or went: so did what the Clusters of its class can have.
    pub(super) fn users_of(&self, context: &Context, release: &ClusterStackRelease) {
        if context.addons.is_some() {
            let (namespace, name) = (release.namespace().unwrap_or_default(), release.name_any());
            self.clusters_where(context, |kept, _| names_release(kept, &namespace, &name));
        }
    }

    /// The files of these releases changed.
    pub(super) fn users_of_files(&self, context: &Context, tags: &HashSet<String>) {
        if context.addons.is_some() && !tags.is_empty() {
            let is_of = |kept: &Kept, _: &ClusterFacts| {
                let class = kept.class.as_ref();
                class.is_some_and(|class| tags.contains(&class.tag.to_string()))
            };
            self.clusters_where(context, is_of);
        }
    }

    /// A ClusterAddon is gone: its Cluster, if it is there, has one made anew.
    pub(crate) fn addon_gone(&self, context: &Context, addon: &ClusterAddon) {
        if let Some(place) = cluster_of(addon) {
            self.cluster(context, &place);
        }
    }

    fn clusters_where(&self, context: &Context, test: impl Fn(&Kept, &ClusterFacts) -> bool) {
        for place in context.clusters.with_facts(test) {
            self.cluster(context, &place);
        }
    }
}

fn names_release(kept: &Kept, namespace: &str, name: &str) -> bool {
    let class = kept.class.as_ref();
    class.is_some_and(|class| class.namespace == namespace && class.tag.to_string() == name)
}

/// What a notice about Clusters means for add-ons. Facts that stay the same wake nobody.
pub(super) fn cluster_told(context: &Context, triggers: &Triggers, notice: &Notice<Kept>) {
    match notice {
        Notice::Changed { place, before, after } => {
            let facts = |kept: &Option<Arc<Kept>>| kept.as_ref().and_then(|kept| kept.facts.clone());
            if facts(before) != facts(after) {
                triggers.cluster(context, place);
            }
        }
        Notice::Synced => triggers.every_cluster(context),
    }
}

/// A control plane, what a provider makes of a Cluster, or what it takes values from changed: the Cluster that names it has add-ons to look at.
pub(super) async fn follow_parts(
    context: Arc<Context>,
    triggers: Triggers,
    mut changes: OwnedMutexGuard<mpsc::UnboundedReceiver<KindChange>>,
) {
    while let Some(KindChange { kind, namespace, name }) = changes.recv().await {
        let is_it = |of: &GroupKind, called: &str| *of == kind && name.as_ref().is_none_or(|name| name == called);
        triggers.clusters_where(&context, |_, facts| {
            let mut given = facts.values_of.iter();
            (name.is_none() || facts.seen.namespace == namespace)
                && (parts_of(facts).any(|part| is_it(&part.kind, &part.name))
                    || given.any(|holder| is_it(&holder.kind.group_kind(), &holder.name)))
        });
    }
}

fn parts_of(facts: &ClusterFacts) -> impl Iterator<Item = &Part> {
    facts.control_plane.iter().chain(&facts.infrastructure)
}

/// The Clusters whose add-ons are in a shard of this process.
fn in_hand(context: &Context, addons: &Addons) -> impl Iterator<Item = ClusterFacts> {
    let count = context.tenure.count();
    let places: Vec<Place> = addons
        .objects
        .watched()
        .iter()
        .filter_map(|addon| cluster_of(addon))
        .filter(|(namespace, name)| context.tenure.holds(shard_of_addons(namespace, name, count)))
        .collect();
    places
        .into_iter()
        .filter_map(|(namespace, name)| context.clusters.facts(&namespace, &name))
}

/// The releases (namespace and name) of the classes of Clusters whose add-ons are in a shard of this process.
pub(super) fn classes_in_hand(context: &Context) -> BTreeSet<(String, String)> {
    let clusters = context.addons.iter().flat_map(|addons| in_hand(context, addons));
    let classes = clusters.filter_map(|facts| {
        let topology = facts.seen.topology?;
        let class = topology.class_name().ok()?;
        Some((topology.class_namespace, class.release_tag().to_string()))
    });
    classes.collect()
}

/// The kinds of what belongs to these Clusters.
pub(super) fn parts_in_hand(context: &Context) -> HashSet<GroupKind> {
    let clusters = context.addons.iter().flat_map(|addons| in_hand(context, addons));
    let kinds = clusters.flat_map(|facts| parts_of(&facts).map(|part| part.kind.clone()).collect::<Vec<_>>());
    kinds.collect()
}
