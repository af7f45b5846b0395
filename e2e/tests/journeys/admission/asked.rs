//! Requests as a user makes them, with everything that the API server answers: code, words, warnings.

use anyhow::{Context, Result};
use http::{Method, Request, header::WARNING};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// What the API server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: u16,
    /// Of a refusal.
    pub(super) message: String,
    pub(super) warnings: Vec<String>,
}

impl Answer {
    pub(super) fn accepted(&self) -> bool {
        self.code < 300
    }
}

/// One collection in one namespace.
pub(super) struct Objects {
    pub(super) client: Client,
    /// `apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL`.
    pub(super) path: String,
}

impl Objects {
    pub(super) fn new(client: &Client, api_version: &str, namespace: &str, plural: &str) -> Self {
        Self {
            client: client.clone(),
            path: format!("/apis/{api_version}/namespaces/{namespace}/{plural}"),
        }
    }

    pub(super) async fn create(&self, object: &Value) -> Result<Answer> {
        self.ask(Method::POST, "", object).await
    }

    /// What creation would answer.
    pub(super) async fn try_create(&self, object: &Value) -> Result<Answer> {
        self.ask(Method::POST, "?dryRun=All", object).await
    }

    /// Merges into an object or, after a slash, one of its subresources.
    pub(super) async fn merge(&self, name: &str, patch: &Value) -> Result<Answer> {
        self.ask(Method::PATCH, &format!("/{name}"), patch).await
    }

    /// What merging would answer.
    pub(super) async fn try_merge(&self, name: &str, patch: &Value) -> Result<Answer> {
        self.ask(Method::PATCH, &format!("/{name}?dryRun=All"), patch).await
    }

    pub(super) async fn delete(&self, name: &str) -> Result<Answer> {
        self.ask(Method::DELETE, &format!("/{name}"), &json!({})).await
    }

    /// What deletion would answer.
    pub(super) async fn try_delete(&self, name: &str) -> Result<Answer> {
        // Where there is a body the API server takes its options from there alone.
        self.ask(Method::DELETE, &format!("/{name}"), &json!({ "dryRun": ["All"] }))
            .await
    }

    async fn ask(&self, method: Method, rest: &str, body: &Value) -> Result<Answer> {
        let content = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{rest}", self.path))
            .header("content-type", content)
            .body(Body::from(body.to_string().into_bytes()))?;
        let answer = self.client.send(request).await?;
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all(WARNING).iter();
        let warnings = warnings
            .map(|warning| text_of(warning.to_str()?))
            .collect::<Result<_>>()?;
        let body = answer.into_body().collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = if code < 300 {
            ""
        } else {
            body["message"].as_str().unwrap_or_default()
        };
        Ok(Answer {
            code,
            message: message.to_owned(),
            warnings,
        })
    }
}

/// `299 - "text"`, where quotes and backslashes are quoted.
fn text_of(warning: &str) -> Result<String> {
    let quoted = warning.split_once(" - ").map(|(_, quoted)| quoted);
    let text = quoted.and_then(|quoted| quoted.strip_prefix('"')?.strip_suffix('"'));
    let text = text.with_context(|| format!("{warning:?} is no warning"))?;
    Ok(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}
