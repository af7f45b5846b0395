//! The suite of the plugin on the fake cloud.

#[cfg(test)]
mod on_the_fake {
    use std::sync::Arc;

    use async_trait::async_trait;
    use openstack_lab::{
        Login, disk,
        fake::{Fake, FakeOptions},
    };
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

    /// A fake of its own for each statement.
    struct OnTheFake {
        fake: Fake,
    }

    impl OnTheFake {
        async fn new() -> Self {
            let fake = Fake::start(FakeOptions::default()).await.unwrap();
            Self { fake }
        }
    }

    #[async_trait]
    impl Harness for OnTheFake {
        type Store = OpenStackStore;

        async fn store(&self) -> OpenStackStore {
            let yaml = self.fake.site().clouds_yaml(None);
            let cloud = cloud(yaml.as_bytes(), "openstack", Beside::default()).unwrap();
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
            let logins = self.fake.site().clouds.values();
            let secrets = logins.map(|login| match login {
                Login::Password { password, .. } => password.clone(),
                Login::ApplicationCredential { secret, .. } => secret.clone(),
            });
            secrets.collect()
        }
    }

    provider_plugin::provider_suite!(OnTheFake::new().await);
}
