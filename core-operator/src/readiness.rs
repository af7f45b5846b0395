//! Lines of the log about one object: that it became ready, that it no longer is, why it cannot become so, and that the API server does not
//! let us say so. Progress is no news here; the status tells it.

use crds::conditions::{Condition, ConditionStatus, ConditionType, Severity, find};
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use operator_kit::telemetry::trace_id;

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

/// Logs what is new in the conditions of an object that was just written. `objects` is how many it has brought, if it is one that brings any.
pub(crate) fn log_readiness<K>(
    object: &K,
    before: &[Condition],
    after: &[Condition],
    objects: Option<usize>,
    now: Timestamp,
) where
    K: Resource<DynamicType = ()>,
{
    let kind = K::kind(&());
    let (kind, namespace, name) = (kind.as_ref(), object.namespace(), object.name_any());
    let created = object.creation_timestamp().map_or(now, |created| created.0);
    // `message` is the line's own field.
    let words = |cause: &Condition| (cause.reason.clone(), cause.message.clone());
    let trace_id = trace_id();
    match news(before, after, created, objects.is_some()) {
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
pub(crate) fn log_refusal<K>(object: &K, refusals: u32, error: &str)
where
    K: Resource<DynamicType = ()>,
{
    let kind = K::kind(&());
    let (kind, namespace, name) = (kind.as_ref(), object.namespace(), object.name_any());
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

/// `by_words`: other words are another cause. Not so of a stack, whose words change with each of its releases.
fn news<'a>(before: &[Condition], after: &'a [Condition], created: Timestamp, by_words: bool) -> Option<News<'a>> {
    let (before, after) = (find(before, ConditionType::Ready), find(after, ConditionType::Ready)?);
    let was_ready = before.is_some_and(|before| before.status == ConditionStatus::True);
    match (was_ready, after.status) {
        (false, ConditionStatus::True) => Some(News::Ready {
            since: before.map_or(created, |before| before.last_transition_time.0),
        }),
        (true, ConditionStatus::False) => Some(News::NoLongerReady { cause: after }),
        (false, ConditionStatus::False) if is_severe(after) => {
            let said =
                |before: &Condition| before.reason == after.reason && (!by_words || before.message == after.message);
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
        for (before, after, expected) in table {
            for by_words in [false, true] {
                assert_eq!(news(before, after, CREATED, by_words), expected, "{before:?} {after:?}");
            }
        }
        let another = Some(News::CannotBeReady { cause: &more[0] });
        assert_eq!(
            news(&broken, &more, CREATED, true),
            another,
            "a release is broken in another way"
        );
        assert_eq!(
            news(&broken, &more, CREATED, false),
            None,
            "a stack has one more release"
        );
    }
}
