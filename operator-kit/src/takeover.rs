//! Hands the fields that others own over to us: those of predecessors by renaming their entries in managedFields, those that a mover owns
//! together with us by taking them out of its entry.
//!
//! Without it, fields that a later release drops would stay: server-side apply removes only what its own manager owned, and nobody else.
//! Which objects and which managers is the caller's decision.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::api::{Patch, PatchParams};
use kube::client::Client;
use serde_json::{Value, json};

use crate::discovery::{Discovery, DiscoveryError};
use crate::failure::{Class, class_of};
use crate::object::{ObjectKey, namespace};
use crate::secrets::Guard;

/// One predecessor and its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    /// The predecessor's field manager.
    pub from: &'a str,
    /// `Apply` or `Update`; it stays as it is.
    pub operation: &'a str,
    /// `None` for the object itself, `Some("status")` for its status.
    pub subresource: Option<&'a str>,
    /// Our field manager.
    pub to: &'a str,
}

/// What became of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// They are ours now.
    Renamed,
    /// There were none of the predecessors.
    NothingToDo,
    /// The object is gone, or its kind is no longer served.
    Gone,
}

/// The entries could not be renamed.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// The kind could not be looked up.
    #[error("failed to look up the kind of {key} to take it over")]
    Discover {
        /// Which object.
        key: ObjectKey,
        /// Why.
        #[source]
        source: DiscoveryError,
    },
    /// The API server refused or did not answer.
    #[error("failed to take over {key}")]
    Patch {
        /// Which object.
        key: ObjectKey,
        /// The API server's answer; of a Secret its code alone.
        #[source]
        source: Box<kube::Error>,
    },
    /// The object changed between every reading and writing.
    #[error("{key} changes too often to be taken over")]
    Busy {
        /// Which object.
        key: ObjectKey,
    },
}

impl TakeoverError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Discover { source, .. } => source.class(),
            Self::Patch { source, .. } => class_of(source),
            Self::Busy { .. } => Class::Transient,
        }
    }
}

/// The object may change while we look; more than this many times in a row is somebody fighting over it.
const ATTEMPTS: u32 = 3;

/// Renames the predecessors' entries of one object. Doing it again does nothing.
pub async fn take_over(
    client: &Client,
    discovery: &Discovery,
    key: &ObjectKey,
    renames: &[Rename<'_>],
) -> Result<Takeover, TakeoverError> {
    let rewritten = rewrite(client, discovery, key, |entries| renamed(entries, renames)).await;
    rewritten.map(|(takeover, _)| takeover)
}

/// Leaves what `ours` has applied to one object to `ours` alone, where `mover` has updated it too; what else the mover owns stays its own.
/// Doing it again does nothing.
pub async fn relieve(
    client: &Client,
    discovery: &Discovery,
    key: &ObjectKey,
    mover: &str,
    ours: &str,
) -> Result<Takeover, TakeoverError> {
    let rewritten = rewrite(client, discovery, key, |entries| relieved(entries, mover, ours)).await;
    rewritten.map(|(takeover, _)| takeover)
}

/// Makes the fields below these `parts` that one of `from` has updated fields that `ours` has applied, so that our next apply removes what it does
/// not have; and relieves the others of what is ours. Doing it again does nothing. The answer is the version that the object then has; `None` of one that
/// is not there.
pub async fn inherit(
    client: &Client,
    discovery: &Discovery,
    key: &ObjectKey,
    from: &[&str],
    parts: &[&[&str]],
    ours: &str,
) -> Result<Option<String>, TakeoverError> {
    let rewritten = rewrite(client, discovery, key, |entries| inherited(entries, from, parts, ours)).await;
    rewritten.map(|(_, version)| version)
}

async fn rewrite(
    client: &Client,
    discovery: &Discovery,
    key: &ObjectKey,
    change: impl Fn(&[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>>,
) -> Result<(Takeover, Option<String>), TakeoverError> {
    let found = discovery.resolve_kind(&key.group_kind()).await;
    let Some(resolved) = found.map_err(|source| TakeoverError::Discover {
        key: key.clone(),
        source,
    })?
    else {
        return Ok((Takeover::Gone, None));
    };
    let api = resolved.api(client, namespace(key));
    let wrap = |error| TakeoverError::Patch {
        key: key.clone(),
        source: Box::new(Guard::of(&key.group_kind()).error(error)),
    };
    for _ in 0..ATTEMPTS {
        let Some(object) = api.get_metadata_opt(&key.name).await.map_err(wrap)? else {
            return Ok((Takeover::Gone, None));
        };
        let Some(entries) = change(object.metadata.managed_fields.as_deref().unwrap_or_default()) else {
            return Ok((Takeover::NothingToDo, object.metadata.resource_version));
        };
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version },
            { "op": "replace", "path": "/metadata/managedFields", "value": entries },
        ]);
        let patch = serde_json::from_value(patch).map_err(|source| wrap(kube::Error::SerdeError(source)))?;
        match api
            .patch_metadata(&key.name, &PatchParams::default(), &Patch::Json::<()>(patch))
            .await
        {
            Ok(renamed) => return Ok((Takeover::Renamed, renamed.metadata.resource_version)),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok((Takeover::Gone, None)),
            // A failed `test` is 422, a write in between 409.
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {}
            Err(source) => return Err(wrap(source)),
        }
    }
    Err(TakeoverError::Busy { key: key.clone() })
}

/// The entries after renaming; `None` when no entry is a predecessor's.
///
/// Where we have an entry of the same operation and subresource already, the fields of both become one entry: the API
/// server refuses two with one identity.
pub fn renamed(entries: &[ManagedFieldsEntry], renames: &[Rename<'_>]) -> Option<Vec<ManagedFieldsEntry>> {
    let successor_of = |entry: &ManagedFieldsEntry| {
        renames.iter().find(|rename| {
            entry.manager.as_deref() == Some(rename.from)
                && entry.operation.as_deref() == Some(rename.operation)
                && entry.subresource.as_deref() == rename.subresource
        })
    };
    let (predecessors, mut result): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|entry| successor_of(entry).is_some());
    if predecessors.is_empty() {
        return None;
    }
    for mut entry in predecessors {
        entry.manager = successor_of(&entry).map(|rename| rename.to.to_owned());
        match result.iter_mut().find(|ours| is_same_owner(ours, &entry)) {
            Some(ours) => absorb(ours, entry),
            None => result.push(entry),
        }
    }
    Some(result)
}

/// The entries after `ours` has inherited these `parts` (each a way through a set of fields) from updates by one of `from`; `None` when nothing
/// changes.
pub fn inherited(
    entries: &[ManagedFieldsEntry],
    from: &[&str],
    parts: &[&[&str]],
    ours: &str,
) -> Option<Vec<ManagedFieldsEntry>> {
    let mut heritage: Option<ManagedFieldsEntry> = None;
    let mut result = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        let is_left = entry.operation.as_deref() == Some("Update")
            && entry.subresource.is_none()
            && entry.manager.as_deref().is_some_and(|manager| from.contains(&manager));
        if is_left && let Some(FieldsV1(fields)) = &mut entry.fields_v1 {
            let taken: Vec<Value> = parts.iter().filter_map(|part| cut(fields, part)).collect();
            let is_empty = !holds_more(fields);
            for fields in taken {
                let taken = ManagedFieldsEntry {
                    manager: Some(ours.to_owned()),
                    operation: Some("Apply".to_owned()),
                    fields_v1: Some(FieldsV1(fields)),
                    ..entry.clone()
                };
                match &mut heritage {
                    Some(heritage) => absorb(heritage, taken),
                    None => heritage = Some(taken),
                }
            }
            if is_empty {
                continue;
            }
        }
        result.push(entry);
    }
    let mut changed = heritage.is_some();
    if let Some(heritage) = heritage {
        match result.iter_mut().find(|entry| is_same_owner(entry, &heritage)) {
            Some(own) => absorb(own, heritage),
            None => result.push(heritage),
        }
    }
    for other in from {
        if let Some(relieved) = relieved(&result, other, ours) {
            (result, changed) = (relieved, true);
        }
    }
    changed.then_some(result)
}

/// Takes what is at the end of a way out of a set of fields, and gives it with the way. What is empty then goes too.
fn cut(fields: &mut Value, way: &[&str]) -> Option<Value> {
    let (first, rest) = way.split_first()?;
    let fields = fields.as_object_mut()?;
    let cut = if rest.is_empty() {
        fields.remove(*first)?
    } else {
        let below = fields.get_mut(*first)?;
        let cut = cut(below, rest)?;
        if !holds_more(below) {
            fields.remove(*first);
        }
        cut
    };
    Some(json!({ *first: cut }))
}

/// Whether a set of fields has more in it than the map or list that it is of.
fn holds_more(fields: &Value) -> bool {
    /// An element with others in it is itself in the set by this.
    const ITSELF: &str = ".";
    let mut elements = fields.as_object().into_iter().flat_map(serde_json::Map::keys);
    elements.any(|element| element != ITSELF)
}

/// The entries without the fields in the mover's that `ours` applied too; `None` when there are no such fields.
pub fn relieved(entries: &[ManagedFieldsEntry], mover: &str, ours: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let is = |entry: &ManagedFieldsEntry, manager: &str, operation: &str| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some(operation)
            && entry.subresource.is_none()
    };
    let applied = entries.iter().find(|entry| is(entry, ours, "Apply"))?;
    let FieldsV1(applied) = applied.fields_v1.as_ref()?;
    let mut changed = false;
    let mut result = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        if is(&entry, mover, "Update")
            && let Some(FieldsV1(fields)) = &mut entry.fields_v1
        {
            changed |= subtract(fields, applied);
            if fields.as_object().is_none_or(serde_json::Map::is_empty) {
                continue;
            }
        }
        result.push(entry);
    }
    changed.then_some(result)
}

/// Takes a set of fields out of another, and says whether it held any of them. A map or list goes with the last that was in it: who owned it
/// alone would keep it when it is empty.
fn subtract(from: &mut Value, taken: &Value) -> bool {
    let (Value::Object(from), Value::Object(taken)) = (from, taken) else {
        return false;
    };
    let mut changed = false;
    from.retain(|element, below| {
        let Some(taken_below) = taken.get(element) else {
            return true;
        };
        changed |= subtract(below, taken_below);
        let is_kept = holds_more(below);
        changed |= !is_kept;
        is_kept
    });
    changed
}

/// As the API server identifies entries: the version counts for updates, not for applies.
fn is_same_owner(left: &ManagedFieldsEntry, right: &ManagedFieldsEntry) -> bool {
    left.manager == right.manager
        && left.operation == right.operation
        && left.subresource == right.subresource
        && (left.operation.as_deref() == Some("Apply") || left.api_version == right.api_version)
}

fn absorb(ours: &mut ManagedFieldsEntry, entry: ManagedFieldsEntry) {
    ours.time = ours.time.take().max(entry.time);
    let Some(FieldsV1(fields)) = entry.fields_v1 else {
        return;
    };
    match &mut ours.fields_v1 {
        Some(FieldsV1(own)) => unite(own, fields),
        none => *none = Some(FieldsV1(fields)),
    }
}

/// The union of two sets of fields.
fn unite(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (element, below) in from {
            match into.get_mut(&element) {
                Some(known) => unite(known, below),
                None => {
                    into.insert(element, below);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
