//! A cloud as Glance is one: ids are never free again, uploads are exclusive, a cut upload leaves an empty record, one that is refused a spoilt one,
//! what is changed of a record while it is sent to is undone at the end, what lies on a stage need not come off it, and what does may be converted;
//! deletions may take their time; and a cloud that dies leaves records that say for ever that they are being filled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planning::image::{Deed, Done, Failure, FailureClass};

/// How long a transfer or an import takes.
pub(crate) const TAKES: Duration = Duration::from_secs(20);
/// How long a deletion takes that does not happen at once.
const GOES: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Queued,
    /// The connection that sends; `None` when the cloud died meanwhile.
    Saving(Option<u64>),
    /// The connection that sends to a stage; `None` when none does: all of it lies there, or the cloud died meanwhile.
    Uploading(Option<u64>),
    /// When it is there; `None` when it never is.
    Importing(Option<Duration>),
    Active,
    Deactivated,
    Killed,
    /// It is deleted, and gone then; `None` when it never is.
    Going(Option<Duration>),
}

/// What of a record can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changeable {
    mark: Option<Mark>,
    verified: Option<String>,
    shown: bool,
    option: u32,
}

/// Whose it is, by its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) key: String,
    pub(crate) attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a cloud keeps each of them by itself")]
pub(crate) struct Image {
    pub(crate) mark: Option<Mark>,
    pub(crate) named_as_ours: bool,
    pub(crate) status: Status,
    /// Which bytes it has.
    pub(crate) content: Option<u32>,
    pub(crate) spoilt: bool,
    pub(crate) verified: Option<String>,
    pub(crate) shown: bool,
    pub(crate) option: u32,
    pub(crate) in_use: bool,
    /// Whether its bytes came by a stage, and were not fetched.
    pub(crate) by_stage: bool,
    /// What lay there last that can be imported.
    pub(crate) staged: Option<u32>,
    /// Which bytes it was made of, where the cloud made others of them.
    pub(crate) converted: Option<u32>,
    /// As it was when the bytes began to come.
    pub(crate) before: Option<Box<Changeable>>,
    /// Changes with every movement.
    pub(crate) marker: u64,
}

impl Image {
    pub(crate) fn new(mark: Option<Mark>) -> Self {
        Self {
            named_as_ours: mark.is_some(),
            mark,
            status: Status::Queued,
            content: None,
            spoilt: false,
            verified: None,
            shown: false,
            option: 0,
            in_use: false,
            by_stage: false,
            staged: None,
            converted: None,
            before: None,
            marker: 0,
        }
    }

    /// What its marks must be true of. A cloud converts at nobody's wish but that of whoever sends to a stage.
    pub(crate) fn made_of(&self) -> Option<u32> {
        self.converted.filter(|_| self.by_stage).or(self.content)
    }

    /// The format of its bytes, which were sent as qcow2.
    pub(crate) fn format(&self) -> &'static str {
        if self.converted.is_some() { "raw" } else { "qcow2" }
    }

    /// No more bytes come. Whatever was said meanwhile was said in vain.
    fn ends_saving(&mut self) {
        if let Some(before) = self.before.take() {
            let Changeable {
                mark,
                verified,
                shown,
                option,
            } = *before;
            (self.mark, self.verified, self.shown, self.option) = (mark, verified, shown, option);
        }
    }

    fn comes_by(&self, connection: u64) -> bool {
        let by = Some(connection);
        self.status == Status::Saving(by) || self.status == Status::Uploading(by)
    }

    pub(crate) fn is_going(&self) -> bool {
        matches!(self.status, Status::Going(_))
    }

    /// Somebody else's, which machines can start from.
    pub(crate) fn stranger(content: u32, named_as_ours: bool) -> Self {
        Self {
            named_as_ours,
            status: Status::Active,
            content: Some(content),
            shown: true,
            ..Self::new(None)
        }
    }
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is switched by a command of its own")]
pub(crate) struct Cloud {
    pub(crate) images: BTreeMap<String, Image>,
    pub(crate) tombstones: BTreeSet<String>,
    pub(crate) up: bool,
    pub(crate) room: bool,
    /// So many uploads are refused for what they are.
    pub(crate) refuses: u32,
    /// So many imports never end.
    pub(crate) loses_imports: u32,
    /// So many images stay on their stage for ever.
    pub(crate) leaves_staged: u32,
    /// Whether it makes raw images of what it imports.
    pub(crate) converts: bool,
    /// Whether deletions take their time.
    pub(crate) deletes_late: bool,
    /// So many deletions never end.
    pub(crate) loses_deletions: u32,
    /// Whether it makes sha512 of what it has.
    pub(crate) makes_sha512: bool,
    /// What its lists show, where they are late.
    pub(crate) listed: Option<BTreeMap<String, Image>>,
}

pub(crate) fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        message: format!("{class:?}"),
        request_id: None,
        retry_after: None,
        quota: None,
    }
}

pub(crate) fn sha256(content: u32) -> String {
    format!("{content:064}")
}

pub(crate) fn sha512(content: u32) -> String {
    format!("{content:0128}")
}

pub(crate) fn id_of(key: &str, attempt: u32) -> String {
    format!("{key}#{attempt}")
}

impl Cloud {
    pub(crate) fn new(makes_sha512: bool) -> Self {
        Self {
            images: BTreeMap::new(),
            tombstones: BTreeSet::new(),
            up: true,
            room: true,
            refuses: 0,
            loses_imports: 0,
            leaves_staged: 0,
            converts: false,
            deletes_late: false,
            loses_deletions: 0,
            makes_sha512,
            listed: None,
        }
    }

    /// What a look sees.
    pub(crate) fn listed(&self) -> &BTreeMap<String, Image> {
        self.listed.as_ref().unwrap_or(&self.images)
    }

    pub(crate) fn moved(&mut self, id: &str, change: impl FnOnce(&mut Image)) {
        if let Some(image) = self.images.get_mut(id) {
            image.marker += 1;
            change(image);
        }
    }

    /// What one answer does; transfers take longer and are not among them.
    pub(crate) fn short(&mut self, deed: &Deed, key: &str, option: u32, now: Duration) -> Result<Done, Failure> {
        if !self.up {
            return Err(failure(FailureClass::Unavailable));
        }
        match deed {
            Deed::Create { attempt, id } => Ok(self.create(*attempt, id.as_deref(), key, option)),
            Deed::Import { id, .. } => self.import(id, now),
            Deed::Publish { id, verified, .. } => self.ours(id).and_then(|image| {
                if image.status != Status::Active {
                    return Err(failure(FailureClass::State));
                }
                (image.verified, image.shown) = (Some(verified.clone()), true);
                image.marker += 1;
                Ok(Done::Published)
            }),
            Deed::Amend { id } => self.ours(id).map(|image| {
                image.option = option;
                Done::Amended
            }),
            Deed::Discard { id, .. } => self.delete(id, now),
            Deed::Relinquish { id } => self.ours(id).map(|image| {
                image.mark = None;
                Done::Relinquished
            }),
            Deed::Look | Deed::Probe | Deed::Transfer { .. } | Deed::Build { .. } | Deed::ReadBack { .. } => {
                panic!("{deed:?} is no short one of the cloud")
            }
        }
    }

    fn create(&mut self, attempt: u32, id: Option<&str>, key: &str, option: u32) -> Done {
        let id = id.map_or_else(|| id_of(key, attempt), str::to_owned);
        let mark = Mark {
            key: key.to_owned(),
            attempt,
        };
        match self.images.get(&id) {
            Some(image) if image.mark.as_ref() == Some(&mark) => return Done::Ours { id },
            Some(_) => return Done::Taken,
            None if self.tombstones.contains(&id) => return Done::Taken,
            None => {}
        }
        let image = Image {
            option,
            ..Image::new(Some(mark))
        };
        self.images.insert(id.clone(), image);
        Done::Created { id }
    }

    fn ours(&mut self, id: &str) -> Result<&mut Image, Failure> {
        let image = self.images.get_mut(id).filter(|image| !image.is_going());
        let image = image.ok_or_else(|| failure(FailureClass::Gone))?;
        if image.mark.is_none() {
            return Err(failure(FailureClass::NotOurs));
        }
        Ok(image)
    }

    fn delete(&mut self, id: &str, now: Duration) -> Result<Done, Failure> {
        let is_in_use = match self.ours(id) {
            Ok(image) => image.in_use,
            Err(failure) if failure.class == FailureClass::Gone => return Ok(Done::Discarded),
            Err(failure) => return Err(failure),
        };
        if is_in_use {
            return Err(failure(FailureClass::InUse));
        }
        let is_lost = self.loses_deletions > 0;
        if is_lost || self.deletes_late {
            self.loses_deletions = self.loses_deletions.saturating_sub(1);
            self.moved(id, |image| {
                image.status = Status::Going((!is_lost).then_some(now + GOES));
                image.shown = false;
            });
            return Ok(Done::Discarded);
        }
        self.images.remove(id);
        self.tombstones.insert(id.to_owned());
        Ok(Done::Discarded)
    }

    fn import(&mut self, id: &str, now: Duration) -> Result<Done, Failure> {
        let is_lost = self.loses_imports > 0;
        let image = self.ours(id)?;
        if image.status != Status::Queued || image.spoilt {
            return Err(failure(FailureClass::State));
        }
        image.status = Status::Importing((!is_lost).then_some(now + TAKES));
        image.marker += 1;
        self.loses_imports = self.loses_imports.saturating_sub(1);
        Ok(Done::ImportBegun)
    }

    /// Begins an upload, to a stage or not.
    pub(crate) fn receive(&mut self, id: &str, connection: u64, staged: bool) -> Result<(), Failure> {
        if !self.up {
            return Err(failure(FailureClass::Unavailable));
        }
        let room = self.room;
        let image = self.ours(id)?;
        match image.status {
            // What a refused upload left is in the way of every other.
            Status::Queued if image.spoilt => Err(failure(FailureClass::Unknown)),
            Status::Queued if !room => Err(failure(FailureClass::Quota)),
            Status::Queued if staged => {
                image.status = Status::Uploading(Some(connection));
                image.marker += 1;
                Ok(())
            }
            Status::Queued => {
                image.status = Status::Saving(Some(connection));
                image.before = Some(Box::new(Changeable {
                    mark: image.mark.clone(),
                    verified: image.verified.clone(),
                    shown: image.shown,
                    option: image.option,
                }));
                image.marker += 1;
                Ok(())
            }
            _ => Err(failure(FailureClass::State)),
        }
    }

    /// Whether an upload goes on.
    pub(crate) fn receives(&self, id: &str, connection: u64) -> bool {
        self.up && self.images.get(id).is_some_and(|image| image.comes_by(connection))
    }

    /// The connection ends too early.
    pub(crate) fn cut(&mut self, id: &str, connection: u64) {
        if self.images.get(id).is_some_and(|image| image.comes_by(connection)) {
            self.moved(id, |image| {
                image.status = Status::Queued;
                image.ends_saving();
            });
        }
    }

    /// The last byte is there.
    pub(crate) fn received(&mut self, id: &str, content: u32) -> Result<(), Failure> {
        let refused = self.refuses > 0;
        self.refuses = self.refuses.saturating_sub(1);
        self.moved(id, |image| {
            (image.status, image.spoilt) = if refused {
                (Status::Queued, true)
            } else {
                (Status::Active, false)
            };
            image.content = (!refused).then_some(content);
            image.ends_saving();
        });
        if refused {
            return Err(failure(FailureClass::Invalid));
        }
        Ok(())
    }

    /// The last byte is on the stage, and the import begun: what it finds out about the bytes shows when it ends.
    pub(crate) fn staged(&mut self, id: &str, content: u32, now: Duration) {
        let (is_refused, is_lost, stays) = (self.refuses > 0, self.loses_imports > 0, self.leaves_staged > 0);
        self.leaves_staged = self.leaves_staged.saturating_sub(1);
        if !stays {
            self.refuses = self.refuses.saturating_sub(1);
            self.loses_imports = self.loses_imports.saturating_sub(1);
        }
        self.moved(id, |image| {
            image.by_stage = true;
            image.staged = (!is_refused).then_some(content);
            image.status = if stays {
                Status::Uploading(None)
            } else {
                Status::Importing((!is_lost).then_some(now + TAKES))
            };
        });
    }

    /// Imports that are due are there, or have failed, and deletions are done.
    pub(crate) fn pass(&mut self, now: Duration, fetched: Option<u32>) {
        let is_gone = |image: &Image| matches!(image.status, Status::Going(Some(due)) if due <= now);
        let gone = self.images.iter().filter(|(_, image)| is_gone(image));
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.images.remove(&id);
            self.tombstones.insert(id);
        }
        let converts = self.converts;
        for image in self.images.values_mut() {
            if !matches!(image.status, Status::Importing(Some(due)) if due <= now) {
                continue;
            }
            image.marker += 1;
            let came = if image.by_stage { image.staged } else { fetched };
            image.converted = came.filter(|_| converts);
            image.content = image.converted.map(|content| content + 100).or(came);
            image.spoilt = came.is_none();
            image.status = if came.is_some() { Status::Active } else { Status::Queued };
        }
    }

    /// It is killed and comes again: what was under way is so for ever.
    pub(crate) fn dies(&mut self) {
        for image in self.images.values_mut() {
            match &mut image.status {
                Status::Saving(connection) | Status::Uploading(connection) => *connection = None,
                Status::Importing(due) => *due = None,
                Status::Queued | Status::Active | Status::Deactivated | Status::Killed | Status::Going(_) => {}
            }
        }
    }
}
