//! What the operator wrote, taken from the audit log: counted, and in a form that can be written again.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use e2e::{AuditEvent, audit::ObjectReference};
use serde_json::Value;

/// How a write is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Create,
    Update,
    /// Server-side apply.
    Apply,
    /// A merge patch.
    Merge,
    Delete,
}

/// One write that succeeded.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) method: Method,
    /// Path and query.
    pub(super) uri: String,
    /// JSON; empty for a deletion without options.
    pub(super) body: Box<str>,
    /// An object that a chart asks for, not bookkeeping of the operator.
    pub(super) of_chart: bool,
}

/// Which object a write concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) resource: String,
    pub(super) name: String,
}

impl Target {
    /// A ClusterStack.
    pub(super) fn stack(name: &str) -> Self {
        Self {
            resource: "clusterstacks".to_owned(),
            name: name.to_owned(),
        }
    }

    /// A ClusterAddon.
    pub(super) fn addon(name: &str) -> Self {
        Self {
            resource: "clusteraddons".to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Writes to one object depend on each other, those to different objects do not.
pub(super) type Chains = Vec<(Target, Vec<Write>)>;

/// The writes that succeeded, by object, in the order in which the objects were written first.
pub(super) fn chains<'a>(events: impl Iterator<Item = &'a AuditEvent>) -> Result<Chains> {
    let mut places: BTreeMap<Target, usize> = BTreeMap::new();
    let mut chains = Chains::new();
    for event in events.filter(|event| (200..300).contains(&event.code)) {
        let (target, write) =
            write_of(event).with_context(|| format!("unable to repeat {} {}", event.verb, event.request_uri))?;
        let place = *places.entry(target.clone()).or_insert_with(|| {
            chains.push((target, Vec::new()));
            chains.len() - 1
        });
        chains[place].1.push(write);
    }
    Ok(chains)
}

fn write_of(event: &AuditEvent) -> Result<(Target, Write)> {
    let object = event.object.as_ref().context("it names no object")?;
    let body = event
        .body
        .clone()
        .context("the audit log has no bodies: its policy has to be of level Request")?;
    let value: Value = serde_json::from_str(&body).context("its body is no JSON")?;
    let named = value.pointer("/metadata/name").and_then(Value::as_str);
    let name = if object.name.is_empty() {
        named
    } else {
        Some(object.name.as_str())
    };
    let method = match event.verb.as_str() {
        "create" => Method::Create,
        "update" => Method::Update,
        // An applied object says what it is, a merge patch says what changes.
        "patch" if value.get("kind").is_some() => Method::Apply,
        "patch" => Method::Merge,
        "delete" => Method::Delete,
        other => anyhow::bail!("no operator is expected to {other}"),
    };
    let target = Target {
        resource: object.resource.clone(),
        name: name.context("it has no name")?.to_owned(),
    };
    let write = Write {
        method,
        uri: event.request_uri.clone(),
        body,
        of_chart: is_of_chart(object),
    };
    Ok((target, write))
}

fn is_of_chart(object: &ObjectReference) -> bool {
    object.api_group != crds::GROUP && object.resource != "events"
}

/// The chains with the writes of charts alone.
pub(super) fn of_charts(chains: &Chains) -> Chains {
    let mut chains = chains.clone();
    chains.retain_mut(|(_, writes)| {
        writes.retain(|write| write.of_chart);
        !writes.is_empty()
    });
    chains
}

/// How many requests there were of each verb. A status is counted by itself, because it is what an operator writes too often.
pub(super) fn by_verb<'a>(events: impl Iterator<Item = &'a AuditEvent>) -> BTreeMap<String, usize> {
    count(events.map(|event| event.verb.clone()))
}

/// How many requests there were of each verb and resource, as `patch clusterclasses`.
pub(super) fn by_verb_and_resource<'a>(events: impl Iterator<Item = &'a AuditEvent>) -> BTreeMap<String, usize> {
    count(events.map(|event| {
        let ObjectReference {
            resource, subresource, ..
        } = event.object.clone().unwrap_or_default();
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!("{} {resource}{slash}{subresource}", event.verb)
            .trim()
            .to_owned()
    }))
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
