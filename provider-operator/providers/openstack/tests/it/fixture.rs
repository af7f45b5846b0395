//! A fake cloud and a client of it.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use openstack_lab::{
    Site,
    fake::{Fake, FakeOptions},
};
use provider_openstack::{
    CloudAddresses, OpenStackStore,
    clouds::{Beside, cloud},
    glance::Glance,
    session::Session,
    transport::Transport,
};
use provider_plugin::{
    Addresses, Content, ContentKey, ContentPlan, Format, ImageId, ImageSource, ImageSpec, Opened, OwnerId, Probe,
    Progress, Reach, Report, Seal, SealError, SourceError, Subject,
};
use serde_json::{Value, json};

/// This machine, where fakes are.
pub(crate) fn loopback() -> Arc<dyn Addresses> {
    Arc::new(CloudAddresses {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
    })
}

pub(crate) async fn fake() -> Fake {
    fake_with(FakeOptions::default()).await
}

pub(crate) async fn fake_with(options: FakeOptions) -> Fake {
    Fake::start(options).await.unwrap()
}

pub(crate) fn session(site: &Site, name: &str) -> Session {
    session_at(site, name, loopback())
}

pub(crate) fn session_at(site: &Site, name: &str, addresses: Arc<dyn Addresses>) -> Session {
    let beside = Beside {
        cacert: site.ca.as_deref(),
        ..Beside::default()
    };
    let cloud = cloud(site.clouds_yaml(None).as_bytes(), name, beside).unwrap();
    let transport = Transport::new(&cloud.tls, addresses).unwrap();
    Session::new(cloud, transport)
}

pub(crate) fn glance(site: &Site, name: &str) -> Glance {
    Glance::new(Arc::new(session(site, name)))
}

pub(crate) fn store(site: &Site, name: &str) -> OpenStackStore {
    OpenStackStore::new(Arc::new(session(site, name)))
}

/// An image of qcow2 of the object `fleet/<name>`.
pub(crate) fn image(name: &str) -> ImageSpec {
    let options = json!({ "disk_format": "qcow2", "container_format": "bare" });
    let digits: Vec<String> = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    ImageSpec {
        subject: Subject {
            owner: OwnerId::parse("mine").unwrap(),
            object: format!("fleet/{name}"),
            key: ContentKey::parse(&format!("{:0<64}", digits.concat())).unwrap(),
            name: name.to_owned(),
            recorded: None,
            made: None,
            attempt: None,
            adopt: None,
            look_for_others: false,
            reach: Reach::default(),
            only_recorded: false,
        },
        options: options.as_object().unwrap().clone(),
        format: Some(Format::Qcow2),
        source_digest: None,
        chosen_id: None,
        stores: Vec::new(),
    }
}

/// Nobody can be reached.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Addresses for Nowhere {
    fn allows(&self, host: &str, _: IpAddr) -> Result<(), String> {
        Err(format!("{host} is out of bounds"))
    }
}

/// Takes every seal.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<Seal>>);

#[async_trait]
impl Report for Notes {
    fn progress(&self, _: Progress) {}

    async fn seal(&self, seal: &Seal) -> Result<(), SealError> {
        self.0.lock().unwrap().push(seal.clone());
        Ok(())
    }
}

/// A disk that comes in pieces, all of it or a part and then nothing more.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) piece: Bytes,
    pub(crate) pieces: usize,
    /// After so many of them nothing comes.
    pub(crate) stops_after: usize,
    pub(crate) knows_size: bool,
}

impl Disk {
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        Self {
            piece: bytes.into(),
            pieces: 1,
            stops_after: usize::MAX,
            knows_size: true,
        }
    }

    pub(crate) fn content(self) -> Content {
        self.content_of(None)
    }

    pub(crate) fn content_of(self, format: Option<Format>) -> Content {
        let probe = Probe {
            size: self.knows_size.then(|| (self.piece.len() * self.pieces) as u64),
            ..Probe::default()
        };
        let plan = ContentPlan {
            attempt: 1,
            format,
            ..ContentPlan::default()
        };
        Content::new(Arc::new(self), probe, plan, Arc::new(Notes::default()))
    }
}

#[async_trait]
impl ImageSource for Disk {
    fn place(&self) -> &'static str {
        "https://images.example/disk"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe::default())
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        let sent = self.pieces.min(self.stops_after);
        let piece = self.piece.clone();
        let pieces = stream::iter((0..sent).map(move |_| Ok(piece.clone())));
        if sent < self.pieces {
            return Ok(Opened::FromStart(pieces.chain(stream::pending()).boxed()));
        }
        Ok(Opened::FromStart(pieces.boxed()))
    }
}

/// Makes an image without bytes.
pub(crate) async fn made(glance: &Glance, fields: Value) -> ImageId {
    let mut image = json!({ "name": "made", "disk_format": "qcow2", "container_format": "bare" });
    let Value::Object(fields) = fields else {
        panic!("fields are a map");
    };
    image.as_object_mut().unwrap().extend(fields);
    let provider_openstack::glance::Creation::Made(image) = glance.create(&image).await.unwrap() else {
        panic!("the id is taken");
    };
    ImageId(image["id"].as_str().unwrap().to_owned())
}

/// Waits until it is so.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the fake says of an image.
pub(crate) fn status(fake: &Fake, id: &ImageId) -> String {
    let image = fake.image(&id.0).unwrap_or_default();
    image["status"].as_str().unwrap_or("gone").to_owned()
}
