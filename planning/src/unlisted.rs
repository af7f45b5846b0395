//! A watch that has not listed (again) yet: how long that is waited for, and what is said of it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::next::{Next, rests_until};

/// A process that begins gets its lists within this time, unless they are long or something is wrong.
const FIRST_LIST: SignedDuration = SignedDuration::from_secs(10);

/// How often it is looked what the API server says by then: nothing tells of it.
const WORDS_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// That a watch has not listed its objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlisted {
    /// Since when.
    pub since: Timestamp,
    /// What went wrong last, in the words of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Unlisted {
    /// Until when everything is left as it is, because the list is about to come. One that never comes ends in an error.
    pub(crate) fn patience_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.error {
            None => now.checked_add(FIRST_LIST).ok(),
            Some(_) => rests_until(self.since, FIRST_LIST, now),
        }
    }

    /// What is said of something, and why.
    pub(crate) fn tell(&self, what: &str) -> String {
        match &self.error {
            Some(error) => format!("{what}: {error}"),
            None => what.to_owned(),
        }
    }
}

/// When to look whether the API server says why by then.
pub(crate) fn next_words(now: Timestamp) -> Next {
    now.checked_add(WORDS_INTERVAL).map_or(Next::Await, Next::At)
}
