//! What is done when the cloud has no image of ours: another one is used, or one of our own is begun.

use std::time::Duration;

use crds::labels::ADOPT_IMAGE;

use super::case::{Case, hold, in_process, until_seen, until_shown};
use super::decide::look_ready;
use super::kept::CloudImage;
use super::op::Deed;
use super::records;
use super::seen::{Cloud, ForeignSeen};
use super::sending::prepared;
use super::step::{AttemptReason, HaltReason, Intent, Step};
use super::wait::{Awaited, Until, WaitReason};
use super::wanted::{Algorithm, ImagePolicy, Wanted};

/// How often an image is looked for that somebody else makes.
const LOOK_FOR_OTHERS: Duration = Duration::from_mins(1);
/// How many images are named that are not used: anybody can make more.
const NAMED: usize = 3;

pub(super) fn ladder(case: &Case<'_>, cloud: &Cloud, at: Duration) -> Step {
    adoption(case, cloud, at)
        .or_else(|| name_taken(case, cloud, at))
        .or_else(|| prepared(case, at).err())
        .unwrap_or_else(|| begun(case))
}

fn adoption(case: &Case<'_>, cloud: &Cloud, at: Duration) -> Option<Step> {
    let wanted = case.wanted;
    let insists = wanted.adopts();
    if !insists && wanted.policy != ImagePolicy::IfMissing {
        return None;
    }
    match candidates(case, cloud).as_slice() {
        [one] if differs(wanted, one) == Some(true) => insists.then(|| {
            let message = format!(
                "the image {} has other bytes than the spec's digest says; correct the digest, or name another image",
                one.id
            );
            // A name that can be moved is soon put right.
            let pause = if one.digest.is_some() {
                LOOK_FOR_OTHERS
            } else {
                look_ready(&wanted.key)
            };
            hold(HaltReason::SourceMismatch, &message, Some(at + pause))
        }),
        [one] if !is_trusted(case, one) => {
            let message = format!(
                "under the name {} is another image now, {}, than the one that was used first; put that one back, or \
                 write the digest that is meant into the spec",
                wanted.name, one.id
            );
            Some(hold(HaltReason::SourceMismatch, &message, Some(at + LOOK_FOR_OTHERS)))
        }
        [one] => Some(adopted(case, cloud, one, at)),
        [] => insists.then(|| {
            let message = not_found(wanted, cloud);
            let until = Until::Told(Awaited::Image);
            until_seen(WaitReason::ImageNotFound, at, until, at + LOOK_FOR_OTHERS, &message)
        }),
        several => insists.then(|| {
            let message = format!(
                "several images are named {}: {}; say with the annotation {ADOPT_IMAGE} which one is meant",
                wanted.name,
                ids(several),
            );
            hold(HaltReason::Ambiguous, &message, Some(at + look_ready(&wanted.key)))
        }),
    }
}

/// The images that could be meant. One that its owner gives to everybody counts only where there is no other, or anybody could make a name mean nothing;
/// each of those has the bytes that are promised, so that one is as good as another.
fn candidates<'a>(case: &Case<'_>, cloud: &'a Cloud) -> Vec<&'a ForeignSeen> {
    let meant: Vec<&ForeignSeen> = cloud.others.iter().filter(|other| counts(case.wanted, other)).collect();
    if case.wanted.adopt.is_some() || meant.iter().all(|other| !other.of_community) {
        return meant;
    }
    let (given, others): (Vec<&ForeignSeen>, Vec<&ForeignSeen>) = meant.into_iter().partition(|one| one.of_community);
    if !others.is_empty() {
        return others;
    }
    let used = case.kept.image.as_ref().map(|image| image.id.as_str());
    let same = given.iter().find(|other| Some(other.id.as_str()) == used);
    same.or_else(|| given.first()).copied().into_iter().collect()
}

/// Whether an image of somebody else may be used. What anybody may have put there is meant by its id or its bytes alone; and who has said what the bytes must
/// be, and did not ask for an image that is there already, is brought one that is known to have them.
pub(super) fn counts(wanted: &Wanted, other: &ForeignSeen) -> bool {
    if let Some(id) = &wanted.adopt {
        return other.usable && *id == other.id;
    }
    let compared = differs(wanted, other);
    let may_be = match wanted.policy {
        ImagePolicy::Create => false,
        ImagePolicy::Adopt => true,
        ImagePolicy::IfMissing => wanted.digest.is_none() || compared.is_some(),
    };
    other.usable && may_be && (!other.of_community || compared == Some(false))
}

fn not_found(wanted: &Wanted, cloud: &Cloud) -> String {
    if let Some(id) = &wanted.adopt {
        return format!("no image with the id {id} can be used in this project yet");
    }
    let given = cloud.others.iter().filter(|other| other.usable && other.of_community);
    let given: Vec<&ForeignSeen> = given.take(NAMED).collect();
    let missing = format!("no image named {} can be used yet", wanted.name);
    if given.is_empty() {
        return missing;
    }
    format!(
        "{missing}; what another project gives to everybody ({}) is used only where its id is in the annotation \
         {ADOPT_IMAGE}, or its sha512 is the spec's digest",
        ids(&given),
    )
}

/// Whether an image is another one than the spec's digest says; `None` when that cannot be compared.
fn differs(wanted: &Wanted, other: &ForeignSeen) -> Option<bool> {
    let promised = wanted.digest.as_ref().filter(|_| !wanted.compressed)?;
    let named = other.digest.as_ref();
    if let Some(found) = named.filter(|found| found.algorithm == promised.algorithm) {
        return Some(found != promised);
    }
    let found = other.sha512.as_ref()?;
    (promised.algorithm == Algorithm::Sha512).then(|| *found != promised.hex)
}

/// Whether an image is the one that was found first, as far as its name says which one it is. A digest in the spec says more.
fn is_trusted(case: &Case<'_>, other: &ForeignSeen) -> bool {
    let used = case.kept.image.as_ref().filter(|image| image.adopted);
    let first = used.and_then(|image| image.source_digest.as_ref());
    let is_same_wish = case.wanted.digest.is_none() && case.kept.key.as_ref() == Some(&case.wanted.key);
    match (first.filter(|_| is_same_wish), &other.digest) {
        (Some(first), Some(found)) => !found.contradicts(first),
        _ => true,
    }
}

fn adopted(case: &Case<'_>, cloud: &Cloud, other: &ForeignSeen, at: Duration) -> Step {
    let is_as_promised = differs(case.wanted, other) == Some(false);
    let image = CloudImage {
        id: other.id.clone(),
        name: case.wanted.name.clone(),
        size_bytes: other.size,
        sha512: other.sha512.clone(),
        source_digest: case
            .wanted
            .digest
            .as_ref()
            .filter(|_| is_as_promised)
            .or(other.digest.as_ref())
            .map(ToString::to_string),
        adopted: true,
    };
    let made = cloud.records.iter().map(|record| record.attempt).max();
    if let (0, Some(number)) = (case.kept.attempt, made) {
        // Status must say that something was made, or nobody would look for it once the object is deleted.
        return Step::Record(Intent::Attempt {
            number,
            key: case.wanted.key.clone(),
            why: AttemptReason::EarlierLife,
        });
    }
    if case.kept.image.as_ref() != Some(&image) || case.kept.key.as_ref() != Some(&case.wanted.key) {
        return Step::Record(Intent::Image { image });
    }
    let look = at + look_ready(&case.wanted.key);
    records::superseded(case, cloud).unwrap_or(Step::Rest {
        look: case.tidied_again().map_or(look, |again| look.min(again)),
    })
}

/// A second image of the name would make it mean nothing to everybody who looks by name.
pub(super) fn name_taken(case: &Case<'_>, cloud: &Cloud, at: Duration) -> Option<Step> {
    let is_in_the_way = |other: &&ForeignSeen| other.usable && other.of_our_project;
    let takers: Vec<&ForeignSeen> = cloud.others.iter().filter(is_in_the_way).collect();
    if takers.is_empty() {
        return None;
    }
    let message = format!(
        "the project has an image named {} that is not ours: {}; take it over with policy Adopt or the annotation \
         {ADOPT_IMAGE}, choose another name, or delete it",
        case.wanted.name,
        ids(&takers),
    );
    let look = at + look_ready(&case.wanted.key);
    Some(hold(HaltReason::NameTaken, &message, Some(look)))
}

fn ids(others: &[&ForeignSeen]) -> String {
    let ids: Vec<&str> = others.iter().map(|other| other.id.as_str()).collect();
    ids.join(", ")
}

/// The attempt is written, then its record made.
fn begun(case: &Case<'_>) -> Step {
    let (kept, wanted) = (case.kept, case.wanted);
    let why = match (kept.attempt, &kept.key) {
        (0, _) => AttemptReason::First,
        (_, Some(key)) if *key == wanted.key => {
            let deed = Deed::Create {
                attempt: kept.attempt,
                id: wanted.chosen_id.clone().filter(|_| kept.attempt == 1),
            };
            let made = case.unshown().filter(|(unshown, _)| unshown.deed == deed);
            return made.map_or_else(|| in_process(deed), |(unshown, again)| until_shown(unshown, again));
        }
        _ => AttemptReason::OtherContent,
    };
    Step::Record(Intent::Attempt {
        number: kept.attempt.saturating_add(1),
        key: wanted.key.clone(),
        why,
    })
}
