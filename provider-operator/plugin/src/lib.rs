//! What a provider of node images is asked for: an image store, seen through one trait. Knows no Kubernetes and no cloud.
//!
//! # Write a provider
//!
//! A provider is two things: a [`Provider`], which is how the operator finds and connects it, and an [`ImageStore`], which is everything that
//! is done in one cloud. Neither decides anything. The operator asks what is there ([`ImageStore::observe`]), decides, and asks for one thing
//! at a time; whatever happens in between, it asks again what is there. So a store keeps no memory between calls, and needs none: what has to
//! be known later is written into the cloud, beside the image.
//!
//! An image goes through these hands:
//!
//! 1. [`ImageStore::create`] makes a *record* with our marks on it ([`Subject::owner`], [`Subject::object`], [`Subject::key`], the
//!    [`Attempt`]): an image without bytes, that nobody outside can see or use.
//! 2. [`ImageStore::transfer`] sends the bytes of a [`Content`]. Dropping the future is the cancel, at any await. The last bytes are held back
//!    until everything is known to be right and the [`Seal`] is stored, so a cloud that gets all bytes has the right ones, and a cloud that
//!    does not has no image.
//! 3. [`ImageStore::publish`] marks it as verified and shows it, in one write.
//!
//! A record that failed is never mended: the next attempt is another record, and the old one goes ([`ImageStore::discard`]). Only what carries
//! our owner is ever changed or deleted.
//!
//! The feature `suite` has what holds for every provider as tests: `provider_plugin::provider_suite!`.

mod addresses;
mod compression;
mod content;
mod digest;
mod error;
mod image;
mod observed;
mod registry;
mod report;
mod requests;
mod resume;
mod sniff;
mod source;
mod speed;
mod store;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

pub use self::addresses::Addresses;
pub use self::compression::Compression;
pub use self::content::{Body, Content, ContentPlan, ContentStream, Sums, SumsHandle, Turn, packed_at_source};
pub use self::digest::{Algorithm, DigestError, Hasher, Pinned, sums};
pub use self::error::{CloudError, ContentError, ErrorClass, Quota, SourceError, cut_words};
pub use self::image::{
    Attempt, ContentKey, CreateOptions, Format, ImageError, ImageId, ImageSpec, Marked, OwnerId, Reach, Subject,
};
pub use self::observed::{Drift, Foreign, Observed, Record, RecordState};
pub use self::registry::{CloudName, Identity, Provider};
pub use self::report::{Meter, Progress, Report, Seal, SealError, Stage};
pub use self::requests::Requests;
pub use self::source::{ByteStream, ImageSource, Opened, Probe};
pub use self::speed::Speed;
pub use self::store::{Capabilities, Created, Discarded, ImageStore, Owned, Preflight, Sent};
