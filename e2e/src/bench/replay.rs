//! The raw writer: sends what the operator sent once more, with nothing to decide, as fast as the API server takes it.
//!
//! The same bodies go over the same kind of connection into another namespace; only names of namespaces, identities and resource versions
//! are those of the other place. Bodies are made before the clock runs, except for the two numbers that an answer before gives.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::recording::{Chains, Method, Target, Write};

/// Where the writes were made, and where they are made again.
pub(super) struct Move<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// The owners there, by name: somebody else has made them.
    pub(super) owners: &'a BTreeMap<String, Identity>,
    /// What is there already and will be written again.
    pub(super) there: &'a BTreeMap<Target, Identity>,
}

/// What an answer says of an object, as far as the next write of it needs to know.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Identity {
    pub(super) uid: String,
    pub(super) resource_version: String,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Identity,
}

struct Prepared {
    method: &'static str,
    content_type: &'static str,
    uri: String,
    body: Body,
    /// A later write of the chain needs the answer.
    heard: bool,
}

enum Body {
    Ready(Vec<u8>),
    /// Takes identity and resource version from the answer before.
    Following(Value),
}

/// Writes every chain, at most `connections` at once; returns how long it took.
pub(super) async fn replay(client: &Client, chains: &Chains, place: &Move<'_>, connections: usize) -> Result<Duration> {
    let bodies = Bodies::of(chains, place)?;
    let begin = Instant::now();
    bodies.send(client, connections).await?;
    Ok(begin.elapsed())
}

/// Everything that is to be sent to one API server, by chain.
pub(super) struct Bodies(Vec<(Identity, Vec<Prepared>)>);

impl Bodies {
    /// Makes them, before any clock runs.
    pub(super) fn of(chains: &Chains, place: &Move<'_>) -> Result<Self> {
        let known = |target| place.there.get(target).cloned().unwrap_or_default();
        let prepared = chains
            .iter()
            .map(|(target, writes)| Ok((known(target), prepare(writes, place)?)));
        Ok(Self(prepared.collect::<Result<_>>()?))
    }

    /// Sends them, at most `connections` at once.
    pub(super) async fn send(self, client: &Client, connections: usize) -> Result<()> {
        stream::iter(self.0)
            .map(Ok)
            .try_for_each_concurrent(connections, async |(known, chain)| follow(client, known, chain).await)
            .await
    }
}

fn prepare(writes: &[Write], place: &Move<'_>) -> Result<Vec<Prepared>> {
    let (from, to) = (
        format!("/namespaces/{}/", place.from),
        format!("/namespaces/{}/", place.to),
    );
    let last = writes.len().saturating_sub(1);
    let prepared = writes.iter().enumerate().map(|(index, write)| {
        let (method, content_type) = match write.method {
            Method::Create => ("POST", "application/json"),
            Method::Update => ("PUT", "application/json"),
            Method::Apply => ("PATCH", "application/apply-patch+yaml"),
            Method::Merge => ("PATCH", "application/merge-patch+json"),
            Method::Delete => ("DELETE", "application/json"),
        };
        Ok(Prepared {
            method,
            content_type,
            uri: write.uri.replace(&from, &to),
            body: body(write, place)?,
            heard: index < last,
        })
    });
    prepared.collect()
}

fn body(write: &Write, place: &Move<'_>) -> Result<Body> {
    // With its quotes, so that nothing else is hit.
    let text = write
        .body
        .replace(&json!(place.from).to_string(), &json!(place.to).to_string());
    if write.method == Method::Apply {
        return Ok(Body::Ready(text.into_bytes()));
    }
    let mut value: Value = serde_json::from_str(&text).context("a recorded body is no JSON")?;
    let owners = value
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        let name = owner["name"].as_str().unwrap_or_default();
        if let Some(there) = place.owners.get(name) {
            owner["uid"] = there.uid.as_str().into();
        }
    }
    Ok(if write.method == Method::Create {
        Body::Ready(value.to_string().into_bytes())
    } else {
        Body::Following(value)
    })
}

async fn follow(client: &Client, mut known: Identity, chain: Vec<Prepared>) -> Result<()> {
    for write in chain {
        let body = match write.body {
            Body::Ready(body) => body,
            Body::Following(mut value) => {
                for (field, is) in [("uid", &known.uid), ("resourceVersion", &known.resource_version)] {
                    if let Some(was) = value["metadata"].get_mut(field) {
                        *was = is.as_str().into();
                    }
                }
                value.to_string().into_bytes()
            }
        };
        let request = Request::builder()
            .method(write.method)
            .uri(&write.uri)
            .header(CONTENT_TYPE, write.content_type)
            .body(body)
            .with_context(|| format!("unable to repeat {}", write.uri))?;
        let answer = client.request_text(request).await;
        let answer = answer.with_context(|| format!("failed to repeat {} {}", write.method, write.uri))?;
        if write.heard {
            let answer: Answer = serde_json::from_str(&answer).context("an answer is no object")?;
            known = answer.metadata;
        }
    }
    Ok(())
}
