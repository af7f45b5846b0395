//! What a deed is told, and what it brings. Plain values.

use planning::image::{Abilities, Deed, Done, ReadBack, Source};
use provider_plugin::{Compression, ImageSpec, Observed, OwnerId, Pinned};

use super::Failed;
use crate::objects::ObjectId;

/// A deed and what it is about. What it is done with, a cloud and files, is beside it.
#[derive(Clone, Debug)]
pub(crate) struct WorkPlan {
    /// The object that the image belongs to.
    pub(crate) object: ObjectId,
    /// What is done.
    pub(crate) deed: Deed,
    /// To which image; its key is that of the op.
    pub(crate) image: ImageSpec,
    /// The installation that does it. What it finds on a look is held by it from then on, whoever owns it, unless the object goes.
    pub(crate) holder: OwnerId,
    /// Whether the object is being deleted. Then what another installation holds is that one's: it is neither taken over nor deleted or given away.
    pub(crate) goes: bool,
    /// Whether a look says so to the cloud: not for a while where that did not work.
    pub(crate) holds: bool,
    /// What its bytes are.
    pub(crate) content: ContentSpec,
}

/// What holds for the bytes of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentSpec {
    /// Where they are, for a cloud that fetches them itself and for a Job; empty where there is no place that they could reach.
    pub(crate) url: String,
    /// The digest that they must have at their source. Where there is none and a file of sums is given, that is read for each deed that needs one.
    pub(crate) pinned: Option<Pinned>,
    /// The digest that they had when they were first used.
    pub(crate) remembered: Option<Pinned>,
    /// How they are packed at their source.
    pub(crate) compression: Compression,
    /// Whether the cloud is to fetch them as they lie, so that their beginning has to be looked at before.
    pub(crate) is_fetched: bool,
}

/// What a deed found out, beside whether it went well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// What the cloud has, of a look, with who holds it after that.
    pub(crate) observed: Option<Observed>,
    /// The installation that looked.
    pub(crate) looked: Option<OwnerId>,
    /// Whether all that another installation held could be taken over, of a look that had to.
    pub(crate) held: Option<bool>,
    /// What the cloud can do, of whatever reached it.
    pub(crate) abilities: Option<Abilities>,
    /// What the source and the cloud said beforehand, of a probe.
    pub(crate) source: Option<Source>,
    /// The digests of what was read from the cloud, or that it does not give it.
    pub(crate) read_back: Option<ReadBack>,
}

/// A deed that is over.
#[derive(Debug)]
pub(crate) struct Worked {
    /// How it went.
    pub(crate) outcome: Result<Done, Failed>,
    /// What it found.
    pub(crate) found: Found,
}

impl Worked {
    /// Failed, and found nothing.
    pub(crate) fn failed(failed: Failed) -> Self {
        Self {
            outcome: Err(failed),
            found: Found::default(),
        }
    }
}
