//! Imports: images that the cloud fetches itself.

use http::Method;
use provider_plugin::{CloudError, ImageId};
use serde_json::{Value, json};

use super::{Glance, JSON, Question};

/// Fetches an image from a URL.
pub const WEB_DOWNLOAD: &str = "web-download";
/// Makes an image of what was sent to its stage.
pub const GLANCE_DIRECT: &str = "glance-direct";

impl Glance {
    /// The import methods that the cloud announces. That it does something by them is not said.
    pub async fn methods(&self) -> Result<Vec<String>, CloudError> {
        let question = Question::new("read the import methods", Method::GET, &["info", "import"]);
        let info = self.info(&question).await?.unwrap_or_default();
        let methods = info["import-methods"]["value"].as_array().into_iter().flatten();
        Ok(methods.filter_map(|method| Some(method.as_str()?.to_owned())).collect())
    }

    /// Has the cloud fetch an image; answers when it has taken that on.
    pub async fn web_download(&self, id: &ImageId, uri: &str, stores: &[String]) -> Result<(), CloudError> {
        self.import(id, json!({ "name": WEB_DOWNLOAD, "uri": uri }), stores)
            .await
    }

    /// Has the cloud make an image of what is on its stage; answers when it has taken that on.
    pub async fn glance_direct(&self, id: &ImageId, stores: &[String]) -> Result<(), CloudError> {
        self.import(id, json!({ "name": GLANCE_DIRECT }), stores).await
    }

    async fn import(&self, id: &ImageId, method: Value, stores: &[String]) -> Result<(), CloudError> {
        let mut import = json!({ "method": method });
        if !stores.is_empty() {
            import["stores"] = stores.into();
        }
        let path = ["images", &id.0, "import"];
        let question = Question::new("import the image", Method::POST, &path).with(JSON, &import);
        let answer = self.ask(&question).await?;
        self.done(&question, &answer)
    }

    /// The imports of an image, the last one at the end; none at all where the cloud says nothing of imports.
    pub async fn tasks(&self, id: &ImageId) -> Result<Option<Vec<Value>>, CloudError> {
        let path = ["images", &id.0, "tasks"];
        let question = Question::new("look at the import", Method::GET, &path);
        let told = self.info(&question).await?;
        Ok(told.and_then(|told| told["tasks"].as_array().cloned()))
    }
}
