//! With which code the program of a Job ends, so that whoever reads Pods alone knows what kind of failure it was. Decides nothing else.

use planning::image::{Done, Failure, FailureClass};

/// The wish makes no sense, or the bytes are wrong: trying again does not help.
pub(crate) const WRONG: u8 = 65;
/// Nothing is at the source.
pub(crate) const NO_SOURCE: u8 = 66;
/// The cloud does not answer.
const UNAVAILABLE: u8 = 69;
/// The cloud has no room, or no time.
const LATER: u8 = 73;
/// It broke off.
const BROKEN: u8 = 75;
/// The cloud does not let us.
pub(crate) const FORBIDDEN: u8 = 77;
/// It was told to end, as the shell has it.
pub(crate) const STOPPED: u8 = 143;

/// The code for this end.
pub(crate) const fn code(outcome: &Result<Done, Failure>) -> u8 {
    match outcome {
        Ok(_) => 0,
        Err(failure) => match failure.class {
            FailureClass::Invalid
            | FailureClass::Unsupported
            | FailureClass::SourceMismatch
            | FailureClass::SourceNotAnImage
            | FailureClass::DigestUnknown
            | FailureClass::BuildFailed { .. } => WRONG,
            FailureClass::SourceGone => NO_SOURCE,
            FailureClass::Unavailable | FailureClass::Throttled => UNAVAILABLE,
            FailureClass::Quota | FailureClass::Busy | FailureClass::InUse => LATER,
            FailureClass::Credentials | FailureClass::Permission | FailureClass::NotOurs => FORBIDDEN,
            FailureClass::Stopped { .. } => STOPPED,
            FailureClass::State
            | FailureClass::Gone
            | FailureClass::Unknown
            | FailureClass::SourceBroken
            | FailureClass::SourceChanged
            | FailureClass::Sealing
            | FailureClass::JobVanished
            | FailureClass::OutOfMemory => BROKEN,
        },
    }
}

#[cfg(test)]
mod tests {
    use planning::image::StopReason;

    use super::*;

    #[test]
    fn each_kind_of_failure_has_the_code_by_which_pods_are_judged() {
        let of = |class| code(&Err(Failure::new(class, "")));
        assert_eq!(code(&Ok(Done::Sent)), 0);
        for (class, expected) in [
            (FailureClass::Invalid, 65),
            (FailureClass::SourceMismatch, 65),
            (FailureClass::SourceNotAnImage, 65),
            (FailureClass::SourceGone, 66),
            (FailureClass::Unavailable, 69),
            (FailureClass::Quota, 73),
            (FailureClass::Busy, 73),
            (FailureClass::SourceBroken, 75),
            (FailureClass::Unknown, 75),
            (FailureClass::Credentials, 77),
            (FailureClass::Permission, 77),
            (
                FailureClass::Stopped {
                    why: StopReason::Draining,
                },
                143,
            ),
        ] {
            assert_eq!(of(class), expected, "{class:?}");
        }
    }
}
