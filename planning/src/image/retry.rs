//! What follows from a deed that has ended: when it is tried again, or that it is not.
//!
//! A delay is as long as it says here, and up to a quarter longer: by a second where that is less, and by [`SPREAD`] at most.

use std::borrow::Cow;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::failure::{FINAL_EXITS, Failure, FailureClass};
use super::kept::{Halted, Kept, Retry};
use super::op::{Deed, DeedName, Done, Form, Op, StopReason};
use super::spread::spread;
use super::step::{HaltReason, Settlement};
use super::wanted::{Now, Wanted};
use super::wording::JOB_DELETED;

/// How much longer than it must something waits at most.
const SPREAD: Duration = Duration::from_mins(1);
/// Longest time between two tries of what may come back any moment: with the spread, five minutes.
const LONGEST: Duration = Duration::from_mins(4);
/// Longest time that a cloud may ask us to wait.
const LONGEST_ASKED: Duration = Duration::from_hours(1);
/// The cloud does too much at once: an upload takes minutes, so seconds would be in vain.
const BUSY: Duration = Duration::from_secs(30);
/// Somebody must delete something or ask for more, which takes people minutes at least. With the spread, five.
const QUOTA: Duration = Duration::from_mins(4);
/// How often what an image is too large for is sent so soon again: a cloud that was asked for room before had it, so that somebody else may have taken it.
const QUOTA_TRIED: u32 = 2;
/// A cloud may be late to know of new credentials; another version of the Secret ends the wait at once. With the spread, five minutes.
const CREDENTIALS: Duration = Duration::from_mins(4);
/// Somebody must give us a role.
const PERMISSION: Duration = Duration::from_mins(30);
/// Longest time between two builds of an image that the cloud does not take.
const BUILT_IN_VAIN: Duration = Duration::from_mins(30);
/// Machines live for days.
const IN_USE: Duration = Duration::from_hours(1);
/// A race with something of ours is over at the next look; three in a row are none.
pub(super) const RACES: u32 = 3;
/// A release may be seen before its files are there: three tries over so long say that they are not.
const SOURCE_TRIED: SignedDuration = SignedDuration::from_mins(4);
/// Tries that lie further apart than this say nothing together.
const SOURCE_WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// What follows from an op that has ended so. Of another content than the wanted one nothing follows, and neither from anything but clearing away
/// once the object is being deleted.
pub fn settle(op: &Op, outcome: &Result<Done, Failure>, wanted: &Wanted, kept: &Kept, now: Now) -> Settlement {
    let name = op.deed.name();
    let tidies = matches!(name, DeedName::Discard | DeedName::Relinquish);
    let concerns = tidies || (op.key == wanted.key && wanted.deleting.is_none());
    match outcome {
        _ if !concerns => Settlement::Nothing,
        Ok(Done::Looked | Done::Probed | Done::ReadBack | Done::Amended) => Settlement::Nothing,
        Ok(Done::Taken) => burned(&op.deed, kept),
        Ok(
            Done::Created { .. }
            | Done::Ours { .. }
            | Done::Sent
            | Done::ImportBegun
            | Done::Published
            | Done::Discarded
            | Done::Relinquished,
        ) => Settlement::Progressed,
        // What a cloud does not take by a stage, or does not fetch, is sent as it is.
        Err(failure) if is_import(&op.deed) && is_refused(failure) => Settlement::ImportRefused,
        Err(failure) => failed(name, &as_seen(failure, op, wanted), wanted, kept, now),
    }
}

/// What an op has failed with. A Job that was ended for something else, where nothing else is wanted, was deleted by somebody who may do so again and again.
pub(super) fn as_seen<'a>(failure: &'a Failure, op: &Op, wanted: &Wanted) -> Cow<'a, Failure> {
    let is_wanted = op.key == wanted.key && wanted.invalid.is_none() && wanted.deleting.is_none();
    let why = StopReason::Changed;
    if op.form == Form::Job && failure.class == (FailureClass::Stopped { why }) && is_wanted {
        return Cow::Owned(Failure::new(FailureClass::JobVanished, JOB_DELETED));
    }
    Cow::Borrowed(failure)
}

fn is_import(deed: &Deed) -> bool {
    matches!(deed, Deed::Transfer { staged: true, .. } | Deed::Import { .. })
}

fn is_refused(failure: &Failure) -> bool {
    matches!(
        failure.class,
        FailureClass::Unsupported | FailureClass::Invalid | FailureClass::Permission
    )
}

fn burned(deed: &Deed, kept: &Kept) -> Settlement {
    match deed {
        Deed::Create { attempt, .. } | Deed::Transfer { attempt, .. } | Deed::Build { attempt, .. }
            if *attempt >= kept.attempt =>
        {
            Settlement::Burned {
                attempt: attempt.saturating_add(1),
            }
        }
        _ => Settlement::Nothing,
    }
}

fn failed(deed: DeedName, failure: &Failure, wanted: &Wanted, kept: &Kept, now: Now) -> Settlement {
    let halt = |reason| Settlement::Halt(Halted::now(reason, &failure.message, wanted));
    let again = |delay: Duration| Settlement::Retry(again(deed, failure, wanted, kept, now, delay));
    let count = count(deed, failure.class, wanted, kept, now);
    match (failure.class, deed) {
        // Looks are in memory, options that cannot be brought in line are told, and an image that cannot be read back is judged without.
        (_, DeedName::Look | DeedName::Amend) => Settlement::Nothing,
        (FailureClass::Unsupported | FailureClass::Permission | FailureClass::Invalid, DeedName::ReadBack) => {
            Settlement::Nothing
        }
        (FailureClass::Stopped { why }, _) if why != StopReason::Stalled => Settlement::Nothing,
        (FailureClass::Unavailable | FailureClass::Throttled | FailureClass::Busy, DeedName::Build) => {
            again(built_in_vain(failure, count))
        }
        (FailureClass::Unavailable | FailureClass::Throttled, _) => again(patience(failure, count)),
        (FailureClass::Busy, _) => again(BUSY),
        // Each time bytes are moved for nothing, until somebody has done what people do.
        (FailureClass::Quota, DeedName::Transfer | DeedName::Build) if count > QUOTA_TRIED => again(PERMISSION),
        (FailureClass::Quota, _) => again(QUOTA),
        (FailureClass::Credentials, _) => again(CREDENTIALS),
        (FailureClass::Permission, _) => again(PERMISSION),
        (FailureClass::InUse, _) => again(IN_USE),
        (FailureClass::Invalid | FailureClass::Unsupported, DeedName::Discard | DeedName::Relinquish) => {
            again(PERMISSION)
        }
        (FailureClass::Invalid, _) => halt(HaltReason::Refused),
        (FailureClass::Unsupported, _) => halt(HaltReason::Unsupported),
        (FailureClass::SourceNotAnImage, _) => halt(HaltReason::SourceNotAnImage),
        (FailureClass::DigestUnknown, _) => halt(HaltReason::DigestUnknown),
        (FailureClass::SourceGone, _) => source_gone(deed, failure, wanted, kept, now),
        (FailureClass::SourceBroken | FailureClass::SourceChanged, _) => again(broken(count)),
        (FailureClass::SourceMismatch, _) if count == 1 => again(Duration::ZERO),
        (FailureClass::SourceMismatch, _) => mismatch(deed, failure, wanted, kept, now),
        (FailureClass::BuildFailed { exit }, _) if FINAL_EXITS.contains(&exit) => halt(HaltReason::BuildFailed),
        (FailureClass::BuildFailed { .. }, _)
        | (
            FailureClass::Stopped {
                why: StopReason::Stalled,
            },
            DeedName::Build,
        ) => twice_more(count).map_or_else(|| halt(HaltReason::BuildFailed), again),
        // Each time all bytes are moved for nothing.
        (FailureClass::OutOfMemory, _) => twice_more(count).map_or_else(|| halt(HaltReason::OutOfMemory), again),
        (FailureClass::Sealing, _) => twice_more(count).map_or_else(|| halt(HaltReason::SealNotKept), again),
        // Races; and what was stopped because it did not move may move the next time.
        (
            FailureClass::State
            | FailureClass::Gone
            | FailureClass::Unknown
            | FailureClass::NotOurs
            | FailureClass::JobVanished
            | FailureClass::Stopped { .. },
            _,
        ) => again(race(count)),
    }
}

/// The pause before the next try of what costs much and seldom mends itself; `None` after the third failure in a row.
fn twice_more(count: u32) -> Option<Duration> {
    match count {
        1 => Some(Duration::from_mins(1)),
        2 => Some(LONGEST),
        _ => None,
    }
}

/// The bytes were others twice, and downloaded anew between: what came first is in the message of the first failure.
fn mismatch(deed: DeedName, failure: &Failure, wanted: &Wanted, kept: &Kept, now: Now) -> Settlement {
    let first = same(deed, failure.class, wanted, kept, now).map_or("", |first| first.message.as_str());
    let message = if first == failure.message {
        format!("twice in a row: {first}")
    } else {
        format!("{}; the time before: {first}", failure.message)
    };
    Settlement::Halt(Halted::now(HaltReason::SourceMismatch, &message, wanted))
}

fn source_gone(deed: DeedName, failure: &Failure, wanted: &Wanted, kept: &Kept, now: Now) -> Settlement {
    let minutes = |minutes| {
        let delay = Duration::from_mins(minutes);
        Settlement::Retry(again(deed, failure, wanted, kept, now, delay))
    };
    match count(deed, failure.class, wanted, kept, now) {
        1 => minutes(1),
        2 => minutes(3),
        _ => {
            let first = kept.retry.as_ref().map_or(now.wall, |retry| retry.first_time);
            if now.wall.duration_since(first) >= SOURCE_TRIED {
                Settlement::Halt(Halted::now(HaltReason::SourceNotFound, &failure.message, wanted))
            } else {
                minutes(1)
            }
        }
    }
}

/// How often in a row it has failed so, with this time.
fn count(deed: DeedName, class: FailureClass, wanted: &Wanted, kept: &Kept, now: Now) -> u32 {
    match same(deed, class, wanted, kept, now) {
        Some(before) => before.count.saturating_add(1),
        None => 1,
    }
}

/// The failure before, if this one continues it: of another spec it says nothing. What is counted whatever fails in between continues the last of its kind.
fn same<'a>(deed: DeedName, class: FailureClass, wanted: &Wanted, kept: &'a Kept, now: Now) -> Option<&'a Retry> {
    let is_of_source = class == FailureClass::SourceGone;
    kept.retry.iter().chain(&kept.in_vain).find(|before| {
        let since = now.wall.duration_since(before.first_time);
        // What is missing when the source is asked is missing when it is read.
        let is_same = before.class == class && (before.deed == deed || is_of_source);
        // However a build fails, it is the same one.
        let is_same = is_same || class.is_of_build(deed) && before.class.is_of_build(before.deed);
        // Nor does it matter what keeps a built one from the cloud.
        let are_builds = deed == DeedName::Build && before.deed == DeedName::Build;
        let is_same = is_same || are_builds && class.is_on_the_way() && before.class.is_on_the_way();
        let is_same = is_same && before.generation == wanted.generation;
        is_same && !(is_of_source && since > SOURCE_WINDOW)
    })
}

fn again(deed: DeedName, failure: &Failure, wanted: &Wanted, kept: &Kept, now: Now, delay: Duration) -> Retry {
    let before = same(deed, failure.class, wanted, kept, now);
    let count = count(deed, failure.class, wanted, kept, now);
    Retry {
        deed,
        class: failure.class,
        message: failure.told(),
        count,
        first_time: before.map_or(began(now.wall), |before| before.first_time.min(now.wall)),
        until: later(now.wall, whole_seconds(apart(delay, &wanted.key, count))),
        identity: wanted.identity.clone(),
        request: wanted.request.clone(),
        generation: wanted.generation,
    }
}

/// A record that had to be given up, counted like a deed that failed, so that giving up slows down.
pub(super) fn given_up(deed: DeedName, message: &str, wanted: &Wanted, kept: &Kept, now: Now) -> Retry {
    let failure = Failure::new(FailureClass::Unknown, message);
    let delay = race(count(deed, failure.class, wanted, kept, now));
    again(deed, &failure, wanted, kept, now, delay)
}

/// Whether the success of one deed says that another one's failure is over: it comes later on the way of an image.
pub(super) fn is_over(done: DeedName, failed: DeedName) -> bool {
    let tidies = |deed| matches!(deed, DeedName::Discard | DeedName::Relinquish);
    tidies(done) == tidies(failed) && (tidies(done) || failed <= done)
}

/// How long after so many failed looks in a row the next one is. Those of one cloud fail together when it does, and by their keys do not come back together.
pub fn look_again(failure: &Failure, key: &str, count: u32) -> Duration {
    let delay = match failure.class {
        FailureClass::Credentials => CREDENTIALS,
        FailureClass::Permission | FailureClass::Invalid | FailureClass::Unsupported => PERMISSION,
        FailureClass::Unavailable
        | FailureClass::Throttled
        | FailureClass::Quota
        | FailureClass::Busy
        | FailureClass::State
        | FailureClass::Gone
        | FailureClass::Unknown
        | FailureClass::NotOurs
        | FailureClass::JobVanished
        | FailureClass::InUse
        | FailureClass::SourceGone
        | FailureClass::SourceBroken
        | FailureClass::SourceMismatch
        | FailureClass::SourceNotAnImage
        | FailureClass::SourceChanged
        | FailureClass::DigestUnknown
        | FailureClass::Sealing
        | FailureClass::BuildFailed { .. }
        | FailureClass::OutOfMemory
        | FailureClass::Stopped { .. } => patience(failure, count),
    };
    apart(delay, key, count)
}

/// Never sooner: what a cloud asks for it gets. What is done at once stays so.
fn apart(delay: Duration, key: &str, count: u32) -> Duration {
    let most = (delay / 4).clamp(Duration::from_secs(1), SPREAD);
    if delay.is_zero() {
        delay
    } else {
        delay + spread(key, count, most)
    }
}

/// As status keeps it.
fn whole_seconds(delay: Duration) -> Duration {
    Duration::from_secs((delay + Duration::from_millis(500)).as_secs())
}

/// As the cloud says, else 1, 2, 4, … seconds.
fn patience(failure: &Failure, count: u32) -> Duration {
    let told = failure.retry_after.map(|told| told.min(LONGEST_ASKED));
    told.unwrap_or_else(|| doubled(count))
}

/// What the cloud does not take is built anew, which takes a machine's time: after 1, 2, 4, … minutes, and never before the cloud says so.
fn built_in_vain(failure: &Failure, count: u32) -> Duration {
    let minutes = 1_u64 << count.saturating_sub(1).min(5);
    let pause = Duration::from_mins(minutes).min(BUILT_IN_VAIN);
    pause.max(patience(failure, count))
}

fn doubled(count: u32) -> Duration {
    let seconds = 1_u64 << count.saturating_sub(1).min(9);
    Duration::from_secs(seconds).min(LONGEST)
}

fn race(count: u32) -> Duration {
    if count <= RACES {
        Duration::ZERO
    } else {
        doubled(count - RACES)
    }
}

/// A source that breaks has been tried by the transfer itself for some minutes before.
fn broken(count: u32) -> Duration {
    match count {
        0 | 1 => Duration::from_secs(10),
        2 => Duration::from_secs(30),
        _ => Duration::from_mins(u64::from(count) - 2).min(LONGEST),
    }
}

/// The second that has begun: what is told of it is told in the same words when it has been in status, which keeps no parts of one.
fn began(wall: Timestamp) -> Timestamp {
    Timestamp::from_second(wall.as_second()).unwrap_or(wall)
}

/// So much later, on a whole second, as nobody is asked sooner than he said. What is done at once stays so.
fn later(wall: Timestamp, delay: Duration) -> Timestamp {
    let until = SignedDuration::try_from(delay)
        .ok()
        .and_then(|delay| wall.checked_add(delay).ok())
        .unwrap_or(Timestamp::MAX);
    if delay.is_zero() {
        return began(wall);
    }
    if until.subsec_nanosecond() == 0 {
        return until;
    }
    Timestamp::from_second(until.as_second().saturating_add(1)).unwrap_or(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_sooner_than_he_said_by_the_part_of_a_second_that_status_does_not_keep() {
        let wall: Timestamp = "2026-01-01T12:00:00.640Z".parse().expect("a time");
        let kept = |delay| super::super::status::whole_seconds(later(wall, delay)).0;
        assert!(kept(Duration::from_secs(3)) >= wall + SignedDuration::from_secs(3));
        assert!(later(wall, Duration::ZERO) <= wall, "what is done at once stays so");
        for time in [
            began(wall),
            later(wall, Duration::ZERO),
            later(wall, Duration::from_secs(3)),
        ] {
            assert_eq!(
                super::super::status::whole_seconds(time).0,
                time,
                "it reads the same again"
            );
        }
        let whole: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        assert_eq!(
            later(whole, Duration::from_secs(3)),
            whole + SignedDuration::from_secs(3)
        );
    }
}
