//! What status says after a step. Writes nothing itself.

use super::kept::{CloudImage, Halted, Kept, Retry};
use super::op::{Deed, DeedName, Done, Op, OpState};
use super::retry::{given_up, is_over};
use super::seen::{Seen, Sight};
use super::sending::IMPORTS_AT_MOST;
use super::step::{AttemptReason, HaltReason, Intent, Settlement, Step};
use super::wanted::{Now, Wanted};

/// Images that are not what they should be, in a row, before it is not bad luck.
const MISMATCHES_AT_MOST: u32 = 2;
/// Images that cannot be compared, in a row: the first may have been fetched by the cloud, the second have lost its seal.
const UNVERIFIABLE_AT_MOST: u32 = 3;

/// What is kept after a step. The same as before where the step says nothing about it: then there is nothing to write.
pub fn after(step: &Step, wanted: &Wanted, kept: &Kept, seen: &Seen, op: Option<&Op>, now: Now) -> Kept {
    let kept = kept.clone();
    match step {
        Step::Record(intent) => recorded(intent, wanted, kept, seen, now),
        Step::Settle(settlement) => settled(settlement, wanted, kept, seen, op),
        Step::Do { .. }
        | Step::Stop(_)
        | Step::Claim
        | Step::Finish { .. }
        | Step::Await(_)
        | Step::Rest { .. }
        | Step::Hold(_) => kept,
    }
}

fn recorded(intent: &Intent, wanted: &Wanted, kept: Kept, seen: &Seen, now: Now) -> Kept {
    match intent {
        Intent::Attempt { number, key, why } => {
            let kept = given_up_for(*why, wanted, kept, seen, now);
            Kept {
                attempt: kept.attempt.max(*number),
                key: Some(key.clone()),
                publishing: None,
                ..kept
            }
        }
        Intent::Publishing { id, attempt: _ } => Kept {
            publishing: Some(id.clone()),
            ..kept
        },
        Intent::Image { image } => had(image.clone(), wanted, kept),
        Intent::Forget => Kept {
            attempt: kept.attempt,
            sealed: kept.sealed,
            ..Kept::default()
        },
        Intent::Anew => Kept {
            halted: None,
            retry: None,
            in_vain: None,
            imports_failed: 0,
            mismatches: 0,
            unverifiable: 0,
            ..kept
        },
    }
}

/// An image is had: whatever stood in its way does not any more.
fn had(image: CloudImage, wanted: &Wanted, kept: Kept) -> Kept {
    Kept {
        key: Some(wanted.key.clone()),
        image: Some(image),
        publishing: None,
        halted: None,
        retry: kept.retry.filter(Retry::is_of_tidying),
        in_vain: None,
        imports_failed: 0,
        mismatches: 0,
        unverifiable: 0,
        attempt: kept.attempt,
        sealed: kept.sealed,
    }
}

/// What counts against the attempt that another one follows, and how fast that is.
fn given_up_for(why: AttemptReason, wanted: &Wanted, mut kept: Kept, seen: &Seen, now: Now) -> Kept {
    let words = words_of_cloud(wanted, &kept, seen);
    let deed = match wanted.build {
        Some(_) => DeedName::Build,
        None => DeedName::Transfer,
    };
    let slower = |message: &str| {
        let message = words.map_or_else(|| message.to_owned(), |words| format!("{message}: {words}"));
        Some(given_up(deed, &message, wanted, &kept, now))
    };
    let halt = |reason, message| Some(Halted::now(reason, message, wanted));
    match why {
        AttemptReason::First
        | AttemptReason::OtherContent
        | AttemptReason::EarlierLife
        | AttemptReason::Lingers
        | AttemptReason::Supersede => {}
        AttemptReason::Spoilt => kept.retry = slower("the record in the cloud takes no bytes any more"),
        AttemptReason::Stalled => kept.retry = slower("nothing was heard of whoever sent the image"),
        AttemptReason::ImportFailed | AttemptReason::ImportStalled => {
            kept.retry = slower(match why {
                AttemptReason::ImportStalled => "the cloud did not import the image in time",
                _ => "the cloud could not import the image",
            });
            kept.imports_failed = kept.imports_failed.saturating_add(1);
        }
        AttemptReason::Mismatch => {
            kept.mismatches = kept.mismatches.saturating_add(1);
            if kept.mismatches >= MISMATCHES_AT_MOST {
                let message = "what the cloud has is not what the source was said to give, twice in a row; \
                               see whether the digest or the source is wrong";
                kept.halted = halt(HaltReason::SourceMismatch, message);
            }
        }
        AttemptReason::Unverifiable => {
            // The next one is sent, and sealed.
            kept.imports_failed = kept.imports_failed.max(IMPORTS_AT_MOST);
            kept.unverifiable = kept.unverifiable.saturating_add(1);
            if kept.unverifiable >= UNVERIFIABLE_AT_MOST {
                let message = "nobody can tell what the cloud has: it makes no sha512 and does not let us read; \
                               ask the cloud's operator";
                kept.halted = halt(HaltReason::Unverifiable, message);
            }
        }
    }
    kept
}

/// What the cloud said last of the record that is given up.
fn words_of_cloud<'a>(wanted: &Wanted, kept: &Kept, seen: &'a Seen) -> Option<&'a str> {
    let Sight::Seen { value, .. } = &seen.cloud else {
        return None;
    };
    let mut records = value.records.iter();
    let given_up = records.find(|record| record.key == wanted.key && record.attempt == kept.attempt)?;
    given_up.words.as_deref()
}

fn settled(settlement: &Settlement, wanted: &Wanted, kept: Kept, seen: &Seen, op: Option<&Op>) -> Kept {
    match settlement {
        Settlement::Nothing => kept,
        Settlement::Retry(retry) => Kept {
            in_vain: Some(retry).filter(|retry| retry.is_in_vain()).cloned().or(kept.in_vain),
            retry: Some(retry.clone()),
            ..kept
        },
        Settlement::Halt(halted) => Kept {
            halted: Some(halted.clone()),
            retry: None,
            in_vain: None,
            ..kept
        },
        Settlement::Burned { attempt } => Kept {
            attempt: kept.attempt.max(*attempt),
            ..kept
        },
        Settlement::ImportRefused => import_refused(kept, op),
        Settlement::Progressed => progressed(wanted, kept, seen, op),
    }
}

/// The same again would be refused again. What was staged for it goes with its record: nobody else takes it off its stage.
fn import_refused(kept: Kept, op: Option<&Op>) -> Kept {
    let staged = match op.map(|op| &op.deed) {
        Some(Deed::Transfer {
            attempt, staged: true, ..
        }) => kept.sealed_of(*attempt).map(|sealed| sealed.attempt.saturating_add(1)),
        _ => None,
    };
    Kept {
        attempt: kept.attempt.max(staged.unwrap_or_default()),
        imports_failed: kept.imports_failed.max(IMPORTS_AT_MOST),
        ..kept
    }
}

fn progressed(wanted: &Wanted, kept: Kept, seen: &Seen, op: Option<&Op>) -> Kept {
    let Some(op) = op.filter(|op| matches!(op.state, OpState::Ended { outcome: Ok(_), .. })) else {
        return kept;
    };
    let done = op.deed.name();
    let is_on = |failed: &Retry| !is_over(done, failed.deed);
    let retry = kept.retry.clone().filter(is_on);
    let in_vain = kept.in_vain.clone().filter(is_on);
    match (&op.deed, &op.state) {
        (
            Deed::Publish { id, verified, .. },
            OpState::Ended {
                outcome: Ok(Done::Published),
                ..
            },
        ) => {
            let image = published(id, verified, wanted, seen);
            let kept = Kept { retry, ..kept };
            had(image, wanted, kept)
        }
        _ => Kept { retry, in_vain, ..kept },
    }
}

fn published(id: &str, verified: &str, wanted: &Wanted, seen: &Seen) -> CloudImage {
    let record = match &seen.cloud {
        Sight::Seen { value, .. } => value.records.iter().find(|record| record.id == id),
        Sight::Unseen | Sight::Failed { .. } => None,
    };
    CloudImage {
        id: id.to_owned(),
        name: wanted.name.clone(),
        size_bytes: record.and_then(|record| record.size),
        sha512: record.and_then(|record| record.sha512.clone()),
        source_digest: Some(verified.to_owned()),
        adopted: false,
    }
}
