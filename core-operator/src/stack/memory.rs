//! What the process remembers of stacks between reconciles. All of it can be lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use planning::next::retry_delay_seconds;
use planning::stack::{ActionFailure, AppliedProviderObject, StackAction};

/// How many reversals are remembered; the plan looks at three.
const REVERSALS: usize = 4;

/// Memory of one stack.
#[derive(Clone, Default)]
pub(super) struct StackMemory {
    /// Of the shard in which it is.
    term: u64,
    /// The last wish for a look that was heard.
    requested_at: Option<String>,
    /// When its status was last written.
    pub(super) status_written_at: Option<Timestamp>,
    /// How often in a row its status could not be written.
    pub(super) status_refusals: u32,
    /// What failed last, by the subject of the action.
    pub(super) failures: BTreeMap<String, ActionFailure>,
    /// Provider objects as they were applied last, by name.
    pub(super) applied: BTreeMap<String, AppliedProviderObject>,
}

/// Memories of all stacks, by identity of the stack.
#[derive(Default)]
pub(crate) struct StackMemories {
    by_uid: Mutex<HashMap<String, StackMemory>>,
}

impl StackMemories {
    /// A pass begins. What is remembered of an earlier term of the shard is forgotten: others worked on the stack since. Who asks for a look wants to
    /// see what becomes of it now: waits after failures end.
    pub(super) fn begin(&self, uid: &str, term: u64, requested_at: Option<&String>) {
        let mut memories = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = memories.entry(uid.to_owned()).or_default();
        if memory.term != term {
            *memory = StackMemory {
                term,
                ..StackMemory::default()
            };
        }
        if memory.requested_at.as_ref() != requested_at {
            memory.requested_at = requested_at.cloned();
            // A wish that is taken back asks for nothing.
            if requested_at.is_some() {
                memory.failures.clear();
                memory.status_refusals = 0;
                memory
                    .applied
                    .values_mut()
                    .for_each(|applied| applied.reversals.clear());
            }
        }
    }

    /// A copy of what is remembered.
    pub(super) fn of(&self, uid: &str) -> StackMemory {
        self.by_uid
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid)
            .cloned()
            .unwrap_or_default()
    }

    /// Remembers a write of the status.
    pub(super) fn status_written(&self, uid: &str, at: Timestamp) {
        self.change(uid, |memory| {
            memory.status_written_at = Some(at);
            memory.status_refusals = 0;
        });
    }

    /// Remembers that the status could not be written; the answer is when to look again. Where somebody else wrote the stack, the watch usually
    /// tells before.
    pub(super) fn status_refused(&self, uid: &str) -> Duration {
        let mut delay = Duration::ZERO;
        self.change(uid, |memory| {
            memory.status_refusals = memory.status_refusals.saturating_add(1);
            delay = Duration::from_secs(retry_delay_seconds(memory.status_refusals).unsigned_abs());
        });
        delay
    }

    /// Remembers how an action ended.
    pub(super) fn acted(&self, uid: &str, action: &StackAction, outcome: Result<(), String>, at: Timestamp) {
        self.change(uid, |memory| {
            let before = memory.failures.remove(&action.subject());
            if let Err(message) = outcome {
                let attempts = before.map_or(0, |failure| failure.attempts) + 1;
                let failure = ActionFailure { message, attempts, at };
                memory.failures.insert(action.subject(), failure);
            }
        });
    }

    /// Remembers what became of a provider object. The same apply as before that changed something has put back what somebody else did.
    pub(super) fn applied(&self, uid: &str, name: &str, mut applied: AppliedProviderObject, has_changed: bool) {
        self.change(uid, |memory| {
            let before = memory.applied.get_mut(name);
            if let Some(before) = before.filter(|before| before.action == applied.action) {
                applied.reversals = std::mem::take(&mut before.reversals);
                if has_changed {
                    applied.reversals.push(applied.at);
                }
                let older = applied.reversals.len().saturating_sub(REVERSALS);
                applied.reversals.drain(..older);
            }
            memory.applied.insert(name.to_owned(), applied);
        });
    }

    /// Forgets the provider objects of releases that are not among these.
    pub(super) fn retain(&self, uid: &str, is_there: impl Fn(&str) -> bool) {
        self.change(uid, |memory| memory.applied.retain(|name, _| is_there(name)));
    }

    /// Forgets a stack that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Of a stack that was forgotten during the pass nothing is remembered.
    fn change(&self, uid: &str, change: impl FnOnce(&mut StackMemory)) {
        let mut memories = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = memories.get_mut(uid) {
            change(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shard_that_was_another_process_s_is_begun_without_memory() {
        let memories = StackMemories::default();
        memories.begin("a", 1, None);
        memories.status_written("a", Timestamp::UNIX_EPOCH);
        memories.begin("a", 1, None);
        assert!(memories.of("a").status_written_at.is_some(), "the shard is the same");
        memories.begin("a", 2, None);
        assert!(memories.of("a").status_written_at.is_none());
    }

    #[test]
    fn a_new_wish_ends_the_waits_after_failures_once() {
        let memories = StackMemories::default();
        let action = StackAction::DeleteRelease {
            tag: "docker-harbor-1-34-v1".to_owned(),
            uid: "v1".to_owned(),
        };
        let wish = |text: &str| Some(text.to_owned());
        memories.begin("a", 1, None);
        for (wish, ends) in [
            (None, false),
            (wish("now"), true),
            (wish("now"), false),
            (wish("again"), true),
            (None, false),
            (wish("again"), true),
        ] {
            memories.acted("a", &action, Err("no".to_owned()), Timestamp::UNIX_EPOCH);
            memories.begin("a", 1, wish.as_ref());
            assert_eq!(memories.of("a").failures.is_empty(), ends, "{wish:?}");
        }
    }

    #[test]
    fn only_an_apply_that_changed_something_again_counts_as_a_reversal() {
        let memories = StackMemories::default();
        memories.begin("a", 1, None);
        let applied = |size: &str, second: i64| {
            let action = json!({ "ApplyProviderObject": {
                "reference": { "name": "v1" }, "release_uid": "u", "spec": { "size": size }, "labels": {}, "annotations": {},
            } });
            let object = json!({ "spec": {}, "labels": {}, "annotations": {}, "deleting": false });
            AppliedProviderObject {
                action: serde_json::from_value(action).expect("an action"),
                became: serde_json::from_value(object).expect("an object"),
                at: Timestamp::from_second(second).expect("a time"),
                reversals: Vec::new(),
            }
        };
        let table = [
            (applied("small", 1), true, 0, "the first"),
            (applied("small", 2), false, 0, "nothing was changed"),
            (applied("small", 3), true, 1, "somebody had changed it"),
            (applied("small", 4), false, 1, "nothing was changed"),
            (applied("large", 5), true, 0, "something else is wanted"),
            (applied("large", 7), true, 1, "somebody had changed it"),
        ];
        for (applied, has_changed, reversals, why) in table {
            memories.applied("a", "v1", applied, has_changed);
            assert_eq!(memories.of("a").applied["v1"].reversals.len(), reversals, "{why}");
        }
        memories.begin("a", 1, Some(&"now".to_owned()));
        assert!(
            memories.of("a").applied["v1"].reversals.is_empty(),
            "somebody asks for a look"
        );
    }

    #[test]
    fn a_pass_that_ends_after_its_stack_has_gone_leaves_nothing_behind() {
        let memories = StackMemories::default();
        memories.begin("a", 1, None);
        memories.forget("a");
        memories.status_written("a", Timestamp::UNIX_EPOCH);
        assert!(memories.by_uid.lock().expect("the memories").is_empty());
    }
}
