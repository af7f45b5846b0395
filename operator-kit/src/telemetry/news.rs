//! Lines of the log about one object: that it became ready, that it no longer is, why it cannot become so, and that the API server does not
//! let us say so. Progress is no news here; the status tells it.

use crds::conditions::{Condition, ConditionStatus, ConditionType, Severity, find};
use jiff::Timestamp;
use kube::ResourceExt;

use super::trace_id;

/// What a new status says that the one before did not.
#[derive(Debug, PartialEq, Eq)]
enum News<'a> {
    Ready {
        /// When it was created, or ceased to be ready.
        since: Timestamp,
    },
    NoLongerReady {
        cause: &'a Condition,
    },
    CannotBeReady {
        cause: &'a Condition,
    },
}

/// The conditions of an object before and after a write.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Those that it had.
    pub before: &'a [Condition],
    /// Those that it has.
    pub after: &'a [Condition],
    /// Whether other words are another cause. Not so where they change with each of several things that an object waits for.
    pub by_words: bool,
    /// How many objects it has brought, if it is one that brings any.
    pub objects: Option<usize>,
}

/// Logs what is new in the conditions of an object that was just written.
pub fn log_readiness(kind: &str, object: &impl ResourceExt, change: Change<'_>, now: Timestamp) {
    let (namespace, name, objects) = (object.namespace(), object.name_any(), change.objects);
    let created = object.creation_timestamp().map_or(now, |created| created.0);
    // `message` is the line's own field.
    let words = |cause: &Condition| (cause.reason.clone(), cause.message.clone());
    let trace_id = trace_id();
    match news(change, created) {
        Some(News::Ready { since }) => {
            let seconds = now.duration_since(since).as_secs().max(0);
            tracing::info!(kind, namespace, name, objects, seconds, trace_id, "ready");
        }
        Some(News::NoLongerReady { cause }) if is_severe(cause) => {
            let (reason, why) = words(cause);
            tracing::warn!(kind, namespace, name, reason, why, trace_id, "no longer ready");
        }
        Some(News::NoLongerReady { cause }) => {
            let (reason, why) = words(cause);
            tracing::info!(kind, namespace, name, reason, why, trace_id, "no longer ready");
        }
        Some(News::CannotBeReady { cause }) => {
            let (reason, why) = words(cause);
            tracing::warn!(kind, namespace, name, reason, why, trace_id, "cannot become ready");
        }
        None => {}
    }
}

/// Somebody else's write in between is usual; this many refusals in a row are not.
const TOLD_REFUSALS: u32 = 3;

/// Logs that an object itself could not be written, and how often in a row. Said aloud once.
pub fn log_refusal(kind: &str, object: &impl ResourceExt, refusals: u32, error: &str) {
    let (namespace, name) = (object.namespace(), object.name_any());
    if refusals == TOLD_REFUSALS {
        tracing::warn!(
            kind,
            namespace,
            name,
            error,
            trace_id = trace_id(),
            "cannot be written; it is tried again by itself"
        );
    } else {
        tracing::debug!(kind, namespace, name, error, refusals, "could not be written");
    }
}

fn news(change: Change<'_>, created: Timestamp) -> Option<News<'_>> {
    let find = |conditions| find(conditions, ConditionType::Ready);
    let (before, after) = (find(change.before), find(change.after)?);
    let was_ready = before.is_some_and(|before| before.status == ConditionStatus::True);
    match (was_ready, after.status) {
        (false, ConditionStatus::True) => Some(News::Ready {
            since: before.map_or(created, |before| before.last_transition_time.0),
        }),
        (true, ConditionStatus::False) => Some(News::NoLongerReady { cause: after }),
        (false, ConditionStatus::False) if is_severe(after) => {
            let said = |before: &Condition| {
                before.reason == after.reason && (!change.by_words || before.message == after.message)
            };
            (!before.is_some_and(said)).then_some(News::CannotBeReady { cause: after })
        }
        _ => None,
    }
}

fn is_severe(cause: &Condition) -> bool {
    matches!(cause.severity, Some(Severity::Error | Severity::Warning))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const CREATED: Timestamp = Timestamp::UNIX_EPOCH;

    fn ready(status: ConditionStatus, severity: Option<Severity>, message: &str) -> Vec<Condition> {
        vec![Condition {
            type_: "Ready".to_owned(),
            status,
            severity,
            last_transition_time: Time(Timestamp::from_second(7).unwrap()),
            reason: Some("Why".to_owned()),
            message: Some(message.to_owned()),
        }]
    }

    #[test]
    fn only_what_changes_for_users_is_news() {
        use ConditionStatus::{False, True};
        let holds = ready(True, None, "");
        let goes_on = ready(False, Some(Severity::Info), "one of two");
        let broken = ready(False, Some(Severity::Error), "no such file");
        let more = ready(False, Some(Severity::Error), "no such file, nor another");
        let mut otherwise = more.clone();
        otherwise[0].reason = Some("Else".to_owned());
        let since = holds[0].last_transition_time.0;
        let table = [
            (&vec![], &holds, Some(News::Ready { since: CREATED })),
            (&goes_on, &holds, Some(News::Ready { since })),
            (&holds, &holds, None),
            (&holds, &goes_on, Some(News::NoLongerReady { cause: &goes_on[0] })),
            (&holds, &broken, Some(News::NoLongerReady { cause: &broken[0] })),
            (&vec![], &goes_on, None),
            (&vec![], &broken, Some(News::CannotBeReady { cause: &broken[0] })),
            (&broken, &otherwise, Some(News::CannotBeReady { cause: &otherwise[0] })),
            (&broken, &goes_on, None),
        ];
        let change = |before, after, by_words| Change {
            before,
            after,
            by_words,
            objects: None,
        };
        for (before, after, expected) in table {
            for by_words in [false, true] {
                let change = change(before, after, by_words);
                assert_eq!(news(change, CREATED), expected, "{change:?}");
            }
        }
        let another = Some(News::CannotBeReady { cause: &more[0] });
        let by_words = change(&broken, &more, true);
        assert_eq!(news(by_words, CREATED), another, "a release is broken in another way");
        let by_reason = change(&broken, &more, false);
        assert_eq!(news(by_reason, CREATED), None, "a stack has one more release");
    }
}
