//! What the API server in memory says of itself: its version, what it serves, and the schemas of that.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::answers::about_itself;
use super::server::{Answer, Inner, Server};

/// As [`Server::calls_about`] calls what is published; the names are addresses.
const OPENAPI: &str = "OpenAPI";

/// Each with its hash, by its address below the index.
pub(super) type Documents = BTreeMap<String, (Value, String)>;

impl Server {
    /// From now on it publishes the schema of a kind in a version (of a whole object, without what every object has), in a document of its own: one
    /// kind for each group and version. Before that it publishes nothing at all, as an old one.
    pub fn publish(&self, api_version: &str, kind: &str, schema: &Value) {
        self.publish_as(api_version, kind, schema, None);
    }

    /// The same, with a hash that may be that of another document: as a hostile API server.
    pub fn publish_as(&self, api_version: &str, kind: &str, schema: &Value, hash: Option<&str>) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let prefix = if group.is_empty() { "api" } else { "apis" };
        let mut schema = schema.clone();
        schema["x-kubernetes-group-version-kind"] = json!([{ "group": group, "version": version, "kind": kind }]);
        let document = json!({ "openapi": "3.0.0", "paths": {}, "components": { "schemas": { kind: schema } } });
        // As it is sent: each answer ends its line.
        let own = || hex::encode_upper(Sha512::digest(format!("{document}\n")));
        let hash = hash.map_or_else(own, str::to_owned);
        let published = &mut self.inner().published;
        published.insert(format!("{prefix}/{api_version}"), (document, hash));
    }

    /// The hash by which it names the document of a group and version that are not of the core.
    pub fn published_hash(&self, api_version: &str) -> String {
        self.inner().published[&format!("apis/{api_version}")].1.clone()
    }
}

impl Inner {
    /// What is answered at this address, if it is about no object.
    pub(super) fn says(&mut self, path: &str) -> Option<Answer> {
        let body = match path {
            "/api" | "/apis" | "/version" => about_itself(self.kinds, path, self.hidden),
            _ => published(&self.published, path)?,
        };
        if path.starts_with("/openapi") {
            *self.asked_for.entry((OPENAPI, path.to_owned())).or_default() += 1;
        }
        Some(Answer::Whole { code: 200, body })
    }
}

/// The index, or one of the documents.
fn published(documents: &Documents, path: &str) -> Option<Value> {
    let below = path.strip_prefix("/openapi/v3").filter(|_| !documents.is_empty())?;
    if !below.is_empty() {
        let (document, _) = documents.get(below.strip_prefix('/')?)?;
        return Some(document.clone());
    }
    let listed = |(path, (_, hash)): (&String, &(Value, String))| {
        let address = format!("/openapi/v3/{path}?hash={hash}");
        (path.clone(), json!({ "serverRelativeURL": address }))
    };
    let paths: serde_json::Map<String, Value> = documents.iter().map(listed).collect();
    Some(json!({ "paths": paths }))
}
