//! How far one stage is, by looking; what was seen once is kept from its row.

use crds::cluster_addon::{StagePhase, StageProgress};
use crds::conditions::{Reason, cut};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::course::{Stage, StageKey};
use super::hook::Hook;

/// What is seen of a stage. Of a stage that nobody looked at nothing is known, and of one without conditions these do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSeen {
    /// Its objects.
    pub work: Work,
    /// What must hold before.
    pub pre: ConditionSeen,
    /// What must hold after.
    pub post: ConditionSeen,
}

/// How the objects of a stage are. A chart that is missing or cannot be rendered has failed; it is never as good as done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// Some are not there yet, or not gone yet.
    Ongoing {
        /// Which, and why.
        message: String,
    },
    /// It does not get better by itself, or only with luck.
    Failed {
        /// The kind of failure.
        reason: Reason,
        /// In the words of whoever refused it.
        message: String,
    },
    /// All are as the target wants them, or all are gone.
    Done,
}

/// How a condition is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionSeen {
    /// Nobody has evaluated it.
    #[default]
    Unknown,
    /// It holds.
    Holds,
    /// It does not hold, or it cannot be evaluated.
    Fails {
        /// The part that does not hold, with its value, or what is wrong with the expression.
        message: String,
    },
    /// It cannot be meant of what the API server of the cluster serves: nothing comes of waiting.
    Invalid {
        /// The field, and what the schema of the kind has instead.
        message: String,
    },
}

/// A stage of a course, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageState {
    /// Which.
    pub key: StageKey,
    /// The hook whose moment it waits for.
    pub opens: Hook,
    /// How far it is.
    pub phase: StagePhase,
    /// Its turn and its moment have come, or came once and it has begun: it is worked on.
    pub open: bool,
    /// Why it is not further.
    pub reason: Option<Reason>,
    /// The same in words.
    pub message: Option<String>,
    /// Since when it has been in this phase.
    pub since: Timestamp,
    /// When it takes too long. Absent until it is open.
    pub deadline: Option<Timestamp>,
    /// It takes too long, and what comes after it goes on without it.
    pub passed_over: bool,
}

impl StageState {
    /// Whether nothing waits for it any more.
    pub fn is_over(&self) -> bool {
        self.phase == StagePhase::Done || self.passed_over
    }

    /// How the status says it.
    pub fn row(&self) -> StageProgress {
        StageProgress {
            name: self.key.name.clone(),
            action: self.key.action,
            hook: Some(self.key.hook.name().to_owned()),
            phase: self.phase,
            reason: self.reason.map(|reason| reason.as_str().to_owned()),
            since: Some(Time(self.since)),
            deadline: self.deadline.map(Time),
            message: self.message.as_deref().map(cut),
            passed_over: self.passed_over,
        }
    }
}

/// The phase of an open stage, and why it is not further.
pub(super) struct Look {
    pub(super) phase: StagePhase,
    pub(super) reason: Option<Reason>,
    pub(super) message: Option<String>,
}

/// Whether a stage had begun when its row was written.
pub(super) fn has_begun(row: &StageProgress) -> bool {
    matches!(
        row.phase,
        StagePhase::ApplyingOrDeleting | StagePhase::WaitingForPostCondition
    )
}

/// Looks at an open stage that was not done yet.
///
/// What must hold before it must have held once: it may be untrue because the stage has begun. If nothing is left to do, it is not asked for at all.
pub(super) fn look(stage: &Stage, row: Option<&StageProgress>, seen: &StageSeen) -> Look {
    let last = row.map_or(StagePhase::Unknown, |row| row.phase);
    let has_begun = row.is_some_and(has_begun);
    let StageSeen { work, pre, post } = seen;
    let pre = stage
        .pre
        .as_ref()
        .and_then(|_| waits(pre, Reason::FailedToEvaluatePreCondition));
    let post = stage
        .post
        .as_ref()
        .and_then(|_| waits(post, Reason::FailedToEvaluatePostCondition));
    if *work == Work::Done {
        return post.map_or_else(Look::done, |why| Look::waits(StagePhase::WaitingForPostCondition, why));
    }
    if !has_begun && let Some(why) = pre {
        return Look::waits(StagePhase::WaitingForPreCondition, why);
    }
    let (reason, message) = match work {
        Work::Failed { reason, message } => (*reason, message.clone()),
        Work::Ongoing { message } => (Reason::ObjectsApplyingOngoing, message.clone()),
        Work::Unknown | Work::Done => (
            Reason::ObjectsApplyingOngoing,
            "nobody has looked at its objects yet".to_owned(),
        ),
    };
    Look {
        // Where nobody has looked, it is as far as it was.
        phase: if has_begun && *work == Work::Unknown {
            last
        } else {
            StagePhase::ApplyingOrDeleting
        },
        reason: Some(reason),
        message: Some(message),
    }
}

impl Look {
    fn done() -> Self {
        Self {
            phase: StagePhase::Done,
            reason: None,
            message: None,
        }
    }

    fn waits(phase: StagePhase, (reason, message): (Reason, String)) -> Self {
        Self {
            phase,
            reason: Some(reason),
            message: Some(message),
        }
    }
}

/// What a condition waits for, unless it holds; for this reason, as long as it can hold at all.
fn waits(condition: &ConditionSeen, reason: Reason) -> Option<(Reason, String)> {
    match condition {
        ConditionSeen::Holds => None,
        ConditionSeen::Unknown => Some((reason, "it has not been evaluated yet".to_owned())),
        ConditionSeen::Fails { message } => Some((reason, message.clone())),
        ConditionSeen::Invalid { message } => Some((Reason::ConditionInvalid, message.clone())),
    }
}
