//! What every word means that an operator writes into a status or an event, what its reader does, and what the operator does next.
//! `docs/reference/reasons.md` is made of it; a test holds that no word is left out.

mod conditions;
mod images;
mod objects;
mod reasons;

pub use self::{
    conditions::CONDITIONS,
    images::{IMAGE_CONDITIONS, IMAGE_HAPPENINGS, IMAGE_REASONS},
    objects::{HAPPENINGS, HEALTH, PHASES, SYNC},
    reasons::{REASONS, REASONS_OF_LATER_VERSIONS},
};

/// What there is to say about one word, in whole sentences with the Markdown of documents beside the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<Word> {
    /// The word.
    pub word: Word,
    /// What is so when it is written.
    pub means: &'static str,
    /// What whoever reads it does.
    pub reader: &'static str,
    /// What the operator does next, without anybody.
    pub operator: &'static str,
}
