//! Reads everything that a decision about a stack needs: caches and watches. Judges nothing.

use std::collections::BTreeMap;

use crds::names::{ReleaseStem, ReleaseTag};
use crds::{ClusterStack, ClusterStackRelease, labels};
use kube::{Resource, ResourceExt};
use operator_kit::object::GroupKind;
use planning::stack::{Owner, ProviderObject, ProviderTemplate, ReleaseView, StackObserved, release_kind};

use super::orphans;
use crate::context::Context;
use crate::providers::MOST_BYTES;
use crate::release::group_kind;

/// Looks at a stack.
pub(super) async fn observe(context: &Context, stack: &ClusterStack) -> StackObserved {
    let namespace = stack.namespace().unwrap_or_default();
    let annotations = stack.annotations();
    let uid = stack.uid().unwrap_or_default();
    let releases = releases(context, stack, &namespace);
    context.stack_memories.retain(&uid, |name| releases.contains_key(name));
    let memory = context.stack_memories.of(&uid);
    let (template, provider_objects) = provider(context, stack, &namespace).await;
    StackObserved {
        name: stack.name_any(),
        uid,
        generation: stack.metadata.generation.unwrap_or_default(),
        deleting: stack.metadata.deletion_timestamp.is_some(),
        paused: annotations.contains_key(labels::PAUSED),
        requested_at: annotations.get(labels::REQUESTED_AT).cloned(),
        approved_prune: annotations.get(labels::APPROVE_PRUNE).cloned(),
        approved_orphans: annotations.get(labels::APPROVE_ORPHANS).cloned(),
        labels: stack.labels().clone(),
        annotations: annotations.clone(),
        spec: stack.spec.clone(),
        status: stack.status.clone().unwrap_or_default(),
        status_written_at: memory.status_written_at,
        failures: memory.failures,
        applied: memory.applied,
        source: context.sources.described(stack.spec.source.as_ref()),
        listing: context.sources.listing_for(stack),
        releases,
        used_by: context.clusters.used_by(&namespace).map(|used| {
            used.into_iter()
                .map(|(tag, clusters)| (tag.to_string(), clusters))
                .collect()
        }),
        leftovers: orphans::observe(context, stack, &namespace),
        template,
        provider_objects,
        namespace,
    }
}

/// The releases that are this stack's, or could become so by their name.
fn releases(context: &Context, stack: &ClusterStack, namespace: &str) -> BTreeMap<String, ReleaseView> {
    let stem = stack.spec.stem().ok();
    let handles = Handle::of_stack(stack, stem.as_ref());
    let of_interest = |release: &ClusterStackRelease| {
        let named_like_ours = || {
            let name = release.metadata.name.as_deref().unwrap_or_default();
            name.parse::<ReleaseTag>()
                .is_ok_and(|tag| stem.as_ref() == Some(tag.stem()))
        };
        matches!(owner(release, stack), Owner::Us | Owner::FormerSelf) || named_like_ours()
    };
    context
        .releases
        .find(namespace, &handles, of_interest)
        .into_iter()
        .map(|release| (release.name_any(), view(&release, stack)))
        .collect()
}

/// By what a stack finds its releases: most of those that there are belong to others, and none of these is to be looked at for it.
enum Handle<'a> {
    /// What the name begins with.
    Stem(&'a ReleaseStem),
    /// The identity of an owner.
    OwnerUid(&'a str),
    /// The name of an owner, which may have been another stack of this name.
    OwnerName(&'a str),
}

impl Handle<'_> {
    fn text(&self) -> String {
        match self {
            Self::Stem(stem) => format!("stem {stem}"),
            Self::OwnerUid(uid) => format!("uid {uid}"),
            Self::OwnerName(name) => format!("owner {name}"),
        }
    }

    fn of_stack(stack: &ClusterStack, stem: Option<&ReleaseStem>) -> Vec<String> {
        let meta = stack.meta();
        let owners = [
            meta.uid.as_deref().map(Handle::OwnerUid),
            meta.name.as_deref().map(Handle::OwnerName),
        ];
        let handles = owners.into_iter().flatten().chain(stem.map(Handle::Stem));
        handles.map(|handle| handle.text()).collect()
    }
}

/// By what a stack finds a release.
pub(crate) fn handles(release: &ClusterStackRelease) -> Vec<String> {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let tag: Option<ReleaseTag> = name.parse().ok();
    let owners = release
        .stacks()
        .flat_map(|owner| [Handle::OwnerUid(&owner.uid), Handle::OwnerName(&owner.name)]);
    let stem = tag.as_ref().map(|tag| Handle::Stem(tag.stem()));
    owners.chain(stem).map(|handle| handle.text()).collect()
}

fn view(release: &ClusterStackRelease, stack: &ClusterStack) -> ReleaseView {
    let status = release.status.clone().unwrap_or_default();
    ReleaseView {
        uid: release.uid().unwrap_or_default(),
        owner: owner(release, stack),
        deleting: release.metadata.deletion_timestamp.is_some(),
        watch_filter: release.labels().get(labels::WATCH_FILTER).cloned(),
        spec: release.spec.clone(),
        ready: status.ready,
        kubernetes_version: status.kubernetes_version,
        digest: status.assets.as_ref().map(|assets| assets.digest.clone()),
        source: status.assets.map(|assets| assets.source),
        conditions: status.conditions,
    }
}

fn owner(release: &ClusterStackRelease, stack: &ClusterStack) -> Owner {
    if release
        .stacks()
        .any(|owner| Some(&owner.uid) == stack.meta().uid.as_ref())
    {
        return Owner::Us;
    }
    if release
        .stacks()
        .any(|owner| Some(&owner.name) == stack.meta().name.as_ref())
    {
        return Owner::FormerSelf;
    }
    release.stacks().next().map_or(Owner::Nobody, |owner| Owner::Other {
        name: owner.name.clone(),
    })
}

async fn provider(
    context: &Context,
    stack: &ClusterStack,
    namespace: &str,
) -> (ProviderTemplate, BTreeMap<String, ProviderObject>) {
    let nothing = (ProviderTemplate::NotWanted, BTreeMap::new());
    let Some(reference) = stack.spec.provider_ref.as_ref().filter(|_| !stack.spec.no_provider) else {
        return nothing;
    };
    let Some(kind) = group_kind(reference) else {
        return nothing;
    };
    let Some(releases) = release_kind(&kind.kind).map(|releases| GroupKind::new(kind.group.as_str(), releases)) else {
        return nothing;
    };
    let watch = context.providers.follow(&kind);
    let objects = context.providers.within(&releases, namespace);
    let objects = match objects.and_then(|objects| watch.unlisted().map_or(Ok(objects), Err)) {
        Ok(objects) => objects,
        Err(unlisted) => return (ProviderTemplate::NotListed(context.unlisted(unlisted)), BTreeMap::new()),
    };
    if matches!(context.management.discovery.resolve_kind(&kind).await, Ok(None)) {
        return (
            ProviderTemplate::KindMissing { kind: kind.to_string() },
            BTreeMap::new(),
        );
    }
    let name = reference.name.as_deref().unwrap_or_default();
    let template = match watch.get(namespace, name) {
        Some(state) if state.bytes > MOST_BYTES => ProviderTemplate::TooLarge {
            bytes: state.bytes,
            most: MOST_BYTES,
        },
        Some(state) if state.is_cut => ProviderTemplate::TooDeep,
        Some(state) => ProviderTemplate::Found {
            template: state.spec.get("template").cloned().unwrap_or_default(),
        },
        None => ProviderTemplate::Missing,
    };
    let objects = objects
        .into_iter()
        .map(|(name, state)| {
            let object = state.of_release(&name);
            (name, object)
        })
        .collect();
    (template, objects)
}
