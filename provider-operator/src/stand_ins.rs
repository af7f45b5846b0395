//! What tests of this room put in the place of clouds, sources and the API server. Each does what it is told to and remembers what it was asked.

mod cluster;

use std::collections::{BTreeMap, HashMap};
use std::future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use crds::providers::Provider as Name;
use futures::{StreamExt, stream};
use planning::image::Deed;
use provider_plugin::{
    Addresses, Attempt, ByteStream, Capabilities, CloudError, CloudName, Content, ContentKey, Created, Discarded,
    ErrorClass, Identity, ImageId, ImageSource, ImageSpec, ImageStore, Marked, Observed, Opened, Owned, OwnerId,
    Preflight, Probe, Progress, Provider, Reach, Record, Report, Seal, SealError, Sent, SourceError, Subject,
};
use tokio::time;

pub(crate) use self::cluster::Cluster;
use crate::identity::Connection;
use crate::objects::ObjectId;
use crate::source::Files;
use crate::worker::{ContentSpec, WorkPlan};

/// The object of this name.
pub(crate) fn object(namespace: &str, name: &str) -> ObjectId {
    ObjectId {
        provider: Name::FileStore,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{namespace}-{name}"),
    }
}

/// The image that an object wants: one by its own name.
pub(crate) fn image(object: &ObjectId) -> ImageSpec {
    let digits = hex::encode(&object.name);
    ImageSpec {
        subject: Subject {
            owner: OwnerId::parse("mine").unwrap(),
            object: format!("{}/{}", object.namespace, object.name),
            key: ContentKey::parse(&format!("{digits:0<64.64}")).unwrap(),
            name: object.name.clone(),
            recorded: None,
            made: None,
            attempt: None,
            adopt: None,
            look_for_others: false,
            reach: Reach::default(),
            only_recorded: false,
        },
        options: serde_json::Map::new(),
        format: None,
        source_digest: None,
        chosen_id: None,
        stores: Vec::new(),
    }
}

/// To do this for an object.
pub(crate) fn plan(object: &ObjectId, deed: Deed) -> WorkPlan {
    let image = image(object);
    WorkPlan {
        object: object.clone(),
        deed,
        holder: image.subject.owner.clone(),
        goes: false,
        holds: true,
        image,
        content: ContentSpec::default(),
    }
}

/// Everything may be reached.
#[derive(Debug)]
pub(crate) struct Anywhere;

impl Addresses for Anywhere {
    fn allows(&self, _: &str, _: IpAddr) -> Result<(), String> {
        Ok(())
    }
}

/// How a cloud of clay takes a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It answers at once.
    Answer,
    /// It answers after so long.
    Take(Duration),
    /// It never answers.
    Hang,
    /// Its provider has a fault.
    Panic,
    /// It refuses, and may say for how long.
    Fail(ErrorClass, Option<Duration>),
}

/// Clouds without anything in them but what they are told to show, one for each name.
#[derive(Debug, Default)]
pub(crate) struct Clay {
    acts: Mutex<HashMap<String, Act>>,
    records: Mutex<Vec<Record>>,
    calls: Mutex<Vec<String>>,
    /// Calls under way, and the most that ever were, by cloud; all clouds together have no name.
    running: Mutex<HashMap<String, (usize, usize)>>,
}

impl Clay {
    /// From now on a cloud takes calls so; or one kind of call, named behind the cloud.
    pub(crate) fn act(&self, cloud: &str, act: Act) {
        self.acts.lock().unwrap().insert(cloud.to_owned(), act);
    }

    /// From now on all clouds show these.
    pub(crate) fn show(&self, records: impl Into<Vec<Record>>) {
        *self.records.lock().unwrap() = records.into();
    }

    /// What was asked, as `<cloud> <call> <object>`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    /// Calls that are under way.
    pub(crate) fn running(&self, cloud: &str) -> usize {
        self.count(cloud).0
    }

    /// The most that ever were at once; of all clouds without a name.
    pub(crate) fn most(&self, cloud: &str) -> usize {
        self.count(cloud).1
    }

    fn count(&self, cloud: &str) -> (usize, usize) {
        self.running.lock().unwrap().get(cloud).copied().unwrap_or_default()
    }

    /// A connection to one of the clouds, by one version of a Secret.
    pub(crate) fn connection(self: &Arc<Self>, cloud: &str, version: &str) -> Arc<Connection> {
        let identity = Identity {
            name: cloud.to_owned(),
            data: BTreeMap::new(),
            version: version.to_owned(),
        };
        let provider = Arc::new(ClayProvider(Arc::clone(self)));
        Arc::new(Connection::new(provider, identity, Arc::new(Anywhere)).unwrap())
    }

    /// A store, for who calls it himself.
    pub(crate) fn store(self: &Arc<Self>, cloud: &str) -> ClayStore {
        ClayStore {
            clay: Arc::clone(self),
            cloud: cloud.to_owned(),
        }
    }
}

#[derive(Debug)]
struct ClayProvider(Arc<Clay>);

#[async_trait]
impl Provider for ClayProvider {
    fn name(&self) -> &'static str {
        "clay"
    }

    async fn connect(&self, identity: &Identity, _: Arc<dyn Addresses>) -> Result<Arc<dyn ImageStore>, CloudError> {
        Ok(Arc::new(self.0.store(&identity.name)))
    }

    fn cloud_of(&self, identity: &Identity) -> Result<CloudName, CloudError> {
        Ok(CloudName(identity.name.clone()))
    }

    fn check(&self, _: &ImageSpec) -> Result<(), CloudError> {
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct ClayStore {
    clay: Arc<Clay>,
    cloud: String,
}

/// A call that is under way until this is dropped.
struct UnderWay<'a>(&'a ClayStore);

impl<'a> UnderWay<'a> {
    fn begin(store: &'a ClayStore) -> Self {
        for name in [store.cloud.as_str(), ""] {
            let mut running = store.clay.running.lock().unwrap();
            let (now, most) = running.entry(name.to_owned()).or_default();
            *now += 1;
            *most = (*most).max(*now);
        }
        Self(store)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        for name in [self.0.cloud.as_str(), ""] {
            let mut running = self.0.clay.running.lock().unwrap();
            running.entry(name.to_owned()).or_default().0 -= 1;
        }
    }
}

impl ClayStore {
    async fn called(&self, call: &'static str, object: &str) -> Result<(), CloudError> {
        let _under_way = UnderWay::begin(self);
        let call_of_cloud = format!("{} {call}", self.cloud);
        let words = format!("{call_of_cloud} {object}");
        self.clay.calls.lock().unwrap().push(words);
        let act = |name: &String| self.clay.acts.lock().unwrap().get(name).copied();
        let act = act(&call_of_cloud).or_else(|| act(&self.cloud));
        match act.unwrap_or(Act::Answer) {
            Act::Answer => Ok(()),
            Act::Take(time) => {
                time::sleep(time).await;
                Ok(())
            }
            Act::Hang => future::pending().await,
            Act::Panic => panic!("a fault of the provider"),
            Act::Fail(class, retry_after) => Err(CloudError {
                retry_after,
                ..CloudError::new(class, call, "it is told to")
            }),
        }
    }
}

fn held_by(holder: Option<&OwnerId>) -> String {
    holder.map_or_else(String::new, |holder| format!(" if held by {holder}"))
}

#[async_trait]
impl ImageStore for ClayStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            server_side: true,
            staged: false,
            transfers: true,
        }
    }

    async fn observe(&self, subject: &Subject, _: &ImageSpec) -> Result<Observed, CloudError> {
        self.called("observe", &subject.object).await?;
        Ok(Observed {
            records: self.clay.records.lock().unwrap().clone(),
            others: Vec::new(),
        })
    }

    async fn preflight(&self, image: &ImageSpec, bytes: Option<u64>) -> Result<Preflight, CloudError> {
        self.called("preflight", &image.subject.object).await?;
        let warnings = bytes.map(|bytes| format!("{bytes} bytes are to come"));
        Ok(Preflight {
            warnings: warnings.into_iter().collect(),
        })
    }

    async fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, CloudError> {
        self.called("create", &image.subject.object).await?;
        let chosen = image.chosen_id.clone();
        Ok(Created::New(
            chosen.unwrap_or_else(|| ImageId(format!("image-{attempt}"))),
        ))
    }

    async fn transfer(
        &self,
        _: &ImageId,
        image: &ImageSpec,
        content: Content,
        _: &dyn Report,
    ) -> Result<Sent, CloudError> {
        self.called("transfer", &image.subject.object).await?;
        let of_content = |error| CloudError::of_content("send the image", error);
        let mut body = content.open().await.map_err(of_content)?;
        while let Some(piece) = body.stream.next().await {
            piece.map_err(of_content)?;
        }
        let sums = body.sums.sums().unwrap();
        Ok(Sent {
            bytes: sums.bytes,
            sums,
        })
    }

    async fn stage(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        self.called("stage", &image.subject.object).await?;
        self.transfer(id, image, content, report).await
    }

    async fn import(&self, _: &ImageId, _: &ImageSpec, uri: &str) -> Result<(), CloudError> {
        self.called("import", uri).await
    }

    async fn read_back(&self, id: &ImageId) -> Result<ByteStream, CloudError> {
        self.called("read", &id.0).await?;
        let pieces = ["an ", "image"].map(|piece| Ok(Bytes::from(piece)));
        Ok(stream::iter(pieces).boxed())
    }

    async fn publish(&self, id: &ImageId, _: &ImageSpec, verified: &str) -> Result<(), CloudError> {
        self.called("publish", &format!("{id} as {verified}")).await
    }

    async fn amend(&self, id: &ImageId, _: &ImageSpec) -> Result<(), CloudError> {
        self.called("amend", &id.0).await
    }

    async fn hold(&self, id: &ImageId, _: &OwnerId, holder: &OwnerId) -> Result<(), CloudError> {
        self.called("hold", &format!("{id} for {holder}")).await
    }

    async fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, CloudError> {
        let held = held_by(marked.holder.as_ref());
        self.called("discard", &format!("{id} of {}{held}", marked.owner))
            .await?;
        Ok(Discarded::Going)
    }

    async fn relinquish(&self, id: &ImageId, owner: &OwnerId, holder: Option<&OwnerId>) -> Result<(), CloudError> {
        let held = held_by(holder);
        self.called("relinquish", &format!("{id} of {owner}{held}")).await
    }

    async fn owned(&self, _: &OwnerId) -> Result<Vec<Owned>, CloudError> {
        Ok(Vec::new())
    }
}

/// A file in memory that can be read from anywhere, and may stop.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) bytes: Bytes,
    /// After so many bytes nothing comes any more.
    pub(crate) stops_after: usize,
    /// What its source knows it by.
    pub(crate) tag: String,
}

impl Disk {
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            stops_after: usize::MAX,
            tag: "\"one\"".to_owned(),
        }
    }

    /// The files of an image that is this one.
    pub(crate) fn files(self) -> Files {
        Files {
            image: Arc::new(self),
            sums: None,
            tag_is_digest: false,
        }
    }
}

#[async_trait]
impl ImageSource for Disk {
    fn place(&self) -> &'static str {
        "https://images.example/disk"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some(self.bytes.len() as u64),
            tag: Some(self.tag.clone()),
            ranges: true,
            content_type: None,
        })
    }

    async fn open(&self, at: u64, _: &Probe) -> Result<Opened, SourceError> {
        let end = self.bytes.len().min(self.stops_after);
        let from = usize::try_from(at).unwrap().min(end);
        let part = self.bytes.slice(from..end);
        let pieces: Vec<_> = part.chunks(256 * 1024).map(|piece| Ok(part.slice_ref(piece))).collect();
        let pieces = stream::iter(pieces);
        if end < self.bytes.len() {
            return Ok(Opened::At(pieces.chain(stream::pending()).boxed()));
        }
        Ok(Opened::At(pieces.boxed()))
    }
}

/// A source that refuses.
#[derive(Debug)]
pub(crate) struct NoDisk(pub(crate) ErrorClass);

#[async_trait]
impl ImageSource for NoDisk {
    fn place(&self) -> &'static str {
        "https://images.example/none"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Err(SourceError::new(self.0, "https://images.example/none does not give it"))
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        Err(SourceError::new(self.0, "https://images.example/none does not give it"))
    }
}

/// Remembers seals and how far it went.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) seals: Mutex<Vec<Seal>>,
    pub(crate) last: Mutex<Option<Progress>>,
}

#[async_trait]
impl Report for Notes {
    fn progress(&self, progress: Progress) {
        *self.last.lock().unwrap() = Some(progress);
    }

    async fn seal(&self, seal: &Seal) -> Result<(), SealError> {
        self.seals.lock().unwrap().push(seal.clone());
        Ok(())
    }
}
