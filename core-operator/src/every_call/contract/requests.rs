//! What a request and a watch of the table are, and the table as a whole.

use http::Method;
use serde_json::{Value, json};

use super::own::{created, deleted, merged, replaced};
use super::parts::{applied, contested, identified, listed, made, owned};

/// The object after which nothing is told to watches.
pub(super) const LAST: &str = "zz-last";

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// One request.
pub(super) struct Step {
    /// What its answer is to show.
    pub(super) what: &'static str,
    pub(super) method: Method,
    pub(super) at: At,
    pub(super) content_type: &'static str,
    pub(super) accept: &'static str,
    /// Null for none.
    pub(super) body: Value,
}

/// A watch that begins before a step.
pub(super) struct Watch {
    pub(super) what: &'static str,
    pub(super) before: &'static str,
    pub(super) at: At,
    pub(super) accept: &'static str,
}

/// The plural, what is behind it, and the query; in the namespace of the play unless another one stands before a colon.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) &'static str);

impl At {
    /// The path and query of the request.
    pub(super) fn address(self, namespace: &str) -> String {
        if self.0.starts_with('/') {
            return self.0.to_owned();
        }
        let (namespace, inside) = self.0.split_once(':').unwrap_or((namespace, self.0));
        let group = match self.plural() {
            "clusterstackreleases" => "clusterstack.x-k8s.io/v1alpha1",
            _ => "infrastructure.cluster.x-k8s.io/v1beta1",
        };
        format!("/apis/{group}/namespaces/{namespace}/{inside}")
    }

    pub(super) fn plural(self) -> &'static str {
        let inside = self.0.split_once(':').map_or(self.0, |(_, inside)| inside);
        inside.split(['/', '?']).next().unwrap_or_default()
    }
}

pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(super) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// All that are begun.
pub(super) static WATCHES: [Watch; 4] = [
    Watch {
        what: "a watch of marked objects tells of what gets the mark and of what loses it",
        before: "an object is created by applying it",
        at: At("dockerclustertemplates?watch=true&labelSelector=mark&allowWatchBookmarks=true"),
        accept: JSON,
    },
    Watch {
        what: "a watch of metadata tells of every change, of a deletion that is asked for and of the end",
        before: "an object that is not there is not found",
        at: At("clusterstackreleases?watch=true&allowWatchBookmarks=true"),
        accept: METADATA,
    },
    Watch {
        what: "a watch from the version of a list tells of what came after it",
        before: "what is not asked for any more goes",
        at: At("dockerclustertemplates?watch=true&labelSelector=mark&resourceVersion={listed}"),
        accept: METADATA,
    },
    Watch {
        what: "a watch from a version that is forgotten is told to list anew",
        before: "the last object of one kind",
        at: At("dockerclustertemplates?watch=true&resourceVersion=1"),
        accept: JSON,
    },
];

fn step(what: &'static str, method: Method, at: &'static str, body: Value) -> Step {
    Step {
        what,
        method,
        at: At(at),
        content_type: JSON,
        accept: JSON,
        body,
    }
}

pub(super) fn read(what: &'static str, at: &'static str) -> Step {
    step(what, Method::GET, at, Value::Null)
}

pub(super) fn create(what: &'static str, at: &'static str, body: Value) -> Step {
    step(what, Method::POST, at, body)
}

pub(super) fn replace(what: &'static str, at: &'static str, body: Value) -> Step {
    step(what, Method::PUT, at, body)
}

pub(super) fn delete(what: &'static str, at: &'static str, preconditions: Value) -> Step {
    let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
    options["preconditions"] = preconditions;
    step(what, Method::DELETE, at, options)
}

pub(super) fn merge(what: &'static str, at: &'static str, body: Value) -> Step {
    Step {
        content_type: MERGE,
        ..step(what, Method::PATCH, at, body)
    }
}

pub(super) fn apply(what: &'static str, at: &'static str, body: Value) -> Step {
    Step {
        content_type: APPLY,
        ..step(what, Method::PATCH, at, body)
    }
}

impl Step {
    pub(super) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }
}

/// All requests, in their order.
pub(super) fn steps() -> Vec<Step> {
    let parts = [
        discovered(),
        created(),
        replaced(),
        merged(),
        applied(),
        contested(),
        owned(),
        identified(),
        made(),
        listed(),
        deleted(),
    ];
    parts.into_iter().flatten().collect()
}

fn discovered() -> Vec<Step> {
    vec![
        read("the kinds of the core group", "/api").accepting(DISCOVERY),
        read("the kinds of other groups", "/apis").accepting(DISCOVERY),
        read("a kind that is not served", "strangethings/one"),
    ]
}

/// Of what is served, the kinds of the table and their namespaces as the operator sees them.
pub(super) fn served(discovery: &Value) -> Value {
    const KINDS: [&str; 3] = ["namespaces", "clusterstackreleases", "dockerclustertemplates"];
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let groups = all(&discovery["items"]).into_iter();
    let versions = groups.flat_map(|group| {
        let name = group["metadata"]["name"].clone();
        all(&group["versions"])
            .into_iter()
            .map(move |version| (name.clone(), version))
    });
    let resources = versions.flat_map(|(group, version)| {
        let resources = all(&version["resources"]).into_iter();
        let known = resources.filter(|resource| {
            resource["resource"]
                .as_str()
                .is_some_and(|plural| KINDS.contains(&plural))
        });
        let seen = known.map(|resource| {
            json!({
                "group": group.as_str().unwrap_or_default(), "version": version["version"], "kind": resource["responseKind"]["kind"],
                "resource": resource["resource"], "scope": resource["scope"],
            })
        });
        seen.collect::<Vec<_>>()
    });
    resources.collect()
}
