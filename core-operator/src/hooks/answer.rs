//! Calls of Cluster API as HTTP: read within bounds, answered within a deadline.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use crds::hooks::{API_VERSION, TIMEOUT_SECONDS};
use jiff::Timestamp;
use operator_kit::failure::chain;
use operator_kit::https::Bodies;
use planning::addon::{Call, Handler, Hook, HookAnswer, HookSet, HookStatus, answer, noted};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Tally;
use super::minor::Minor;
use super::notes::Notes;
use super::sight::Sight;

/// Most bytes of a call: a Cluster as large as the API server takes it (3 MiB), and a little around it.
const BODY_LIMIT: usize = 4 << 20;

/// From the first byte of a call to the last of its answer: less than Cluster API waits, so that it hears from us why.
const ANSWER_DEADLINE: Duration = Duration::from_secs(8);

/// Whom Cluster API asks.
pub(super) struct Desk {
    pub(super) minor: Minor,
    pub(super) notes: Notes,
    pub(super) sight: Sight,
    pub(super) tally: Tally,
}

struct Open {
    desk: Desk,
    bodies: Bodies,
}

/// Discovery and all hooks, those too that no manager was told of.
pub(super) fn router(desk: Desk) -> Router {
    let open = Open {
        desk,
        bodies: Bodies::new("call", BODY_LIMIT),
    };
    Router::new()
        .route(&format!("/{API_VERSION}/discovery"), post(discover))
        .route(&format!("/{API_VERSION}/{{hook}}/{{handler}}"), post(call))
        .layer(from_fn(in_time))
        .with_state(Arc::new(open))
}

async fn in_time(request: Request, next: Next) -> Response {
    let answered = timeout(ANSWER_DEADLINE, next.run(request)).await;
    answered.unwrap_or_else(|_| (StatusCode::SERVICE_UNAVAILABLE, "no answer in time; try again\n").into_response())
}

/// Says which hooks are answered. There is nothing in the question.
async fn discover(State(open): State<Arc<Open>>) -> Response {
    let found = open.desk.minor.hook_set().await;
    if let Err(error) = &found {
        tracing::warn!(error = %chain(error), "failed to tell which hooks are answered");
    }
    json_of(&match found {
        Ok(set) => discovery(set),
        Err(error) => response("Discovery", "Failure", &chain(&error)),
    })
}

async fn call(
    State(open): State<Arc<Open>>,
    Path((hook, handler)): Path<(String, String)>,
    request: Request,
) -> Response {
    let begun = Instant::now();
    let Some(hook) = asked(&hook, &handler) else {
        return (StatusCode::NOT_FOUND, "no such hook\n").into_response();
    };
    let content = match open.bodies.read(request.into_body()).await {
        Ok(content) => content,
        Err(refused) => return refused.into_response(),
    };
    let answer = match Call::read(hook, content.bytes()) {
        Some(call) => open.desk.answer(&call),
        None => HookAnswer {
            status: HookStatus::Failure,
            retry_after_seconds: 0,
            message: format!("this is no request of {hook} about a Cluster with a name and a namespace"),
        },
    };
    open.desk.tally.count(hook, &answer, begun);
    json_of(&hook_response(hook, &answer))
}

/// The hook of a path, where names are in small letters.
fn asked(hook: &str, handler: &str) -> Option<Hook> {
    let mut hooks = Hook::ALL.into_iter();
    let hook = hooks.find(|known| known.name().eq_ignore_ascii_case(hook))?;
    (Handler::of(hook).name == handler).then_some(hook)
}

impl Desk {
    fn answer(&self, call: &Call) -> HookAnswer {
        let looked = self.sight.look(&call.cluster);
        let answer = answer(call, looked.addon.as_deref(), looked.listed(), Timestamp::now());
        if let Some(addon) = &looked.addon
            && let Some(called) = noted(call, addon, &answer)
        {
            self.notes.write(addon, &called);
        }
        let (namespace, name) = (&call.cluster.namespace, &call.cluster.name);
        tracing::debug!(hook = %call.hook, namespace, name, ?answer, "answered a lifecycle hook");
        answer
    }
}

fn discovery(set: HookSet) -> Value {
    let handlers = set.handlers().map(|handler| {
        let Handler {
            hook,
            name,
            failure_policy,
        } = handler;
        json!({
            "name": name,
            "requestHook": { "apiVersion": API_VERSION, "hook": hook.name() },
            "timeoutSeconds": TIMEOUT_SECONDS,
            "failurePolicy": failure_policy.name(),
        })
    });
    let mut response = response("Discovery", "Success", "");
    response["handlers"] = handlers.collect();
    response
}

/// The types are those of `lifecyclehooks_types.go`, 1.10.5 to 1.14.2: all but one may hold a cluster up.
fn hook_response(hook: Hook, answer: &HookAnswer) -> Value {
    let status = match answer.status {
        HookStatus::Success => "Success",
        HookStatus::Failure => "Failure",
    };
    let mut response = response(hook.name(), status, &answer.message);
    if hook != Hook::AfterControlPlaneInitialized {
        response["retryAfterSeconds"] = answer.retry_after_seconds.into();
    }
    response
}

fn response(hook: &str, status: &str, message: &str) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": format!("{hook}Response"), "status": status, "message": message })
}

fn json_of(response: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], response.to_string()).into_response()
}

#[cfg(test)]
mod tests;
