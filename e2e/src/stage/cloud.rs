//! A project, as its members see it with their own eyes: what is in it, and what they do there behind the operator's back.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use openstack_lab::{
    client::{Reply, whole},
    facts::Tenant,
};
use serde_json::{Value, json};

use crate::{eventually, journey::SOON};

/// What the operator marks its images with.
const OWNER: &str = "cs_owner";

/// A member of the project.
pub struct Cloud<'a>(pub Tenant<'a>);

impl Cloud<'_> {
    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Reply> {
        let kind = (!body.is_null()).then_some("application/json");
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let reply = self.0.call(method.clone(), path, kind, whole(text)).await?;
        ensure!(
            reply.status.is_success(),
            "{method} {path}: {} {}",
            reply.status,
            reply.text()
        );
        Ok(reply)
    }

    /// All images of the project, hidden or not.
    pub async fn images(&self) -> Result<Vec<Value>> {
        let mut images = Vec::new();
        for hidden in ["true", "false"] {
            let path = format!("/images?owner={}&os_hidden={hidden}&limit=1000", self.0.project);
            let mut page = self.call(Method::GET, &path, &Value::Null).await?.json()?;
            images.append(page["images"].as_array_mut().context("a list without images")?);
        }
        Ok(images)
    }

    /// The ids of those that carry the mark of an operator.
    pub async fn owned(&self) -> Result<BTreeSet<String>> {
        let images = self.images().await?;
        let owned = images.iter().filter(|image| image[OWNER].is_string());
        Ok(owned
            .filter_map(|image| image["id"].as_str())
            .map(str::to_owned)
            .collect())
    }

    /// Waits until exactly these are the operator's.
    pub async fn holds(&self, expected: &[String]) -> Result<()> {
        let expected: BTreeSet<String> = expected.iter().cloned().collect();
        eventually(SOON, "the project to hold exactly what is expected", async || {
            let owned = self.owned().await?;
            ensure!(owned == expected, "{owned:?} are owned instead of {expected:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// The one image of the operator's once there is one.
    pub async fn one(&self) -> Result<String> {
        eventually(SOON, "one image of the operator's", async || {
            let owned: Vec<String> = self.owned().await?.into_iter().collect();
            match <[String; 1]>::try_from(owned) {
                Ok([id]) => Ok(id),
                Err(owned) => anyhow::bail!("{owned:?}"),
            }
        })
        .await
    }

    /// An image.
    pub async fn image(&self, id: &str) -> Result<Value> {
        self.0.image(id).await
    }

    /// Waits until the image has this status.
    pub async fn becomes(&self, id: &str, status: &str) -> Result<()> {
        eventually(SOON, format!("the image to be {status}"), async || {
            let image = self.image(id).await?;
            ensure!(image["status"] == status, "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Makes a record without bytes, and returns its id.
    pub async fn queued(&self, name: &str) -> Result<String> {
        self.0.new_image(json!({ "name": name })).await
    }

    /// Makes an image of these bytes, as somebody does who uploads one by hand.
    pub async fn uploaded(&self, name: &str, disk: &[u8]) -> Result<String> {
        let id = self.queued(name).await?;
        self.put(&id, disk).await?;
        Ok(id)
    }

    /// Sends the bytes of an image.
    pub async fn put(&self, id: &str, disk: &[u8]) -> Result<()> {
        let reply = self.0.put(id, "file", whole(Bytes::copy_from_slice(disk))).await?;
        ensure!(reply.status.is_success(), "PUT: {} {}", reply.status, reply.text());
        Ok(())
    }

    /// Deletes an image.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let path = format!("/images/{id}");
        self.call(Method::DELETE, &path, &Value::Null).await.map(drop)
    }

    /// Gives a field of an image this value.
    pub async fn set(&self, id: &str, field: &str, value: &str) -> Result<()> {
        let path = format!("/images/{id}");
        let kind = Some("application/openstack-images-v2.1-json-patch");
        let changes = json!([{ "op": "replace", "path": format!("/{field}"), "value": value }]);
        let reply = self
            .0
            .call(Method::PATCH, &path, kind, whole(changes.to_string()))
            .await?;
        ensure!(
            reply.status.is_success(),
            "PATCH {path}: {} {}",
            reply.status,
            reply.text()
        );
        Ok(())
    }

    /// Forbids the use of an image, or allows it again: `deactivate` or `reactivate`.
    pub async fn act(&self, id: &str, action: &str) -> Result<()> {
        let path = format!("/images/{id}/actions/{action}");
        self.call(Method::POST, &path, &Value::Null).await.map(drop)
    }
}
