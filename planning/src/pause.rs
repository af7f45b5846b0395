//! What a paused object says: how somebody stopped the work on it, and how it goes on.

use crds::conditions::{Condition, Reason, paused};
use jiff::Timestamp;

/// What is shown besides may have changed meanwhile.
const BEFORE: &str = "and the rest of the status is from before";

/// How the work on an object was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The annotation, on a ClusterStack.
    Stack,
    /// `spec.suspend` of a ClusterStack.
    Suspension,
    /// The annotation, on a ClusterStackRelease.
    Release,
    /// The annotation, on a provider's release object.
    ProviderRelease,
    /// The annotation, on the object of an image.
    Image,
    /// That of `clusterctl`, on a provider's release object.
    MovedRelease,
    /// The same, on the object of an image.
    MovedImage,
}

impl Pause {
    /// The conditions of an object with this pause; everything else that its status says stays.
    pub(crate) fn conditions(self, stored: &[Condition], now: Timestamp) -> Vec<Condition> {
        let annotation = |left: &str| {
            let name = crds::labels::PAUSED;
            format!("the annotation {name} is set: {left}, {BEFORE}; remove it to go on")
        };
        let moved = |left: &str| {
            let name = crds::labels::DELETE_FOR_MOVE;
            format!(
                "the annotation {name} is set, since clusterctl has made the object in another management cluster: {left}, {BEFORE}; \
                 delete this one, or remove the annotation if the other one is not there"
            )
        };
        let releases = "no release is created, changed or deleted";
        match self {
            Self::Stack => paused(stored, Reason::Paused, &annotation(releases), now),
            Self::Suspension => {
                let message = format!("spec.suspend is true: {releases}, {BEFORE}; set it to false to go on");
                paused(stored, Reason::Suspended, &message, now)
            }
            Self::Release => {
                let message = annotation("no object is applied, put back or deleted");
                paused(stored, Reason::Paused, &message, now)
            }
            Self::ProviderRelease => {
                let message = annotation("no object of an image is created, changed or deleted");
                paused(stored, Reason::Paused, &message, now)
            }
            Self::MovedRelease => {
                let message = moved("no object of an image is created, changed or deleted");
                paused(stored, Reason::Paused, &message, now)
            }
            Self::MovedImage => {
                let message = moved("nothing is done about the image");
                paused(stored, Reason::Paused, &message, now)
            }
            Self::Image => {
                let message = annotation("nothing is done about the image");
                paused(stored, Reason::Paused, &message, now)
            }
        }
    }
}
