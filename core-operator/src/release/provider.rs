//! The provider's release object, as the release sees it: found by reference, read from a watch, controlled by an owner reference.

use crds::cluster_stack_release::{FOREIGN_PROVIDER_REF, provider_kind};
use crds::events::Happening;
use crds::{ClusterStackRelease, PROVIDER_GROUP};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use operator_kit::events::EventType;
use operator_kit::failure::{chain, words_of};
use operator_kit::object::{GroupKind, ObjectKey};
use planning::release::{Controlled, Provider};
use serde_json::json;

use super::memory::ReleaseMemory;
use crate::context::Context;
use crate::objects::{Memory, lock};
use crate::providers::ProviderState;

/// What is known of the object that a release refers to.
pub(super) async fn observe(context: &Context, release: &ClusterStackRelease, reference: &ObjectReference) -> Provider {
    let Some(kind) = group_kind(reference) else {
        return Provider::Foreign;
    };
    let watch = context.providers.follow(&kind);
    if let Some(unlisted) = watch.unlisted() {
        return Provider::NotListed(context.unlisted(unlisted));
    }
    if matches!(context.management.discovery.resolve_kind(&kind).await, Ok(None)) {
        return Provider::KindMissing { kind: kind.to_string() };
    }
    let namespace = release.namespace().unwrap_or_default();
    match watch.get(&namespace, reference.name.as_deref().unwrap_or_default()) {
        None => Provider::Missing,
        Some(state) => found(release, &state),
    }
}

fn found(release: &ClusterStackRelease, state: &ProviderState) -> Provider {
    let uid = release.uid().unwrap_or_default();
    let controlled = state
        .controller
        .as_ref()
        .is_some_and(|controller| controller.uid == uid);
    Provider::Found {
        uid: state.uid.clone(),
        ready: state.ready,
        controlled,
        foreign_controller: state
            .controller
            .as_ref()
            .filter(|_| !controlled)
            .map(|controller| controller.name.clone()),
        phase: state.phase.clone(),
        message: state.message.clone(),
        progress: state.progress.clone(),
    }
}

/// The kind that a reference names, if a provider may bring it: whatever is done to objects of providers begins here.
pub(crate) fn group_kind(reference: &ObjectReference) -> Option<GroupKind> {
    provider_kind(reference).map(|kind| GroupKind::new(PROVIDER_GROUP, kind))
}

/// Makes the release the controlling owner of the provider's object, so that the object goes when the release goes.
pub(super) async fn control(
    context: &Context,
    release: &ClusterStackRelease,
    uid: &str,
    memory: &Memory<ReleaseMemory>,
) -> Result<(), String> {
    let controlled = take_control(context, release, uid).await.inspect_err(|error| {
        // The status, which would tell, is not written before this has been done.
        let message = format!("unable to take the provider's object under control: {error}");
        let (about, events) = (release.object_ref(&()), &context.events);
        events.publish(about, EventType::Warning, Happening::ProviderNotControlled, &message);
    });
    controlled?;
    lock(&memory.own).controlled = Some(Controlled {
        uid: uid.to_owned(),
        at: context.now(),
    });
    Ok(())
}

async fn take_control(context: &Context, release: &ClusterStackRelease, uid: &str) -> Result<(), String> {
    let reference = release
        .spec
        .provider_ref
        .as_ref()
        .ok_or("the release names no provider")?;
    let kind = group_kind(reference).ok_or(FOREIGN_PROVIDER_REF)?;
    let name = reference.name.clone().unwrap_or_default();
    let key = ObjectKey::new(
        kind.group.as_str(),
        kind.kind.as_str(),
        release.namespace().unwrap_or_default(),
        name.as_str(),
    );
    let resolved = context
        .management
        .discovery
        .resolve_kind(&kind)
        .await
        .map_err(|error| chain(&error))?;
    let resolved = resolved.ok_or_else(|| format!("the kind {kind} is not served"))?;
    let body = json!({
        "apiVersion": resolved.resource.api_version,
        "kind": resolved.resource.kind,
        // Gone in between, it must not come back as a husk.
        "metadata": {"name": name, "uid": uid, "ownerReferences": [owner_reference(release)]},
    });
    let params = PatchParams {
        field_manager: Some(CONTROL_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = resolved.api(&context.management.client, Some(&key.namespace));
    api.patch(&name, &params, &Patch::Apply(&body))
        .await
        .map_err(|error| words_of(&error))?;
    Ok(())
}

/// The owner reference is a statement of its own, so that applying the object's spec does not take it back.
const CONTROL_FIELD_MANAGER: &str = "stackwright-owner";

/// The release as controlling owner.
pub(crate) fn owner_reference(release: &ClusterStackRelease) -> serde_json::Value {
    json!({
        "apiVersion": format!("{}/{}", crds::GROUP, crds::VERSION),
        "kind": "ClusterStackRelease",
        "name": release.name_any(),
        "uid": release.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
