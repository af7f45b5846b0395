//! Performs the actions of a stack's plan. Decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::cluster_stack_release::{FOREIGN_PROVIDER_REF, is_stack};
use crds::{ClusterStack, ClusterStackRelease, ClusterStackReleaseSpec, labels};
use futures::future::join_all;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use operator_kit::failure::{chain, words_of};
use operator_kit::object::ObjectKey;
use operator_kit::takeover::inherit;
use planning::stack::{AppliedProviderObject, StackAction};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::orphans::{self, Doomed};
use crate::context::Context;
use crate::providers::project;
use crate::release::{group_kind, owner_reference};
use crate::sources::Opened;

/// How many requests of one stack are under way at once.
const SIDE_BY_SIDE: usize = 16;

/// How long the creation of a release waits for the kinds of its objects: long enough for a chart that renders as charts do.
const PATIENCE: Duration = Duration::from_millis(500);

/// Who made the provider's objects before us: the Go operator and clusterctl. What they wrote would stay for ever when it leaves the template.
const PREDECESSORS: [&str; 2] = [labels::PREDECESSOR_STATUS_FIELD_MANAGER, labels::MOVER_FIELD_MANAGER];

/// What of it is ours alone now. A provider may be called like one of them, and what it adds besides stays its own.
const INHERITED: [&[&str]; 2] = [
    &["f:spec"],
    &[
        "f:metadata",
        "f:annotations",
        "f:kubectl.kubernetes.io/last-applied-configuration",
    ],
];

/// What is said of a write that the API server took and did not keep.
const NOT_KEPT: &str = "the API server took the release and dropped or changed a part of it: bring the CRDs of this operator up to date, or stop \
    the policy that changes its objects";

/// Performs all actions and remembers how they ended; true when one of them failed.
pub(super) async fn execute(context: &Context, stack: &ClusterStack, actions: &[StackAction]) -> bool {
    let uid = stack.uid().unwrap_or_default();
    let mut failed = false;
    for actions in actions.chunks(SIDE_BY_SIDE) {
        let outcomes = join_all(actions.iter().map(|action| perform(context, stack, action))).await;
        for (action, outcome) in actions.iter().zip(outcomes) {
            if let Err(message) = &outcome {
                // What lasts is in the conditions, and told with them.
                tracing::debug!(
                    namespace = stack.namespace(),
                    name = stack.name_any(),
                    error = message,
                    "an action failed"
                );
                failed = true;
            }
            context.stack_memories.acted(&uid, action, outcome, context.now());
        }
    }
    failed
}

async fn perform(context: &Context, stack: &ClusterStack, action: &StackAction) -> Result<(), String> {
    match action {
        StackAction::CreateRelease {
            tag,
            spec,
            watch_filter,
        } => create(context, stack, tag, spec, watch_filter.as_deref()).await,
        StackAction::UpdateRelease {
            tag,
            spec,
            adopt,
            watch_filter,
        } => update(context, stack, tag, spec, *adopt, watch_filter.as_deref()).await,
        StackAction::DeleteRelease { tag, uid } => delete(context, stack, tag, uid).await,
        StackAction::ApplyProviderObject {
            reference,
            release_uid,
            spec,
            labels,
            annotations,
        } => {
            let metadata = json!({"name": reference.name, "labels": labels, "annotations": annotations});
            let (became, has_changed) =
                apply_provider_object(context, stack, reference, release_uid, spec, metadata).await?;
            let name = reference.name.as_deref().unwrap_or_default();
            let applied = AppliedProviderObject {
                action: action.clone(),
                became: project(&became).of_release(name),
                at: context.now(),
                reversals: Vec::new(),
            };
            let uid = stack.uid().unwrap_or_default();
            context.stack_memories.applied(&uid, name, applied, has_changed);
            Ok(())
        }
        StackAction::DeleteOrphan {
            class,
            tag,
            uid,
            templates,
        } => {
            let doomed = Doomed {
                class,
                tag,
                uid,
                templates,
            };
            orphans::remove(context, &stack.namespace().unwrap_or_default(), &doomed).await
        }
    }
}

fn api(context: &Context, stack: &ClusterStack) -> Api<ClusterStackRelease> {
    Api::namespaced(
        context.management.client.clone(),
        &stack.namespace().unwrap_or_default(),
    )
}

async fn create(
    context: &Context,
    stack: &ClusterStack,
    tag: &str,
    spec: &ClusterStackReleaseSpec,
    watch_filter: Option<&str>,
) -> Result<(), String> {
    let mut release = ClusterStackRelease::new(tag, spec.clone());
    release.meta_mut().namespace = stack.namespace();
    // With the first write, so that no moment exists in which the release could vanish without its objects.
    release.meta_mut().finalizers = Some(vec![labels::RELEASE_FINALIZER.to_owned()]);
    release.meta_mut().owner_references = Some(stack.owner_ref(&()).into_iter().collect());
    set_watch_filter(&mut release, watch_filter);
    let namespace = stack.namespace().unwrap_or_default();
    // No chart and no storage may hold up a stack.
    release.meta_mut().annotations = timeout(PATIENCE, kinds(context, &release)).await.ok().flatten();
    let params = PostParams {
        field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api(context, stack).create(&params, &release).await {
        Ok(created) => {
            tracing::info!(stack = stack.name_any(), namespace, release = tag, "release created");
            context.releases.note(created);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 && watch_filter.is_some() => {
            let unseen = api(context, stack).get(tag).await.map_err(|error| words_of(&error))?;
            if !unseen
                .owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == stack.uid().as_ref())
            {
                return Err(words_of(&kube::Error::Api(status)));
            }
            // Made before the stack had its label: without it the watch shows nothing of it.
            replace(context, stack, unseen, |release| {
                set_watch_filter(release, watch_filter);
            })
            .await
        }
        Err(error) => Err(words_of(&error)),
    }
}

fn set_watch_filter(release: &mut ClusterStackRelease, value: Option<&str>) {
    match value {
        Some(value) => {
            let key = labels::WATCH_FILTER.to_owned();
            release.labels_mut().insert(key, value.to_owned());
        }
        None => drop(release.labels_mut().remove(labels::WATCH_FILTER)),
    }
}

/// The annotation with the kinds of the objects that a release asks for, where its chart may and can be rendered by now. Otherwise the release
/// says it before it applies its first object, by a write of its own.
async fn kinds(context: &Context, release: &ClusterStackRelease) -> Option<BTreeMap<String, String>> {
    let Opened::Ready { files, .. } = context.sources.of(release).await else {
        return None;
    };
    let policy = release.spec.policy.as_ref();
    let profile = policy.map(|policy| policy.helm_profile).unwrap_or_default();
    let rendered = context.render(release, &files, profile).await.ok()?;
    let kinds = rendered.objects.iter().filter_map(|object| {
        let api_version = object.value.get("apiVersion")?.as_str()?;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Some((group, object.value.get("kind")?.as_str()?))
    });
    let names = labels::format_group_kinds(kinds);
    (!names.is_empty()).then(|| BTreeMap::from([(labels::CONTAINS_GROUP_KINDS.to_owned(), names)]))
}

async fn update(
    context: &Context,
    stack: &ClusterStack,
    tag: &str,
    spec: &ClusterStackReleaseSpec,
    adopt: bool,
    watch_filter: Option<&str>,
) -> Result<(), String> {
    let namespace = stack.namespace().unwrap_or_default();
    let current = context
        .releases
        .get(&namespace, tag)
        .ok_or_else(|| format!("release {tag} is gone"))?;
    let wanted = current.as_ref().clone();
    replace(context, stack, wanted, |wanted| {
        wanted.spec = spec.clone();
        set_watch_filter(wanted, watch_filter);
        if adopt {
            let references = wanted.meta_mut().owner_references.get_or_insert_default();
            references.retain(|owner| !is_stack(owner));
            references.extend(stack.owner_ref(&()));
        }
    })
    .await
}

/// Writes a release, as it was read, with this change.
async fn replace(
    context: &Context,
    stack: &ClusterStack,
    mut release: ClusterStackRelease,
    change: impl FnOnce(&mut ClusterStackRelease),
) -> Result<(), String> {
    change(&mut release);
    let params = PostParams {
        field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let replaced = api(context, stack)
        .replace(&release.name_any(), &params, &release)
        .await;
    let replaced = replaced.map_err(|error| words_of(&error))?;
    let is_kept = replaced.spec == release.spec
        && replaced.owner_references() == release.owner_references()
        && replaced.labels().get(labels::WATCH_FILTER) == release.labels().get(labels::WATCH_FILTER);
    if replaced.resource_version() == release.resource_version() {
        context.releases.correct(replaced);
    } else {
        context.releases.note(replaced);
    }
    // What is not kept is due again at once, and would be for ever.
    is_kept.then_some(()).ok_or_else(|| NOT_KEPT.to_owned())
}

async fn delete(context: &Context, stack: &ClusterStack, tag: &str, uid: &str) -> Result<(), String> {
    let namespace = stack.namespace().unwrap_or_default();
    let current = context.releases.get(&namespace, tag);
    let Some(current) = current.filter(|release| release.uid().as_deref() == Some(uid)) else {
        return Ok(());
    };
    // A deletion cannot be taken back, and the watch that the plan rests on may be behind.
    if let Ok(name) = tag.parse() {
        let users = context.clusters.users_now(&namespace, &name).await;
        if let Some(user) = users.map_err(|error| chain(&*error))?.first() {
            return Err(format!("release {tag} is in use by now: {user}"));
        }
    }
    // Late, it must not hit a release that somebody has found use for.
    let only_this = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: current.resource_version(),
    };
    let params = DeleteParams {
        preconditions: Some(only_this),
        ..DeleteParams::default()
    };
    match api(context, stack).delete(tag, &params).await {
        Ok(either) => {
            tracing::info!(
                stack = stack.name_any(),
                namespace = stack.namespace(),
                release = tag,
                "release deleted"
            );
            match either.left() {
                Some(terminating) => context.releases.note(terminating),
                None => context.releases.bury(&current),
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            // The watch may be behind, and it would be deleted again and again until it is not.
            context.releases.bury(&current);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            // Decided anew on what it is by now, and not at once: somebody may go on writing it.
            let newer = api(context, stack).get_opt(tag).await;
            let Some(newer) = newer.map_err(|error| words_of(&error))? else {
                context.releases.bury(&current);
                return Ok(());
            };
            let is_still = newer.uid() == current.uid() && newer.resource_version() == current.resource_version();
            context.releases.note(newer);
            // A policy may answer so too.
            Err(if is_still {
                words_of(&kube::Error::Api(status))
            } else {
                format!("release {tag} changed in between")
            })
        }
        Err(error) => Err(words_of(&error)),
    }
}

/// What became of the object, and whether that is another than it was right before: its provider writes it too.
async fn apply_provider_object(
    context: &Context,
    stack: &ClusterStack,
    reference: &ObjectReference,
    release_uid: &str,
    spec: &Value,
    metadata: Value,
) -> Result<(DynamicObject, bool), String> {
    let namespace = stack.namespace().unwrap_or_default();
    let name = reference.name.clone().unwrap_or_default();
    let kind = group_kind(reference).ok_or(FOREIGN_PROVIDER_REF)?;
    let resolved = context
        .management
        .discovery
        .resolve_kind(&kind)
        .await
        .map_err(|error| chain(&error))?;
    let resolved = resolved.ok_or_else(|| format!("the kind {kind} is not served"))?;
    let release = context
        .releases
        .get(&namespace, &name)
        .filter(|release| release.uid().as_deref() == Some(release_uid));
    let release = release.ok_or_else(|| format!("release {name} changed in between"))?;
    // First, so that this apply takes away what they have left: when it has been answered, nobody would look again.
    let key = ObjectKey::new(&*kind.group, &*kind.kind, &*namespace, &*name);
    let (client, discovery) = (&context.management.client, &context.management.discovery);
    let inherited = inherit(
        client,
        discovery,
        &key,
        &PREDECESSORS,
        &INHERITED,
        labels::FIELD_MANAGER,
    )
    .await;
    let before = inherited.map_err(|error| chain(&error))?;
    let mut body = json!({
        "apiVersion": resolved.resource.api_version,
        "kind": resolved.resource.kind,
        "metadata": metadata,
        "spec": spec,
    });
    body["metadata"]["ownerReferences"] = json!([owner_reference(&release)]);
    // The provider never writes the spec: whoever else did is overruled.
    let params = PatchParams {
        field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        force: true,
        ..PatchParams::default()
    };
    let api = resolved.api(&context.management.client, Some(&namespace));
    let applied = api.patch(&name, &params, &Patch::Apply(&body)).await;
    let applied = applied.map_err(|error| words_of(&error))?;
    let has_changed = applied.resource_version() != before;
    Ok((applied, has_changed))
}
