//! Node images in an OpenStack cloud, through a client of our own for Keystone v3 and Glance v2.
//!
//! An image is ours by its marks (`cs_owner`, `cs_object`, `cs_key`, `cs_attempt`), and its id follows from them, so that only one of many can
//! make it; `cs_holder` says who works on it since its object has moved. It is hidden until it is published. What clouds say is turned into the
//! words of the plugin where it is met: answers in [`answer`], images in [`record`]. No file and no environment is read here: all that is known of
//! a user's cloud is in his Secret.

mod addresses;
pub mod answer;
pub mod auth;
pub mod catalogue;
pub mod clouds;
mod confidence;
pub mod glance;
pub mod identity;
pub mod options;
pub mod record;
pub mod session;
mod store;
pub mod transport;

use std::sync::Arc;

use async_trait::async_trait;
use provider_plugin::{
    Addresses, CloudError, CloudName, ErrorClass, Identity, ImageSpec, ImageStore, Provider, Requests,
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

pub use self::{addresses::CloudAddresses, store::OpenStackStore};
use self::{
    clouds::{Beside, Cloud},
    options::Options,
    session::Session,
    transport::Transport,
};

/// The keys of the Secret that are read, the first of which has to be there.
pub const SECRET_KEYS: [&str; 4] = ["clouds.yaml", "cacert", "cert", "key"];

/// Clouds of OpenStack.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenStack;

#[async_trait]
impl Provider for OpenStack {
    fn name(&self) -> &'static str {
        "openstack"
    }

    async fn connect(
        &self,
        identity: &Identity,
        addresses: Arc<dyn Addresses>,
    ) -> Result<Arc<dyn ImageStore>, CloudError> {
        let cloud = cloud(identity)?;
        let transport = Transport::new(&cloud.tls, addresses)?;
        Ok(store(cloud, transport))
    }

    async fn connect_counted(
        &self,
        identity: &Identity,
        addresses: Arc<dyn Addresses>,
        requests: Arc<dyn Requests>,
    ) -> Result<Arc<dyn ImageStore>, CloudError> {
        let cloud = cloud(identity)?;
        let transport = Transport::new(&cloud.tls, addresses)?;
        Ok(store(cloud, transport.counted(requests)))
    }

    fn cloud_of(&self, identity: &Identity) -> Result<CloudName, CloudError> {
        let cloud = cloud(identity)?;
        let name = place(&cloud.auth_url);
        // What answers at an address that somebody chose himself speaks for those who have chosen it, and for nobody else's cloud.
        let images = cloud
            .image_endpoint
            .as_ref()
            .map(place)
            .filter(|images| *images != name);
        Ok(CloudName(match images {
            Some(images) => format!("{name} with images at {images}"),
            None => name,
        }))
    }

    fn secret_keys(&self) -> &'static [&'static str] {
        &SECRET_KEYS
    }

    fn check(&self, image: &ImageSpec) -> Result<(), CloudError> {
        Options::read(image).map(drop)
    }
}

/// The host, and the port where it is no usual one.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn store(cloud: Cloud, transport: Transport) -> Arc<dyn ImageStore> {
    let session = Arc::new(Session::new(cloud, transport));
    Arc::new(OpenStackStore::new(session))
}

fn cloud(identity: &Identity) -> Result<Cloud, CloudError> {
    let refused = |words: String| CloudError::new(ErrorClass::Invalid, "read the Secret of the cloud", words);
    let of = |key: &str| identity.data.get(key);
    let text = |key: &str| of(key).map(SecretString::expose_secret);
    let yaml = text("clouds.yaml").ok_or_else(|| refused("it has no key clouds.yaml".to_owned()))?;
    let beside = Beside {
        cacert: text("cacert"),
        cert: text("cert"),
        key: of("key"),
    };
    clouds::cloud(yaml.as_bytes(), &identity.name, beside).map_err(|error| refused(error.to_string()))
}
