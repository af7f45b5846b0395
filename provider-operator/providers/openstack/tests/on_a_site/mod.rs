//! What the suite of the plugin needs of a cloud, whatever runs it.

use std::sync::Arc;

use async_trait::async_trait;
use openstack_lab::{Login, Site, disk};
use provider_openstack::{
    CloudAddresses, OpenStackStore,
    clouds::{Beside, cloud},
    session::Session,
    transport::Transport,
};
use provider_plugin::{
    Format, ImageSpec, OwnerId,
    suite::{Harness, subject},
};
use serde_json::json;

/// A project that nobody else uses, and what has to live as long as the statement about it.
pub(crate) struct OnASite<Kept> {
    pub(crate) site: Site,
    _kept: Kept,
}

impl<Kept> OnASite<Kept> {
    pub(crate) fn new(site: Site, kept: Kept) -> Self {
        Self { site, _kept: kept }
    }
}

#[async_trait]
impl<Kept: Send + Sync> Harness for OnASite<Kept> {
    type Store = OpenStackStore;

    async fn store(&self) -> OpenStackStore {
        let beside = Beside {
            cacert: self.site.ca.as_deref(),
            ..Beside::default()
        };
        let cloud = cloud(self.site.clouds_yaml(None).as_bytes(), "openstack", beside).unwrap();
        let addresses = CloudAddresses {
            networks: vec!["127.0.0.0/8".parse().unwrap()],
        };
        let transport = Transport::new(&cloud.tls, Arc::new(addresses)).unwrap();
        OpenStackStore::new(Arc::new(Session::new(cloud, transport)))
    }

    fn image(&self, name: &str) -> (ImageSpec, Vec<u8>) {
        let options = json!({ "disk_format": "qcow2", "container_format": "bare", "protected": true });
        let image = ImageSpec {
            subject: subject(&OwnerId::parse("suite").unwrap(), name),
            options: options.as_object().unwrap().clone(),
            format: Some(Format::Qcow2),
            source_digest: None,
            chosen_id: None,
            stores: Vec::new(),
        };
        (image, disk::qcow2(name.len() as u64))
    }

    fn bad_image(&self) -> Option<Vec<u8>> {
        Some(disk::raw(1, 4 << 20))
    }

    fn amended(&self, image: &ImageSpec) -> Option<ImageSpec> {
        let mut amended = image.clone();
        amended.options.insert("min_disk".to_owned(), 20.into());
        Some(amended)
    }

    fn secrets(&self) -> Vec<String> {
        let logins = self.site.clouds.values();
        let secrets = logins.map(|login| match login {
            Login::Password { password, .. } => password.clone(),
            Login::ApplicationCredential { secret, .. } => secret.clone(),
        });
        secrets.collect()
    }
}
