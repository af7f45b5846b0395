//! What was done to a cloud and is not seen there yet, and how long it is let be before the same is done again. Asks no cloud.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureClass};
use super::op::{Deed, DeedName, Done, Op, OpState};
use super::retry::look_again;
use super::seen::{Cloud, RecordState};

/// Something that succeeded and that no look at the cloud has shown yet: its lists may be late, or not have everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unshown {
    /// What: a record was made, deleted, or its marks were taken off.
    pub deed: Deed,
    /// How often in a row.
    pub times: u32,
    /// When it succeeded last, a steady time.
    pub at: Duration,
}

impl Unshown {
    /// What is to be shown now that something has ended, where this was to be before.
    pub fn after(before: Option<Self>, op: &Op, at: Duration) -> Option<Self> {
        let OpState::Ended { outcome: Ok(done), .. } = &op.state else {
            return before;
        };
        let name = op.deed.name();
        if matches!(name, DeedName::Look | DeedName::Probe) {
            return before;
        }
        let shows = matches!(name, DeedName::Create | DeedName::Discard | DeedName::Relinquish);
        // What could not be had was not made.
        if !shows || *done == Done::Taken {
            return None;
        }
        let same = before.filter(|before| before.deed == op.deed);
        let times = same.map_or(0, |before| before.times);
        Some(Self {
            deed: op.deed.clone(),
            times: times.saturating_add(1),
            at,
        })
    }

    /// The same, unless this is what a look has shown.
    pub fn unless_shown(self, cloud: &Cloud) -> Option<Self> {
        let mut records = cloud.records.iter();
        let is_shown = match &self.deed {
            Deed::Create { attempt, .. } => records.any(|record| record.attempt == *attempt),
            Deed::Discard { id, .. } => records.all(|record| record.id != *id || record.state == RecordState::Going),
            Deed::Relinquish { id } => records.all(|record| record.id != *id),
            _ => true,
        };
        (!is_shown).then_some(self)
    }

    /// When the same is done again, ever later, if no look has shown it by then; a steady time.
    pub(super) fn again(&self, key: &str) -> Duration {
        let state = Failure::new(FailureClass::State, "");
        self.at.saturating_add(look_again(&state, key, self.times))
    }

    /// Whether it cleared something away.
    pub(super) fn tidies(&self) -> bool {
        matches!(self.deed.name(), DeedName::Discard | DeedName::Relinquish)
    }

    /// In words, without a time.
    pub(super) fn told(&self) -> String {
        match &self.deed {
            Deed::Discard { id, .. } => format!("the image {id} was deleted, and the cloud still shows it"),
            Deed::Relinquish { id } => {
                format!("our marks were taken off the image {id}, and the cloud still shows them")
            }
            _ => "the record of the image was made, and the cloud does not show it".to_owned(),
        }
    }
}
