//! How a process ended that should have answered.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::Signal;
use thiserror::Error;

use crate::child::{PANICKED, UNLIMITED};

/// Why a process ended in the middle, as far as its status tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Death {
    /// There was no more memory or stack for it.
    #[error("it had used up its memory or its stack")]
    Exhausted,
    /// It had computed for as long as it may.
    #[error("it had used up its processor time")]
    ProcessorTime,
    /// Somebody else ended it, most likely the system because memory was short.
    #[error("somebody killed it, most likely the system for want of memory")]
    Killed,
    /// The work panicked.
    #[error("its work panicked")]
    Panicked,
    /// The system refuses the limits, without which there is no work.
    #[error("the system does not let it limit itself")]
    Unlimited,
    /// Something else.
    #[error("something ended it ({0})")]
    Other(ExitStatus),
}

impl Death {
    pub(crate) fn of(status: ExitStatus) -> Self {
        let exhausted = [Signal::ABORT, Signal::SEGV, Signal::BUS];
        match (status.signal().and_then(Signal::from_named_raw), status.code()) {
            (Some(signal), _) if exhausted.contains(&signal) => Self::Exhausted,
            (Some(Signal::XCPU), _) => Self::ProcessorTime,
            (Some(Signal::KILL), _) => Self::Killed,
            (_, Some(PANICKED)) => Self::Panicked,
            (_, Some(UNLIMITED)) => Self::Unlimited,
            _ => Self::Other(status),
        }
    }
}
