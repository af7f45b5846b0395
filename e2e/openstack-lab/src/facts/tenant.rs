//! Somebody who is logged in, and the calls he makes. It decides nothing about what the answers should be.

use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{self, Instant};
use url::Url;
use uuid::Uuid;

use super::Visitor;
use crate::client::{Body, Reply, whole};

/// The name of all images that facts make.
pub(super) const NAME: &str = "facts";
/// The name of those that another client makes.
pub(super) const NAME_OF_SDK: &str = "facts-sdk";

/// How long a cloud may work on an image of three MiB.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at an image.
const LOOK: Duration = Duration::from_millis(20);

/// The headers of a change to an image.
const PATCH: &str = "application/openstack-images-v2.1-json-patch";

/// Somebody who is logged in.
#[derive(Debug)]
pub struct Tenant<'visitor> {
    visitor: &'visitor Visitor<'visitor>,
    /// His token.
    pub token: String,
    /// The id of his project.
    pub project: String,
}

impl<'visitor> Tenant<'visitor> {
    pub(super) async fn new(visitor: &'visitor Visitor<'visitor>, cloud: &str) -> Result<Self> {
        let reply = log_in(visitor, cloud).await?;
        ensure!(
            reply.status == 201,
            "{cloud} could not log in: {} {}",
            reply.status,
            reply.text()
        );
        let token = reply.header("x-subject-token").context("a login without a token")?;
        let scope = reply.json()?;
        let project = scope["token"]["project"]["id"]
            .as_str()
            .context("a token without a project")?;
        Ok(Self {
            visitor,
            token: token.to_owned(),
            project: project.to_owned(),
        })
    }

    /// A call of the image service; the path begins behind `/v2`.
    pub async fn call(&self, method: Method, path: &str, kind: Option<&str>, body: Body) -> Result<Reply> {
        let url = Url::parse(&format!("{}/v2{path}", self.visitor.site.glance))?;
        let mut headers = vec![("X-Auth-Token", self.token.as_str())];
        headers.extend(kind.map(|kind| ("Content-Type", kind)));
        self.visitor.client.send(method, &url, &headers, body).await
    }

    pub(super) async fn read(&self, path: &str) -> Result<Reply> {
        self.call(Method::GET, path, None, whole("")).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        let kind = Some("application/json");
        self.call(Method::POST, path, kind, whole(body.to_string())).await
    }

    /// Asks for an image of qcow2 with these fields besides, or instead.
    pub async fn create(&self, fields: Value) -> Result<Reply> {
        let mut image = json!({ "name": NAME, "disk_format": "qcow2", "container_format": "bare" });
        if let (Some(image), Value::Object(fields)) = (image.as_object_mut(), fields) {
            image.extend(fields);
        }
        self.post("/images", &image).await
    }

    /// The id of a new image.
    pub async fn new_image(&self, fields: Value) -> Result<String> {
        let reply = self.create(fields).await?;
        ensure!(
            reply.status == 201,
            "no image was made: {} {}",
            reply.status,
            reply.text()
        );
        let image = reply.json()?;
        Ok(image["id"].as_str().context("an image without an id")?.to_owned())
    }

    /// The image, or `{"status": 404}` and the like.
    pub async fn image(&self, id: &str) -> Result<Value> {
        let reply = self.read(&format!("/images/{id}")).await?;
        if reply.status.is_success() {
            reply.json()
        } else {
            Ok(json!({ "status": reply.status.as_u16() }))
        }
    }

    /// Sends these bytes as `file` or for `stage`.
    pub async fn put(&self, id: &str, what: &str, body: Body) -> Result<Reply> {
        let path = format!("/images/{id}/{what}");
        self.call(Method::PUT, &path, Some("application/octet-stream"), body)
            .await
    }

    pub(super) async fn upload(&self, id: &str, bytes: &[u8]) -> Result<Reply> {
        self.put(id, "file", whole(Bytes::copy_from_slice(bytes))).await
    }

    pub(super) async fn patch(&self, id: &str, changes: &Value) -> Result<Reply> {
        let path = format!("/images/{id}");
        self.call(Method::PATCH, &path, Some(PATCH), whole(changes.to_string()))
            .await
    }

    pub(super) async fn delete(&self, id: &str) -> Result<Reply> {
        self.call(Method::DELETE, &format!("/images/{id}"), None, whole(""))
            .await
    }

    pub(super) async fn import(&self, id: &str, method: Value) -> Result<Reply> {
        self.post(&format!("/images/{id}/import"), &json!({ "method": method }))
            .await
    }

    pub(super) async fn web_download(&self, id: &str, uri: &str) -> Result<Reply> {
        self.import(id, json!({ "name": "web-download", "uri": uri })).await
    }

    /// The ids of all images of facts in this project.
    pub(super) async fn mine(&self) -> Result<Vec<String>> {
        let query = format!("name=in:{NAME},{NAME_OF_SDK}&owner={}&limit=1000", self.project);
        let found = self.read(&format!("/images?{query}")).await?.json()?;
        let images = found["images"].as_array().context("a list without images")?;
        Ok(images
            .iter()
            .filter_map(|image| image["id"].as_str())
            .map(str::to_owned)
            .collect())
    }

    /// The image once it is as it is waited for.
    pub(super) async fn seen(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let image = self.image(id).await?;
            if is_so(&image) {
                return Ok(image);
            }
            if Instant::now() > end {
                bail!("the image did not become what was waited for; it is {image}");
            }
            time::sleep(LOOK).await;
        }
    }

    /// The image once nothing works on it any more. `queued` alone does not say so: an import holds a lock first.
    pub(super) async fn settled(&self, id: &str) -> Result<Value> {
        let at_work = ["importing", "saving", "uploading"];
        let is_settled = |image: &Value| {
            let status = image["status"].as_str().unwrap_or_default();
            !at_work.contains(&status) && image.get("os_glance_import_task").is_none()
        };
        self.seen(id, is_settled).await
    }
}

/// What Keystone says to a login.
pub(super) async fn log_in(visitor: &Visitor<'_>, cloud: &str) -> Result<Reply> {
    let url = Url::parse(&format!("{}/auth/tokens", visitor.site.keystone))?;
    let body = whole(visitor.site.auth(cloud)?.to_string());
    let headers = [("Content-Type", "application/json")];
    visitor.client.send(Method::POST, &url, &headers, body).await
}

/// An id that no cloud has seen yet.
pub(super) fn fresh_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{} {} {count}", Timestamp::now(), process::id());
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}
