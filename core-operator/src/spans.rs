//! The spans of the operator's own work; those of requests are made where requests are sent. Without a collector there are none.

use std::time::Duration;

use planning::objects::{Action, OwnAction};
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// Does one reconcile within a span, which says what came of it.
pub(crate) async fn reconciled(
    kind: &'static str,
    namespace: &str,
    name: &str,
    work: impl Future<Output = Option<Duration>>,
) -> Option<Duration> {
    let span = tracing::info_span!(
        "reconcile",
        otel.name = format!("reconcile {kind}"),
        kind,
        namespace,
        name,
        again_seconds = Empty,
    );
    let again = work.instrument(span.clone()).await;
    if let Some(again) = again {
        span.record("again_seconds", again.as_secs_f64());
    }
    again
}

/// The span of one action on one object, within that of the reconcile.
pub(crate) fn acting<Own: OwnAction>(action: &Action<Own>) -> Span {
    let verb = action.name();
    let Some(key) = action.object() else {
        return tracing::info_span!("action", otel.name = verb, otel.status_code = Empty, error = Empty);
    };
    tracing::info_span!(
        "action",
        otel.name = format!("{verb} {}", key.kind),
        otel.status_code = Empty,
        group = key.group,
        kind = key.kind,
        namespace = key.namespace,
        name = key.name,
        error = Empty,
    )
}

/// Notes that what a span is about failed, in the words that the status has too.
pub(crate) fn failed(span: &Span, error: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error", error);
}
