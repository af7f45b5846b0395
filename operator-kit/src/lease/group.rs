//! The Lease that all replicas with the same number of shards hold together. It keeps everybody else from working, and says which of them are alive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planning::election::{Roll, Step};

use super::clock::Clock;
use super::slot::{Slot, Trouble};

/// How often a write is tried anew at once when another member was faster.
const ATTEMPTS: u32 = 3;

pub(super) struct Group {
    pub(super) slot: Slot,
    roll: Roll,
    /// Where the list of members is.
    annotation: &'static str,
    me: String,
    /// Without a sign of life for so long a member is dead. Not less than what it promises by the Lease: who is struck off has no Lease any more.
    patience: Duration,
    clock: Clock,
    /// The last sign of life that was sent. None is sent twice, so that it tells when it left.
    beat: u64,
    /// The same, and when, until it is seen: it may be on the list although no answer told so, or others have written since.
    sent: Option<(u64, Duration)>,
}

impl Group {
    pub(super) fn new(slot: Slot, annotation: &'static str, me: String, patience: Duration, clock: Clock) -> Self {
        Self {
            slot,
            roll: Roll::default(),
            annotation,
            me,
            patience,
            clock,
            beat: 0,
            sent: None,
        }
    }

    pub(super) fn living(&self) -> BTreeSet<String> {
        self.roll.living(self.clock.now(), self.patience)
    }

    /// Joins, or stays a member: renews the Lease with a new sign of life. Who is `leaving` has something to finish, and wants no share.
    pub(super) async fn join(&mut self, leaving: bool) -> Result<(), Trouble> {
        for attempt in 0..ATTEMPTS {
            self.look().await?;
            let now = self.clock.now();
            let is_there = attempt > 0 && self.sent.is_none();
            if is_there || self.slot.candidate.step(now) != Step::Write {
                return Ok(());
            }
            self.beat = self.roll.next_beat(&self.me, self.beat);
            let beats = self.roll.announced(&self.me, (self.beat, leaving), now, self.patience);
            self.slot.annotate(self.annotation, text_of(&beats));
            self.sent = Some((self.beat, now));
            if self.slot.write().await? {
                self.saw(&beats);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Leaves; the last lets the Lease go. Best effort: without it the others wait for as long as we promised.
    pub(super) async fn leave(&mut self) -> Result<(), Trouble> {
        for _ in 0..ATTEMPTS {
            self.look().await?;
            let now = self.clock.now();
            let is_listed = self.roll.beat(&self.me).is_some();
            if !is_listed || self.slot.candidate.step(now) != Step::Write {
                return Ok(());
            }
            let beats = self.roll.without(&self.me, now, self.patience);
            self.slot.annotate(self.annotation, text_of(&beats));
            let left = if beats.is_empty() {
                self.slot.release().await?
            } else {
                self.slot.store().await?
            };
            if left {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Trouble> {
        self.slot.look().await?;
        let beats = self.slot.annotation(self.annotation).map(String::as_str);
        // What somebody wrote there by hand is no list, and the next sign of life replaces it.
        let beats: BTreeMap<String, u64> = serde_json::from_str(beats.unwrap_or_default()).unwrap_or_default();
        self.saw(&beats);
        Ok(())
    }

    /// Who finds its own sign of life was a member when it was sent, whoever wrote the Lease since.
    fn saw(&mut self, beats: &BTreeMap<String, u64>) {
        let now = self.clock.now();
        self.roll.saw(beats, now);
        let beat = self.roll.beat(&self.me);
        if let Some((_, sent)) = self.sent.take_if(|(sent, _)| beat == Some(*sent)) {
            self.slot.candidate.wrote(sent, now);
        }
    }
}

fn text_of(beats: &BTreeMap<String, u64>) -> String {
    let members = beats.iter().map(|(member, beat)| (member.clone(), *beat));
    members.collect::<serde_json::Value>().to_string()
}
