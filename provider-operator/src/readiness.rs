//! Lines of the log about one object: that it became ready, that it no longer is, why it cannot become so. Progress is no news here; the status tells it.

use crds::conditions::{Condition, ConditionStatus, ConditionType, Severity, find};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;

/// Logs what is new in the conditions of an object that was just written.
pub(crate) fn log_readiness(
    kind: &str,
    object: &DynamicObject,
    before: &[Condition],
    after: &[Condition],
    now: Timestamp,
) {
    let (namespace, name) = (object.namespace(), object.name_any());
    let Some(ready) = find(after, ConditionType::Ready) else {
        return;
    };
    let was = find(before, ConditionType::Ready);
    let was_ready = was.is_some_and(|was| was.status == ConditionStatus::True);
    let (reason, why) = (&ready.reason, &ready.message);
    match (was_ready, ready.status) {
        (false, ConditionStatus::True) => {
            let created = object.creation_timestamp().map_or(now, |created| created.0);
            let since = was.map_or(created, |was| was.last_transition_time.0);
            let seconds = now.duration_since(since).as_secs().max(0);
            tracing::info!(kind, namespace, name, seconds, "ready");
        }
        (true, ConditionStatus::False) if is_severe(ready) => {
            tracing::warn!(kind, namespace, name, reason, why, "no longer ready");
        }
        (true, ConditionStatus::False) => {
            tracing::info!(kind, namespace, name, reason, why, "no longer ready");
        }
        (false, ConditionStatus::False) if is_severe(ready) && !was.is_some_and(|was| says_the_same(was, ready)) => {
            tracing::warn!(kind, namespace, name, reason, why, "cannot become ready");
        }
        _ => {}
    }
}

fn says_the_same(was: &Condition, is: &Condition) -> bool {
    was.reason == is.reason && was.message == is.message
}

fn is_severe(cause: &Condition) -> bool {
    matches!(cause.severity, Some(Severity::Error | Severity::Warning))
}
