//! Whether an image in the cloud is what it should be: compares formats, digests and sizes, and makes none.

use super::case::Case;
use super::kept::Kept;
use super::seen::{ReadBack, RecordSeen, Seen, Sight};
use super::wanted::{Algorithm, Pinned, Via, Wanted};

/// What is known about a whole image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what the file with this digest (`sha256:<hex>`) makes.
    Matches(String),
    /// It is something else.
    Differs,
    /// Nothing is there to compare it with.
    CannotTell,
}

/// The digest that the file at the source must have, from the spec or from a file of sums.
pub fn pinned<'a>(wanted: &'a Wanted, seen: &'a Seen) -> Option<&'a Pinned> {
    let of_sums = || match &seen.source {
        Sight::Seen { value, .. } => value.digest.as_ref(),
        Sight::Unseen | Sight::Failed { .. } => None,
    };
    wanted.digest.as_ref().or_else(of_sums)
}

/// Compares with what was sealed, else with what is promised, else with what reading it back gave.
pub fn judge(record: &RecordSeen, wanted: &Wanted, kept: &Kept, seen: &Seen) -> Verdict {
    let promised = pinned(wanted, seen);
    if converted(record.format.as_deref(), wanted).is_some() {
        return by_stage(record, wanted, kept, promised);
    }
    by_seal(record, kept, promised)
        .or_else(|| by_promise(record, wanted, seen, promised))
        .unwrap_or(Verdict::CannotTell)
}

/// From which format to which the cloud has made something else of an image. It does so only with what it imports, and where its operator had it set up so.
pub(super) fn converted<'a>(found: Option<&'a str>, wanted: &'a Wanted) -> Option<(&'a str, &'a str)> {
    let (from, to) = (wanted.format.as_deref()?, found?);
    (from != to).then_some((from, to))
}

/// A stage is asked for by whoever wants the cloud to convert. All that can be known then is that the whole file came to it, and that it was the promised one:
/// no digest is left that what the cloud made of it could be held against. Nobody has asked for that on any other way.
fn by_stage(record: &RecordSeen, wanted: &Wanted, kept: &Kept, promised: Option<&Pinned>) -> Verdict {
    let sealed = kept
        .sealed_of(record.attempt)
        .filter(|_| wanted.via == Via::Staged && wanted.build.is_none());
    match sealed {
        Some(sealed) => {
            let is_promised = promised.is_none_or(|promised| !promised.contradicts(&sealed.source_digest));
            verdict(is_promised, &sealed.source_digest)
        }
        None => Verdict::Differs,
    }
}

fn by_seal(record: &RecordSeen, kept: &Kept, promised: Option<&Pinned>) -> Option<Verdict> {
    let sealed = kept.sealed_of(record.attempt)?;
    let (sha512, bytes) = digest_of(record)?;
    let is_promised = promised.is_none_or(|promised| !promised.contradicts(&sealed.source_digest));
    let is_same = sha512 == sealed.sha512 && bytes.is_none_or(|bytes| bytes == sealed.bytes);
    Some(verdict(is_same && is_promised, &sealed.source_digest))
}

/// The sha512 of what the cloud has, by the cloud's word or by ours.
fn digest_of(record: &RecordSeen) -> Option<(&str, Option<u64>)> {
    match (&record.sha512, &record.read_back) {
        (Some(sha512), _) => Some((sha512, record.size)),
        (None, Some(ReadBack::Found { sha512, bytes, .. })) => Some((sha512, Some(*bytes))),
        (None, _) => None,
    }
}

fn by_promise(record: &RecordSeen, wanted: &Wanted, seen: &Seen, promised: Option<&Pinned>) -> Option<Verdict> {
    // What was decompressed has another digest than the file.
    let promised = promised.filter(|_| !wanted.compressed && wanted.build.is_none())?;
    let size = match &seen.source {
        Sight::Seen { value, .. } => value.size,
        Sight::Unseen | Sight::Failed { .. } => None,
    };
    let found = match (promised.algorithm, &record.read_back) {
        (Algorithm::Sha512, _) => digest_of(record)?,
        (Algorithm::Sha256, Some(ReadBack::Found { sha256, bytes, .. })) => (sha256.as_str(), Some(*bytes)),
        (Algorithm::Sha256, _) => return None,
    };
    let is_as_long = size.is_none() || found.1.is_none() || size == found.1;
    Some(verdict(found.0 == promised.hex && is_as_long, &promised.to_string()))
}

fn verdict(is_same: bool, digest: &str) -> Verdict {
    if is_same {
        Verdict::Matches(digest.to_owned())
    } else {
        Verdict::Differs
    }
}

/// Whether reading the image back could tell more than is known.
pub(super) fn can_be_read_back(record: &RecordSeen, case: &Case<'_>) -> bool {
    let compares = case.kept.sealed_of(record.attempt).is_some()
        || (!case.wanted.compressed && case.wanted.build.is_none() && pinned(case.wanted, case.seen).is_some());
    record.read_back.is_none() && compares
}

/// Whether the mark that we put on an image still counts: nothing contradicts it that the spec promises or, without that, the first use.
pub(super) fn mark_counts(record: &RecordSeen, wanted: &Wanted, kept: &Kept) -> bool {
    let Some(verified) = &record.verified else { return false };
    if let Some(promised) = &wanted.digest {
        return !promised.contradicts(verified);
    }
    if wanted.build.is_some() {
        // Two builds of the same need not give the same bytes.
        return true;
    }
    let trusted = kept
        .image
        .as_ref()
        .filter(|image| !image.adopted && kept.key.as_ref() == Some(&wanted.key))
        .and_then(|image| image.source_digest.as_ref());
    // Two digests of two kinds say nothing about each other.
    let kind = |digest: &str| digest.split_once(':').map(|(kind, _)| kind.to_owned());
    trusted.is_none_or(|trusted| trusted == verified || kind(trusted) != kind(verified))
}
