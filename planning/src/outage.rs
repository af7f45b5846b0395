//! Something that is tried again and again without success: since when, how often, and when next.

use crds::conditions::{Condition, ConditionStatus, ConditionType, MESSAGE_BYTES, Reason, find, one_line};
use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};

/// Bytes of what is told: a stack repeats it of its releases, behind words of its own, and must not cut off the end.
const TOLD_BYTES: usize = MESSAGE_BYTES / 4 * 3;

/// The time in which something was not had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When it was not had for the first time.
    pub since: Timestamp,
    /// How many times in a row it was not.
    pub attempts: u32,
    /// When it is tried again; `None` while that is being done.
    pub next: Option<Timestamp>,
}

impl Outage {
    /// The same outage, as old as the condition that tells of it already: a process begins to count when it starts.
    pub(crate) fn as_told_before(&self, conditions: &[Condition], type_: ConditionType, reason: Reason) -> Self {
        let told = find(conditions, type_).filter(|condition| {
            condition.status == ConditionStatus::False && condition.reason.as_deref() == Some(reason.as_str())
        });
        Self {
            since: told.map_or(self.since, |condition| self.since.min(condition.last_transition_time.0)),
            ..self.clone()
        }
    }

    /// What was said when it was tried last, and behind that all of this, which is never cut.
    pub fn tell(&self, message: &str) -> String {
        let Self { since, attempts, next } = self;
        // To the second: nobody tries more often, and people read this.
        let to_the_second = |time: &Timestamp| time.round(Unit::Second).unwrap_or(*time);
        let times = match attempts {
            1 => "once".to_owned(),
            _ => format!("{attempts} times"),
        };
        let next = match next {
            Some(next) => format!("next try at {}", to_the_second(next)),
            None => "is being tried again".to_owned(),
        };
        let told = format!(" (since {}, tried {times}, {next})", to_the_second(since));
        one_line(message, TOLD_BYTES.saturating_sub(told.len())) + &told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(attempts: u32, next: Option<&str>) -> Outage {
        Outage {
            since: "2026-11-21T09:00:00.25Z".parse().expect("a time"),
            attempts,
            next: next.map(|next| next.parse().expect("a time")),
        }
    }

    #[test]
    fn since_when_how_often_and_when_next_follow_what_was_said() {
        let next = Some("2026-11-21T10:15:00.75Z");
        for (outage, expected) in [
            (
                outage(1, next),
                "connection refused (since 2026-11-21T09:00:00Z, tried once, next try at 2026-11-21T10:15:01Z)",
            ),
            (
                outage(7, None),
                "connection refused (since 2026-11-21T09:00:00Z, tried 7 times, is being tried again)",
            ),
        ] {
            assert_eq!(outage.tell("connection refused"), expected);
        }
    }

    #[test]
    fn what_was_said_is_cut_and_never_since_when() {
        let told = outage(7, None).tell(&"ü".repeat(MESSAGE_BYTES));
        assert!(told.len() <= TOLD_BYTES, "{}", told.len());
        assert!(
            told.ends_with("ü... (since 2026-11-21T09:00:00Z, tried 7 times, is being tried again)"),
            "{told}"
        );
    }
}
