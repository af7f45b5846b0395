//! The words of what is decided about an image: the reasons of the vocabulary, and sentences for people. Decides nothing.

use crds::conditions::Reason;

use super::execution::ExecutionReason;
use super::failure::FailureClass;
use super::op::{DiscardReason, StopReason};
use super::step::HaltReason;

/// Where a Secret is named and is not there.
pub(super) const SECRET_MISSING: &str = "the Secret that is to be used is not there; create it";
/// The same while the object is being deleted.
pub(super) const SECRET_MISSING_FOR_DELETION: &str =
    "the Secret is not there, and without it the image cannot be deleted";
/// Where nobody can tell which cloud an object means that is being deleted.
pub(super) const UNREADABLE_FOR_DELETION: &str = "without it nobody can tell in which cloud the image is to be deleted";
/// Where the object is another management cluster's.
pub(super) const MOVED: &str = "the object is in another management cluster, and this one is about to be deleted";
/// Where an admin lets nobody use an image.
pub(super) const DEACTIVATED: &str = "an admin of the cloud deactivated the image; ask for it to be reactivated";
/// Where bytes move that are not ours.
pub(super) const FOREIGN_TRANSFER: &str = "another process sends the image, or the cloud has not noticed its end";
/// Where all bytes of ours are, and none move any more.
pub(super) const STORING: &str = "all bytes were sent, and the cloud stores them";
/// Where bytes of ours move.
pub(super) const SENDING: &str = "the image is sent";
/// Why a cloud is not told to fetch an image.
pub(super) const NO_DIGEST: &str = "no digest says what the cloud should have fetched";
/// Where the cloud moves them.
pub(super) const IMPORTING: &str = "the cloud fetches the image";
/// What somebody does where the cloud does not fetch what it should, or does not take it off its stage.
pub(super) const IMPORT_FAILED: &str =
    "see whether the cloud itself can reach the source, or set spec.transfer.via to Upload";
/// Before bytes move.
pub(super) const BUILDING: &str = "the image is built";
/// Where others deleted the Job.
pub(super) const JOB_DELETED: &str = "the Job was deleted before it was done, and its image is still wanted";

/// How many are before somebody who waits for his turn.
pub(super) fn in_line(ahead: u32) -> String {
    match ahead {
        0 => "it is next in line".to_owned(),
        1 => "1 other is before it in line".to_owned(),
        ahead => format!("{ahead} others are before it in line"),
    }
}

/// All of them, so that a word of a status is found again.
const HALTS: [HaltReason; 14] = [
    HaltReason::InvalidSpec,
    HaltReason::NameTaken,
    HaltReason::Ambiguous,
    HaltReason::Refused,
    HaltReason::SourceNotFound,
    HaltReason::SourceMismatch,
    HaltReason::SourceNotAnImage,
    HaltReason::DigestUnknown,
    HaltReason::Unverifiable,
    HaltReason::JobsUnavailable,
    HaltReason::BuildFailed,
    HaltReason::OutOfMemory,
    HaltReason::SealNotKept,
    HaltReason::Unsupported,
];

/// Each has a word of its own.
pub(super) const fn reason_of_halt(halt: HaltReason) -> Reason {
    match halt {
        HaltReason::InvalidSpec => Reason::InvalidSpec,
        HaltReason::NameTaken => Reason::ImageNameTaken,
        HaltReason::Ambiguous => Reason::ImageAmbiguous,
        HaltReason::Refused => Reason::ImageRefused,
        HaltReason::SourceNotFound => Reason::SourceNotFound,
        HaltReason::SourceMismatch => Reason::SourceMismatch,
        HaltReason::SourceNotAnImage => Reason::SourceNotAnImage,
        HaltReason::DigestUnknown => Reason::DigestUnknown,
        HaltReason::Unverifiable => Reason::Unverifiable,
        HaltReason::JobsUnavailable => Reason::JobsUnavailable,
        HaltReason::BuildFailed => Reason::BuildFailed,
        HaltReason::OutOfMemory => Reason::OutOfMemory,
        HaltReason::SealNotKept => Reason::SealNotKept,
        HaltReason::Unsupported => Reason::Unsupported,
    }
}

/// The halt that has this word.
pub(super) fn halt_reason(word: &str) -> Option<HaltReason> {
    HALTS.into_iter().find(|halt| reason_of_halt(*halt).as_str() == word)
}

/// What somebody does about it, in one sentence.
pub(super) const fn remedy(halt: HaltReason) -> &'static str {
    match halt {
        HaltReason::InvalidSpec => "correct the field that the message names",
        HaltReason::NameTaken => "take the other image over, choose another name, or delete it",
        HaltReason::Ambiguous => "say by the annotation clusterstack.x-k8s.io/adopt-image which one is meant",
        HaltReason::Refused => "change what the cloud does not take, in the release or in spec.image",
        HaltReason::SourceNotFound => "publish the file, or correct its URL",
        HaltReason::SourceMismatch => "see whether the digest or the source is wrong",
        HaltReason::SourceNotAnImage => "see what the URL gives, and correct it or the format",
        HaltReason::DigestUnknown => "correct the file of digests, or the name that is looked for in it",
        HaltReason::Unverifiable => "set spec.transfer.via to Upload, or ask the cloud's operator",
        HaltReason::JobsUnavailable => "let the operator run Jobs, or set spec.execution to another word",
        HaltReason::BuildFailed => "mend the build",
        HaltReason::OutOfMemory => "raise spec.job.resources",
        HaltReason::SealNotKept => {
            "see that the CRDs are those of this version, and that whoever sends may write the status"
        }
        HaltReason::Unsupported => "ask for what the cloud can do, or use another one",
    }
}

/// Whether the message of such a halt is somebody else's, who need not have known what helps here.
pub(super) const fn needs_a_remedy(halt: HaltReason) -> bool {
    match halt {
        HaltReason::Refused
        | HaltReason::SourceNotFound
        | HaltReason::SourceMismatch
        | HaltReason::SourceNotAnImage
        | HaltReason::DigestUnknown
        | HaltReason::BuildFailed
        | HaltReason::OutOfMemory
        | HaltReason::SealNotKept
        | HaltReason::Unsupported => true,
        HaltReason::InvalidSpec
        | HaltReason::NameTaken
        | HaltReason::Ambiguous
        | HaltReason::Unverifiable
        | HaltReason::JobsUnavailable => false,
    }
}

/// How the sentences begin that say what to do, here and wherever failures are worded.
const ADVICE: [&str; 28] = [
    "add", "allow", "ask", "change", "choose", "correct", "create", "delete", "free", "give", "have", "let", "make",
    "mend", "move", "name", "pin", "publish", "push", "put", "raise", "say", "see", "set", "take", "use", "wait",
    "write",
];

/// Whether a message ends in what to do: whoever worded it knew better than we do what helps here.
pub(super) fn advises(message: &str) -> bool {
    let end = message.rsplit_once("; ").map_or("", |(_, end)| end);
    let verb = end.split([' ', ',']).next().unwrap_or_default();
    ADVICE.contains(&verb)
}

/// What a failure is called.
pub(super) const fn reason_of_failure(class: FailureClass) -> Reason {
    match class {
        FailureClass::Unavailable => Reason::CloudUnavailable,
        FailureClass::Throttled | FailureClass::Busy => Reason::Throttled,
        FailureClass::Quota => Reason::QuotaExceeded,
        FailureClass::Credentials => Reason::CredentialsRejected,
        FailureClass::Permission => Reason::PermissionDenied,
        FailureClass::Invalid => Reason::ImageRefused,
        FailureClass::Unsupported => Reason::Unsupported,
        FailureClass::InUse => Reason::ImageInUse,
        FailureClass::SourceGone => Reason::SourceNotFound,
        FailureClass::SourceBroken => Reason::SourceBroken,
        FailureClass::SourceMismatch => Reason::SourceMismatch,
        FailureClass::SourceNotAnImage => Reason::SourceNotAnImage,
        FailureClass::SourceChanged => Reason::SourceChanged,
        FailureClass::DigestUnknown => Reason::DigestUnknown,
        FailureClass::BuildFailed { .. } => Reason::BuildFailed,
        FailureClass::OutOfMemory => Reason::OutOfMemory,
        FailureClass::Sealing => Reason::SealNotKept,
        FailureClass::Stopped {
            why: StopReason::Stalled,
        } => Reason::TransferStalled,
        // Races, and what we stopped ourselves.
        FailureClass::State
        | FailureClass::Gone
        | FailureClass::Unknown
        | FailureClass::NotOurs
        | FailureClass::JobVanished
        | FailureClass::Stopped { .. } => Reason::Progressing,
    }
}

/// What somebody does about a failure, where somebody has to.
pub(super) const fn remedy_of_failure(class: FailureClass) -> Option<&'static str> {
    match class {
        FailureClass::Quota => Some("delete images that nobody needs, or have the limit raised"),
        FailureClass::Credentials => Some("put credentials into the Secret that are good"),
        FailureClass::Permission => Some("give the project or user the right, or ask for less"),
        FailureClass::Invalid => Some(remedy(HaltReason::Refused)),
        FailureClass::Unsupported => Some(remedy(HaltReason::Unsupported)),
        FailureClass::SourceGone => Some(remedy(HaltReason::SourceNotFound)),
        FailureClass::SourceMismatch => Some(remedy(HaltReason::SourceMismatch)),
        FailureClass::SourceNotAnImage => Some(remedy(HaltReason::SourceNotAnImage)),
        FailureClass::DigestUnknown => Some(remedy(HaltReason::DigestUnknown)),
        FailureClass::BuildFailed { .. } => Some(remedy(HaltReason::BuildFailed)),
        FailureClass::OutOfMemory => Some(remedy(HaltReason::OutOfMemory)),
        FailureClass::Sealing => Some(remedy(HaltReason::SealNotKept)),
        FailureClass::InUse => Some("delete what is made of the image, or let it be"),
        FailureClass::Unavailable
        | FailureClass::Throttled
        | FailureClass::Busy
        | FailureClass::SourceBroken
        | FailureClass::SourceChanged
        | FailureClass::State
        | FailureClass::Gone
        | FailureClass::Unknown
        | FailureClass::NotOurs
        | FailureClass::JobVanished
        | FailureClass::Stopped { .. } => None,
    }
}

/// Why a record is deleted, behind its id.
pub(super) const fn discarded(why: DiscardReason) -> &'static str {
    match why {
        DiscardReason::LowerAttempt => "a later attempt takes its place",
        DiscardReason::Superseded => "another image takes its place",
        DiscardReason::Deleted => "its object is being deleted",
    }
}

/// Why work is done where it is, as the status has it.
pub(super) const fn executed(reason: ExecutionReason) -> &'static str {
    match reason {
        ExecutionReason::NothingBuilt => "nothing is built",
        ExecutionReason::Built => BUILDING,
        ExecutionReason::Asked => "asked for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_ends_in_what_to_do_is_told_from_one_that_only_says_what_happened() {
        for message in [
            "the release v1 has no file disk; correct the url",
            "https://images.example/u does not give the file to us; name a Secret with credentials for it (HTTP 403)",
            "twice in a row: it has the digest a, and had b before; pin the one that is meant",
            "it changed; its tag was moved; say by #title which one is meant",
        ] {
            assert!(advises(message), "{message}");
        }
        for message in [
            "",
            "403 Forbidden",
            "see the log",
            "the cloud says: no; never",
            "a; tried 3 times",
        ] {
            assert!(!advises(message), "{message}");
        }
        for halt in HALTS {
            assert!(advises(&format!("it failed; {}", remedy(halt))), "{halt:?}");
        }
        let classes = [
            FailureClass::Quota,
            FailureClass::Credentials,
            FailureClass::Permission,
            FailureClass::InUse,
        ];
        for remedy in classes.into_iter().filter_map(remedy_of_failure) {
            assert!(advises(&format!("it failed; {remedy}")), "{remedy}");
        }
        assert!(advises(&format!("it failed; {IMPORT_FAILED}")));
    }
}
