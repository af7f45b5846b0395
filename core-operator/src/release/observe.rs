//! Reads everything that a decision about a release needs: caches, watches, files, the renderer. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crds::labels;
use crds::names::ReleaseTag;
use crds::policy::HelmProfile;
use crds::{ClusterStackRelease, ClusterStackReleaseStatus};
use kube::ResourceExt;
use kube::core::GroupVersionKind;
use operator_kit::failure::chain;
use operator_kit::object::{GroupKind, ObjectKey, group_kind};
use operator_kit::objects;
use planning::release::{
    Assets, Intent, KindScope, ObjectObserved, Provider, ReleaseObserved, RenderAttempts, Rendering, Seen, key_of,
};
use release::Admitted;

use super::claims::mark;
use super::inherited::locate;
use super::intent::{Intents, intents};
use super::kinds::{marked_kinds, rendered_kinds};
use super::memory::{ReleaseMemory, Remembered};
use super::provider;
use super::scopes::{self, Scopes};
use super::sharing::observe_sharing;
use crate::context::{Context, KindFacts};
use crate::lanes::{Failed, Unrendered};
use crate::sources::Opened;

/// What one look has found, with what the execution of the plan needs besides.
pub(crate) struct Sight {
    pub(crate) observed: ReleaseObserved,
    /// The files, when they are usable.
    pub(crate) files: Option<Admitted>,
    /// Who uses the release is not sure, and no watch may tell: look again soon.
    pub(crate) in_doubt: bool,
}

/// Looks at a release.
pub(crate) async fn observe(
    context: &Context,
    release: &ClusterStackRelease,
    part_of: &str,
    memory: &Mutex<ReleaseMemory>,
) -> Sight {
    let tag = release.name_any();
    let namespace = release.namespace().unwrap_or_default();
    let deleting = release.metadata.deletion_timestamp.is_some();
    let annotations = release.annotations();
    let paused = annotations.contains_key(labels::PAUSED);
    let mut status = release.status.clone().unwrap_or_default();
    if !paused {
        locate(context, &namespace, &mut status.resources).await;
    }
    let (used_by, in_doubt) = if deleting {
        used_by(context, &namespace, &tag, memory).await
    } else {
        (None, false)
    };
    let in_use = used_by.as_ref().is_some_and(|clusters| !clusters.is_empty());
    // Of a release that is to go the files are needed to tell how its objects are, as long as somebody uses them.
    let (assets, files) = if paused || (deleting && !in_use) {
        (Assets::NotRead, None)
    } else {
        assets(context, release).await
    };
    let (rendering, brought) = match &files {
        Some(files) if !is_spared(&assets, &status) => rendering(context, release, files, part_of, memory).await,
        _ => (Rendering::NotRendered, Scopes::new()),
    };
    let group_kinds = marked_kinds(release, rendered_kinds(&rendering));
    // Before the objects: a list that ends in between must not count.
    let unlisted = unlisted(context, &group_kinds).await;
    let mut objects = objects(context, release, &status, &group_kinds, &rendering, &brought, memory).await;
    observe_sharing(context, release, &rendering, &mut objects);
    let (status_written_at, controlled) = lock(memory).last_writes();
    let (unwatched, forbidden) = unwatched(context, &objects, &unlisted);
    let observed = ReleaseObserved {
        namespace: namespace.clone(),
        uid: release.uid().unwrap_or_default(),
        generation: release.metadata.generation.unwrap_or_default(),
        deleting,
        finalizer: release.finalizers().contains(&labels::RELEASE_FINALIZER.to_owned()),
        group_kinds,
        unlisted,
        paused,
        requested_at: annotations.get(labels::REQUESTED_AT).cloned(),
        approved_prune: annotations.get(labels::APPROVE_PRUNE).cloned(),
        spec: release.spec.clone(),
        status,
        status_written_at,
        used_by,
        assets,
        provider: provider(context, release).await,
        controlled,
        unwatched,
        forbidden,
        rendering,
        objects,
        tag,
    };
    Sight {
        observed,
        files,
        in_doubt,
    }
}

/// Bytes other than those that were applied are not rendered, since nobody will apply them. Where it takes a look at the objects to know, the decision
/// leaves what is rendered alone.
fn is_spared(assets: &Assets, status: &ClusterStackReleaseStatus) -> bool {
    let applied = status.resources.iter().any(|row| !row.digest.is_empty());
    applied && assets.moved_from(status).is_some()
}

/// The kinds that are served and whose watches (begun here if need be) have yet to list.
async fn unlisted(context: &Context, kinds: &BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
    let mut unlisted = BTreeSet::new();
    for kind in kinds {
        if context.kind(kind).await.maybe_served() && !context.objects.synced(kind) {
            unlisted.insert(kind.clone());
        }
    }
    unlisted
}

/// What the API server says of these kinds, and of those of these objects, that have not been listed; and which of them it does not let be listed.
fn unwatched(
    context: &Context,
    objects: &BTreeMap<ObjectKey, ObjectObserved>,
    unlisted: &BTreeSet<GroupKind>,
) -> (BTreeMap<GroupKind, String>, BTreeSet<GroupKind>) {
    let unwatched = objects.iter().filter(|(_, object)| object.served && !object.watched);
    let mut kinds: BTreeSet<GroupKind> = unwatched.map(|(key, _)| key.group_kind()).collect();
    kinds.extend(unlisted.iter().cloned());
    let (mut told, mut forbidden) = (BTreeMap::new(), BTreeSet::new());
    for kind in kinds {
        if let Some(trouble) = context.objects.trouble(&kind) {
            if trouble.forbidden {
                forbidden.insert(kind.clone());
            }
            told.insert(kind, trouble.words);
        }
    }
    (told, forbidden)
}

/// The Clusters that use a release that is to go, `None` while that is not known; and whether it is in doubt. Where the watch shows none, the API
/// server itself is asked, and again when its answer is old: a watch may be behind, and what is taken away then is gone.
async fn used_by(
    context: &Context,
    namespace: &str,
    tag: &str,
    memory: &Mutex<ReleaseMemory>,
) -> (Option<BTreeSet<String>>, bool) {
    let Ok(tag) = tag.parse::<ReleaseTag>() else {
        // No class is named like this.
        return (Some(BTreeSet::new()), false);
    };
    let Some(mut used) = context.clusters.used_by(namespace) else {
        return (None, false);
    };
    let used = used.remove(&tag).unwrap_or_default();
    if !used.is_empty() {
        lock(memory).unused = None;
        return (Some(used), false);
    }
    let asked = context.now();
    if lock(memory).is_unused(asked) {
        return (Some(used), false);
    }
    match context.clusters.users_now(namespace, &tag).await {
        Ok(users) => {
            lock(memory).unused = users.is_empty().then_some(asked);
            let in_doubt = !users.is_empty();
            (Some(users), in_doubt)
        }
        Err(error) => {
            tracing::debug!(namespace, name = %tag, error = chain(&*error), "not known whether a release is in use");
            (None, true)
        }
    }
}

async fn assets(context: &Context, release: &ClusterStackRelease) -> (Assets, Option<Admitted>) {
    match context.sources.of(release).await {
        Opened::Ready {
            source,
            moved_to,
            files,
        } => {
            let pinned = release.status.as_ref().and_then(|status| status.assets.as_ref());
            let assets = Assets::Ready {
                moved_to,
                digest: files.release().digest.to_string(),
                size: files.release().size(),
                source: source.or_else(|| Some(pinned?.source.clone())).unwrap_or_default(),
                kubernetes_version: files.release().metadata.kubernetes.clone(),
                verified_by: files.signer().map(ToString::to_string),
                warning: files.warning().map(|warning| chain(warning)),
            };
            (assets, Some(files))
        }
        Opened::Missing { message, outage } => {
            let assets = Assets::Missing {
                message,
                withdrawn: context.sources.has_withdrawn(release),
                outage,
            };
            (assets, None)
        }
        Opened::Broken { message } => (Assets::Broken { message }, None),
        Opened::Refused { message, awaited } => (Assets::Refused { message, awaited }, None),
    }
}

/// The rendering, and what it says of kinds that are not served yet.
async fn rendering(
    context: &Context,
    release: &ClusterStackRelease,
    files: &Admitted,
    part_of: &str,
    memory: &Mutex<ReleaseMemory>,
) -> (Rendering, Scopes) {
    let profile = profile(release);
    let origin = format!("{} {profile}", files.release().class_digest());
    let known = lock(memory).rendering.clone();
    if let Some(known) = known {
        let mut scopes = Scopes::new();
        for kind in &known.unknown {
            scopes.insert(kind.clone(), context.kind(kind).await.scope());
        }
        if known.holds(&origin, |kind| scopes.get(kind).copied().unwrap_or_default()) {
            let intents = known.intents.as_ref().clone();
            return (Rendering::Rendered { intents }, known.brought);
        }
    }
    let now = context.now();
    let failed = lock(memory)
        .unrendered
        .clone()
        .filter(|(made_from, ..)| *made_from == origin);
    if let Some((_, message, transient)) = &failed
        && transient.is_none_or(|attempts| attempts.retry_at(now).is_some())
    {
        let (message, transient) = (message.clone(), *transient);
        return (Rendering::Failed { message, transient }, Scopes::new());
    }
    match render(context, release, files, part_of).await {
        Ok(rendered) => {
            let mut memory = lock(memory);
            memory.unrendered = None;
            memory.rendering = Some(Remembered {
                made_from: origin,
                intents: Arc::new(rendered.planned.clone()),
                brought: rendered.brought.clone(),
                unknown: rendered.unknown,
            });
            let intents = rendered.planned;
            (Rendering::Rendered { intents }, rendered.brought)
        }
        Err(Unrendered::Awaited) => {
            let failed = failed.map(|(_, message, _)| message);
            (Rendering::Awaited { failed }, Scopes::new())
        }
        Err(Unrendered::Failed(Failed { message, transient, .. })) => {
            let before = failed.and_then(|(.., attempts)| attempts);
            let transient = transient.then(|| RenderAttempts {
                attempts: before.map_or(0, |before| before.attempts).saturating_add(1),
                at: context.now(),
            });
            // What only another chart can mend is not rendered again before there is one, or somebody asks for it.
            lock(memory).unrendered = Some((origin, message.clone(), transient));
            (Rendering::Failed { message, transient }, Scopes::new())
        }
    }
}

/// The rendering profile of a release.
fn profile(release: &ClusterStackRelease) -> HelmProfile {
    release
        .spec
        .policy
        .as_ref()
        .map(|policy| policy.helm_profile)
        .unwrap_or_default()
}

/// Renders the class chart and marks its objects.
pub(crate) async fn render(
    context: &Context,
    release: &ClusterStackRelease,
    files: &Admitted,
    part_of: &str,
) -> Result<Intents, Unrendered> {
    let namespace = release.namespace().unwrap_or_default();
    let rendered = context.render(release, files, profile(release)).await?;
    let brought = scopes::brought(rendered.objects.iter().map(|object| &object.value));
    let rows = release.status.as_ref().map(|status| &status.resources[..]);
    let (mut scoped, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for object in &rendered.objects {
        let Some(kind) = kind_of(&object.value).as_ref().map(group_kind) else {
            continue;
        };
        let served = context.kind(&kind).await.scope();
        if served == KindScope::Unknown {
            unknown.insert(kind.clone());
        }
        let scope = served
            .or_else(|| brought.get(&kind).copied().unwrap_or_default())
            .or_else(|| scopes::applied(rows.unwrap_or_default(), &kind));
        if scope == KindScope::ClusterWide {
            scoped.insert(kind);
        }
    }
    let values = rendered.objects.iter().map(|object| &object.value);
    Ok(Intents {
        brought,
        unknown,
        ..intents(values, &namespace, part_of, |kind| scoped.contains(kind))
    })
}

fn kind_of(value: &serde_json::Value) -> Option<GroupVersionKind> {
    let api_version = value.get("apiVersion")?.as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(GroupVersionKind::gvk(group, version, value.get("kind")?.as_str()?))
}

async fn provider(context: &Context, release: &ClusterStackRelease) -> Provider {
    match &release.spec.provider_ref {
        None => Provider::NotWanted,
        Some(reference) => provider::observe(context, release, reference).await,
    }
}

/// Every object that is wanted, inventoried or marked, with what the watches and the memory know of it.
async fn objects(
    context: &Context,
    release: &ClusterStackRelease,
    status: &ClusterStackReleaseStatus,
    group_kinds: &BTreeSet<GroupKind>,
    rendering: &Rendering,
    brought: &Scopes,
    memory: &Mutex<ReleaseMemory>,
) -> BTreeMap<ObjectKey, ObjectObserved> {
    let mut versions: BTreeMap<ObjectKey, String> = status
        .resources
        .iter()
        .map(|row| (key_of(row), row.version.clone()))
        .collect();
    if let Rendering::Rendered { intents } = rendering {
        versions.extend(
            intents
                .iter()
                .map(|(key, Intent { object, .. })| (key.clone(), object.version.clone())),
        );
    }
    let mut kinds: BTreeSet<GroupKind> = group_kinds.clone();
    kinds.extend(versions.keys().map(ObjectKey::group_kind));
    let mut facts: BTreeMap<GroupKind, KindFacts> = BTreeMap::new();
    for kind in kinds {
        let known = context.kind(&kind).await;
        facts.insert(kind, known);
    }
    let unserved = unserved(context, rendering).await;
    let part_of = mark(release);
    // Nothing of a release is in another namespace, whatever is marked there: anybody may know the mark.
    let namespace = release.namespace().unwrap_or_default();
    for (key, _) in context.objects.by_part_of(&part_of, &namespace) {
        versions.entry(key).or_default();
    }
    let memory = lock(memory);
    versions
        .into_iter()
        .map(|(key, version)| {
            let kind = key.group_kind();
            let facts = facts.get(&kind).copied().unwrap_or(KindFacts::Unsure);
            let object = ObjectObserved {
                version,
                served: facts.maybe_served() && !unserved.contains(&key),
                watched: context.objects.synced(&kind),
                scope: facts
                    .scope()
                    .or_else(|| brought.get(&kind).copied().unwrap_or_default()),
                seen: context.objects.get(&key).map(|seen| sight(&seen, &part_of)),
                holder: None,
                shared: false,
                memory: memory
                    .objects
                    .get(&key)
                    .map(|memory| memory.as_ref().clone())
                    .unwrap_or_default(),
            };
            (key, object)
        })
        .collect()
}

/// The wanted objects whose kind is served, but not in the version that the release names.
async fn unserved(context: &Context, rendering: &Rendering) -> BTreeSet<ObjectKey> {
    let mut unserved = BTreeSet::new();
    if let Rendering::Rendered { intents } = rendering {
        for (key, intent) in intents {
            let gvk = GroupVersionKind::gvk(&key.group, &intent.object.version, &key.kind);
            if !context.serves(&gvk).await {
                unserved.insert(key.clone());
            }
        }
    }
    unserved
}

/// One object as planning sees it.
pub(crate) fn sight(seen: &objects::Seen, part_of: &str) -> Seen {
    let revision = seen.generation.map_or_else(
        || format!("v{}", seen.resource_version),
        |generation| format!("g{generation}"),
    );
    Seen {
        uid: seen.uid.to_string(),
        trigger: format!("{} {revision} {:016x} {}", seen.uid, seen.labels_digest, seen.deleting),
        resource_version: seen.resource_version.to_string(),
        ours: *seen.part_of == *part_of,
        deleting: seen.deleting,
    }
}

/// Poisoned or not, the memory is only a memory.
pub(crate) fn lock(memory: &Mutex<ReleaseMemory>) -> std::sync::MutexGuard<'_, ReleaseMemory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
