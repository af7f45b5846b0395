//! What becomes of what the watch tells. Asks nobody and ends nothing.

use std::time::Duration;

use planning::image::StopReason;

use super::{Desk, Entry, State, Target, attempt};
use crate::executor::jobs::ending::vanished;
use crate::executor::jobs::known::{Known, Stage};
use crate::objects::ObjectId;

impl Desk {
    pub(in super::super) fn begin_list(&mut self) {
        self.listing.clear();
    }

    /// Gives the Jobs that are thought to be there and are in no list.
    pub(in super::super) fn end_list(&mut self) -> Vec<String> {
        self.is_listed = true;
        self.barred.remove("");
        let listed = std::mem::take(&mut self.listing);
        let jobs = self.entries.values().filter_map(|entry| entry.job.as_ref());
        jobs.filter(|job| !listed.contains(&job.uid))
            .map(|job| job.uid.clone())
            .collect()
    }

    /// Says whether there is news, and whether its Pods are to be asked how it ended.
    pub(in super::super) fn see(&mut self, known: &Known, now: Duration) -> (bool, bool) {
        self.listing.insert(known.uid.clone());
        let (object, lives) = (&known.plan.object, is_alive(known));
        // Nothing is to be done about the one before any more, and this one is as good as found.
        let is_found = |entry: &Entry| lives && matches!(entry.state, State::Noted) && !entry.is(&known.uid);
        if self.entries.get(object).is_some_and(is_found) {
            self.entries.remove(object);
        }
        let entry = match self.entries.get_mut(object) {
            Some(entry) if entry.is(&known.uid) => entry,
            // An earlier one of this name may be in the way of the one that is being made; one that is being made is known by its deed.
            Some(entry) if entry.job.is_none() => {
                if !lives || entry.deed != known.plan.deed {
                    return (false, false);
                }
                // Whoever made it had no answer, and took it for not made.
                if matches!(entry.state, State::Ended { .. }) {
                    (entry.since, entry.state) = (now, State::Under);
                }
                entry
            }
            Some(_) => return (false, false),
            None if known.is_noted => return (false, false),
            // Nobody waits for it any more; but one that is being deleted when this process begins may have been told to end by an earlier life.
            None if known.stage == Stage::Goes && self.is_listed => return (false, false),
            None => self
                .entries
                .entry(object.clone())
                .or_insert_with(|| Entry::new(&known.plan, now)),
        };
        entry.job.get_or_insert_with(|| Target {
            name: known.name.clone(),
            uid: known.uid.clone(),
        });
        match (&known.stage, &entry.state) {
            (Stage::Begins, State::Under) => {
                entry.is_silent = entry.sends.is_some();
                (true, false)
            }
            (Stage::Sends, State::Under) => {
                let is_news = entry.sends.is_none();
                entry.is_silent = false;
                entry.held = None;
                entry.sends.get_or_insert(now);
                (is_news, false)
            }
            (Stage::Goes, State::Under | State::Asking) => {
                // Whoever deletes it has his reasons; the next decision finds out.
                let why = StopReason::Changed;
                entry.state = State::Stopping { since: now, why };
                (true, false)
            }
            (Stage::Over(_), State::Under) => {
                entry.state = State::Asking;
                (false, true)
            }
            _ => (false, false),
        }
    }

    /// Whether this Job is of an earlier attempt than what is under way. Nobody waits for it, and it would go on beside that.
    pub(in super::super) fn is_left_over(&self, known: &Known) -> bool {
        let is_later = |entry: &Entry| {
            let is_under_way = !matches!(entry.state, State::Noted);
            is_under_way && !entry.is(&known.uid) && entry.attempt() > attempt(&known.plan.deed)
        };
        is_alive(known) && self.entries.get(&known.plan.object).is_some_and(is_later)
    }

    /// A Job is not there any more; gives its object where that is news.
    pub(in super::super) fn gone(&mut self, uid: &str, now: Duration) -> Option<ObjectId> {
        let (object, entry) = self.entries.iter_mut().find(|(_, entry)| entry.is(uid))?;
        let object = object.clone();
        let name = entry.job.as_ref().map_or("", |job| job.name.as_str());
        let outcome = match &mut entry.state {
            State::Under | State::Asking => Err(vanished(&format!("the Job {name} was deleted"))),
            State::Stopping { why, .. } => {
                let why = *why;
                Err(entry.stopped(why))
            }
            State::Ended { stays, .. } => {
                *stays = false;
                return None;
            }
            State::Noted => {
                self.entries.remove(&object);
                return None;
            }
        };
        entry.end(outcome, now, false);
        Some(object)
    }

    pub(in super::super) fn is_listed(&self) -> bool {
        self.is_listed || self.barred.contains_key("")
    }
}

/// Whether it has work to do, and does it.
fn is_alive(known: &Known) -> bool {
    matches!(known.stage, Stage::Begins | Stage::Sends) && !known.is_noted
}
