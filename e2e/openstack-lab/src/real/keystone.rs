//! Calls of Keystone by an administrator. Decides nothing about what is made.

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use url::Url;

use crate::{
    Login,
    client::{Client, Reply, whole},
};

/// Somebody who is logged in, and logs in again when his token has ended: where tokens are short, a slow machine needs several for what it does.
pub(super) struct Session<'a> {
    client: &'a Client,
    /// With `/v3` at its end.
    keystone: &'a Url,
    auth: Value,
    token: Mutex<String>,
}

impl<'a> Session<'a> {
    pub(super) async fn open(client: &'a Client, keystone: &'a Url, login: &Login) -> Result<Self> {
        Self::with(client, keystone, login.auth()).await
    }

    /// The same for the system instead of a project: limits are its business.
    pub(super) async fn open_system(client: &'a Client, keystone: &'a Url, login: &Login) -> Result<Self> {
        let mut auth = login.auth();
        auth["auth"]["scope"] = json!({ "system": { "all": true } });
        Self::with(client, keystone, auth).await
    }

    async fn with(client: &'a Client, keystone: &'a Url, auth: Value) -> Result<Self> {
        let token = Mutex::new(token(client, keystone, &auth).await?);
        Ok(Self {
            client,
            keystone,
            auth,
            token,
        })
    }

    /// The path begins behind `/v3`. Null where there is nothing to say.
    pub(super) async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let mut reply = self.send(&method, path, body).await?;
        if reply.status == StatusCode::UNAUTHORIZED {
            *self.token.lock().await = token(self.client, self.keystone, &self.auth).await?;
            reply = self.send(&method, path, body).await?;
        }
        ensure!(
            reply.status.is_success(),
            "{method} {path} was answered {} {}",
            reply.status,
            reply.text()
        );
        if reply.body.is_empty() {
            Ok(Value::Null)
        } else {
            reply.json()
        }
    }

    async fn send(&self, method: &Method, path: &str, body: &Value) -> Result<Reply> {
        let url = Url::parse(&format!("{}{path}", self.keystone))?;
        let token = self.token.lock().await.clone();
        let headers = [("X-Auth-Token", token.as_str()), ("Content-Type", "application/json")];
        let body = whole(if body.is_null() {
            String::new()
        } else {
            body.to_string()
        });
        self.client.send(method.clone(), &url, &headers, body).await
    }

    /// Makes one of these and returns its id.
    pub(super) async fn create(&self, kinds: &str, kind: &str, fields: &Value) -> Result<String> {
        let made = self
            .call(Method::POST, &format!("/{kinds}"), &json!({ kind: fields }))
            .await?;
        id_of(&made[kind])
    }

    /// The id of the one that is called so.
    pub(super) async fn find(&self, kinds: &str, name: &str) -> Result<String> {
        let found = self
            .call(Method::GET, &format!("/{kinds}?name={name}"), &Value::Null)
            .await?;
        id_of(&found[kinds][0]).with_context(|| format!("there is no {name:?} among the {kinds}"))
    }
}

/// Logs in.
async fn token(client: &Client, keystone: &Url, auth: &Value) -> Result<String> {
    let url = Url::parse(&format!("{keystone}/auth/tokens"))?;
    let headers = [("Content-Type", "application/json")];
    let reply = client
        .send(Method::POST, &url, &headers, whole(auth.to_string()))
        .await?;
    ensure!(
        reply.status == 201,
        "Keystone let nobody in: {} {}",
        reply.status,
        reply.text()
    );
    let token = reply.header("x-subject-token").context("a login without a token")?;
    Ok(token.to_owned())
}

pub(super) fn id_of(thing: &Value) -> Result<String> {
    Ok(thing["id"].as_str().context("something without an id")?.to_owned())
}
