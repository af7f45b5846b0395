//! Lists objects page by page, each within the size that an answer may have: what is too large, or cannot be understood, is asked for in smaller pages,
//! and one object that is so by itself is named and passed over, so that it does not stand in the way of the others.

use std::error::Error;
use std::fmt::Debug;

use http::StatusCode;
use kube::Resource;
use kube::api::{Api, ListParams};
use kube::core::{ListMeta, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tower::BoxError;

use crate::client::OutOfBounds;
use crate::failure::link_of;

/// An object that cannot be read, for its size or for what it says. Its name could.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read and is passed over", self.name())]
pub struct Unreadable {
    /// Empty for objects of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why.
    #[source]
    pub source: BoxError,
}

impl Unreadable {
    /// The object that was passed over, if that is what an error stems from.
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        link_of(error)
    }

    fn name(&self) -> String {
        let Self { namespace, name, .. } = self;
        let between = if namespace.is_empty() { "" } else { "/" };
        format!("{namespace}{between}{name}")
    }
}

/// A list in the making.
pub struct Pages<K> {
    api: Api<K>,
    params: ListParams,
    /// Objects of the next page.
    size: u32,
    /// More do not fit, as far as is known.
    most: u32,
    /// As many as there are to be.
    full: u32,
    /// Of the whole list, once the last page is here.
    version: Option<String>,
    ended: bool,
}

impl<K: Resource + Clone + DeserializeOwned + Debug> Pages<K> {
    /// Of the objects with such labels (a selector of the API server; all when it is empty), at most `size` at once.
    pub fn new(api: Api<K>, labels: &str, size: u32) -> Self {
        let params = ListParams {
            label_selector: (!labels.is_empty()).then(|| labels.to_owned()),
            ..ListParams::default()
        };
        Self {
            api,
            params,
            size,
            most: size,
            full: size,
            version: None,
            ended: false,
        }
    }

    /// Only those with such fields (a selector of the API server; all when it is empty).
    #[must_use]
    pub fn with_fields(mut self, fields: &str) -> Self {
        self.params.field_selector = (!fields.is_empty()).then(|| fields.to_owned());
        self
    }

    /// The objects of the next page; `None` after the last one. After an error that [`can_go_on`] the list is where it was, or behind the object
    /// that was passed over; after others it has to be begun [`again`](Self::again).
    pub async fn next_page(&mut self) -> Option<Result<Vec<K>, kube::Error>> {
        while !self.ended {
            self.params.limit = Some(self.size);
            let error = match self.api.list(&self.params).await {
                Ok(page) => {
                    self.turn(page.metadata);
                    return Some(Ok(page.items));
                }
                Err(error) => error,
            };
            match Obstacle::of(&error) {
                Some(Obstacle::Object) if self.size > 1 => self.halve(),
                Some(Obstacle::Object) => return Some(self.pass_over(error).await),
                Some(Obstacle::Time) => {
                    self.size = halved(self.size);
                    return Some(Err(error));
                }
                None => return Some(Err(error)),
            }
        }
        None
    }

    /// Begins at the first page, in pages of the size that has proved right.
    pub fn again(&mut self) {
        self.params.continue_token = None;
        self.version = None;
        self.ended = false;
    }

    /// The version of the whole list, once it has ended.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref().filter(|_| self.ended)
    }

    fn turn(&mut self, page: ListMeta) {
        self.params.continue_token = page.continue_.filter(|token| !token.is_empty());
        self.version = page.resource_version.filter(|version| !version.is_empty());
        self.ended = self.params.continue_token.is_none();
        // An API server that was busy has its time again; what did not fit will not.
        self.size = self.size.saturating_mul(2).min(self.most);
    }

    fn halve(&mut self) {
        self.size = halved(self.size);
        self.most = self.size;
    }

    /// Leaves one object behind, by a page of which the API server shows the metadata alone, and nothing is read but the name.
    async fn pass_over(&mut self, source: kube::Error) -> Result<Vec<K>, kube::Error> {
        // Also where this fails: then it was not the object.
        self.most = self.full;
        let asked = Request::new(self.api.resource_url()).list_metadata(&self.params);
        let asked = asked.map_err(kube::Error::BuildRequest)?;
        let page: Names = self.api.clone().into_client().request(asked).await?;
        self.turn(page.metadata);
        match page.items.into_iter().next() {
            Some(object) => Err(kube::Error::Service(Box::new(Unreadable {
                namespace: object.metadata.namespace,
                name: object.metadata.name,
                source: match source {
                    kube::Error::Service(bounds) => bounds,
                    other => Box::new(other),
                },
            }))),
            // It has gone in the meantime.
            None => Ok(Vec::new()),
        }
    }
}

/// Of a page what says which objects are there. The rest is stepped over, whatever it is.
#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    namespace: String,
    name: String,
}

/// Whether the next page of a list may be asked for after this error.
pub fn can_go_on(error: &kube::Error) -> bool {
    Unreadable::of(error).is_some() || matches!(Obstacle::of(error), Some(Obstacle::Time))
}

fn halved(size: u32) -> u32 {
    (size / 2).max(1)
}

/// What stands in the way of a page, and may not in the way of a smaller one.
enum Obstacle {
    /// An object, or all of them together.
    Object,
    /// It takes too long.
    Time,
}

impl Obstacle {
    fn of(error: &kube::Error) -> Option<Self> {
        match error {
            kube::Error::Api(status) => match StatusCode::from_u16(status.code) {
                Ok(StatusCode::PAYLOAD_TOO_LARGE) => Some(Self::Object),
                Ok(StatusCode::GATEWAY_TIMEOUT) => Some(Self::Time),
                _ => None,
            },
            kube::Error::SerdeError(_) => Some(Self::Object),
            _ => OutOfBounds::of(error).map(|bounds| match bounds {
                OutOfBounds::TooLarge { .. } | OutOfBounds::TooManyParts { .. } => Self::Object,
                OutOfBounds::Silent { .. } | OutOfBounds::Endless { .. } => Self::Time,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
