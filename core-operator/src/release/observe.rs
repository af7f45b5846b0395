//! Reads everything that a decision about a release needs: caches, watches, files, the renderer. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use crds::labels;
use crds::names::ReleaseTag;
use crds::policy::HelmProfile;
use crds::{ClusterStackRelease, ClusterStackReleaseStatus};
use kube::ResourceExt;
use operator_kit::failure::chain;
use operator_kit::object::{GroupKind, ObjectKey};
use planning::objects::{ObjectObserved, RenderAttempts, Rendering};
use planning::release::{Assets, Provider, ReleaseObserved};
use release::Admitted;

use super::kinds::{marked_kinds, rendered_kinds};
use super::memory::ReleaseMemory;
use super::provider;
use super::sharing::observe_sharing;
use crate::context::Context;
use crate::lanes::{Failed, Unrendered};
use crate::objects::{Asked, Intents, Marks, Memory, Scopes, locate, lock};
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
    memory: &Memory<ReleaseMemory>,
) -> Sight {
    let tag = release.name_any();
    let namespace = release.namespace().unwrap_or_default();
    let deleting = release.metadata.deletion_timestamp.is_some();
    let annotations = release.annotations();
    let paused = annotations.contains_key(labels::PAUSED);
    let mut status = release.status.clone().unwrap_or_default();
    if !paused {
        locate(&context.management, &namespace, &mut status.resources).await;
    }
    let (used_by, in_doubt) = if deleting {
        used_by(context, &namespace, &tag, memory).await
    } else {
        (None, false)
    };
    // Of a release that is to go the files are needed to tell how its objects are, as long as somebody uses them.
    let are_needed = !paused && (!deleting || used_by.as_ref().is_some_and(|users| !users.is_empty()));
    let (assets, files) = assets(context, release, are_needed).await;
    let made_from = files.as_ref().filter(|_| !is_spared(&assets, &status));
    let (rendering, brought) = rendering(context, release, made_from, part_of, memory).await;
    let group_kinds = marked_kinds(release, rendered_kinds(&rendering));
    let asked = Asked {
        part_of,
        namespace: Some(&namespace),
        rows: &status.resources,
        kinds: &group_kinds,
        intents: rendering.intents(),
        brought: &brought,
        memory: &memory.objects,
    };
    let (unlisted, objects) = objects(context, release, &asked, &rendering).await;
    let (status_written_at, controlled) = lock(&memory.own).last_writes();
    let (unwatched, forbidden) = context.management.unwatched(&objects, &unlisted);
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

/// The Clusters that use a release that is to go, `None` while that is not known; and whether it is in doubt. Where the watch shows none, the API
/// server itself is asked, and again when its answer is old: a watch may be behind, and what is taken away then is gone.
async fn used_by(
    context: &Context,
    namespace: &str,
    tag: &str,
    memory: &Memory<ReleaseMemory>,
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
        lock(&memory.own).unused = None;
        return (Some(used), false);
    }
    let asked = context.now();
    if lock(&memory.own).is_unused(asked) {
        return (Some(used), false);
    }
    match context.clusters.users_now(namespace, &tag).await {
        Ok(users) => {
            lock(&memory.own).unused = users.is_empty().then_some(asked);
            let in_doubt = !users.is_empty();
            (Some(users), in_doubt)
        }
        Err(error) => {
            tracing::debug!(namespace, name = %tag, error = chain(&*error), "not known whether a release is in use");
            (None, true)
        }
    }
}

/// The files, where they are needed.
async fn assets(context: &Context, release: &ClusterStackRelease, are_needed: bool) -> (Assets, Option<Admitted>) {
    if !are_needed {
        return (Assets::NotRead, None);
    }
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

/// The rendering of these files, and what it says of kinds that are not served yet.
async fn rendering(
    context: &Context,
    release: &ClusterStackRelease,
    files: Option<&Admitted>,
    part_of: &str,
    memory: &Memory<ReleaseMemory>,
) -> (Rendering, Scopes) {
    let Some(files) = files else {
        return (Rendering::NotRendered, Scopes::new());
    };
    let profile = profile(release);
    let origin = format!("{} {profile}", files.release().class_digest());
    let known = lock(&memory.own).rendering.clone();
    if let Some(known) = known {
        let mut scopes = Scopes::new();
        for kind in &known.unknown {
            scopes.insert(kind.clone(), context.management.kind(kind).await.scope());
        }
        if known.holds(&origin, |kind| scopes.get(kind).copied().unwrap_or_default()) {
            let intents = known.intents.as_ref().clone();
            return (Rendering::Rendered { intents }, known.brought);
        }
    }
    let now = context.now();
    let failed = lock(&memory.own)
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
            let mut memory = lock(&memory.own);
            memory.unrendered = None;
            memory.rendering = Some(rendered.remembered(origin));
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
            lock(&memory.own).unrendered = Some((origin, message.clone(), transient));
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
pub(super) async fn render(
    context: &Context,
    release: &ClusterStackRelease,
    files: &Admitted,
    part_of: &str,
) -> Result<Intents, Unrendered> {
    let namespace = release.namespace().unwrap_or_default();
    let rendered = context.render(release, files, profile(release)).await?;
    let rows = release.status.as_ref().map(|status| &status.resources[..]);
    let values = rendered.objects.iter().map(|object| &object.value);
    let marks = Marks {
        namespace: &namespace,
        part_of,
        stage: None,
    };
    Ok(context
        .management
        .intents(values, marks, rows.unwrap_or_default())
        .await)
}

/// The objects, and the kinds that the release says it has and whose watches have yet to list.
async fn objects(
    context: &Context,
    release: &ClusterStackRelease,
    asked: &Asked<'_>,
    rendering: &Rendering,
) -> (BTreeSet<GroupKind>, BTreeMap<ObjectKey, ObjectObserved>) {
    // Before the objects: a list that ends in between must not count.
    let unlisted = context.management.unlisted(asked.kinds).await;
    let mut objects = context.management.observe(asked).await;
    observe_sharing(context, release, rendering, &mut objects);
    (unlisted, objects)
}

async fn provider(context: &Context, release: &ClusterStackRelease) -> Provider {
    match &release.spec.provider_ref {
        None => Provider::NotWanted,
        Some(reference) => provider::observe(context, release, reference).await,
    }
}
