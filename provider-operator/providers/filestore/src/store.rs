//! The store for a directory: what is asked of it, done with its records in bounded time.

use std::{fs::File, io, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use provider_plugin::{
    Attempt, ByteStream, Capabilities, CloudError, Content, Created, Discarded, ErrorClass, ImageId, ImageSpec,
    ImageStore, Marked, Observed, Owned, OwnerId, Preflight, Quota, Report, Sent, Subject,
};
use rustix::fs::statvfs;
use storage::BlockingWork;

use crate::{
    disk::Disk,
    error::RecordError,
    layout::{self, Layout},
    part::Store,
    records::Records,
};

/// So many calls to the disk at once; one that hangs keeps its place.
const AT_ONCE: usize = 8;
/// A call may take so long.
const DEADLINE: Duration = Duration::from_secs(30);
/// After so many bytes the disk confirms them.
const SYNC_EVERY: u64 = 16 * 1024 * 1024;

/// Images in a directory. Everybody who is to have them reads them there, or has them served from there.
#[derive(Clone, Debug)]
pub struct FileStore(pub(crate) Store);

impl FileStore {
    /// The images of this directory. It has to be there when something is made in it; nothing is touched before.
    pub fn new(directory: PathBuf) -> Self {
        Self::on(directory, Disk::default(), SYNC_EVERY)
    }

    pub(crate) fn on(directory: PathBuf, disk: Disk, sync_every: u64) -> Self {
        Self(Store {
            records: Arc::new(Records {
                layout: Layout::new(directory),
                disk,
            }),
            work: BlockingWork::new(AT_ONCE, DEADLINE),
            sync_every,
        })
    }
}

/// Refuses what cannot become an image in a directory.
pub(crate) fn check(image: &ImageSpec) -> Result<(), CloudError> {
    let refused = |words: String| Err(CloudError::new(ErrorClass::Invalid, "make the image", words));
    if let Some(words) = layout::refusal(&image.subject.name) {
        return refused(words.to_owned());
    }
    if let Some(option) = image.options.keys().next() {
        return refused(format!("images in a directory have no option {option:?}; leave it out"));
    }
    if !image.stores.is_empty() {
        return refused("a directory has no stores to choose from; leave them out".to_owned());
    }
    Ok(())
}

#[async_trait]
impl ImageStore for FileStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            transfers: true,
            ..Capabilities::default()
        }
    }

    async fn observe(&self, subject: &Subject, _image: &ImageSpec) -> Result<Observed, CloudError> {
        let subject = subject.clone();
        let look = move |records: &Records| records.observe(&subject);
        self.0.with("look at the images", look).await
    }

    async fn preflight(&self, image: &ImageSpec, bytes: Option<u64>) -> Result<Preflight, CloudError> {
        check(image)?;
        let room = |records: &Records| -> Result<_, RecordError> {
            Ok(statvfs(records.layout.directory()).map_err(io::Error::from)?)
        };
        let room = self.0.with("look for room", room).await?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if let Some(wanted) = bytes.filter(|bytes| *bytes > free) {
            let words = format!(
                "{free} bytes are free, and the image has {wanted}; give the volume more room, or delete images"
            );
            let limit = room.f_blocks.saturating_mul(room.f_frsize);
            return Err(CloudError {
                quota: Some(Box::new(Quota {
                    resource: "bytes of the volume".to_owned(),
                    limit: Some(limit),
                    used: Some(limit.saturating_sub(free)),
                    requested: Some(wanted),
                })),
                ..CloudError::new(ErrorClass::Quota, "make room for the image", words)
            });
        }
        Ok(Preflight::default())
    }

    async fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, CloudError> {
        check(image)?;
        let image = image.clone();
        let create = move |records: &Records| records.create(&image, attempt);
        self.0.with("make the record of the image", create).await
    }

    async fn transfer(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        self.0.transfer(id, image, content, report).await
    }

    async fn import(&self, _id: &ImageId, _image: &ImageSpec, _uri: &str) -> Result<(), CloudError> {
        let words = "a directory fetches nothing itself; the image is sent";
        Err(CloudError::new(ErrorClass::Unsupported, "import the image", words))
    }

    async fn read_back(&self, id: &ImageId) -> Result<ByteStream, CloudError> {
        let id = id.clone();
        let open = move |records: &Records| records.open_whole(&id);
        let file: File = self.0.with("read the image", open).await?;
        Ok(self.0.bytes(&Arc::new(file), 0, None))
    }

    async fn publish(&self, id: &ImageId, image: &ImageSpec, verified: &str) -> Result<(), CloudError> {
        let (id, owner, verified) = (id.clone(), image.subject.owner.clone(), verified.to_owned());
        let publish = move |records: &Records| records.publish(&id, &owner, &verified);
        self.0.with("publish the image", publish).await
    }

    /// There is nothing that could be amended.
    async fn amend(&self, id: &ImageId, image: &ImageSpec) -> Result<(), CloudError> {
        let (id, owner) = (id.clone(), image.subject.owner.clone());
        let find = move |records: &Records| records.find(&id, &owner).map(|_| ());
        self.0.with("amend the image", find).await
    }

    async fn hold(&self, id: &ImageId, owner: &OwnerId, holder: &OwnerId) -> Result<(), CloudError> {
        let (id, owner, holder) = (id.clone(), owner.clone(), holder.clone());
        let hold = move |records: &Records| records.hold(&id, &owner, &holder);
        self.0.with("take the image over", hold).await
    }

    async fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, CloudError> {
        let (id, marked) = (id.clone(), marked.clone());
        let discard = move |records: &Records| records.discard(&id, &marked);
        self.0.with("delete the image", discard).await
    }

    /// What was published keeps its name; what was not is nobody's, and goes.
    async fn relinquish(&self, id: &ImageId, owner: &OwnerId, holder: Option<&OwnerId>) -> Result<(), CloudError> {
        let (id, owner, holder) = (id.clone(), owner.clone(), holder.cloned());
        let relinquish = move |records: &Records| records.relinquish(&id, &owner, holder.as_ref());
        self.0.with("give the image away", relinquish).await
    }

    async fn owned(&self, owner: &OwnerId) -> Result<Vec<Owned>, CloudError> {
        let owner = owner.clone();
        let list = move |records: &Records| records.owned(&owner);
        self.0.with("list the images", list).await
    }
}
