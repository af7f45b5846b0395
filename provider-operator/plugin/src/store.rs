//! The trait that a provider implements for one cloud, and what its calls answer.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{
    Attempt, ByteStream, CloudError, Content, ContentKey, ErrorClass, ImageId, ImageSpec, Marked, Observed, OwnerId,
    Report, Subject, Sums,
};

/// The images of one cloud as one identity sees them. Keeps no memory of images between calls.
///
/// What holds for every call, and what the suite tests: it ends within 60 s or moves bytes; its errors contain no value of the
/// [`Identity`](crate::Identity); dropping its future ends it and leaves a state that [`ImageStore::observe`] tells rightly. Calls come
/// from several operators at once, also for the same record: an earlier leader may wake up and finish what it was about to do.
#[async_trait]
pub trait ImageStore: Send + Sync + Debug {
    /// What this cloud can do. Asks nothing: what is found out later only takes away ([`ErrorClass::Unsupported`](crate::ErrorClass)).
    fn capabilities(&self) -> Capabilities;

    /// What is there for this object. Never writes.
    async fn observe(&self, subject: &Subject, image: &ImageSpec) -> Result<Observed, CloudError>;

    /// What would be refused later: quota, formats, methods. Creates nothing. `bytes`: the size to come, where it is known.
    async fn preflight(&self, image: &ImageSpec, bytes: Option<u64>) -> Result<Preflight, CloudError>;

    /// Makes the record of this attempt: hidden, unverified, without bytes. Of any number of calls for one attempt exactly one answers
    /// [`Created::New`], whoever makes them.
    async fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, CloudError>;

    /// Sends all of `content` into an empty record. Answers only when the cloud has confirmed to have it all.
    ///
    /// Dropping the future at any await is the cancel: what is left is [`Empty`](crate::RecordState::Empty), perhaps with a part to go on
    /// with, or [`Receiving`](crate::RecordState::Receiving), which ends by itself. A second transfer into the same record at the same time
    /// is [`ErrorClass::State`](crate::ErrorClass). The content tells its own progress; `report` is for what it cannot know.
    async fn transfer(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        report: &dyn Report,
    ) -> Result<Sent, CloudError>;

    /// Sends all of `content` to a stage of the cloud, which makes an image of it in its own way; answers when the cloud has taken that on. The record is
    /// [`Importing`](crate::RecordState::Importing) then. Otherwise as [`ImageStore::transfer`]; only where [`Capabilities::staged`] says so.
    async fn stage(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        let (_, _, _, _) = (id, image, content, report);
        let words = "it has no stage for images";
        Err(CloudError::new(ErrorClass::Unsupported, "stage the image", words))
    }

    /// Begins an import by the cloud from this address; answers when the cloud has taken it on.
    async fn import(&self, id: &ImageId, image: &ImageSpec, uri: &str) -> Result<(), CloudError>;

    /// The bytes of a whole record as the cloud gives them.
    async fn read_back(&self, id: &ImageId) -> Result<ByteStream, CloudError>;

    /// Marks a whole record as verified, with these words, and shows it: in one write, so that nobody sees one without the other. Once
    /// more is no error.
    async fn publish(&self, id: &ImageId, image: &ImageSpec, verified: &str) -> Result<(), CloudError>;

    /// Brings what may be changed in line with the options; only of an image that carries our owner.
    async fn amend(&self, id: &ImageId, image: &ImageSpec) -> Result<(), CloudError>;

    /// Marks one of ours, in whatever state it is, as held by this installation: its object has moved to a cluster where that one works on it. Changes
    /// nothing else of it, neither whose it is nor its id, and may be called while bytes are being sent into it. Refuses like [`ImageStore::discard`] what
    /// does not carry the owner, and takes over what another one holds; nobody calls it for an object that is being deleted. Once more is no error.
    async fn hold(&self, id: &ImageId, owner: &OwnerId, holder: &OwnerId) -> Result<(), CloudError>;

    /// Deletes one of ours with all its bytes, protected or not. Looks at its marks just before: what was decided was decided about what was seen a while
    /// ago. Refuses with [`ErrorClass::NotOurs`](crate::ErrorClass) what does not carry the owner, what is another object's or of another attempt, and what
    /// another one holds than the holder that is told, if one is.
    async fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, CloudError>;

    /// Takes our marks off one of ours, so that nobody of us touches it again, and leaves it as it is otherwise. Refuses with
    /// [`ErrorClass::NotOurs`](crate::ErrorClass) what does not carry the owner, and what another one holds than the holder that is told, if one is: as
    /// [`ImageStore::discard`], but that it is told neither object nor attempt.
    async fn relinquish(&self, id: &ImageId, owner: &OwnerId, holder: Option<&OwnerId>) -> Result<(), CloudError>;

    /// Everything that carries this owner or is held by it, of every object, sorted by (object, key, attempt).
    async fn owned(&self, owner: &OwnerId) -> Result<Vec<Owned>, CloudError>;
}

/// What a cloud can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Fetches images from an address itself ([`ImageStore::import`]).
    pub server_side: bool,
    /// Takes bytes first and makes an image of them afterwards.
    pub staged: bool,
    /// It has images of its own. Where it has not, images are only looked up and adopted.
    pub transfers: bool,
}

/// What became of a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is there, and this call made it.
    New(ImageId),
    /// It was there: an earlier life, or another one of us, made it for the same object, key and attempt.
    Ours(ImageId),
    /// Its place is taken by somebody else or by what is left of something deleted. This attempt is burned.
    Taken,
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// It was there and is gone.
    Gone,
    /// It will go; the cloud takes its time.
    Going,
    /// It was not there.
    WasGone,
}

/// One image that carries an owner, or is held by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Its id in the cloud.
    pub id: ImageId,
    /// The installation that it is marked with.
    pub owner: OwnerId,
    /// The one that works on it: see [`Record::holder`](crate::Record::holder).
    pub holder: OwnerId,
    /// The key it was made for.
    pub key: ContentKey,
    /// The object it was made for: `namespace/name`.
    pub object: String,
    /// The number it was made with.
    pub attempt: Attempt,
    /// When it was made, by the cloud's clock.
    pub created: Timestamp,
    /// Whether it was published.
    pub verified: bool,
    /// Bytes that are stored, if that is known.
    pub size: Option<u64>,
}

impl Owned {
    /// The same record by its marks, whoever holds it.
    pub fn marked(&self) -> Marked {
        Marked {
            owner: self.owner.clone(),
            object: self.object.clone(),
            attempt: self.attempt,
            holder: None,
        }
    }
}

/// What a cloud says before anything is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preflight {
    /// What will not be as asked and does not stand in the way, as sentences for people.
    pub warnings: Vec<String>,
}

/// What a transfer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of the whole image, also of a part that was there before.
    pub bytes: u64,
    /// Digests of the whole image.
    pub sums: Sums,
}
