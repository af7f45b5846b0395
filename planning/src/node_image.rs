//! What is done about one release of a provider: which objects of images there shall be, whose they are, and what the release says of them.
//!
//! Releases that need the same image share its object: each of them owns it, and it goes with the last one. Nothing is said or done about the image
//! itself; that is decided in [`image`](crate::image).

mod action;
mod entries;
mod findings;
mod names;
mod observed;
mod plan;
mod status;
mod summary;

pub use action::ReleaseAction;
pub use entries::{EntriesError, ImageEntry, NormalSpec, entries, normal_spec};
pub use names::object_name;
pub use observed::{Files, ImageView, OwnerView, ReleaseObserved};
pub use plan::{ReleasePlan, plan};
