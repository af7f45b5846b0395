//! Lists of images, page by page.

use std::mem;

use http::Method;
use provider_plugin::{CloudError, ErrorClass};
use serde_json::Value;
use url::form_urlencoded;

use super::{Glance, Question};

/// Images that are asked for at once.
const PAGE: &str = "50";
/// Most pages that are read: what has more images is not what we look for.
const PAGES: usize = 40;

const OPERATION: &str = "list the images";

/// Which images: all that have every one of these values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Those that also have this value; of fields, of properties, and of `tag`, which may come several times.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    fn text(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(&self.0).append_pair("limit", PAGE);
        text.finish()
    }
}

impl Glance {
    /// All images that are meant, in the order in which the cloud tells them.
    pub async fn list(&self, query: &Query) -> Result<Vec<Value>, CloudError> {
        let mut images = Vec::new();
        let mut page = Some(query.text());
        for _ in 0..PAGES {
            let Some(text) = page else {
                return Ok(images);
            };
            let question = Question {
                query: Some(&text),
                ..Question::new(OPERATION, Method::GET, &["images"])
            };
            let answer = self.ask(&question).await?;
            let mut list = self.json(&question, &answer)?;
            if let Value::Array(found) = mem::take(&mut list["images"]) {
                images.extend(found);
            }
            // The link leaves out what an endpoint has before its version; all that it adds is in the query.
            let next = list["next"].as_str().and_then(|next| next.split_once('?'));
            page = next.map(|(_, query)| query.to_owned()).filter(|next| *next != text);
        }
        let words = format!("there are more than {PAGES} pages of images");
        Err(CloudError::new(ErrorClass::Unavailable, OPERATION, words))
    }
}
