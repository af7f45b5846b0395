//! Objects that were there before a release asked for them: they are shared from then on, and their makers keep them.

use crds::events::Happening;
use crds::{ClusterStackRelease, labels};
use kube::{Resource, ResourceExt};
use operator_kit::apply::{ApplyOptions, apply};
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use operator_kit::read::read;
use planning::release::Belongs;
use serde_json::{Value, json};

use super::live::{belongs, other_managers, was_moved_here};
use super::marks::note_foreign;
use super::refusal::refusal;
use crate::context::Context;

/// The mark is a statement of its own, so that the next apply of the object does not take it back.
const KEEP_FIELD_MANAGER: &str = "stackwright-keep";

/// Marks an object that is there before the release's first apply, so that it stays when the release goes, and says so. Called before that
/// apply: whatever happens in between, an object of others is never held for one of ours. Tells whose the object is, if it is there; what another
/// release has made in the meantime is left to the next decision.
pub(super) async fn keep_what_is_there(
    context: &Context,
    release: &ClusterStackRelease,
    part_of: &str,
    key: &ObjectKey,
    body: &Value,
) -> Result<Option<Belongs>, String> {
    let found = read(&context.client, &context.discovery, &context.crds, key).await;
    let Some(live) = found.map_err(|error| chain(&error))? else {
        return Ok(None);
    };
    let whose = belongs(&live, part_of);
    if whose == Belongs::OtherOwner {
        note_foreign(context, part_of, key, &live).await;
    }
    if !matches!(whose, Belongs::Nobody | Belongs::Stranger) || was_moved_here(&live, part_of) {
        return Ok(Some(whose));
    }
    let mark = json!({
        "apiVersion": live.types.as_ref().map(|types| &types.api_version),
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            // Gone in between, it must not come back as a husk.
            "uid": live.metadata.uid,
            "annotations": {labels::RESOURCE_POLICY: labels::RESOURCE_POLICY_KEEP},
        },
    });
    let options = ApplyOptions {
        field_manager: KEEP_FIELD_MANAGER,
        force: false,
        dry_run: false,
        namespace: &release.namespace().unwrap_or_default(),
        known_version: None,
    };
    let rehearsal = ApplyOptions {
        field_manager: labels::FIELD_MANAGER,
        dry_run: true,
        ..options
    };
    // What conflicts is not shared, and told without a trace on the object.
    apply(&context.client, &context.discovery, body, &rehearsal)
        .await
        .map_err(|error| refusal(&error))?;
    apply(&context.client, &context.discovery, &mark, &options)
        .await
        .map_err(|error| format!("unable to mark an object that was there before, so it is left alone: {error}"))?;
    let (kind, name, others) = (&key.kind, &key.name, other_managers(&live).join(", "));
    let message = format!("{kind} {name} was there before, written by {others}; it stays when the release goes");
    context.events.publish(
        release.object_ref(&()),
        EventType::Normal,
        Happening::ObjectShared,
        &message,
    );
    Ok(Some(whose))
}
