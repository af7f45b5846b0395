//! What an API server publishes of the schemas of its kinds (`OpenAPI` v3): an index, and one document for each group and version.
//!
//! The index names each document with a hash of it, which an API server makes of the document's bytes (the SHA-512 of its JSON, `k8s.io/kube-openapi/pkg/handler3`).
//! So who has read the same elsewhere need not read it again, but only where it was what its hash says ([`Document::is_as_named`]): a hostile API server could
//! name the documents of others, and they would have what it says of them.
//!
//! Reads when it is asked to, and keeps nothing. Both answers are bounded, in bytes and in parts.

use std::collections::BTreeMap;
use std::error::Error;
use std::pin::pin;

use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::{Body, Client};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::client::{OBJECT_LIMIT, OutOfBounds};
use crate::parts::{MOST_PARTS, Parts};

/// Where the index is, and below it the documents.
const INDEX: &str = "/openapi/v3";

/// Most bytes of an index: a real one has two hundred for each group and version.
const INDEX_LIMIT: usize = 1 << 20;

/// Most documents of an index.
const MOST_DOCUMENTS: usize = 2_000;

/// Most bytes of a document. That of the Deployments has half a megabyte, that of a group with the largest CRDs three.
const DOCUMENT_LIMIT: usize = OBJECT_LIMIT;

/// Longer names and hashes are none.
const LONGEST_NAME: usize = 512;

/// What is published could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The API server does not give it.
    #[error("it answers with the code {code}")]
    Refuse {
        /// The HTTP status.
        code: u16,
    },
    /// It is more than there is memory for.
    #[error("there is more of it than is read")]
    Bound,
    /// It is not what it should be.
    #[error("it is not in the form of OpenAPI v3")]
    Parse,
    /// The request was not answered.
    #[error("it was not answered")]
    Ask(#[source] Box<kube::Error>),
}

impl PublishedError {
    /// Whether the next answer may be another though nothing is changed. What is no part of an API server, as in old ones, does not come by itself.
    pub fn passes(&self) -> bool {
        match self {
            Self::Refuse { code } => {
                let code = StatusCode::from_u16(*code).unwrap_or(StatusCode::NOT_FOUND);
                code.is_server_error() || [StatusCode::TOO_MANY_REQUESTS, StatusCode::UNAUTHORIZED].contains(&code)
            }
            Self::Bound | Self::Parse => false,
            Self::Ask(_) => true,
        }
    }
}

/// The documents that an API server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Their hashes by their paths; empty where there is none.
    hashes: BTreeMap<String, String>,
}

/// The schemas of one group and version.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// As in the document, of which nothing else is kept: `components.schemas`.
    pub content: Value,
    /// Whether its hash is that of its bytes.
    pub is_as_named: bool,
}

#[derive(Deserialize)]
struct Listing {
    paths: BTreeMap<String, Listed>,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(default, rename = "serverRelativeURL")]
    address: String,
}

/// All else, such as what can be asked for at which address, is many times as long.
#[derive(Deserialize)]
struct Whole {
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    #[serde(default)]
    schemas: Map<String, Value>,
}

impl Index {
    /// Reads it: one request.
    pub async fn read(client: &Client) -> Result<Self, PublishedError> {
        let bytes = get(client, INDEX, INDEX_LIMIT).await?;
        let listing: Listing = serde_json::from_slice(&bytes).map_err(|_| PublishedError::Parse)?;
        if listing.paths.len() > MOST_DOCUMENTS {
            return Err(PublishedError::Bound);
        }
        let hash = |listed: &Listed| -> String {
            let after = listed.address.split_once("hash=").map_or("", |(_, hash)| hash);
            let letters = after.chars().take_while(char::is_ascii_alphanumeric);
            letters.take(LONGEST_NAME).collect()
        };
        let paths = listing.paths.into_iter().filter(|(path, _)| path.len() <= LONGEST_NAME);
        Ok(Self {
            hashes: paths.map(|(path, listed)| (path, hash(&listed))).collect(),
        })
    }

    /// The hash of the document of a group and version, as a manifest names them; nothing if there is no such document.
    pub fn hash(&self, api_version: &str) -> Option<&str> {
        self.hashes.get(&path(api_version)?).map(String::as_str)
    }
}

/// Reads the document of a group and version, which an index names with this hash: one request.
pub async fn document(client: &Client, api_version: &str, hash: &str) -> Result<Document, PublishedError> {
    let path = path(api_version).ok_or(PublishedError::Parse)?;
    let bytes = get(client, &format!("{INDEX}/{path}"), DOCUMENT_LIMIT).await?;
    let Whole { components } = serde_json::from_slice(&bytes).map_err(|_| PublishedError::Parse)?;
    Ok(Document {
        content: json!({ "components": { "schemas": components.schemas } }),
        is_as_named: hex::encode(Sha512::digest(&bytes)).eq_ignore_ascii_case(hash),
    })
}

/// Where the document is, below the index; nothing if there can be none.
fn path(api_version: &str) -> Option<String> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        !name.is_empty() && !name.starts_with('.') && letters.all(|l| l.is_ascii_alphanumeric() || l == '.' || l == '-')
    };
    match api_version.split_once('/') {
        None => is_name(api_version).then(|| format!("api/{api_version}")),
        Some((group, version)) => (is_name(group) && is_name(version)).then(|| format!("apis/{group}/{version}")),
    }
}

async fn get(client: &Client, path: &str, limit: usize) -> Result<Vec<u8>, PublishedError> {
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json")
        .body(Body::empty());
    let request = request.map_err(|error| unread(kube::Error::HttpError(error)))?;
    let answer = client.send(request).await.map_err(unread)?;
    let code = answer.status();
    if !code.is_success() {
        return Err(PublishedError::Refuse { code: code.as_u16() });
    }
    within(answer, limit).await
}

/// All of an answer, as long as it is no more than may be.
async fn within(answer: Response<Body>, limit: usize) -> Result<Vec<u8>, PublishedError> {
    let (mut bytes, mut parts) = (Vec::new(), Parts::default());
    let mut body = pin!(answer.into_body());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(unread)?;
        let Some(piece) = frame.data_ref() else { continue };
        parts.take(piece);
        if bytes.len() + piece.len() > limit || parts.count() > MOST_PARTS {
            return Err(PublishedError::Bound);
        }
        bytes.extend_from_slice(piece);
    }
    Ok(bytes)
}

fn unread(error: kube::Error) -> PublishedError {
    let is_too_much = |error: &(dyn Error + 'static)| OutOfBounds::of(error).is_some_and(OutOfBounds::is_of_size);
    if is_too_much(&error) {
        PublishedError::Bound
    } else {
        PublishedError::Ask(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub;

    fn published() -> Value {
        json!({ "openapi": "3.0.0", "paths": { "/apis/example.org/v1/rings": { "get": {} } }, "components": {
            "schemas": { "Ring": { "type": "object" } }, "securitySchemes": {},
        } })
    }

    /// An API server with one document.
    fn client(index: Value) -> Client {
        stub::client(move |asked| match asked.path.as_str() {
            "/openapi/v3" => (200_u16, index.clone()),
            "/openapi/v3/apis/example.org/v1" => (200, published()),
            _ => (404, json!({})),
        })
    }

    fn index_of(hash: &str) -> Value {
        let address = format!("/openapi/v3/apis/example.org/v1?hash={hash}");
        json!({ "paths": { "apis/example.org/v1": { "serverRelativeURL": address }, "api/v1": { "serverRelativeURL": "/openapi/v3/api/v1" }, ".well-known": {} } })
    }

    #[tokio::test]
    async fn a_document_is_found_by_its_group_and_version_and_is_what_its_hash_says_or_not() {
        let hash = hex::encode_upper(Sha512::digest(published().to_string()));
        for (named, expected) in [(hash.as_str(), true), ("AB12", false)] {
            let client = client(index_of(named));
            let index = Index::read(&client).await.expect("an index");
            assert_eq!(index.hash("example.org/v1"), Some(named));
            assert_eq!(
                (index.hash("v1"), index.hash("example.org/v2"), index.hash("apps/v1")),
                (Some(""), None, None)
            );
            let document = document(&client, "example.org/v1", named).await.expect("a document");
            let content = json!({ "components": { "schemas": { "Ring": { "type": "object" } } } });
            assert_eq!((document.content, document.is_as_named), (content, expected));
        }
    }

    #[tokio::test]
    async fn what_is_not_published_is_refused_for_good_and_what_is_not_answered_just_now_is_not() {
        for (code, passes) in [(404_u16, false), (403, false), (406, false), (503, true), (429, true)] {
            let client = stub::client(move |_| (code, json!({})));
            let error = Index::read(&client).await.expect_err("it is refused");
            assert!(
                matches!(error, PublishedError::Refuse { code: told } if told == code),
                "{error:?}"
            );
            assert_eq!(error.passes(), passes, "{code}");
        }
        let nonsense = stub::client(|_| (200_u16, json!(["no index"])));
        let error = Index::read(&nonsense).await.expect_err("it is no index");
        assert!(matches!(error, PublishedError::Parse) && !error.passes(), "{error:?}");
    }

    #[tokio::test]
    async fn more_than_there_is_memory_for_is_not_read() {
        let long = "x".repeat(INDEX_LIMIT);
        let paths: Map<String, Value> = (0..=MOST_DOCUMENTS)
            .map(|number| (format!("apis/a{number}/v1"), json!({})))
            .collect();
        let many: Vec<Value> = (0..=MOST_PARTS / 4).map(|_| json!([])).collect();
        for index in [json!({ "paths": {}, "x": long }), json!({ "paths": paths })] {
            let client = stub::client(move |_| (200_u16, index.clone()));
            let error = Index::read(&client).await.expect_err("it is too large");
            assert!(matches!(error, PublishedError::Bound) && !error.passes(), "{error:?}");
        }
        let bomb = json!({ "components": { "schemas": { "Ring": many } } });
        let client = stub::client(move |_| (200_u16, bomb.clone()));
        let error = document(&client, "example.org/v1", "")
            .await
            .expect_err("too many parts");
        assert!(matches!(error, PublishedError::Bound), "{error:?}");
    }

    #[test]
    fn no_name_leads_elsewhere() {
        assert_eq!(path("v1").as_deref(), Some("api/v1"));
        assert_eq!(path("apps/v1").as_deref(), Some("apis/apps/v1"));
        for odd in [
            "",
            "/",
            "apps/",
            "/v1",
            "..",
            "a/../b",
            "apps/v1/x",
            "a/v1?x=y",
            "a b/v1",
            "a/v1#",
        ] {
            assert_eq!(path(odd), None, "{odd}");
        }
    }
}
