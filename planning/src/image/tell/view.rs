//! What the situation of an image comes to: whether it can be used, how far it is, what is in its way. Words are made elsewhere.

use crds::providers::Provider;
use crds::providers::image_status::NodeImageStatus;

use super::Situation;
use super::trouble::{Trouble, troubles};
use crate::image::absent::counts;
use crate::image::judge::mark_counts;
use crate::image::kept::{CloudImage, Kept, Retry};
use crate::image::op::{Deed, DeedName, Op, OpState};
use crate::image::seen::{Cloud, RecordSeen, RecordState, Seen, Sight};
use crate::image::step::Step;
use crate::image::wanted::{Now, Wanted};
use crate::image::wording::IMPORTING;

/// What is being done for the image, as far as it is seen or under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing was found out, or somebody else makes the image.
    Nothing,
    /// Something short.
    Preparing,
    Building,
    Transferring,
    Importing,
    Verifying,
    /// Nobody may use what is there.
    Deactivated,
}

/// Everything that is told is told from this.
pub(super) struct View<'a> {
    pub(super) provider: Provider,
    pub(super) wanted: &'a Wanted,
    /// What is kept after the step.
    pub(super) kept: Kept,
    pub(super) seen: &'a Seen,
    pub(super) op: Option<&'a Op>,
    pub(super) step: &'a Step,
    pub(super) before: &'a NodeImageStatus,
    pub(super) now: Now,
    /// The last successful look of this process.
    pub(super) cloud: Option<&'a Cloud>,
    /// The image of ours that is told of: the one that is had, else the latest of the wanted content.
    pub(super) record: Option<&'a RecordSeen>,
    pub(super) is_ready: bool,
    pub(super) work: Work,
    /// What is in its way, the most important first.
    pub(super) troubles: Vec<Trouble>,
}

impl<'a> View<'a> {
    pub(super) fn new(situation: &Situation<'a>, kept: Kept, now: Now) -> Self {
        let Situation {
            provider,
            wanted,
            kept: _,
            seen,
            op,
            step,
            before,
        } = *situation;
        let cloud = match &seen.cloud {
            Sight::Seen { value, .. } => Some(value),
            Sight::Unseen | Sight::Failed { .. } => None,
        };
        let record = cloud.and_then(|cloud| record(cloud, wanted, &kept));
        let mut view = Self {
            provider,
            wanted,
            kept,
            seen,
            op,
            step,
            before,
            now,
            cloud,
            record,
            is_ready: false,
            work: Work::Nothing,
            troubles: Vec::new(),
        };
        view.is_ready = is_ready(&view);
        view.work = work(&view);
        view.troubles = troubles(&view);
        view
    }

    /// Whether all bytes of ours are in the cloud. While bytes move, those are not it.
    pub(super) fn is_whole(&self) -> bool {
        let moves = matches!(self.work, Work::Building | Work::Transferring | Work::Importing);
        let is_whole = |record: &RecordSeen| matches!(record.state, RecordState::Whole | RecordState::Withdrawn);
        self.is_ready || !moves && self.record.is_some_and(is_whole)
    }

    /// Whether all bytes of what is told of have left us.
    pub(super) fn is_sealed(&self) -> bool {
        self.record
            .is_some_and(|record| self.kept.sealed_of(record.attempt).is_some())
    }

    /// How far the cloud is with the bytes, in its own words.
    pub(super) fn imported(&self) -> Option<String> {
        let record = self.record.filter(|_| self.work == Work::Importing && !self.is_ready)?;
        let words = record.words.as_ref()?;
        Some(format!("{IMPORTING}: {words}"))
    }

    /// The format that the cloud says the image has: before this process has looked, what was told of it.
    pub(super) fn format(&self) -> Option<&str> {
        let told = self.before.image.as_ref();
        let told = told.and_then(|image| image.disk_format.as_deref());
        self.record.map_or(told, |record| record.format.as_deref())
    }

    /// What is tried again and stands in the way. Not while the bytes are on their way: then that is what there is to say.
    pub(super) fn retry(&self) -> Option<&Retry> {
        let is_deleting = self.wanted.deleting.is_some();
        let moves = matches!(self.work, Work::Transferring | Work::Building) && self.moving().is_some();
        self.kept.retry.as_ref().filter(|retry| {
            !self.is_ready && !moves && retry.is_of_tidying() == is_deleting && retry.concerns(self.wanted)
        })
    }

    /// The deed that moves bytes, if one is under way or about to be.
    pub(super) fn moving(&self) -> Option<DeedName> {
        let begun = match self.step {
            Step::Do { deed, .. } => Some(deed),
            _ => None,
        };
        let under_way = self.op.filter(|op| {
            !matches!(op.state, OpState::Ended { .. } | OpState::Stopping { .. }) && !matches!(self.step, Step::Stop(_))
        });
        let deed = begun.or_else(|| under_way.map(|op| &op.deed));
        deed.map(Deed::name)
            .filter(|deed| deed.is_long() || *deed == DeedName::Import)
    }

    /// Whether bytes of the image are seen to move.
    fn sends(&self) -> bool {
        let state = self.op.map(|op| &op.state);
        matches!(state, Some(OpState::Running { bytes: Some(_), .. }))
    }

    /// How many are before it, while it has to wait for its turn to move bytes.
    pub(super) fn queued(&self) -> Option<u32> {
        match self.op.map(|op| &op.state) {
            Some(OpState::Queued { ahead, .. }) if self.moving().is_some() => Some(*ahead),
            _ => None,
        }
    }

    /// Whether what was asked for by the annotation was done: somebody looked.
    pub(super) fn is_answered(&self) -> bool {
        let has_looked = matches!(self.seen.cloud, Sight::Seen { fresh: true, .. } | Sight::Failed { .. });
        has_looked || matches!(self.step, Step::Hold(_)) || self.wanted.identity.is_none()
    }
}

fn record<'a>(cloud: &'a Cloud, wanted: &Wanted, kept: &Kept) -> Option<&'a RecordSeen> {
    let mine = || cloud.records.iter().filter(|record| record.key == wanted.key);
    let had = kept.image.as_ref().filter(|image| !image.adopted);
    let had = had.and_then(|image| mine().find(|record| record.id == image.id));
    had.or_else(|| mine().max_by_key(|record| record.attempt))
}

/// What was ready stays so until something is seen that says otherwise.
fn is_ready(view: &View<'_>) -> bool {
    let is_wanted = view.kept.key.as_ref() == Some(&view.wanted.key);
    if view.wanted.deleting.is_some() || matches!(view.step, Step::Hold(_)) || !is_wanted {
        return false;
    }
    let Some(image) = &view.kept.image else { return false };
    match view.cloud {
        Some(cloud) => is_good(image, cloud, view),
        None => view.before.ready && view.before.image.as_ref().is_some_and(|before| before.id == image.id),
    }
}

fn is_good(image: &CloudImage, cloud: &Cloud, view: &View<'_>) -> bool {
    let wanted = view.wanted;
    if image.adopted {
        let mut others = cloud.others.iter();
        return others.any(|other| other.id == image.id && counts(wanted, other));
    }
    cloud.records.iter().any(|record| {
        record.id == image.id
            && record.key == wanted.key
            && record.state == RecordState::Whole
            && mark_counts(record, wanted, &view.kept)
    })
}

fn work(view: &View<'_>) -> Work {
    match view.moving() {
        // What was built is sent by the same Job.
        Some(DeedName::Build) if view.sends() => return Work::Transferring,
        Some(DeedName::Build) => return Work::Building,
        Some(DeedName::Transfer) => return Work::Transferring,
        Some(DeedName::Import) => return Work::Importing,
        Some(DeedName::ReadBack) => return Work::Verifying,
        _ => {}
    }
    match view.record.map(|record| record.state) {
        Some(RecordState::Receiving) => Work::Transferring,
        Some(RecordState::Importing) => Work::Importing,
        Some(RecordState::Whole) => Work::Verifying,
        Some(RecordState::Withdrawn) => Work::Deactivated,
        None if view.cloud.is_none() || view.wanted.adopts() => Work::Nothing,
        None | Some(RecordState::Empty | RecordState::Spoilt | RecordState::Dead | RecordState::Going) => {
            Work::Preparing
        }
    }
}
