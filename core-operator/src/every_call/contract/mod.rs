//! What the operator asks of an API server, as one table of requests, and what a real one answers.
//!
//! The API server in memory and the real one (`e2e/tests/journeys/contract.rs`, which compiles this folder too) are held against the same answers,
//! so that the operator is shown nothing in memory that it would not meet. Compared is what the operator looks at: identities and versions by the
//! order in which they appear, times not at all, and of the owners of fields those that apply.

mod own;
mod parts;
mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::BoxStream;
use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use http::{Request, header};
use kube::Client;
use serde_json::{Value, json};

use self::requests::{At, LAST, Step, WATCHES, Watch, steps};

/// What the real API server answered, in the order of the table.
const ANSWERS: &str = include_str!("answers.jsonl");

/// No watch is silent for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was told so far, by which later requests and answers are understood.
struct Told<'a> {
    client: &'a Client,
    namespace: &'a str,
    /// By the place of the object.
    objects: BTreeMap<String, Known>,
    versions: Vec<String>,
    uids: Vec<String>,
    /// Where the last page ended.
    next_page: String,
    /// The version of the last list.
    listed: String,
}

/// An object as it was seen.
#[derive(Default)]
struct Known {
    uid: String,
    first: String,
    last: String,
}

/// A watch that runs.
struct Watching {
    watch: &'static Watch,
    lines: BoxStream<'static, std::io::Result<String>>,
    told: Vec<Value>,
}

/// Puts all requests to an API server; `namespace` is there and empty. Gives each with its answer.
pub(crate) async fn answers(client: &Client, namespace: &str) -> Result<Vec<Value>> {
    let mut told = Told {
        client,
        namespace,
        objects: BTreeMap::new(),
        versions: Vec::new(),
        uids: Vec::new(),
        next_page: String::new(),
        listed: String::new(),
    };
    let (mut answers, mut watches) = (Vec::new(), Vec::new());
    for step in steps() {
        for watch in WATCHES.iter().filter(|watch| watch.before == step.what) {
            watches.push(told.begin(watch).await.with_context(|| watch.what.to_owned())?);
        }
        let (code, answer) = told.ask(&step).await.with_context(|| step.what.to_owned())?;
        let asked = format!("{} {}", step.method, step.at.0);
        answers.push(json!({ "what": step.what, "asked": asked, "code": code, "answer": answer }));
    }
    for watching in watches {
        let what = watching.watch.what;
        let events = told.end(watching).await.with_context(|| what.to_owned())?;
        answers.push(json!({ "what": what, "told": events }));
    }
    Ok(answers)
}

/// Those of a real API server, one in each line.
pub(crate) fn expected() -> Result<Vec<Value>> {
    let answers = ANSWERS.lines().map(serde_json::from_str);
    answers
        .collect::<Result<Vec<Value>, _>>()
        .context("unable to read the answers")
}

/// What was answered otherwise than expected.
pub(crate) fn differences(answers: &[Value], expected: &[Value]) -> Vec<String> {
    let differing = answers
        .iter()
        .zip(expected)
        .filter(|(answer, expected)| answer != expected);
    let mut differences: Vec<String> = differing
        .map(|(answer, expected)| format!("{answer:#}\ninstead of\n{expected:#}"))
        .collect();
    if answers.len() != expected.len() {
        differences.push(format!("{} answers instead of {}", answers.len(), expected.len()));
    }
    differences
}

impl Told<'_> {
    async fn ask(&mut self, step: &Step) -> Result<(u16, Value)> {
        let request = Request::builder()
            .method(step.method.clone())
            .uri(self.address(step.at)?)
            .header(header::ACCEPT, step.accept)
            .header(header::CONTENT_TYPE, step.content_type);
        let body = match &step.body {
            Value::Null => Vec::new(),
            body => self.filled(body)?.to_string().into_bytes(),
        };
        let answer = self.client.send(request.body(body.into())?).await?;
        let (head, body) = answer.into_parts();
        let body = body.collect_bytes().await?;
        // What is served nowhere is told in plain text.
        let answer = serde_json::from_slice(&body).unwrap_or_default();
        Ok((head.status.as_u16(), self.normal(answer, step.at.plural())))
    }

    async fn begin(&mut self, watch: &'static Watch) -> Result<Watching> {
        let request = Request::get(self.address(watch.at)?).header(header::ACCEPT, watch.accept);
        let lines = self.client.request_stream(request.body(Vec::new())?).await?.lines();
        Ok(Watching {
            watch,
            lines: lines.boxed(),
            told: Vec::new(),
        })
    }

    async fn end(&mut self, mut watching: Watching) -> Result<Vec<Value>> {
        self.hear(&mut watching, |event| {
            event["type"] == "ERROR" || event["object"]["metadata"]["name"] == LAST
        })
        .await?;
        Ok(watching.told)
    }

    async fn hear(&mut self, watching: &mut Watching, is_last: impl Fn(&Value) -> bool) -> Result<()> {
        loop {
            let line = tokio::time::timeout(PATIENCE, watching.lines.try_next());
            let line = line
                .await
                .with_context(|| format!("silent after {:?}", watching.told))??;
            let event: Value =
                serde_json::from_str(&line.with_context(|| format!("ended after {:?}", watching.told))?)?;
            let is_end = is_last(&event);
            if event["type"] == "BOOKMARK" {
                continue;
            }
            let object = self.normal(event["object"].clone(), watching.watch.at.plural());
            watching.told.push(json!({ "type": event["type"], "object": object }));
            if is_end {
                return Ok(());
            }
        }
    }

    fn address(&self, at: At) -> Result<String> {
        self.filled_text(&at.address(self.namespace))
    }

    fn filled(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.filled_text(text)?),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect::<Result<_>>()?,
            Value::Object(map) => {
                let filled = map.iter().map(|(name, value)| Ok((name.clone(), self.filled(value)?)));
                filled.collect::<Result<_>>()?
            }
            _ => value.clone(),
        })
    }

    /// With what was told in place of `{uid of PLACE}` and its like.
    fn filled_text(&self, text: &str) -> Result<String> {
        let mut text = text
            .replace("{next page}", &self.next_page)
            .replace("{listed}", &self.listed);
        for (place, known) in &self.objects {
            text = text
                .replace(&format!("{{uid of {place}}}"), &known.uid)
                .replace(&format!("{{first version of {place}}}"), &known.first)
                .replace(&format!("{{version of {place}}}"), &known.last);
        }
        ensure!(!text.contains('{'), "{text:?} was not told");
        Ok(text)
    }

    /// What the operator looks at.
    fn normal(&mut self, answer: Value, place: &str) -> Value {
        if answer["kind"] == "Status" {
            return refusal(&answer);
        }
        if answer.is_null() {
            return answer;
        }
        if answer["kind"] == "APIGroupDiscoveryList" {
            return requests::served(&answer);
        }
        let Some(items) = answer["items"].as_array() else {
            return self.object(answer, place);
        };
        let next = answer["metadata"]["continue"].as_str().unwrap_or_default();
        next.clone_into(&mut self.next_page);
        let version = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        version.clone_into(&mut self.listed);
        let continues = !next.is_empty();
        let items: Vec<Value> = items.iter().map(|item| self.object(item.clone(), place)).collect();
        json!({ "kind": answer["kind"], "apiVersion": answer["apiVersion"], "continues": continues, "items": items })
    }

    fn object(&mut self, mut object: Value, place: &str) -> Value {
        let metadata = &mut object["metadata"];
        let place = format!("{}/{}", place, metadata["name"].as_str().unwrap_or_default());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (uid, version) = (text(&metadata["uid"]), text(&metadata["resourceVersion"]));
        if let (Some(uid), Some(version)) = (&uid, &version) {
            let known = self.objects.entry(place).or_default();
            if known.uid != *uid {
                *known = Known {
                    uid: uid.clone(),
                    first: version.clone(),
                    last: String::new(),
                };
            }
            version.clone_into(&mut known.last);
        }
        metadata["uid"] = numbered(&mut self.uids, uid).into();
        metadata["resourceVersion"] = numbered(&mut self.versions, version).into();
        for time in ["creationTimestamp", "deletionTimestamp"] {
            metadata[time] = metadata[time].is_string().into();
        }
        if metadata["namespace"] == self.namespace {
            metadata["namespace"] = "NAMESPACE".into();
        }
        metadata["managedFields"] = appliers(&metadata["managedFields"]);
        self.without_uids(object)
    }

    /// Owners are named by their identity, too.
    fn without_uids(&self, value: Value) -> Value {
        let renamed = |text: String| {
            let uids = (1..).zip(&self.uids);
            uids.fold(text, |text, (number, uid): (usize, _)| {
                text.replace(uid, &format!("uid {number}"))
            })
        };
        match value {
            Value::String(text) => renamed(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.without_uids(item)).collect(),
            Value::Object(map) => {
                let map = map.into_iter();
                map.map(|(name, value)| (renamed(name), self.without_uids(value)))
                    .collect()
            }
            value => value,
        }
    }
}

/// The number of a text among those that were told, counted from 1.
fn numbered(known: &mut Vec<String>, text: Option<String>) -> Option<usize> {
    let text = text?;
    let position = known.iter().position(|known| *known == text);
    Some(
        1 + position.unwrap_or_else(|| {
            known.push(text);
            known.len() - 1
        }),
    )
}

/// What everybody who applies owns.
fn appliers(entries: &Value) -> Value {
    let entries = entries.as_array().into_iter().flatten();
    let entries = entries.filter(|entry| entry["operation"] == "Apply");
    let named = entries.map(|entry| {
        (
            entry["manager"].as_str().unwrap_or_default().to_owned(),
            entry["fieldsV1"].clone(),
        )
    });
    named.collect()
}

/// What is told of a request that was not done, or of a deletion: the words are a real API server's own.
fn refusal(status: &Value) -> Value {
    let details = &status["details"];
    let causes = details["causes"].as_array().into_iter().flatten().map(|cause| {
        let words = cause["message"]
            .as_str()
            .filter(|_| cause["reason"] == "FieldManagerConflict");
        let owner = words.and_then(|message| message.split('"').nth(1));
        json!({ "reason": cause["reason"], "field": cause["field"], "owner": owner })
    });
    json!({ "status": status["status"], "reason": status["reason"], "about": details["kind"].as_str().unwrap_or_default(), "causes": causes.collect::<Vec<_>>() })
}
