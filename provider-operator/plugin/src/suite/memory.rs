//! A cloud in memory that does everything right, or one thing wrong: what the suite itself is tested with.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use strum::EnumIter;

use super::{Harness, subject};
use crate::{
    Attempt, ByteStream, Capabilities, CloudError, Content, ContentKey, Created, Discarded, Drift, ErrorClass, Foreign,
    ImageId, ImageSpec, ImageStore, Marked, Observed, Owned, OwnerId, Preflight, Record, RecordState, Report, Sent,
    Subject,
};

/// What the identity of this cloud is.
const SECRET: &str = "hunter2";

/// One thing that a provider can do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub(super) enum Wrong {
    EachCreateIsNew,
    StrangersAreOurs,
    ShownAtOnce,
    ShownWhenWhole,
    NeverShown,
    SecondWriterIsTaken,
    WholeWhenCut,
    FailureIsSwallowed,
    PublishedTwiceIsHidden,
    StrangersAreDeleted,
    OtherAttemptsAreDeleted,
    OtherObjectsAreDeleted,
    StrangersAreGivenAway,
    ProtectedStays,
    GoneIsAnError,
    DeletedComesBack,
    LeavesRecords,
    GivenAwayIsOwned,
    AllAreListed,
    OtherKeysAreForgotten,
    OtherObjectsAreSeen,
    LookingWrites,
    DriftIsNotSeen,
    AmendDoesNothing,
    SpoiltIsMended,
    LastByteIsLost,
    SecretIsTold,
    UnknownIsPublished,
    HoldingDoesNothing,
    StrangersAreHeld,
    HoldingTakesTheOwner,
    HeldIsNotListed,
    HeldByOthersIsDeleted,
    HeldByOthersIsGivenAway,
}

#[derive(Clone, Debug)]
struct Image {
    owner: Option<OwnerId>,
    holder: Option<OwnerId>,
    object: String,
    key: ContentKey,
    attempt: Attempt,
    name: String,
    note: Option<String>,
    bytes: Vec<u8>,
    state: RecordState,
    verified: Option<String>,
    shown: bool,
    changes: u32,
}

/// A store of this cloud.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    images: Arc<Mutex<BTreeMap<ImageId, Image>>>,
    wrong: Option<Wrong>,
}

impl Memory {
    pub(super) fn new(wrong: Option<Wrong>) -> Self {
        Self {
            images: Arc::default(),
            wrong,
        }
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }

    fn images(&self) -> MutexGuard<'_, BTreeMap<ImageId, Image>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(
        &self,
        id: &ImageId,
        change: impl FnOnce(&mut Image) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let mut images = self.images();
        let image = images.get_mut(id).ok_or_else(|| self.error(ErrorClass::Gone))?;
        image.changes += 1;
        change(image)
    }

    fn error(&self, class: ErrorClass) -> CloudError {
        let told = if self.is(Wrong::SecretIsTold) { SECRET } else { "…" };
        CloudError::new(class, "do this", format!("with the password {told} it cannot be done"))
    }

    async fn receive(&self, id: &ImageId, content: Content) -> Result<Sent, CloudError> {
        let mut body = content
            .open()
            .await
            .map_err(|error| CloudError::of_content("send", error))?;
        while let Some(piece) = body.stream.next().await {
            let piece = match piece {
                Err(_) if self.is(Wrong::FailureIsSwallowed) => break,
                piece => piece.map_err(|error| CloudError::of_content("send", error))?,
            };
            self.change(id, |image| {
                image.bytes.extend_from_slice(&piece);
                Ok(())
            })?;
        }
        let sums = body.sums.sums().ok_or_else(|| self.error(ErrorClass::Unknown))?;
        Ok(Sent {
            bytes: sums.bytes,
            sums,
        })
    }

    /// What no look at the object shows, and its owner has nevertheless.
    fn leave_a_part_of(&self, id: &ImageId) {
        let mut images = self.images();
        if let Some(mut part) = images.get(id).cloned() {
            part.object.push_str("-part");
            images.insert(ImageId(format!("{id}-part")), part);
        }
    }

    fn check_owner(&self, image: &Image, owner: &OwnerId) -> Result<(), CloudError> {
        (image.owner.as_ref() == Some(owner))
            .then_some(())
            .ok_or_else(|| self.error(ErrorClass::NotOurs))
    }
}

/// Ends the receiving, however it ends.
struct Receiving<'a> {
    store: &'a Memory,
    id: &'a ImageId,
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        let after = if self.store.is(Wrong::WholeWhenCut) {
            RecordState::Whole
        } else {
            RecordState::Empty
        };
        // Where it was deleted meanwhile there is nothing to end.
        let _ = self.store.change(self.id, |image| {
            if image.state == RecordState::Receiving {
                image.state = after;
                image.bytes.clear();
            }
            Ok(())
        });
    }
}

#[async_trait]
impl ImageStore for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            transfers: true,
            ..Capabilities::default()
        }
    }

    async fn observe(&self, subject: &Subject, wanted: &ImageSpec) -> Result<Observed, CloudError> {
        let mut images = self.images();
        let mut observed = Observed::default();
        for (id, image) in images.iter_mut() {
            if self.is(Wrong::LookingWrites) {
                image.changes += 1;
            }
            let is_ours = image.owner.as_ref() == Some(&subject.owner)
                && (image.object == subject.object || self.is(Wrong::OtherObjectsAreSeen))
                && (image.key == subject.key || !self.is(Wrong::OtherKeysAreForgotten));
            if is_ours {
                let note = wanted.options.get("note").and_then(|note| note.as_str());
                let drift = (image.note.as_deref() != note && !self.is(Wrong::DriftIsNotSeen)).then(|| Drift {
                    field: "note".to_owned(),
                    found: format!("{:?}", image.note),
                    wanted: format!("{note:?}"),
                });
                observed.records.push(image.record(id, subject, drift));
            } else if subject.look_for_others && image.name == subject.name {
                observed.others.push(Foreign {
                    id: id.clone(),
                    is_of_our_project: true,
                    is_usable: image.state == RecordState::Whole,
                    is_of_community: false,
                    size: None,
                    sha512: None,
                    digest: None,
                    description: image.name.clone(),
                });
            }
        }
        observed
            .records
            .sort_by_key(|record| (record.key.clone(), record.attempt));
        Ok(observed)
    }

    async fn preflight(&self, _image: &ImageSpec, _bytes: Option<u64>) -> Result<Preflight, CloudError> {
        Ok(Preflight::default())
    }

    async fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, CloudError> {
        let subject = &image.subject;
        let owner = if self.is(Wrong::StrangersAreOurs) {
            "anybody"
        } else {
            subject.owner.as_str()
        };
        let id = ImageId(format!("{owner}.{}.{attempt}", subject.key));
        let mut images = self.images();
        if images.contains_key(&id) && !self.is(Wrong::EachCreateIsNew) {
            return Ok(Created::Ours(id));
        }
        let made = Image {
            owner: Some(subject.owner.clone()),
            holder: None,
            object: subject.object.clone(),
            key: subject.key.clone(),
            attempt,
            name: subject.name.clone(),
            note: image
                .options
                .get("note")
                .and_then(|note| note.as_str())
                .map(str::to_owned),
            bytes: Vec::new(),
            state: RecordState::Empty,
            verified: None,
            shown: self.is(Wrong::ShownAtOnce),
            changes: 0,
        };
        images.insert(id.clone(), made);
        Ok(Created::New(id))
    }

    async fn transfer(
        &self,
        id: &ImageId,
        wanted: &ImageSpec,
        content: Content,
        _report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        self.change(id, |image| match image.state {
            RecordState::Empty => {
                image.state = RecordState::Receiving;
                Ok(())
            }
            RecordState::Receiving if self.is(Wrong::SecondWriterIsTaken) => Ok(()),
            RecordState::Spoilt { .. } if self.is(Wrong::SpoiltIsMended) => {
                image.bytes.clear();
                image.state = RecordState::Receiving;
                Ok(())
            }
            _ => Err(self.error(ErrorClass::State)),
        })?;
        let receiving = Receiving { store: self, id };
        let received = self.receive(id, content).await;
        if received.is_err() && self.is(Wrong::DeletedComesBack) && !self.images().contains_key(id) {
            self.create(wanted, 1).await?;
        }
        if received.is_err() && self.is(Wrong::LeavesRecords) {
            self.leave_a_part_of(id);
        }
        let sent = received?;
        let (shown, is_lost) = (self.is(Wrong::ShownWhenWhole), self.is(Wrong::LastByteIsLost));
        let taken = self.change(id, |image| {
            image.shown |= shown;
            if is_lost {
                image.bytes.pop();
            }
            let is_bad = image.bytes.starts_with(b"\0bad");
            let why = "the cloud found no disk in it".to_owned();
            image.state = if is_bad {
                RecordState::Spoilt { why }
            } else {
                RecordState::Whole
            };
            if is_bad {
                Err(self.error(ErrorClass::Invalid))
            } else {
                Ok(())
            }
        });
        drop(receiving);
        taken.map(|()| sent)
    }

    async fn import(&self, id: &ImageId, _image: &ImageSpec, _uri: &str) -> Result<(), CloudError> {
        self.change(id, |_| Err(self.error(ErrorClass::Unsupported)))
    }

    async fn read_back(&self, id: &ImageId) -> Result<ByteStream, CloudError> {
        let bytes = self.change(id, |image| Ok(image.bytes.clone()))?;
        Ok(stream::iter([Ok(Bytes::from(bytes))]).boxed())
    }

    async fn publish(&self, id: &ImageId, _image: &ImageSpec, verified: &str) -> Result<(), CloudError> {
        if self.is(Wrong::UnknownIsPublished) && !self.images().contains_key(id) {
            return Ok(());
        }
        self.change(id, |image| {
            image.shown = !(self.is(Wrong::NeverShown) || image.shown && self.is(Wrong::PublishedTwiceIsHidden));
            image.verified = Some(verified.to_owned());
            Ok(())
        })
    }

    async fn amend(&self, id: &ImageId, wanted: &ImageSpec) -> Result<(), CloudError> {
        let note = wanted.options.get("note").and_then(|note| note.as_str());
        self.change(id, |image| {
            if !self.is(Wrong::AmendDoesNothing) {
                image.note = note.map(str::to_owned);
            }
            Ok(())
        })
    }

    async fn hold(&self, id: &ImageId, owner: &OwnerId, holder: &OwnerId) -> Result<(), CloudError> {
        self.change(id, |image| {
            if !self.is(Wrong::StrangersAreHeld) {
                self.check_owner(image, owner)?;
            }
            if !self.is(Wrong::HoldingDoesNothing) {
                image.holder = Some(holder.clone());
            }
            if self.is(Wrong::HoldingTakesTheOwner) {
                image.owner = Some(holder.clone());
            }
            Ok(())
        })
    }

    async fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, CloudError> {
        let mut images = self.images();
        let Some(image) = images.get(id) else {
            let is_error = self.is(Wrong::GoneIsAnError);
            return if is_error {
                Err(self.error(ErrorClass::Gone))
            } else {
                Ok(Discarded::WasGone)
            };
        };
        if !self.is(Wrong::StrangersAreDeleted) {
            self.check_owner(image, &marked.owner)?;
        }
        let is_other_attempt = image.attempt != marked.attempt && !self.is(Wrong::OtherAttemptsAreDeleted);
        let is_other_object = image.object != marked.object && !self.is(Wrong::OtherObjectsAreDeleted);
        let is_held = marked.holder.is_some() && image.holder() != marked.holder.as_ref();
        if is_other_attempt || is_other_object || is_held && !self.is(Wrong::HeldByOthersIsDeleted) {
            return Err(self.error(ErrorClass::NotOurs));
        }
        if image.shown && self.is(Wrong::ProtectedStays) {
            return Err(self.error(ErrorClass::Permission));
        }
        images.remove(id);
        Ok(Discarded::Gone)
    }

    async fn relinquish(&self, id: &ImageId, owner: &OwnerId, holder: Option<&OwnerId>) -> Result<(), CloudError> {
        self.change(id, |image| {
            if !self.is(Wrong::StrangersAreGivenAway) {
                self.check_owner(image, owner)?;
            }
            let is_held = holder.is_some() && image.holder() != holder;
            if is_held && !self.is(Wrong::HeldByOthersIsGivenAway) {
                return Err(self.error(ErrorClass::NotOurs));
            }
            if !self.is(Wrong::GivenAwayIsOwned) {
                image.owner = None;
            }
            Ok(())
        })
    }

    async fn owned(&self, owner: &OwnerId) -> Result<Vec<Owned>, CloudError> {
        let images = self.images();
        let is_ours = |image: &Image| {
            let is_held = image.holder() == Some(owner) && !self.is(Wrong::HeldIsNotListed);
            image.owner.as_ref() == Some(owner) || is_held || self.is(Wrong::AllAreListed)
        };
        let mut listed: Vec<Owned> = images
            .iter()
            .filter(|(_, image)| is_ours(image))
            .map(|(id, image)| Owned {
                id: id.clone(),
                owner: image.owner.as_ref().unwrap_or(owner).clone(),
                holder: image.holder().unwrap_or(owner).clone(),
                key: image.key.clone(),
                object: image.object.clone(),
                attempt: image.attempt,
                created: Timestamp::UNIX_EPOCH,
                verified: image.verified.is_some(),
                size: None,
            })
            .collect();
        listed.sort_by_key(|image| (image.object.clone(), image.key.clone(), image.attempt));
        Ok(listed)
    }
}

impl Image {
    /// Nobody, once it was given away.
    fn holder(&self) -> Option<&OwnerId> {
        let owner = self.owner.as_ref();
        owner.map(|owner| self.holder.as_ref().unwrap_or(owner))
    }

    fn record(&self, id: &ImageId, subject: &Subject, drift: Option<Drift>) -> Record {
        let size = self.bytes.len() as u64;
        Record {
            id: id.clone(),
            key: self.key.clone(),
            attempt: self.attempt,
            holder: self.holder().unwrap_or(&subject.owner).clone(),
            state: self.state.clone(),
            size: (size > 0).then_some(size),
            sha512: None,
            format: None,
            verified: self.verified.clone(),
            shown: self.shown,
            drift: drift.into_iter().collect(),
            marker: format!("{} {size}", self.changes),
        }
    }
}

#[async_trait]
impl Harness for Memory {
    type Store = Self;

    async fn store(&self) -> Self {
        self.clone()
    }

    fn image(&self, name: &str) -> (ImageSpec, Vec<u8>) {
        let owner = OwnerId::parse("suite").expect("a word is an owner");
        let image = ImageSpec {
            subject: subject(&owner, name),
            options: serde_json::Map::new(),
            format: None,
            source_digest: None,
            chosen_id: None,
            stores: Vec::new(),
        };
        let bytes = (0..300_003).map(|at: u32| u8::try_from(at * 31 % 251).unwrap_or_default());
        (image, bytes.collect())
    }

    fn bad_image(&self) -> Option<Vec<u8>> {
        Some([&b"\0bad"[..], &vec![7; 300_000]].concat())
    }

    fn amended(&self, image: &ImageSpec) -> Option<ImageSpec> {
        let mut image = image.clone();
        image.options.insert("note".to_owned(), "another".into());
        Some(image)
    }

    fn secrets(&self) -> Vec<String> {
        vec![SECRET.to_owned()]
    }
}
