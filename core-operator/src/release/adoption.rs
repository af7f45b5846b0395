//! Objects that were there before a release asked for them: they are shared from then on, and their makers keep them.

use crds::{ClusterStackRelease, labels};
use kube::{Resource, ResourceExt};
use operator_kit::apply::{AppliedObject, ApplyOptions, apply};
use operator_kit::events::EventType;
use serde_json::{Value, json};

use crate::context::Context;

/// The mark is a statement of its own, so that the next apply of the object does not take it back.
const KEEP_FIELD_MANAGER: &str = "stackwright-keep";

/// Marks an object in which the first apply met fields of others, so that it stays when the release goes, and says so. Does nothing about an
/// object that came into being by that apply.
pub(super) async fn keep_for_others(
    context: &Context,
    release: &ClusterStackRelease,
    body: &Value,
    applied: &AppliedObject,
) -> Result<(), String> {
    if applied.others.is_empty() {
        return Ok(());
    }
    let name = applied.live.name_any();
    let mark = json!({
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": {
            "name": name,
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
    apply(&context.client, &context.discovery, &mark, &options)
        .await
        .map_err(|error| error.to_string())?;
    let kind = body["kind"].as_str().unwrap_or_default();
    let others = applied.others.join(", ");
    let message = format!("{kind} {name} was there before, written by {others}; it stays when the release goes");
    context
        .events
        .publish(release.object_ref(&()), EventType::Normal, "ObjectShared", &message);
    Ok(())
}
