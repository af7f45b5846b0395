//! What the provider's release object of one release shall look like.

use std::collections::BTreeMap;

use crds::ClusterStackSpec;
use crds::cluster_stack::{NO_PROVIDER_REF, NO_TEMPLATE_REF};
use crds::cluster_stack_release::{FOREIGN_PROVIDER_REF, provider_kind};
use crds::labels;
use crds::names::ReleaseTag;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::observed::{AppliedProviderObject, ProviderObject, ProviderTemplate, ReleaseView, StackObserved};
use super::plan::StackAction;
use crate::contest;
use crate::digest::digest_of_everything;
use crate::next::{ECHO, rests_until};

/// A provider's template kind ends in this word; its release kind is the rest.
const TEMPLATE_SUFFIX: &str = "Template";

/// The annotation of `kubectl apply` describes the object it is on, and would lie on any other.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The kind of a provider's release objects, from the kind of its template; `None` when the name does not end in `Template`.
pub fn release_kind(template_kind: &str) -> Option<&str> {
    template_kind
        .strip_suffix(TEMPLATE_SUFFIX)
        .filter(|kind| !kind.is_empty())
}

/// Why no release of this stack can be given a provider, in the words of the CRD; nothing is in the way of a stack without provider.
pub(super) fn objection(spec: &ClusterStackSpec) -> Option<&'static str> {
    match &spec.provider_ref {
        _ if spec.no_provider => None,
        None => Some(NO_PROVIDER_REF),
        Some(reference) => match provider_kind(reference) {
            None => Some(FOREIGN_PROVIDER_REF),
            Some(kind) => release_kind(kind).is_none().then_some(NO_TEMPLATE_REF),
        },
    }
}

/// What a release of this stack refers to.
pub(super) fn reference(observed: &StackObserved, tag: &ReleaseTag) -> Option<ObjectReference> {
    if observed.spec.no_provider {
        return None;
    }
    let template = observed.spec.provider_ref.as_ref()?;
    let kind = release_kind(provider_kind(template)?)?;
    Some(ObjectReference {
        api_version: template.api_version.clone(),
        kind: Some(kind.to_owned()),
        name: Some(tag.to_string()),
        namespace: Some(observed.namespace.clone()),
        ..ObjectReference::default()
    })
}

/// The write that brings the provider's object of a release in line, if one is needed.
pub(super) fn action(observed: &StackObserved, tag: &ReleaseTag, release: &ReleaseView) -> Option<StackAction> {
    let ProviderTemplate::Found { template } = &observed.template else {
        return None;
    };
    let reference = reference(observed, tag)?;
    let name = tag.to_string();
    let current = observed.provider_objects.get(&name);
    if current.is_some_and(|object| object.deleting || object.foreign) || release.deleting {
        return None;
    }
    let spec = template
        .get("spec")
        .cloned()
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let labels = observed.labels.clone();
    let mut annotations = annotations(observed, release);
    let applied_digest = digest_of_everything(&(&spec, &labels, &annotations));
    annotations.insert(labels::APPLIED_DIGEST.to_owned(), applied_digest);
    if current.is_some_and(|object| in_line(object, &spec, &labels, &annotations)) {
        return None;
    }
    let action = StackAction::ApplyProviderObject {
        reference: Box::new(reference),
        release_uid: release.uid.clone(),
        spec,
        labels,
        annotations,
    };
    // What the API server makes of it is as good as it gets.
    let before = applied(observed, &action);
    let is_in_vain = before.is_some_and(|before| current == Some(&before.became));
    (!is_in_vain).then_some(action)
}

/// Until when the watch may be behind an apply that was answered: then it is not made again. Who changes the object meanwhile waits as long for the repair.
pub(super) fn shown_by(observed: &StackObserved, action: &StackAction, now: Timestamp) -> Option<Timestamp> {
    rests_until(applied(observed, action)?.at, ECHO, now)
}

/// Until when an object is left alone that somebody else keeps changing.
pub(super) fn contested_until(observed: &StackObserved, action: &StackAction, now: Timestamp) -> Option<Timestamp> {
    contest::contested_until(&applied(observed, action)?.reversals, now)
}

/// What is said of it then.
pub(super) fn contest(observed: &StackObserved, action: &StackAction, now: Timestamp) -> Option<String> {
    let until = contested_until(observed, action, now)?;
    let StackAction::ApplyProviderObject { reference, .. } = action else {
        return None;
    };
    let there = observed.provider_objects.get(reference.name.as_deref()?);
    let managers = there.map(|object| object.managers.join(", ")).unwrap_or_default();
    let message = match (there, managers.as_str()) {
        (None, _) => "somebody deletes it".to_owned(),
        (Some(_), "") => "somebody changes it".to_owned(),
        (Some(_), managers) => format!("it was changed by {managers}"),
    };
    Some(contest::tell(&message, until))
}

/// When just this was applied last.
fn applied<'observed>(
    observed: &'observed StackObserved,
    action: &StackAction,
) -> Option<&'observed AppliedProviderObject> {
    let StackAction::ApplyProviderObject { reference, .. } = action else {
        return None;
    };
    let before = observed.applied.get(reference.name.as_deref()?)?;
    (before.action == *action).then_some(before)
}

/// The stack's annotations without those that speak to us about the stack, and where the bytes of the release are.
fn annotations(observed: &StackObserved, release: &ReleaseView) -> BTreeMap<String, String> {
    let own = [
        LAST_APPLIED,
        labels::REQUESTED_AT,
        labels::APPROVE_PRUNE,
        labels::APPROVE_ORPHANS,
        labels::PAUSED,
    ];
    let mut annotations: BTreeMap<String, String> = observed
        .annotations
        .iter()
        .filter(|(key, _)| !own.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    annotations.extend(release.source.clone().map(|source| (labels::SOURCE.to_owned(), source)));
    annotations.extend(release.digest.clone().map(|digest| (labels::DIGEST.to_owned(), digest)));
    annotations
}

/// Others may add labels and annotations, and the API server defaults to the spec; what we want has to be there, and by the digest among the annotations
/// it is all that we applied last: what we applied before and want no longer looks like what others add.
fn in_line(
    object: &ProviderObject,
    spec: &Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> bool {
    contains(&object.spec, spec)
        && labels.iter().all(|(key, value)| object.labels.get(key) == Some(value))
        && annotations
            .iter()
            .all(|(key, value)| object.annotations.get(key) == Some(value))
}

fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).is_some_and(|live| contains(live, value))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        _ => live == wanted,
    }
}

#[cfg(test)]
mod tests;
