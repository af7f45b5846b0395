//! The provider's objects: release objects and templates, of whatever kinds the stacks name, followed by one watch per kind.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::object::GroupKind;
use operator_kit::projection::{Notice, ProjectedWatch};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What is kept of one object of a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderState {
    pub(crate) spec: Value,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) deleting: bool,
    pub(crate) controller: Option<Controller>,
    pub(crate) ready: bool,
    pub(crate) phase: Option<String>,
    pub(crate) message: Option<String>,
}

/// The controlling owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) uid: String,
    /// `Kind name`, for people.
    pub(crate) name: String,
}

/// Where an object of a provider changed.
#[derive(Clone, Debug)]
pub(crate) struct ProviderChange {
    pub(crate) namespace: String,
    /// `None`: anything may have changed.
    pub(crate) name: Option<String>,
}

/// All watches of provider kinds. A kind is followed from the first question about it.
pub(crate) struct Providers {
    client: Client,
    discovery: Discovery,
    crds: CrdWatch,
    cancel: CancellationToken,
    changes: mpsc::UnboundedSender<ProviderChange>,
    kinds: Mutex<HashMap<GroupKind, ProjectedWatch<ProviderState>>>,
}

impl Providers {
    pub(crate) fn new(
        client: Client,
        discovery: Discovery,
        crds: CrdWatch,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<ProviderChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (
            Self {
                client,
                discovery,
                crds,
                cancel,
                changes,
                kinds: Mutex::default(),
            },
            receiver,
        )
    }

    /// Follows a kind from now on, also when it is not served yet.
    pub(crate) fn follow(&self, kind: &GroupKind) -> ProjectedWatch<ProviderState> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = kinds.get(kind) {
            return watch.clone();
        }
        let (watch, notices) = ProjectedWatch::start(
            self.client.clone(),
            self.discovery.clone(),
            &self.crds,
            kind.clone(),
            |object| Some(project(object)),
            self.cancel.clone(),
        );
        tokio::spawn(forward(notices, self.changes.clone()));
        kinds.insert(kind.clone(), watch.clone());
        watch
    }

    /// All objects of a kind in a namespace, by name; `None` until all have been listed.
    pub(crate) fn within(&self, kind: &GroupKind, namespace: &str) -> Option<BTreeMap<String, Arc<ProviderState>>> {
        let watch = self.follow(kind);
        watch.synced().then(|| {
            let snapshot = watch.snapshot().into_iter();
            snapshot
                .filter(|((at, _), _)| at == namespace)
                .map(|((_, name), state)| (name, state))
                .collect()
        })
    }
}

async fn forward(mut notices: mpsc::Receiver<Notice<ProviderState>>, changes: mpsc::UnboundedSender<ProviderChange>) {
    while let Some(notice) = notices.recv().await {
        let change = match notice {
            Notice::Changed {
                place: (namespace, name),
                ..
            } => ProviderChange {
                namespace,
                name: Some(name),
            },
            Notice::Synced => ProviderChange {
                namespace: String::new(),
                name: None,
            },
        };
        if changes.send(change).is_err() {
            return;
        }
    }
}

fn project(object: &DynamicObject) -> ProviderState {
    let status = object.data.get("status").unwrap_or(&Value::Null);
    let text = |field: &str| {
        status
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    ProviderState {
        spec: object.data.get("spec").cloned().unwrap_or_default(),
        labels: object.labels().clone(),
        annotations: object.annotations().clone(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        controller: object
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| Controller {
                uid: owner.uid.clone(),
                name: format!("{} {}", owner.kind, owner.name),
            }),
        ready: status.get("ready").and_then(Value::as_bool).unwrap_or(false),
        phase: text("phase"),
        message: text("message").or_else(|| ready_message(status)),
    }
}

/// The message of the Ready condition, for providers without a message of their own.
fn ready_message(status: &Value) -> Option<String> {
    let conditions = status.get("conditions")?.as_array()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"))?;
    let message = ready.get("message").or_else(|| ready.get("reason"))?.as_str()?;
    (!message.is_empty()).then(|| message.to_owned())
}

#[cfg(test)]
mod tests;
