//! What holds for every provider, as tests: one statement a function, against a cloud that the provider's own tests give.
//!
//! ```text
//! provider_plugin::provider_suite!(TheHarness::new());
//! ```
//!
//! makes one test of each statement. The expression is evaluated for each of them, so that none finds what another left. What a provider
//! cannot have, by its [`Capabilities`](crate::Capabilities), is skipped and said so; and it has to refuse what it says that it cannot do
//! ([`hostile::what_a_cloud_cannot_do_is_refused`]), so that nobody gets round a statement by saying less. A provider that transfers no images
//! is asked for what is not about images of ours: that it writes nothing, ends, and keeps secrets. Nothing that ships has the feature of this
//! module.

pub mod cancel;
pub mod create;
pub mod discard;
pub mod hostile;
mod lab;
#[cfg(test)]
mod memory;
pub mod ownership;
mod report;
mod source;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod verify;

use std::{fmt, future::Future};

use async_trait::async_trait;
use futures::future::BoxFuture;

pub use self::{
    report::Notes,
    source::{ScriptedSource, SharedSource},
};
use crate::{Algorithm, CloudError, ContentError, ContentKey, Hasher, ImageSpec, ImageStore, OwnerId, Reach, Subject};

/// A cloud of which the suite makes images, and which has none of the suite's before.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The provider's store.
    type Store: ImageStore;

    /// The cloud, connected anew: as another life of the operator would.
    async fn store(&self) -> Self::Store;

    /// An image of this name that the cloud takes, and its bytes: at least 256 KiB, no text, unpacked. [`subject`] makes what is not the
    /// provider's own.
    fn image(&self, name: &str) -> (ImageSpec, Vec<u8>);

    /// Bytes that the cloud finds out not to be of the image's format, where it looks.
    fn bad_image(&self) -> Option<Vec<u8>> {
        None
    }

    /// The same image with an option that can be amended, and that is another one.
    fn amended(&self, _image: &ImageSpec) -> Option<ImageSpec> {
        None
    }

    /// What the store was given and must never say.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A subject for an image of this name: object and key follow from the name.
pub fn subject(owner: &OwnerId, name: &str) -> Subject {
    Subject {
        owner: owner.clone(),
        object: format!("suite/{name}"),
        key: key_of(name),
        name: name.to_owned(),
        recorded: None,
        made: None,
        attempt: None,
        adopt: None,
        look_for_others: false,
        reach: Reach::default(),
        only_recorded: false,
    }
}

/// A key that is the same for the same name.
pub(crate) fn key_of(name: &str) -> ContentKey {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(name.as_bytes());
    let hex = hasher.finish().hex().to_owned();
    ContentKey::parse(&hex).unwrap_or_else(|| unreachable!("a digest of sha256 has 64 hex digits"))
}

/// How a statement ended that was not broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It holds.
    Holds,
    /// This cloud has not what it is about.
    Skipped(&'static str),
}

/// A statement that does not hold, and what was there instead.
#[derive(Clone)]
pub struct Broken(String);

impl Broken {
    /// In these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

/// As words, because the harness of tests prints errors so.
impl fmt::Debug for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<CloudError> for Broken {
    fn from(error: CloudError) -> Self {
        Self(format!("{error} ({}, caused by {:?})", error.class, error.source))
    }
}

impl From<ContentError> for Broken {
    fn from(error: ContentError) -> Self {
        Self(format!("{error} ({})", error.class))
    }
}

/// One statement.
pub type Fact<H> = Box<dyn for<'a> Fn(&'a H) -> BoxFuture<'a, Result<Held, Broken>> + Send + Sync>;

/// Whether a statement holds; says so when it is skipped.
pub async fn run(name: &str, fact: impl Future<Output = Result<Held, Broken>>) -> Result<(), Broken> {
    if let Held::Skipped(why) = fact.await? {
        eprintln!("{name} is skipped: {why}");
    }
    Ok(())
}

/// All statements with their names.
pub fn facts<H: Harness>() -> Vec<(&'static str, Fact<H>)> {
    crate::provider_suite!(@each listed H)
}

fn boxed<H: Harness>(
    fact: impl for<'a> Fn(&'a H) -> BoxFuture<'a, Result<Held, Broken>> + Send + Sync + 'static,
) -> Fact<H> {
    Box::new(fact)
}

/// One test for each statement about this harness.
#[macro_export]
macro_rules! provider_suite {
    ($harness:expr) => {
        $crate::provider_suite! { @each tested $harness }
    };
    (@each $form:ident $given:tt) => {
        $crate::provider_suite! { @$form $given;
            create::create_is_once,
            create::create_of_a_taken_id_is_taken,
            transfer::transfer_then_publish,
            transfer::hidden_until_published,
            transfer::second_writer_is_state,
            verify::wrong_length,
            verify::mismatch_is_not_whole,
            verify::refused_seal_is_not_whole,
            verify::seal_before_last_byte,
            verify::spoilt_stays_spoilt,
            cancel::dropped_transfer_at_0,
            cancel::dropped_transfer_at_1,
            cancel::dropped_transfer_half,
            cancel::dropped_transfer_all_but_one,
            discard::discard_protected,
            discard::discard_twice,
            discard::discard_of_a_stranger,
            discard::discard_while_receiving,
            ownership::relinquish_then_not_owned,
            ownership::owned_is_exact,
            ownership::held_by_another,
            ownership::observe_writes_nothing,
            ownership::observe_other_keys,
            ownership::drift_is_seen_and_amended,
            hostile::errors_hide_secrets,
            hostile::calls_end,
            hostile::what_a_cloud_cannot_do_is_refused,
        }
    };
    (@tested $harness:expr; $($group:ident::$name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() -> Result<(), $crate::suite::Broken> {
                let harness = $harness;
                $crate::suite::run(stringify!($name), $crate::suite::$group::$name(&harness)).await
            }
        )*
    };
    (@listed $harness:ident; $($group:ident::$name:ident),* $(,)?) => {
        vec![$((
            stringify!($name),
            boxed::<$harness>(|harness| Box::pin($group::$name(harness))),
        )),*]
    };
}
