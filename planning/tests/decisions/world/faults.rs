//! What goes wrong, by the count of writes.

use std::collections::{BTreeMap, VecDeque};

use crds::cluster_stack::ClusterStackStatus;
use crds::cluster_stack_release::ClusterStackReleaseStatus;
use planning::object_key::ObjectKey;

use super::api::Api;
use super::{Process, World};

/// What happens to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The API server refuses; nothing was done.
    Refused,
    /// It was done, and the answer is lost.
    AnswerLost,
    /// The process dies before.
    CrashBefore,
    /// The process dies after.
    CrashAfter,
    /// As `CrashAfter`, and all status is lost with it.
    CrashAfterAndStatusLost,
}

/// The faults to come: one entry for each write, and words of the API server against single objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) coming: VecDeque<Option<Fault>>,
    /// Objects (by their printed key, or kind and name) that the API server refuses, and its words.
    pub(crate) refused: BTreeMap<String, String>,
    /// Objects that cannot be read.
    pub(crate) unreadable: BTreeMap<String, String>,
    /// How many writes there were.
    pub(crate) writes: usize,
}

/// How a write ended for the one who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    Done(T),
    Failed(String),
    /// The process is gone: nothing else may be done.
    Crashed,
}

impl Faults {
    pub(crate) fn next(&mut self) -> Option<Fault> {
        self.writes += 1;
        self.coming.pop_front().flatten()
    }
}

impl World {
    /// One write to the API server, or what becomes of it.
    pub(crate) fn write<T>(
        &mut self,
        key: Option<&ObjectKey>,
        act: impl FnOnce(&mut Api) -> Result<T, String>,
    ) -> Outcome<T> {
        if let Some(words) = key.and_then(|key| self.faults.refused.get(&key.to_string())) {
            return Outcome::Failed(words.clone());
        }
        let fault = self.faults.next();
        match fault {
            Some(Fault::Refused) => {
                return Outcome::Failed("the server is currently unable to handle the request".to_owned());
            }
            Some(Fault::CrashBefore) => return self.crash(),
            _ => {}
        }
        let done = act(&mut self.api);
        match fault {
            Some(Fault::AnswerLost) => Outcome::Failed("the answer was lost".to_owned()),
            Some(Fault::CrashAfter) => self.crash(),
            Some(Fault::CrashAfterAndStatusLost) => {
                for stack in self.api.stacks.values_mut() {
                    stack.status = ClusterStackStatus::default();
                }
                for release in self.api.releases.values_mut() {
                    release.status = ClusterStackReleaseStatus::default();
                }
                self.crash()
            }
            _ => done.map_or_else(Outcome::Failed, Outcome::Done),
        }
    }

    /// The process ends; what it knew is gone.
    pub(crate) fn crash<T>(&mut self) -> Outcome<T> {
        self.process = Process::default();
        self.journal.say("the operator crashes");
        Outcome::Crashed
    }
}
