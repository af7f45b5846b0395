//! Sorts the API server's refusals into the variants that a caller can act on. Pure.

use http::StatusCode;
use kube::core::GroupVersionKind;
use kube::core::response::{Status, StatusCause};

use super::ownership::LISTED_FIELDS;
use super::{ApplyError, FieldConflict};
use crate::failure::{message_of, words_of};
use crate::secrets::Guard;

/// `metav1.CauseTypeFieldManagerConflict`.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// What server-side apply says, with a bare 500, of an object that does not fit the schema of its kind
/// (`k8s.io/apimachinery/pkg/util/managedfields`, seen with 1.36).
pub(crate) const WRONG_TYPE: &str = "failed to create typed patch object";

/// The cause of a refusal to create something in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// What the API server's refusal means, in the words that may be told.
pub(super) fn classify(error: kube::Error, gvk: GroupVersionKind, guard: &Guard) -> ApplyError {
    let kube::Error::Api(status) = error else {
        let source = guard.error(error);
        return ApplyError::Transient {
            message: words_of(&source),
            source: Box::new(source),
        };
    };
    let told = guard.status(&status);
    let message = message_of(&told);
    match StatusCode::from_u16(status.code) {
        Ok(StatusCode::NOT_FOUND) if is_about_namespace(&status) => ApplyError::NamespaceMissing { message },
        Ok(StatusCode::NOT_FOUND) => ApplyError::KindMissing { gvk },
        Ok(StatusCode::CONFLICT) if has_cause(&status, FIELD_MANAGER_CONFLICT) => ApplyError::Conflict {
            conflicts: conflicts_of(&told),
            message,
        },
        Ok(StatusCode::FORBIDDEN) if is_namespace_terminating(&status) => ApplyError::NamespaceTerminating { message },
        Ok(StatusCode::FORBIDDEN) => ApplyError::Forbidden { message },
        Ok(StatusCode::UNPROCESSABLE_ENTITY) if is_about_what_cannot_change(&status) => ApplyError::Immutable {
            fields: fields_of(&told),
            message,
        },
        Ok(
            StatusCode::UNPROCESSABLE_ENTITY
            | StatusCode::BAD_REQUEST
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ) => ApplyError::Invalid { message },
        _ if status.message.starts_with(WRONG_TYPE) => ApplyError::Invalid { message },
        _ => ApplyError::Transient {
            source: Box::new(kube::Error::Api(told.boxed())),
            message,
        },
    }
}

/// Whether something is refused because its namespace is being deleted: nothing can be made there any more.
pub fn is_namespace_terminating(status: &Status) -> bool {
    status.code == StatusCode::FORBIDDEN.as_u16() && has_cause(status, NAMESPACE_TERMINATING)
}

fn causes(status: &Status) -> &[StatusCause] {
    status.details.as_ref().map_or(&[], |details| &details.causes)
}

fn has_cause(status: &Status, reason: &str) -> bool {
    causes(status).iter().any(|cause| cause.reason == reason)
}

fn is_about_namespace(status: &Status) -> bool {
    status
        .details
        .as_ref()
        .is_some_and(|details| details.kind == "namespaces")
}

fn conflicts_of(status: &Status) -> Vec<FieldConflict> {
    let mut conflicts: Vec<FieldConflict> = causes(status)
        .iter()
        .filter(|cause| cause.reason == FIELD_MANAGER_CONFLICT)
        .map(|cause| FieldConflict {
            manager: manager_of(&cause.message).to_owned(),
            field: cause.field.clone(),
        })
        .collect();
    conflicts.sort_unstable();
    conflicts.truncate(LISTED_FIELDS);
    conflicts
}

/// From `conflict with "NAME" using apps/v1` or `conflict with "NAME" with subresource "status" using ... at ...`.
fn manager_of(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or("unknown")
}

/// Whether the only fault of fields is that they cannot change. Any other fault beside them makes the object invalid, since
/// creating it anew would not help.
fn is_about_what_cannot_change(status: &Status) -> bool {
    let causes = causes(status);
    !causes.is_empty() && causes.iter().all(|cause| says_immutable(&cause.message))
}

fn fields_of(status: &Status) -> Vec<String> {
    let mut fields: Vec<String> = causes(status).iter().map(|cause| cause.field.clone()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// There is no code for it, only words: of `k8s.io/apimachinery/pkg/api/validation`, of role bindings, of workloads, and
/// of the rules in most CRDs.
fn says_immutable(message: &str) -> bool {
    ["is immutable", "cannot change", "may not be changed", "updates to "]
        .iter()
        .any(|words| message.contains(words))
}
