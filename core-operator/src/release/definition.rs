//! A change of a CRD is looked at before it is made: what it would drop is gone for good.

use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::apply::{ApplyOptions, apply};
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use operator_kit::read::read;
use planning::release::{ApplyReason, Belongs};
use planning::stored_data;
use serde_json::Value;

use super::claims::mark;
use super::live::belongs;
use super::marks::note_foreign;
use super::refusal::refusal;
use crate::context::Context;

/// Why a CRD stays as it is.
pub(super) enum Unchanged {
    /// It was refused, in words for people.
    Refused(String),
    /// Nothing was wrong but that stored data would have been lost; in words for people.
    LosesData(String),
    /// Another release has made it in the meantime.
    Foreign,
}

/// The body to apply for a CRD: one that is there is rehearsed, refused when it would lose stored data, and otherwise bound to the version
/// that was looked at.
pub(super) async fn without_loss(
    context: &Context,
    release: &ClusterStackRelease,
    (key, why): (&ObjectKey, ApplyReason),
    body: &Value,
    options: &ApplyOptions<'_>,
) -> Result<Value, Unchanged> {
    let mut body = body.clone();
    let found = read(&context.client, &context.discovery, &context.crds, key).await;
    let Some(live) = found.map_err(|error| Unchanged::Refused(chain(&error)))? else {
        return Ok(body);
    };
    let part_of = mark(release);
    if why == ApplyReason::Create && belongs(&live, &part_of) == Belongs::OtherOwner {
        note_foreign(context, &part_of, key, &live).await;
        return Err(Unchanged::Foreign);
    }
    let rehearsal = ApplyOptions {
        dry_run: true,
        ..*options
    };
    let wanted = apply(&context.client, &context.discovery, &body, &rehearsal)
        .await
        .map_err(|error| Unchanged::Refused(refusal(&error)))?;
    let approved = release.annotations().get(labels::APPROVE_DATA_LOSS);
    let [before, after] = [&live, &wanted.live].map(|object| serde_json::to_value(object).unwrap_or_default());
    if let Some(message) = stored_data::refusal(&before, &after, approved.map(String::as_str)) {
        return Err(Unchanged::LosesData(message));
    }
    // Who changes it in between may have added what would be lost.
    body["metadata"]["resourceVersion"] = live.resource_version().into();
    Ok(body)
}
