//! What is in a cloud, seen by somebody who has a login of his own, and what he may do there. It knows nothing of operators.

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use openstack_lab::{
    Site,
    client::{Client, Reply, whole},
};
use serde_json::Value;
use url::Url;

/// The cloud of a site that objects use.
const CLOUD: &str = "openstack";

/// A project of a cloud, with a token for it.
#[derive(Debug)]
pub struct Cloud {
    client: Client,
    glance: String,
    token: String,
}

impl Cloud {
    /// Logs in as the operator does.
    pub async fn log_in(site: &Site) -> Result<Self> {
        let client = Client::new(site.ca.as_deref())?;
        let mut url = site.keystone.clone();
        url.set_path(&format!("{}/auth/tokens", url.path().trim_end_matches('/')));
        let auth = site.auth(CLOUD)?.to_string();
        let json = [("content-type", "application/json")];
        let reply = client.send(Method::POST, &url, &json, whole(auth)).await?;
        let token = reply.header("x-subject-token").context("there is no token for us")?;
        Ok(Self {
            token: token.to_owned(),
            glance: site.glance.clone(),
            client,
        })
    }

    /// What shows who asks.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The URL of a path of the image service, such as `/v2/images`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.glance)
    }

    /// All images that are there, hidden ones too, sorted by name. At most 1000 of each.
    pub async fn images(&self) -> Result<Vec<Value>> {
        let mut images = Vec::new();
        for hidden in ["false", "true"] {
            let path = format!("/v2/images?limit=1000&os_hidden={hidden}");
            let reply = self.ask(Method::GET, &path, None).await?;
            ensure!(reply.status.is_success(), "the list is refused: {}", reply.text());
            images.extend(reply.json()?["images"].as_array().cloned().unwrap_or_default());
        }
        images.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        Ok(images)
    }

    /// Whether there is a record of this id.
    pub async fn has(&self, id: &str) -> Result<bool> {
        let reply = self.ask(Method::GET, &format!("/v2/images/{id}"), None).await?;
        match reply.status {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            other => anyhow::bail!("the image {id} is answered with {other}: {}", reply.text()),
        }
    }

    /// Makes an empty record; its id.
    pub async fn create(&self, options: &Value) -> Result<String> {
        let reply = self.ask(Method::POST, "/v2/images", Some(options.to_string())).await?;
        ensure!(reply.status.is_success(), "a record is refused: {}", reply.text());
        let id = reply.json()?["id"].as_str().map(str::to_owned);
        id.context("a record without an id")
    }

    /// Removes an image.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let reply = self.ask(Method::DELETE, &format!("/v2/images/{id}"), None).await?;
        ensure!(reply.status.is_success(), "the image {id} stays: {}", reply.text());
        Ok(())
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Result<Reply> {
        let url = Url::parse(&self.url(path)).context("the URL of the image service")?;
        let headers = [
            ("x-auth-token", self.token.as_str()),
            ("content-type", "application/json"),
        ];
        let body = whole(body.unwrap_or_default());
        self.client.send(method, &url, &headers, body).await
    }
}
