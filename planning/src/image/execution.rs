//! Where bytes are moved: in the operator or in a Job. Starts nothing.

use serde::{Deserialize, Serialize};

use super::op::Form;
use super::seen::JobsSight;
use super::step::{Halt, HaltReason};
use super::wanted::{Execution, Wanted};

/// Why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecutionReason {
    /// Nothing is built.
    NothingBuilt,
    /// The image is built.
    Built,
    /// The user asks for it.
    Asked,
}

/// Where bytes are moved, and why.
///
/// # Errors
/// What is asked for cannot be had; the message says what to change.
pub fn executed_as(wanted: &Wanted, jobs: &JobsSight) -> Result<(Form, ExecutionReason), Halt> {
    let halt = |reason, message| Halt {
        reason,
        message,
        look: None,
    };
    let reason = match (wanted.execution, wanted.build) {
        (Execution::InProcess, Some(_)) => {
            let message = "an image is built in a Job and never in the operator; set execution to Auto or Job";
            return Err(halt(HaltReason::InvalidSpec, message.to_owned()));
        }
        (Execution::InProcess, None) => return Ok((Form::InProcess, ExecutionReason::Asked)),
        (Execution::Auto, None) => return Ok((Form::InProcess, ExecutionReason::NothingBuilt)),
        (Execution::Job, _) => ExecutionReason::Asked,
        (Execution::Auto, Some(_)) => ExecutionReason::Built,
    };
    match jobs {
        JobsSight::Usable | JobsSight::Held { .. } => Ok((Form::Job, reason)),
        JobsSight::Off { why } => Err(halt(
            HaltReason::JobsUnavailable,
            format!("a Job is needed and cannot be had: {why}"),
        )),
    }
}
