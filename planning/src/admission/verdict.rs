//! The answer to a request, and how a refusal is worded.

use std::fmt;

/// What the API server is to do with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is refused; `None` when it may pass.
    pub refusal: Option<Refusal>,
    /// What whoever asks is told either way.
    pub warnings: Vec<String>,
}

/// Why a request is refused, as a status of the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code of HTTP.
    pub code: u16,
    /// The word that goes with the code.
    pub reason: &'static str,
    /// What the user reads, after the API server's `admission webhook … denied the request: `.
    pub message: String,
}

/// What is wrong with one field.
pub(super) struct Fault<'a> {
    pub(super) field: &'a str,
    pub(super) value: &'a str,
    pub(super) detail: String,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, detail } = self;
        write!(out, "{field}: Invalid value: {value:?}: {detail}")
    }
}

impl Verdict {
    pub(super) fn allow() -> Self {
        Self::default()
    }

    pub(super) fn warn(warning: String) -> Self {
        Self {
            refusal: None,
            warnings: vec![warning],
        }
    }

    pub(super) fn refused(mut self, refusal: Refusal) -> Self {
        self.refusal = Some(refusal);
        self
    }
}

impl Refusal {
    pub(super) fn forbidden(message: String) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message,
        }
    }

    pub(super) fn bad_request(message: String) -> Self {
        Self {
            code: 400,
            reason: "BadRequest",
            message,
        }
    }

    /// `kind` with its group: `Cluster.cluster.x-k8s.io`. There is at least one fault.
    pub(super) fn invalid(kind: &str, name: &str, faults: &[Fault<'_>]) -> Self {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let faults = match faults.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Self {
            code: 422,
            reason: "Invalid",
            message: format!("{kind} {name:?} is invalid: {faults}"),
        }
    }
}
