//! The calls of Glance that images need. Each is one request, with one login and one more try where the token was refused; it decides nothing
//! about images, and what it answers is what Glance said.

mod import;
mod list;
mod patch;
mod room;
mod upload;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use provider_plugin::{ByteStream, CloudError, ErrorClass, ImageId};
use serde_json::Value;
use url::Url;

pub use self::{
    import::{GLANCE_DIRECT, WEB_DOWNLOAD},
    list::Query,
    patch::Change,
};
use crate::{
    session::{Need, Session, Token},
    transport::{Answer, Call},
};

const JSON: &str = "application/json";

/// The image service of one cloud, as one identity sees it.
#[derive(Clone, Debug)]
pub struct Glance {
    session: Arc<Session>,
}

/// One bound of a project and how much of it is used, both in the unit of the resource: MiB of sizes, images of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// None: no bound.
    pub limit: Option<u64>,
    /// What is used.
    pub used: u64,
}

impl Usage {
    /// What is left, where there is a bound.
    pub fn free(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }
}

/// What became of a creation.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    /// The image, as it was made.
    Made(Value),
    /// The id is taken.
    Taken,
}

/// What a call is for and what it asks.
struct Question<'a> {
    operation: &'static str,
    method: Method,
    /// Below version 2, each to be escaped.
    path: Vec<&'a str>,
    query: Option<&'a str>,
    body: Option<(&'static str, Bytes)>,
}

impl<'a> Question<'a> {
    fn new(operation: &'static str, method: Method, path: &[&'a str]) -> Self {
        Self {
            operation,
            method,
            path: path.to_vec(),
            query: None,
            body: None,
        }
    }

    fn with(self, kind: &'static str, body: &Value) -> Self {
        Self {
            body: Some((kind, Bytes::from(body.to_string()))),
            ..self
        }
    }
}

impl Glance {
    /// Asks nobody yet.
    pub fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    /// Who we are.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The image; none if there is none that we may see.
    pub async fn get(&self, id: &ImageId) -> Result<Option<Value>, CloudError> {
        let question = Question::new("look at the image", Method::GET, &["images", &id.0]);
        let answer = self.ask(&question).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.json(&question, &answer).map(Some)
    }

    /// Makes an image without bytes.
    pub async fn create(&self, image: &Value) -> Result<Creation, CloudError> {
        let question = Question::new("create the image", Method::POST, &["images"]).with(JSON, image);
        let answer = self.ask(&question).await?;
        if answer.status == StatusCode::CONFLICT {
            return Ok(Creation::Taken);
        }
        self.json(&question, &answer).map(Creation::Made)
    }

    /// Deletes it; whether it was there.
    pub async fn delete(&self, id: &ImageId) -> Result<bool, CloudError> {
        let question = Question::new("delete the image", Method::DELETE, &["images", &id.0]);
        let answer = self.ask(&question).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(false),
            StatusCode::CONFLICT => Err(CloudError {
                class: ErrorClass::InUse,
                ..self.error(&question, &answer)
            }),
            _ => self.done(&question, &answer).map(|()| true),
        }
    }

    /// A bound of our project; none where the cloud tells none.
    pub async fn usage(&self, resource: &str) -> Result<Option<Usage>, CloudError> {
        let question = Question::new("read the quota", Method::GET, &["info", "usage"]);
        let Some(usage) = self.info(&question).await? else {
            return Ok(None);
        };
        let of = |field: &str| usage["usage"][resource][field].as_i64();
        let Some((limit, used)) = of("limit").zip(of("usage")) else {
            return Ok(None);
        };
        Ok(Some(Usage {
            limit: u64::try_from(limit).ok(),
            used: u64::try_from(used).unwrap_or(0),
        }))
    }

    /// The stores by name, the default one first; empty where there is but one.
    pub async fn stores(&self) -> Result<Vec<String>, CloudError> {
        let question = Question::new("read the stores", Method::GET, &["info", "stores"]);
        let stores = self.info(&question).await?.unwrap_or_default();
        let mut stores: Vec<&Value> = stores["stores"].as_array().into_iter().flatten().collect();
        stores.sort_by_key(|store| store["default"] != "true");
        Ok(stores
            .into_iter()
            .filter_map(|store| Some(store["id"].as_str()?.to_owned()))
            .collect())
    }

    /// What a cloud may not have to say.
    async fn info(&self, question: &Question<'_>) -> Result<Option<Value>, CloudError> {
        let answer = self.ask(question).await?;
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Ok(None),
            _ => self.json(question, &answer).map(Some),
        }
    }

    /// The bytes of an image.
    pub async fn read(&self, id: &ImageId) -> Result<ByteStream, CloudError> {
        let question = Question::new("read the image back", Method::GET, &["images", &id.0, "file"]);
        let mut token = self.session.token(Need::Usual).await?;
        let transport = self.session.transport();
        let mut read = transport
            .read(question.operation, self.url(&token, &question)?, &token.value)
            .await?;
        if matches!(&read, Err(answer) if answer.status == StatusCode::UNAUTHORIZED) {
            token = self.session.renewed(&token).await?;
            read = transport
                .read(question.operation, self.url(&token, &question)?, &token.value)
                .await?;
        }
        read.map_err(|answer| match answer.status {
            StatusCode::NO_CONTENT => CloudError::new(ErrorClass::State, question.operation, "it has no bytes"),
            _ => self.error(&question, &answer),
        })
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Answer, CloudError> {
        let token = self.session.token(Need::Usual).await?;
        let answer = self.send(question, &token).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // A token can end before its time. That a new one is refused too says something about us.
        let token = self.session.renewed(&token).await?;
        self.send(question, &token).await
    }

    async fn send(&self, question: &Question<'_>, token: &Token) -> Result<Answer, CloudError> {
        let call = Call {
            operation: question.operation,
            method: question.method.clone(),
            url: self.url(token, question)?,
            token: Some(&token.value),
            body: question.body.clone(),
        };
        self.session.transport().call(call).await
    }

    fn url(&self, token: &Token, question: &Question<'_>) -> Result<Url, CloudError> {
        let mut url = self.session.endpoint_of(token)?;
        let unusable = || {
            let words = "the URL of the image service has no path";
            CloudError::new(ErrorClass::Invalid, question.operation, words)
        };
        url.path_segments_mut().map_err(|()| unusable())?.extend(&question.path);
        url.set_query(question.query);
        Ok(url)
    }

    /// What was asked for, if that is what came.
    fn json(&self, question: &Question<'_>, answer: &Answer) -> Result<Value, CloudError> {
        self.done(question, answer)?;
        serde_json::from_slice(&answer.body).map_err(|_| {
            let words =
                "what answered is not the image service; look at its address in the catalogue or in clouds.yaml";
            CloudError::new(ErrorClass::Unavailable, question.operation, words)
        })
    }

    fn done(&self, question: &Question<'_>, answer: &Answer) -> Result<(), CloudError> {
        if answer.status.is_success() {
            return Ok(());
        }
        Err(self.error(question, answer))
    }

    fn error(&self, question: &Question<'_>, answer: &Answer) -> CloudError {
        answer.error(question.operation, &[self.session.secret()])
    }
}
