//! What a paused object says: how somebody stopped the work on it, and how it goes on.

use crds::conditions::{Condition, Reason, paused};
use jiff::Timestamp;

/// What is shown besides may have changed meanwhile.
const BEFORE: &str = "and the rest of the status is from before";

/// What is not done for paused add-ons.
const OBJECTS_OF_ADDONS: &str = "no object is applied, put back or deleted in the cluster";

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
    /// The annotation, on a ClusterAddon.
    Addon,
    /// `spec.paused` of the Cluster that add-ons are for.
    Cluster,
    /// The annotation, on the Cluster that add-ons are for.
    AnnotatedCluster,
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
            Self::Addon => {
                let message = annotation(OBJECTS_OF_ADDONS);
                paused(stored, Reason::Paused, &message, now)
            }
            Self::Cluster => {
                let message = format!(
                    "spec.paused of the Cluster is true: {OBJECTS_OF_ADDONS}, {BEFORE}; set it to false to go on"
                );
                paused(stored, Reason::Paused, &message, now)
            }
            Self::AnnotatedCluster => {
                let name = crds::labels::PAUSED;
                let message = format!(
                    "the annotation {name} of the Cluster is set: {OBJECTS_OF_ADDONS}, {BEFORE}; remove it to go on"
                );
                paused(stored, Reason::Paused, &message, now)
            }
            Self::Image => {
                let message = annotation("nothing is done about the image");
                paused(stored, Reason::Paused, &message, now)
            }
        }
    }
}
