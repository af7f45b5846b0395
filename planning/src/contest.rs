//! When somebody keeps undoing what we write: we stop for a while, and say so.

use jiff::{SignedDuration, Timestamp};

/// After this many reversals within [`WINDOW`] somebody else keeps writing what we keep putting back, and we stop.
const REVERSALS: usize = 3;

/// The window of the rule above; also how long we stay away.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// Until when something is left alone that was put back at these times, the newest last.
pub(crate) fn contested_until(reversals: &[Timestamp], now: Timestamp) -> Option<Timestamp> {
    let since = now.saturating_sub(WINDOW).unwrap_or(Timestamp::MIN);
    let mut recent = reversals.iter().rev().filter(|at| **at > since && **at <= now);
    let third_last = recent.nth(REVERSALS - 1)?;
    Some(third_last.saturating_add(WINDOW).unwrap_or(Timestamp::MAX))
}

/// What is said of it then, after what differs.
pub(crate) fn tell(message: &str, until: Timestamp) -> String {
    let until = until.strftime("%H:%M UTC");
    format!("{message}; put back {REVERSALS} times in ten minutes, left alone until {until}")
}
