//! Changes to an image.

use http::Method;
use provider_plugin::{CloudError, ImageId};
use serde_json::{Value, json};

use super::{Glance, Question};

/// The one form of changes that Glance speaks.
const KIND: &str = "application/openstack-images-v2.1-json-patch";

/// A change to one field or property.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Sets it, whether or not it is there.
    Set(String, Value),
    /// Takes a property away that is there.
    Remove(String),
}

impl Change {
    /// Sets a field or property.
    pub fn set(key: &str, value: impl Into<Value>) -> Self {
        Self::Set(key.to_owned(), value.into())
    }

    fn value(&self) -> Value {
        // As paths of JSON escape them.
        let path = |key: &str| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        match self {
            Self::Set(key, value) => json!({ "op": "add", "path": path(key), "value": value }),
            Self::Remove(key) => json!({ "op": "remove", "path": path(key) }),
        }
    }
}

impl Glance {
    /// Makes all changes, or none of them.
    pub async fn patch(&self, id: &ImageId, changes: &[Change]) -> Result<Value, CloudError> {
        let changes = changes.iter().map(Change::value).collect();
        let question = Question::new("change the image", Method::PATCH, &["images", &id.0]);
        let question = question.with(KIND, &Value::Array(changes));
        let answer = self.ask(&question).await?;
        self.json(&question, &answer)
    }
}
