//! What is stored under a CRD and would be lost with a change of it: the API server drops every field that the schema does not describe, when an
//! object is read and for good when it is written next.
//!
//! The rules are those of [structural schemas and pruning][pruning] and of [versions][versions]. Only what would be lost is named: a new required
//! field or a narrower pattern refuses later writes and loses nothing.
//!
//! [pruning]: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
//! [versions]: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/

mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crds::labels::APPROVE_DATA_LOSS;
use serde_json::Value;

use crate::digest::digest_of_everything;
use crate::object_key::GroupKind;
use crate::objects::OwnerKind;

/// So many losses are told; the approval is of all.
const TOLD: usize = 5;

/// Whether objects of this kind say what is stored.
pub fn is_definition(kind: &GroupKind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition"
}

/// Why a CRD may not be changed so, or nothing if nothing would be lost or a person approved exactly these losses: `approved` is the value
/// of the annotation [`APPROVE_DATA_LOSS`].
///
/// `owner` is whose CRD it is, and where the approval is looked for. Both are whole CRDs; of `live` the status is read too, where the API server keeps the versions that objects were ever stored in.
pub fn refusal(owner: OwnerKind, live: &Value, wanted: &Value, approved: Option<&str>) -> Option<String> {
    let losses = losses(live, wanted);
    if losses.is_empty() {
        return None;
    }
    let digest = digest_of_everything(&losses);
    if approved == Some(digest.as_str()) {
        return None;
    }
    let told: Vec<&str> = losses.iter().take(TOLD).map(String::as_str).collect();
    let more = match losses.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!(
        "this change of the CRD would lose stored data: {}{more}. Publish a release that keeps it; or, if it may be lost, \
         annotate the {} with {APPROVE_DATA_LOSS}={digest}",
        told.join("; "),
        owner.object()
    ))
}

/// What a CRD would lose by becoming another one, sorted.
pub fn losses(live: &Value, wanted: &Value) -> BTreeSet<String> {
    let (old, new) = (Definition(live), Definition(wanted));
    let mut losses = BTreeSet::new();
    for version in old.stored() {
        let (before, after) = (old.schema(version), new.schema(version));
        let (Some(before), Some(after)) = (before, after) else {
            // A version that is no longer there lost nothing now.
            if before.is_some() {
                losses.insert(format!("{version} would be gone, and objects are stored in it"));
            }
            continue;
        };
        schema::of_objects(before, after, version, &mut losses);
        // Without conversion an object is read as it was stored, with the fields of the version that is asked for.
        let target = new.storage().filter(|target| *target != version);
        if let Some(target) = target.filter(|_| !new.converts())
            && (old.converts() || old.storage() != Some(target))
            && let Some(after) = new.schema(target)
        {
            schema::of_objects(before, after, &format!("{version} (read as {target})"), &mut losses);
        }
    }
    losses
}

/// A CRD of `apiextensions.k8s.io/v1`.
struct Definition<'a>(&'a Value);

impl<'a> Definition<'a> {
    /// The versions that objects may be stored in.
    fn stored(&self) -> BTreeSet<&'a str> {
        let kept = self.0["status"]["storedVersions"].as_array().into_iter().flatten();
        kept.filter_map(Value::as_str).chain(self.storage()).collect()
    }

    /// The version that objects are written in.
    fn storage(&self) -> Option<&'a str> {
        let storage = self.versions().find(|version| version["storage"] == true)?;
        storage["name"].as_str()
    }

    /// Whether somebody else converts objects between versions.
    fn converts(&self) -> bool {
        self.0["spec"]["conversion"]["strategy"] == "Webhook"
    }

    fn schema(&self, name: &str) -> Option<&'a Value> {
        let version = self.versions().find(|version| version["name"] == name)?;
        Some(&version["schema"]["openAPIV3Schema"])
    }

    fn versions(&self) -> impl Iterator<Item = &'a Value> {
        self.0["spec"]["versions"].as_array().into_iter().flatten()
    }
}
