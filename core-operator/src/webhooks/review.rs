//! Reviews of the API server as HTTP: read within bounds, answered within a deadline.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use crds::ClusterStackSpec;
use crds::webhooks::{CLUSTER_ADDON_PATH, CLUSTER_PATH, CLUSTER_STACK_PATH, CLUSTER_STACK_RELEASE_PATH};
use kube::api::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use kube::core::response::{Status, StatusSummary};
use operator_kit::failure::chain;
use operator_kit::https::Bodies;
use planning::admission::{
    ClusterChange, InUse, Users, Verdict, addon_update, deletion, users_of_release, users_of_stack,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Tally;
use super::facts::Facts;
use super::request;

/// Most bytes of a review: the object before and after, each as large as the API server takes it (3 MiB), and a little around them.
const BODY_LIMIT: usize = 7 << 20;

/// Reviews that are answered at once; more wait for their turn. It is taken when all of a review is here, so that who sends slowly has none.
const AT_ONCE: usize = 16;

/// From the first byte of a review to the last of the answer: less than the API server waits, so that it hears from us why.
const ANSWER_DEADLINE: Duration = Duration::from_secs(4);

struct ReviewDesk {
    facts: Facts,
    tally: Tally,
    turns: Semaphore,
    bodies: Bodies,
}

/// Whom a review is about.
#[derive(Clone, Copy)]
enum Kind {
    Cluster,
    Stack,
    Release,
    Addon,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Stack => "ClusterStack",
            Self::Release => "ClusterStackRelease",
            Self::Addon => "ClusterAddon",
        }
    }
}

/// The four webhooks.
pub(super) fn router(facts: Facts, tally: Tally) -> Router {
    let desk = Arc::new(ReviewDesk {
        facts,
        tally,
        turns: Semaphore::new(AT_ONCE),
        bodies: Bodies::new("review", BODY_LIMIT),
    });
    let webhook =
        |kind: Kind| post(move |State(desk): State<Arc<ReviewDesk>>, request: Request| answer(desk, kind, request));
    Router::new()
        .route(CLUSTER_PATH, webhook(Kind::Cluster))
        .route(CLUSTER_STACK_PATH, webhook(Kind::Stack))
        .route(CLUSTER_STACK_RELEASE_PATH, webhook(Kind::Release))
        .route(CLUSTER_ADDON_PATH, webhook(Kind::Addon))
        .layer(from_fn(in_time))
        .with_state(desk)
}

async fn in_time(request: Request, next: Next) -> Response {
    let answered = timeout(ANSWER_DEADLINE, next.run(request)).await;
    answered.unwrap_or_else(|_| (StatusCode::SERVICE_UNAVAILABLE, "no answer in time; try again\n").into_response())
}

async fn answer(desk: Arc<ReviewDesk>, kind: Kind, request: Request) -> Response {
    let content = match desk.bodies.read(request.into_body()).await {
        Ok(content) => content,
        Err(refused) => return refused.into_response(),
    };
    let _turn = desk.turns.acquire().await;
    let Some(request) = request::read(content.bytes()) else {
        desk.tally.count(kind.name(), "unreadable");
        return (StatusCode::BAD_REQUEST, "this is no AdmissionReview with a request\n").into_response();
    };
    let verdict = judge(&desk.facts, kind, &request).await;
    let outcome = match &verdict {
        Verdict { refusal: Some(_), .. } => "refused",
        Verdict { warnings, .. } if !warnings.is_empty() => "warned",
        Verdict { .. } => "allowed",
    };
    desk.tally.count(kind.name(), outcome);
    if let Some(refusal) = &verdict.refusal {
        let (namespace, name) = (&request.namespace, &request.name);
        let why = &refusal.message;
        tracing::info!(kind = kind.name(), namespace, name, why, "refused a request");
    }
    match serde_json::to_vec(&response(&request, verdict).into_review()) {
        Ok(review) => ([(CONTENT_TYPE, "application/json")], review).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn response(request: &AdmissionRequest<DynamicObject>, verdict: Verdict) -> AdmissionResponse {
    let Verdict { refusal, warnings } = verdict;
    let mut response = AdmissionResponse::from(request);
    response.warnings = (!warnings.is_empty()).then_some(warnings);
    if let Some(refusal) = refusal {
        response.allowed = false;
        response.result = Status {
            status: Some(StatusSummary::Failure),
            code: refusal.code,
            reason: refusal.reason.to_owned(),
            message: refusal.message,
            ..Status::default()
        };
    }
    response
}

/// Looks at what the rules about this request want to know, and asks for the verdict. Requests that no rule is about pass.
async fn judge(facts: &Facts, kind: Kind, request: &AdmissionRequest<DynamicObject>) -> Verdict {
    let (name, namespace) = (request.name.as_str(), request.namespace.as_deref().unwrap_or_default());
    let (before, after) = (request.old_object.as_ref(), request.object.as_ref());
    match (kind, &request.operation) {
        (Kind::Cluster, Operation::Create | Operation::Update) => {
            let (Some(after), before) = (after.and_then(json), before.and_then(json)) else {
                return Verdict::default();
            };
            let change = ClusterChange::of(name, namespace, before.as_ref(), &after);
            let seen = match change.release() {
                Some(place) => Some(facts.release(&place).await),
                None => None,
            };
            change.verdict(seen.as_ref())
        }
        (Kind::Stack, Operation::Delete) => {
            let spec = before.map(|stack| stack.data["spec"].clone()).unwrap_or_default();
            let users = match serde_json::from_value::<ClusterStackSpec>(spec) {
                Ok(spec) => facts.users(namespace, |used| users_of_stack(&spec, used)).await,
                Err(error) => Users::Unknown { error: chain(&error) },
            };
            deletion(InUse::Stack, namespace, &users)
        }
        (Kind::Release, Operation::Delete) => {
            let users = facts.users(namespace, |used| users_of_release(name, used)).await;
            deletion(InUse::Release, namespace, &users)
        }
        (Kind::Addon, Operation::Update) => match (before.and_then(json), after.and_then(json)) {
            (Some(before), Some(after)) => addon_update(name, namespace, &before, &after),
            _ => Verdict::default(),
        },
        _ => Verdict::default(),
    }
}

fn json(object: &DynamicObject) -> Option<Value> {
    serde_json::to_value(object).ok()
}

#[cfg(test)]
mod tests;
