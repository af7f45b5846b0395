//! What is done about images of ours: one is verified and shown, the others go, and what stands still is given up.

use std::time::Duration;

use super::absent;
use super::case::{Case, in_process, until_seen, until_shown};
use super::decide::{AMEND_AGAIN, LOOK_WAITING, look_ready};
use super::deletion::GOING;
use super::judge::{Verdict, can_be_read_back, judge, mark_counts};
use super::kept::CloudImage;
use super::op::{Deed, DiscardReason};
use super::seen::{Cloud, RecordSeen, RecordState, Sight};
use super::sending::{Path, path, send};
use super::step::{AttemptReason, Intent, Step};
use super::wait::{Awaited, Since, Until, WaitReason};
use super::wanted::{DeletionPolicy, ImagePolicy, Via};
use super::wording::{DEACTIVATED, FOREIGN_TRANSFER, IMPORTING, STORING};

/// How long an import may take at least: a cloud may begin late.
pub const IMPORT_BASE: Duration = Duration::from_mins(15);
/// Bytes in a second that a cloud should fetch.
pub const IMPORT_RATE: u64 = 2 * 1024 * 1024;
/// How often one looks at what may change any moment.
const LOOK_OFTEN: Duration = Duration::from_secs(5);

/// How long a cloud may take to fetch so many bytes, or to store them.
pub(super) fn cloud_takes(bytes: u64) -> Duration {
    IMPORT_BASE + Duration::from_secs(bytes / IMPORT_RATE)
}

pub(super) fn ladder(case: &Case<'_>, cloud: &Cloud, at: Duration) -> Option<Step> {
    let mine = mine(case, cloud);
    if mine.is_empty() {
        return None;
    }
    noted(case, &mine)
        .or_else(|| best(case, &mine).map(|best| verified(case, cloud, &mine, best, at)))
        .or_else(|| withdrawn(&mine, at))
        .or_else(|| instead_of_ours(case, &mine))
        .or_else(|| lower(case, &mine, at))
        .or_else(|| current(case, &mine).map(|record| in_state(case, cloud, record, at)))
}

/// What is cleared away also while nothing else is done.
pub(super) fn tidy(case: &Case<'_>, cloud: &Cloud) -> Option<Step> {
    let mine = mine(case, cloud);
    if mine.is_empty() {
        return None;
    }
    let spoilt = || {
        let record = current(case, &mine)?;
        matches!(record.state, RecordState::Spoilt | RecordState::Dead)
            .then(|| next(case, record.attempt, AttemptReason::Spoilt))
    };
    let lower = || {
        // Nothing is made after it, so that none has to wait until another is gone.
        let is_left = |record: &&&RecordSeen| record.attempt < case.kept.attempt && record.state != RecordState::Going;
        let record = mine.iter().find(is_left)?;
        let rests = case.tidied_again().is_some();
        (!rests).then(|| discard(record, DiscardReason::LowerAttempt))
    };
    noted(case, &mine).or_else(spoilt).or_else(lower)
}

/// Whether an image is there that needs nothing but to be kept.
pub(super) fn has_best(case: &Case<'_>, cloud: &Cloud) -> bool {
    best(case, &mine(case, cloud)).is_some()
}

/// Records of the wanted content, by attempt.
fn mine<'a>(case: &Case<'_>, cloud: &'a Cloud) -> Vec<&'a RecordSeen> {
    let records = cloud.records.iter();
    let mut mine: Vec<_> = records.filter(|record| record.key == case.wanted.key).collect();
    mine.sort_by_key(|record| record.attempt);
    mine
}

/// The latest image that is verified.
fn best<'a>(case: &Case<'_>, mine: &[&'a RecordSeen]) -> Option<&'a RecordSeen> {
    let counts =
        |record: &&&RecordSeen| record.state == RecordState::Whole && mark_counts(record, case.wanted, case.kept);
    mine.iter().rev().find(counts).copied()
}

/// Status must know of everything that is there before anything is done about it.
fn noted(case: &Case<'_>, mine: &[&RecordSeen]) -> Option<Step> {
    let newest = mine.last()?.attempt;
    let kept = case.kept;
    let is_known = kept.key.as_ref() == Some(&case.wanted.key);
    if is_known && newest <= kept.attempt {
        return None;
    }
    // An attempt of another content may have left a seal with this number.
    let number = if newest < kept.attempt {
        kept.attempt.saturating_add(1)
    } else {
        newest
    };
    Some(Step::Record(Intent::Attempt {
        number,
        key: case.wanted.key.clone(),
        why: AttemptReason::EarlierLife,
    }))
}

fn verified(case: &Case<'_>, cloud: &Cloud, mine: &[&RecordSeen], best: &RecordSeen, at: Duration) -> Step {
    let image = CloudImage {
        id: best.id.clone(),
        name: case.wanted.name.clone(),
        size_bytes: best.size,
        sha512: best.sha512.clone(),
        source_digest: best.verified.clone(),
        adopted: false,
    };
    if case.kept.image.as_ref() != Some(&image) || case.kept.halted.is_some() {
        return Step::Record(Intent::Image { image });
    }
    let look = at + look_ready(&case.wanted.key);
    let look = case.tidied_again().map_or(look, |again| look.min(again));
    rival(case, mine, best)
        .or_else(|| superseded(case, cloud))
        .or_else(|| amendment(case, best))
        .unwrap_or(Step::Rest { look })
}

/// Another image of the same content than the best.
fn rival(case: &Case<'_>, mine: &[&RecordSeen], best: &RecordSeen) -> Option<Step> {
    let is_rival = |record: &&&RecordSeen| record.id != best.id && record.state != RecordState::Going;
    let rival = mine.iter().find(is_rival)?;
    if rival.attempt >= case.kept.attempt {
        return Some(next(case, rival.attempt, AttemptReason::Supersede));
    }
    let rests = case.tidied_again().is_some();
    (!rests).then(|| discard(rival, DiscardReason::Superseded))
}

/// An image of another content, once the wanted one is there.
pub(super) fn superseded(case: &Case<'_>, cloud: &Cloud) -> Option<Step> {
    let is_old = |record: &&RecordSeen| record.key != case.wanted.key && record.state != RecordState::Going;
    let old = cloud
        .records
        .iter()
        .filter(is_old)
        .min_by_key(|record| record.attempt)?;
    if case.tidied_again().is_some() {
        return None;
    }
    let stays = case.wanted.deletion == DeletionPolicy::Retain && old.verified.is_some();
    Some(if stays {
        in_process(Deed::Relinquish { id: old.id.clone() })
    } else {
        discard(old, DiscardReason::Superseded)
    })
}

fn amendment(case: &Case<'_>, best: &RecordSeen) -> Option<Step> {
    let is_tried = case.seen.amended.as_ref().is_some_and(|amended| {
        let age = case.now.steady.saturating_sub(amended.at);
        amended.is_of(&best.drift) && age < AMEND_AGAIN
    });
    let differs = !best.drift.is_empty() && !is_tried;
    differs.then(|| in_process(Deed::Amend { id: best.id.clone() }))
}

/// A verified image that an admin lets nobody use is the admin's to decide about.
fn withdrawn(mine: &[&RecordSeen], at: Duration) -> Option<Step> {
    let is_withdrawn = |record: &&&RecordSeen| record.state == RecordState::Withdrawn && record.verified.is_some();
    let record = mine.iter().rev().find(is_withdrawn)?;
    Some(until_reactivated(record, at))
}

fn until_reactivated(record: &RecordSeen, at: Duration) -> Step {
    let reason = WaitReason::Deactivated;
    let until = Until::Told(Awaited::Admin);
    until_seen(reason, record.first_seen, until, at + LOOK_WAITING, DEACTIVATED)
}

/// The user asks for somebody else's image, and ours is not finished.
fn instead_of_ours(case: &Case<'_>, mine: &[&RecordSeen]) -> Option<Step> {
    let record = current(case, mine).filter(|_| case.wanted.adopts())?;
    Some(next(case, record.attempt, AttemptReason::Supersede))
}

fn lowest<'a>(case: &Case<'_>, mine: &[&'a RecordSeen]) -> Option<&'a RecordSeen> {
    let is_lower = |record: &&&RecordSeen| record.attempt < case.kept.attempt && !lingers(case, record);
    mine.iter().find(is_lower).copied()
}

fn lower(case: &Case<'_>, mine: &[&RecordSeen], at: Duration) -> Option<Step> {
    let record = lowest(case, mine)?;
    if record.state == RecordState::Going {
        return Some(until_gone(record, at));
    }
    Some(match (case.tidying_rests(), case.tidying_unshown()) {
        (Some(retry), _) => case.until_retry(retry),
        (None, Some((unshown, again))) => until_shown(unshown, again),
        (None, None) => discard(record, DiscardReason::LowerAttempt),
    })
}

/// A record that is being deleted for so long is in nobody's way any more.
pub(super) fn lingers(case: &Case<'_>, record: &RecordSeen) -> bool {
    record.state == RecordState::Going && case.now.steady > record.first_seen + GOING
}

pub(super) fn until_gone(record: &RecordSeen, at: Duration) -> Step {
    let until = Until::At(Since::Steady(record.first_seen + GOING));
    let message = "the cloud is deleting an earlier image";
    until_seen(WaitReason::Going, record.first_seen, until, at + LOOK_OFTEN, message)
}

fn current<'a>(case: &Case<'_>, mine: &[&'a RecordSeen]) -> Option<&'a RecordSeen> {
    let is_current = |record: &&&RecordSeen| record.attempt >= case.kept.attempt;
    mine.iter().rev().find(is_current).copied()
}

/// The one image of the present attempt, which is not verified.
fn in_state(case: &Case<'_>, cloud: &Cloud, record: &RecordSeen, at: Duration) -> Step {
    match record.state {
        RecordState::Empty => send(case, record, at),
        RecordState::Spoilt | RecordState::Dead => {
            let why = match path(case) {
                Path::Import if case.kept.sealed_of(record.attempt).is_none() => AttemptReason::ImportFailed,
                Path::Staged => AttemptReason::ImportFailed,
                Path::Import | Path::Upload => AttemptReason::Spoilt,
            };
            next(case, record.attempt, why)
        }
        RecordState::Going if lingers(case, record) => next(case, record.attempt, AttemptReason::Lingers),
        RecordState::Going => until_gone(record, at),
        RecordState::Receiving => receiving(case, record, at),
        RecordState::Importing => importing(case, record, at),
        RecordState::Whole => whole(case, cloud, record, at),
        RecordState::Withdrawn => until_reactivated(record, at),
    }
}

/// Bytes that whoever is not known to us sends, or whose end the cloud has not noticed; or all of ours, which it stores: nothing moves any more then.
fn receiving(case: &Case<'_>, record: &RecordSeen, at: Duration) -> Step {
    let way = path(case);
    // What lies on a stage is nobody's to take off it but ours.
    let sealed = case.kept.sealed_of(record.attempt).filter(|_| way != Path::Staged);
    let patience = sealed.map_or(case.seen.stall, |sealed| cloud_takes(sealed.bytes).max(case.seen.stall));
    let deadline = record.moved + patience;
    if case.now.steady > deadline {
        // There are clouds that take what is staged and never make an image of it.
        let why = match way {
            Path::Staged => AttemptReason::ImportStalled,
            Path::Import | Path::Upload => AttemptReason::Stalled,
        };
        return next(case, record.attempt, why);
    }
    let (reason, look) = (WaitReason::ForeignTransfer, at + LOOK_OFTEN);
    let message = if sealed.is_some() { STORING } else { FOREIGN_TRANSFER };
    let until = Until::At(Since::Steady(deadline));
    until_seen(reason, record.moved, until, look, message)
}

fn importing(case: &Case<'_>, record: &RecordSeen, at: Duration) -> Step {
    let of_source = match &case.seen.source {
        Sight::Seen { value, .. } => value.size,
        Sight::Unseen | Sight::Failed { .. } => None,
    };
    let bytes = of_source.or(record.size);
    let is_early = case.now.steady <= record.first_seen + IMPORT_BASE;
    let patience = match (case.seen.import_patience, bytes) {
        (Some(said), _) => said,
        // An earlier life of ours began it, and knew how much it is.
        (None, None) if is_early && case.seen.source == Sight::Unseen => return in_process(Deed::Probe),
        (None, bytes) => cloud_takes(bytes.unwrap_or_default()),
    };
    let deadline = record.first_seen + patience;
    if case.now.steady > deadline {
        return next(case, record.attempt, AttemptReason::ImportStalled);
    }
    // Small images are there in seconds; of large ones nobody must know at once.
    let age = at.saturating_sub(record.first_seen);
    let look = at + age.clamp(LOOK_OFTEN, LOOK_WAITING);
    let until = Until::At(Since::Steady(deadline));
    until_seen(WaitReason::Importing, record.first_seen, until, look, IMPORTING)
}

fn whole(case: &Case<'_>, cloud: &Cloud, record: &RecordSeen, at: Duration) -> Step {
    let (id, attempt) = (record.id.clone(), record.attempt);
    let verdict = judge(record, case.wanted, case.kept, case.seen);
    if let (Verdict::Matches(_), Some(held)) = (&verdict, absent::name_taken(case, cloud, at)) {
        // Whose name it is was decided while the bytes were on their way.
        return match case.wanted.policy {
            ImagePolicy::IfMissing => next(case, attempt, AttemptReason::Supersede),
            ImagePolicy::Create | ImagePolicy::Adopt => held,
        };
    }
    match verdict {
        Verdict::Matches(verified) if case.kept.publishing.as_ref() == Some(&id) => {
            in_process(Deed::Publish { id, attempt, verified })
        }
        Verdict::Matches(_) => Step::Record(Intent::Publishing { id, attempt }),
        // A cloud that changes what it imports, and does not say into what, cannot be told from one that spoils it; what is sent to it directly it leaves alone.
        Verdict::Differs if path(case) == Path::Staged || was_fetched(case, record) => {
            next(case, attempt, AttemptReason::ImportFailed)
        }
        Verdict::Differs => next(case, attempt, AttemptReason::Mismatch),
        Verdict::CannotTell if can_be_read_back(record, case) => in_process(Deed::ReadBack { id, attempt }),
        Verdict::CannotTell => next(case, attempt, AttemptReason::Unverifiable),
    }
}

/// Whether the cloud itself got the bytes: whoever sends them seals them before.
fn was_fetched(case: &Case<'_>, record: &RecordSeen) -> bool {
    let may_be = case.wanted.via == Via::ServerSide && case.wanted.build.is_none();
    may_be && case.kept.sealed_of(record.attempt).is_none()
}

/// The attempt after this one and after everything that status knows of.
fn next(case: &Case<'_>, attempt: u32, why: AttemptReason) -> Step {
    Step::Record(Intent::Attempt {
        number: attempt.max(case.kept.attempt).saturating_add(1),
        key: case.wanted.key.clone(),
        why,
    })
}

fn discard(record: &RecordSeen, why: DiscardReason) -> Step {
    in_process(Deed::Discard {
        id: record.id.clone(),
        attempt: record.attempt,
        why,
    })
}
