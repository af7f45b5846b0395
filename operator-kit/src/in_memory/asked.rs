//! What a request asks for, taken apart.

use http::{Method, header};
use serde_json::{Value, json};

use super::api::{Happened, Key, Refusal, Served, Write};

/// Which objects somebody asks for, and how.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) kind: &'static Served,
    pub(super) namespace: String,
    pub(super) selector: String,
    /// The only name that is asked for, by a field selector. Other fields are not looked at.
    pub(super) named: Option<String>,
    pub(super) metadata_only: bool,
}

/// One request, taken apart.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) scope: Scope,
    pub(super) name: String,
    pub(super) subresource: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) content_type: String,
    pub(super) body: Value,
}

impl Scope {
    pub(super) fn has(&self, key: &Key, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let has_label = |part: &str| match (part.strip_prefix('!'), part.split_once('=')) {
            (Some(absent), _) => labels.get(absent).is_none(),
            (None, Some((name, value))) => labels[name] == value,
            (None, None) => labels.get(part).is_some(),
        };
        key.0 == self.kind.kind
            && (self.namespace.is_empty() || key.1 == self.namespace)
            && self.named.as_ref().is_none_or(|name| key.2 == *name)
            && self.selector.split(',').filter(|part| !part.is_empty()).all(has_label)
    }

    pub(super) fn shown(&self, object: &Value) -> Value {
        if self.metadata_only {
            json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] })
        } else {
            object.clone()
        }
    }

    pub(super) fn event(&self, happened: &Happened) -> Option<Value> {
        let has = |object: &&Value| self.has(&happened.key, object);
        let (before, after) = (
            happened.before.as_ref().filter(has),
            happened.after.as_ref().filter(has),
        );
        let (what, object) = match (before, after) {
            (None, Some(after)) => ("ADDED", after.clone()),
            (Some(_), Some(after)) => ("MODIFIED", after.clone()),
            (Some(before), None) => ("DELETED", before.clone()),
            (None, None) => return None,
        };
        let mut object = self.shown(&object);
        object["metadata"]["resourceVersion"] = json!(happened.version.to_string());
        Some(json!({ "type": what, "object": object }))
    }
}

impl Asked {
    pub(super) fn of(kinds: &'static [Served], head: &http::request::Parts, body: &[u8]) -> Result<Self, Refusal> {
        let text = |name| {
            head.headers
                .get(name)
                .and_then(|value: &http::HeaderValue| value.to_str().ok())
        };
        let mut parts = head.uri.path().split('/').skip(1);
        let group = if parts.next() == Some("apis") {
            parts.next().unwrap_or_default()
        } else {
            ""
        };
        let mut parts: Vec<&str> = parts.skip(1).collect();
        let mut namespace = String::new();
        if let ["namespaces", inside, _, ..] = parts.as_slice() {
            (*inside).clone_into(&mut namespace);
            parts.drain(..2);
        }
        let mut parts = parts.into_iter().map(str::to_owned);
        let plural = parts.next().unwrap_or_default();
        let kind = kinds.iter().find(|kind| kind.group == group && kind.plural == plural);
        let not_served = || Refusal::new(404, "", format!("{plural} are not served"));
        let query = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
        let query: Vec<(String, String)> = query.into_owned().collect();
        let selector = query.iter().find(|(name, _)| name == "labelSelector");
        let fields = query.iter().find(|(name, _)| name == "fieldSelector");
        let named = fields.and_then(|(_, fields)| fields.strip_prefix("metadata.name="));
        let named = named.map(str::to_owned);
        Ok(Self {
            method: head.method.clone(),
            scope: Scope {
                kind: kind.ok_or_else(not_served)?,
                namespace,
                selector: selector.map(|(_, selector)| selector.clone()).unwrap_or_default(),
                named,
                metadata_only: text(header::ACCEPT).is_some_and(|accept| accept.contains("PartialObjectMetadata")),
            },
            name: parts.next().unwrap_or_default(),
            subresource: parts.next().unwrap_or_default(),
            query,
            content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        })
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn write(&self) -> Result<Write<'_>, Refusal> {
        if self.content_type.contains("apply-patch") {
            Ok(Write::Apply {
                manager: self.parameter("fieldManager").unwrap_or_default(),
                intent: &self.body,
                force: self.parameter("force") == Some("true"),
            })
        } else if self.content_type.contains("merge-patch") {
            Ok(Write::Merge(&self.body))
        } else if self.content_type.contains("json-patch") && self.body[1]["path"] == "/metadata/managedFields" {
            Ok(Write::Owners {
                version: &self.body[0]["value"],
                entries: &self.body[1]["value"],
            })
        } else if self.method == Method::PATCH {
            Err(Refusal::new(415, "UnsupportedMediaType", "no such patch"))
        } else if self.subresource == "status" {
            Ok(Write::Status(&self.body))
        } else {
            Ok(Write::Replace(&self.body))
        }
    }
}
