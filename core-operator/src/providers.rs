//! The provider's objects: release objects and templates, of whatever kinds the stacks name, followed by one watch per kind.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crds::conditions::one_line;
use crds::{ClusterStack, ClusterStackRelease, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::object::GroupKind;
use operator_kit::parts::bytes_of;
use operator_kit::projection::{ProjectedWatch, Unlisted};
use operator_kit::shallow::Shallow;
use planning::digest::digest_of_everything;
use planning::release::ProviderProgress;
use planning::stack::{LAST_APPLIED, ProviderObject, release_kind};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::by_kind::{KindChange, WatchesByKind};
use crate::release::group_kind;

/// What is kept of one object of a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderState {
    pub(crate) uid: String,
    /// Of a template `template` alone; where it is too large, the digest of all that is counted.
    pub(crate) spec: Value,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// How many bytes the spec, the labels and the annotations have; where that is too many, they are not kept.
    pub(crate) bytes: usize,
    /// Not all of it is known, because it is nested too deep.
    pub(crate) is_cut: bool,
    /// Who besides us writes these.
    pub(crate) managers: Vec<String>,
    pub(crate) deleting: bool,
    pub(crate) controller: Option<Controller>,
    pub(crate) ready: bool,
    pub(crate) phase: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) progress: Option<ProviderProgress>,
}

impl ProviderState {
    /// What a stack sees of it, when it is the one of the release of this name.
    pub(crate) fn of_release(&self, name: &str) -> ProviderObject {
        let release = format!("ClusterStackRelease {name}");
        ProviderObject {
            foreign: self
                .controller
                .as_ref()
                .is_some_and(|controller| controller.name != release),
            spec: self.spec.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            managers: self.managers.clone(),
            deleting: self.deleting,
        }
    }
}

/// Most bytes that are kept of a template, and of an object that is made of one. Whoever may make them may make any number.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// Most bytes that are kept of the phase, the message and the unit of the progress that a provider tells.
const PHASE_BYTES: usize = 64;
const MESSAGE_BYTES: usize = 512;
const UNIT_BYTES: usize = 32;
/// The same of the identity of its controller.
const UID_BYTES: usize = 64;

/// The controlling owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) uid: String,
    /// `Kind name`, for people.
    pub(crate) name: String,
}

/// All watches of provider kinds.
pub(crate) struct Providers {
    watches: WatchesByKind<ProviderState>,
}

impl Providers {
    pub(crate) fn new(
        client: Client,
        discovery: Discovery,
        crds: CrdWatch,
        namespace: &str,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<KindChange>) {
        let project = |kind: &GroupKind, object: &Shallow<DynamicObject>| {
            let state = match release_kind(&kind.kind) {
                Some(_) => project_template(object),
                None => project(object),
            };
            ProviderState {
                is_cut: object.is_cut,
                ..state
            }
        };
        let (watches, changes) = WatchesByKind::new(client, discovery, crds, namespace, project, cancel);
        (Self { watches }, changes)
    }

    /// Follows a kind from now on, also when it is not served yet.
    pub(crate) fn follow(&self, kind: &GroupKind) -> ProjectedWatch<ProviderState> {
        self.watches.follow(kind)
    }

    /// Ends the watches of kinds that none of these names: a stack may name any, also such as are never served.
    pub(crate) fn follow_only(&self, stacks: &[Arc<ClusterStack>], releases: &[Arc<ClusterStackRelease>]) {
        let references = stacks.iter().filter_map(|stack| stack.spec.provider_ref.as_ref());
        let templates: HashSet<GroupKind> = references.filter_map(group_kind).collect();
        let made = templates
            .iter()
            .filter_map(|template| Some(GroupKind::new(template.group.as_str(), release_kind(&template.kind)?)));
        let references = releases.iter().filter_map(|release| release.spec.provider_ref.as_ref());
        let named: HashSet<GroupKind> = references.filter_map(group_kind).chain(made).collect();
        self.watches
            .keep(|kind| named.contains(kind) || templates.contains(kind));
    }

    /// All objects of a kind in a namespace, by name, unless they have not been listed yet.
    pub(crate) fn within(
        &self,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<BTreeMap<String, Arc<ProviderState>>, Unlisted> {
        let watch = self.follow(kind);
        if let Some(unlisted) = watch.unlisted() {
            return Err(unlisted);
        }
        let snapshot = watch.snapshot().into_iter();
        let within = snapshot.filter(|((at, _), _)| at == namespace);
        Ok(within.map(|((_, name), state)| (name, state)).collect())
    }
}

/// What is kept of a template.
fn project_template(object: &DynamicObject) -> ProviderState {
    let template = object.data.get("spec").and_then(|spec| spec.get("template"));
    let spec = match template {
        Some(template) => json!({ "template": template }),
        None => Value::Null,
    };
    kept(object, spec, BTreeMap::new(), BTreeMap::new())
}

/// What is kept of an object that is made of a template.
pub(crate) fn project(object: &DynamicObject) -> ProviderState {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let mut annotations = object.annotations().clone();
    // Nobody asks for it, and it says all once more.
    annotations.remove(LAST_APPLIED);
    kept(object, spec, object.labels().clone(), annotations)
}

fn kept(
    object: &DynamicObject,
    spec: Value,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
) -> ProviderState {
    let status = object.data.get("status").unwrap_or(&Value::Null);
    let counted = (spec, labels, annotations);
    let bytes = bytes_of(&counted);
    let (spec, labels, annotations) = if bytes > MOST_BYTES {
        // Enough to see that it changes.
        let digest = digest_of_everything(&counted).into();
        (digest, BTreeMap::new(), BTreeMap::new())
    } else {
        counted
    };
    ProviderState {
        uid: object.uid().unwrap_or_default(),
        spec,
        labels,
        annotations,
        managers: managers(object),
        bytes,
        is_cut: false,
        deleting: object.metadata.deletion_timestamp.is_some(),
        controller: object
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| Controller {
                uid: one_line(&owner.uid, UID_BYTES),
                name: one_line(&format!("{} {}", owner.kind, owner.name), MESSAGE_BYTES),
            }),
        ready: status.get("ready").and_then(Value::as_bool).unwrap_or(false),
        phase: text(status, "phase", PHASE_BYTES),
        message: text(status, "message", MESSAGE_BYTES).or_else(|| ready_message(status)),
        progress: status.get("progress").and_then(progress),
    }
}

/// The managers besides ours of what a stack writes, sorted.
fn managers(object: &DynamicObject) -> Vec<String> {
    let places = ["/f:spec", "/f:metadata/f:labels", "/f:metadata/f:annotations"];
    let entries = object.metadata.managed_fields.iter().flatten();
    let writes = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| places.iter().any(|place| fields.0.pointer(place).is_some()))
    };
    let managers = entries.filter(writes).filter_map(|entry| entry.manager.clone());
    let others: BTreeSet<String> = managers.filter(|manager| manager != labels::FIELD_MANAGER).collect();
    others.into_iter().collect()
}

/// A field with words for people. They are the provider's: short enough to be repeated, and on one line.
fn text(object: &Value, field: &str, bytes: usize) -> Option<String> {
    let words = one_line(object.get(field)?.as_str()?, bytes);
    (!words.is_empty()).then_some(words)
}

/// How far the provider is; nothing of what is not as the contract has it.
fn progress(told: &Value) -> Option<ProviderProgress> {
    Some(ProviderProgress {
        done: told.get("done")?.as_u64()?,
        total: told.get("total").and_then(Value::as_u64),
        unit: text(told, "unit", UNIT_BYTES).unwrap_or_default(),
    })
}

/// The message of the Ready condition, or its reason, for providers without a message of their own.
fn ready_message(status: &Value) -> Option<String> {
    let conditions = status.get("conditions")?.as_array()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"))?;
    text(ready, "message", MESSAGE_BYTES).or_else(|| text(ready, "reason", MESSAGE_BYTES))
}

#[cfg(test)]
mod tests;
