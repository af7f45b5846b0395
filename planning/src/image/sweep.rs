//! Which images of ours in a cloud belong to no object any more, and which of them may go. Deletes nothing.
//!
//! An image of a live object is that object's to decide about, whatever its attempt. What is left over is deleted only when it was seen twice, some time
//! apart, with the list of objects complete: an object that was just made, or that moves from one management cluster to another, must not lose its image.
//! What another installation holds is that one's to decide about: its object has moved there, and here nobody knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How old an image must be at least: whoever began it writes its status in seconds.
pub const GRACE: Duration = Duration::from_hours(1);
/// How far two looks must lie apart that both find an image without an object.
pub const SEEN_APART: Duration = Duration::from_mins(30);

/// An image in the cloud that carries our owner's mark, or that we hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedImage {
    /// The cloud's id.
    pub id: String,
    /// The object that it was made for, as `namespace/name`.
    pub object: String,
    /// With which attempt.
    pub attempt: u32,
    /// When it was made, by the cloud's clock.
    pub created: Timestamp,
    /// Whether it was verified and shown.
    pub verified: bool,
    /// How many bytes it has, where that is known.
    pub size: Option<u64>,
    /// Whether another installation has taken it over, and works on it.
    #[serde(default)]
    pub held_elsewhere: bool,
}

/// When an image was first found without an object, by its id. Only memory: a new process begins anew.
pub type Sightings = BTreeMap<String, Duration>;

/// What is done about one orphan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepDeed {
    /// The image.
    pub image: OwnedImage,
    /// Whether it is to be deleted now; else it is only told of.
    pub delete: bool,
    /// Whether it is found for the first time, and to be told in an event.
    pub is_new: bool,
}

/// What a sweep comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// All orphans, by id.
    pub deeds: Vec<SweepDeed>,
    /// What the next sweep is to be told.
    pub sightings: Sightings,
}

/// How long after one sweep the next one is due: an hour, a tenth more or less by whose images are looked for and the number of the sweep, so that the
/// operators of one cloud do not ask it at the same moment.
pub fn sweep_again(owner: &str, round: u64) -> Duration {
    let mixed = owner.bytes().fold(round, |mixed, byte| {
        mixed.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let tenth = GRACE.as_secs() / 10;
    Duration::from_secs(GRACE.as_secs() - tenth + mixed % (2 * tenth + 1))
}

/// What somebody may have deleted at once who has looked at the list himself: his look stands for the two of [`sweep()`], and everything else holds as
/// there. `live` is complete.
pub fn listed(owned: &[OwnedImage], live: &BTreeSet<String>, wall: Timestamp, with_verified: bool) -> Vec<SweepDeed> {
    let looked_at = owned.iter().map(|image| (image.id.clone(), Duration::ZERO)).collect();
    sweep(owned, Some(live), &looked_at, wall, SEEN_APART, with_verified).deeds
}

/// What is to be done about the images that a cloud has of ours.
///
/// `live`: the objects that exist, as `namespace/name`, whatever cloud they name; `None` while not all of them are known, when nothing is an orphan and
/// nothing counts as seen. What is held elsewhere is no orphan, whatever is live. `wall` and `steady` are the same moment on two clocks. Verified images go
/// only where `with_verified` says so.
pub fn sweep(
    owned: &[OwnedImage],
    live: Option<&BTreeSet<String>>,
    sightings: &Sightings,
    wall: Timestamp,
    steady: Duration,
    with_verified: bool,
) -> Swept {
    let Some(live) = live else {
        return Swept {
            deeds: Vec::new(),
            sightings: sightings.clone(),
        };
    };
    let mut swept = Swept::default();
    let mut orphans: Vec<&OwnedImage> = owned
        .iter()
        .filter(|image| !image.held_elsewhere && !live.contains(&image.object) && is_old(image, wall))
        .collect();
    orphans.sort_by(|one, other| one.id.cmp(&other.id));
    for image in orphans {
        let before = sightings.get(&image.id);
        let first = *before.unwrap_or(&steady);
        let is_settled = steady.saturating_sub(first) >= SEEN_APART;
        swept.sightings.insert(image.id.clone(), first);
        swept.deeds.push(SweepDeed {
            image: image.clone(),
            delete: is_settled && (with_verified || !image.verified),
            is_new: before.is_none(),
        });
    }
    swept
}

/// A clock of the cloud that is ahead only makes it wait.
fn is_old(image: &OwnedImage, wall: Timestamp) -> bool {
    SignedDuration::try_from(GRACE).is_ok_and(|grace| wall.duration_since(image.created) >= grace)
}
