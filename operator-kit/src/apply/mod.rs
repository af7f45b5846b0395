//! Applies one object by server-side apply and says what the API server made of it.
//!
//! Whether to force, what to do about a conflict and when to try again are the caller's decisions; here each is an
//! argument or a variant.

mod answer;
mod ownership;

use std::borrow::Cow;

use http::StatusCode;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use serde_json::Value;

use crate::discovery::{Discovery, DiscoveryError};
use crate::failure::Class;
use crate::object::group_kind;
use crate::secrets::Guard;

pub(crate) use self::answer::WRONG_TYPE;
pub use self::answer::is_namespace_terminating;
pub use self::ownership::{ForeignOwner, LISTED_FIELDS};

/// How to apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions<'a> {
    /// The owner of the fields that are sent.
    pub field_manager: &'a str,
    /// Take fields from whoever owns them. Without it such fields are an [`ApplyError::Conflict`].
    pub force: bool,
    /// Change nothing, but answer as if.
    pub dry_run: bool,
    /// The namespace that a namespaced object belongs to. An object that names another one is refused.
    pub namespace: &'a str,
    /// Make the object, and change none that is there: that is [`ApplyError::AlreadyThere`].
    pub only_new: bool,
}

/// What the API server stored (or, in a dry run, would have stored).
#[derive(Clone, Debug)]
pub struct AppliedObject {
    /// The whole object as stored, without managedFields.
    pub live: DynamicObject,
    /// Others who own fields that we sent, with the same value. A later change of ours to such a field is a conflict.
    pub owners: Vec<ForeignOwner>,
}

/// A field that somebody else owns and that we wanted to have another value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct FieldConflict {
    /// The other's field manager.
    pub manager: String,
    /// The path in the API server's notation, for example `.spec.replicas`.
    pub field: String,
}

/// The object was not applied. `message` is always what the API server said; of a Secret without its values, or its code alone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not a Kubernetes object at all.
    #[error("unable to apply an object without {missing}")]
    Malformed {
        /// The field that is missing or of the wrong type.
        missing: &'static str,
    },
    /// The object asks to live somewhere else than where its release lives.
    #[error(
        "unable to apply an object of namespace {found:?} for namespace {wanted:?}; remove metadata.namespace from it"
    )]
    NamespaceDiffers {
        /// The namespace in the object.
        found: String,
        /// The namespace it belongs to.
        wanted: String,
    },
    /// Discovery could not be read.
    #[error("failed to look up the kind")]
    Discover(#[source] DiscoveryError),
    /// The API server does not serve the kind: its CRD is not installed (yet).
    #[error("the kind {} in {} is not served; install its CRD", gvk.kind, gvk.api_version())]
    KindMissing {
        /// The kind and version the object is of.
        gvk: GroupVersionKind,
    },
    /// The namespace does not exist (yet).
    #[error("the namespace does not exist: {message}")]
    NamespaceMissing {
        /// The API server's words.
        message: String,
    },
    /// The namespace is being deleted; nothing can be created in it.
    #[error("the namespace is being deleted: {message}")]
    NamespaceTerminating {
        /// The API server's words.
        message: String,
    },
    /// Others own fields that we wanted to have other values.
    #[error("{message}")]
    Conflict {
        /// Who and which fields; sorted, at most [`LISTED_FIELDS`].
        conflicts: Vec<FieldConflict>,
        /// The API server's words.
        message: String,
    },
    /// There is an object of that name, and none was to be changed.
    #[error("the object is there already")]
    AlreadyThere,
    /// A field that cannot change once it is set. Only deleting and creating anew would help.
    #[error("a field cannot be changed: {message}")]
    Immutable {
        /// The fields in the API server's notation, sorted.
        fields: Vec<String>,
        /// The API server's words.
        message: String,
    },
    /// The API server finds the object invalid, or an admission policy or webhook refuses it.
    #[error("the object is refused: {message}")]
    Invalid {
        /// The API server's words.
        message: String,
    },
    /// Our role does not allow it, or an admission policy forbids it.
    #[error("not allowed: {message}")]
    Forbidden {
        /// The API server's words.
        message: String,
    },
    /// No answer in time, too many requests, or an error of the API server or of a webhook it called.
    #[error("failed to apply for now: {message}")]
    Transient {
        /// The API server's words, or what went wrong on the way to it.
        message: String,
        /// The whole failure.
        #[source]
        source: Box<kube::Error>,
    },
}

impl ApplyError {
    /// What to do about it. Forbidden is transient: a repaired role wakes nobody.
    pub fn class(&self) -> Class {
        match self {
            Self::Malformed { .. }
            | Self::NamespaceDiffers { .. }
            | Self::Conflict { .. }
            | Self::Immutable { .. }
            | Self::Invalid { .. } => Class::Terminal,
            Self::KindMissing { .. } | Self::NamespaceMissing { .. } | Self::NamespaceTerminating { .. } => {
                Class::Waiting
            }
            Self::Discover(source) => source.class(),
            Self::AlreadyThere | Self::Forbidden { .. } | Self::Transient { .. } => Class::Transient,
        }
    }
}

/// A resourceVersion that no object has. The API server holds an apply that names a version against the object that it finds, and where it finds none it makes
/// one (`k8s.io/apiserver/pkg/registry/generic/registry`, `Store.Update`): so nobody's object can be met who came in between.
const OF_NONE: &str = "9223372036854775807";

/// Applies `intent`, a whole object with `apiVersion`, `kind` and `metadata.name`.
///
/// A namespaced object without a namespace goes into [`ApplyOptions::namespace`]; a cluster-scoped one has none.
pub async fn apply(
    client: &Client,
    discovery: &Discovery,
    intent: &Value,
    options: &ApplyOptions<'_>,
) -> Result<AppliedObject, ApplyError> {
    let gvk = gvk_of(intent)?;
    let name = intent
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .ok_or(ApplyError::Malformed {
            missing: "metadata.name",
        })?;
    let Some(resolved) = discovery.resolve(&gvk).await.map_err(ApplyError::Discover)? else {
        return Err(ApplyError::KindMissing { gvk });
    };
    if resolved.scope == Scope::Namespaced {
        check_namespace(intent, options.namespace)?;
    }
    let api = resolved.api(client, Some(options.namespace));
    let params = PatchParams {
        dry_run: options.dry_run,
        force: options.force,
        field_manager: Some(options.field_manager.to_owned()),
        field_validation: None,
    };
    let mut sent = Cow::Borrowed(intent);
    if options.only_new {
        sent.to_mut()["metadata"]["resourceVersion"] = OF_NONE.into();
    }
    let mut live = match api.patch(name, &params, &Patch::Apply(&*sent)).await {
        Ok(live) => live,
        Err(kube::Error::Api(status)) if options.only_new && status.code == StatusCode::CONFLICT => {
            return Err(ApplyError::AlreadyThere);
        }
        Err(error) => {
            let guard = Guard::of_apply(&group_kind(&gvk), intent, &api, name).await;
            let error = answer::classify(error, gvk, &guard);
            if matches!(error, ApplyError::KindMissing { .. }) {
                discovery.invalidate();
            }
            return Err(error);
        }
    };
    let managed = live.metadata.managed_fields.take().unwrap_or_default();
    Ok(AppliedObject {
        owners: ownership::foreign_owners(&managed, intent, options.field_manager),
        live,
    })
}

fn gvk_of(intent: &Value) -> Result<GroupVersionKind, ApplyError> {
    let text = |field: &'static str| {
        intent
            .get(field)
            .and_then(Value::as_str)
            .ok_or(ApplyError::Malformed { missing: field })
    };
    let (group, version) = match text("apiVersion")?.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text("apiVersion")?),
    };
    Ok(GroupVersionKind::gvk(group, version, text("kind")?))
}

fn check_namespace(intent: &Value, wanted: &str) -> Result<(), ApplyError> {
    match intent.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(found) if found != wanted => Err(ApplyError::NamespaceDiffers {
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
