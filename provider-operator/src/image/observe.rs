//! Gathers everything that one decision about an image is made from: the object, its Secret, what this process remembers, what is under way. Asks the API
//! server alone, and changes nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::providers::image_status::NodeImageStatus;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::failure::chain;
use planning::image::{DeedName, Failure, FailureClass, Intent, Kept, Now, Op, OpState, Seen, Sight, Step, Wanted};
use serde_json::json;

use super::memory::{ImageMemory, lock};
use super::wanted::{Asked, Beside, asked, basis};
use crate::context::{Context, Served};
use crate::executor::OpView;
use crate::identity::{Connection, SecretError};
use crate::kinds::{ImageWish, Kind, status_of};
use crate::objects::ObjectId;

/// Nothing may move for so long before a transfer is given up.
const STALL: Duration = Duration::from_mins(1);

/// Everything that one decision is made from, and what its step is performed with.
pub(super) struct Case {
    pub(super) object: Arc<DynamicObject>,
    pub(super) status: NodeImageStatus,
    pub(super) wanted: Wanted,
    pub(super) kept: Kept,
    pub(super) seen: Seen,
    pub(super) op: Option<Op>,
    pub(super) wish: Option<ImageWish>,
    pub(super) asked: Asked,
    pub(super) cloud: Cloud,
}

/// The way to the cloud.
pub(super) struct Cloud {
    /// Which version of what opens it there is; `None` where it is missing.
    version: Option<String>,
    /// The way, or why there is none.
    pub(super) connection: Result<Arc<Connection>, Failure>,
    /// Whether a Secret opens it.
    needs_secret: bool,
}

impl Case {
    /// Stores the decision, where decisions are stored.
    pub(super) fn record(&self, context: &Context, now: Now, step: &Step) {
        if let Some(recorder) = &context.recorder {
            let Self {
                wanted, kept, seen, op, ..
            } = self;
            let observed = json!({ "wanted": wanted, "kept": kept, "seen": seen, "op": op, "steady": now.steady });
            recorder.record("image", &observed, now.wall, step);
        }
    }

    /// Counts what was begun, now that it is written.
    pub(super) fn count(&self, step: &Step) {
        if let (Step::Record(Intent::Attempt { why, .. }), Ok(connection)) = (step, &self.cloud.connection) {
            connection.counts().attempted(*why);
        }
    }

    /// Whether it may go on with another Secret, of which nobody tells.
    pub(super) fn awaits_secret(&self) -> bool {
        let is_failed = matches!(self.seen.cloud, Sight::Failed { .. }) || self.kept.retry.is_some();
        self.cloud.needs_secret && (self.cloud.version.is_none() || is_failed || self.kept.halted.is_some())
    }
}

/// Looks at one image object.
pub(super) async fn observe(
    context: &Context,
    served: &Served,
    object: Arc<DynamicObject>,
    id: &ObjectId,
    memory: &Mutex<ImageMemory>,
) -> Case {
    let wish = served.kind.wish(&object);
    let cloud = way(context, served.kind, id, &object, wish.as_ref().ok(), memory).await;
    let view = context.executor.look(id);
    let object = after_transfer(context, served, object, view.as_ref()).await;
    let status: NodeImageStatus = status_of(&object);
    let beside = Beside {
        owner: &context.owner,
        identity: cloud.version.as_deref(),
        force_finalize: context.settings.force_finalize_in_use,
    };
    let provider = context.registry.get(id.provider);
    let check = |image: &provider_plugin::ImageSpec| match provider {
        Some(provider) => provider.check(image).map_err(|error| chain(&error)),
        None => Ok(()),
    };
    let read = wish
        .as_ref()
        .map_err(|error| format!("spec cannot be read: {}", chain(error)));
    let asked = asked(served.kind, &object, read, &status, beside, check);
    let mut memory = lock(memory);
    memory.hear(basis(&asked.wanted));
    if let Some(view) = &view
        && memory.end(&view.op, &view.found, context.clock.now().steady)
    {
        heard(context, id, view, wish.as_ref().ok());
    }
    let seen = Seen {
        cloud: memory.cloud.clone(),
        source: memory.source.clone(),
        jobs: context.executor.jobs(id, cloud.name()),
        abilities: memory.abilities.clone(),
        amended: memory.amended.clone(),
        unshown: memory.unshown.clone(),
        force_after: context.settings.force_finalize_after,
        stall: STALL,
        import_patience: context.settings.import_patience,
    };
    Case {
        kept: Kept::of_status(&status),
        wanted: asked.wanted.clone(),
        op: view.map(|view| view.op),
        wish: wish.ok(),
        object,
        status,
        seen,
        asked,
        cloud,
    }
}

/// What a deed has ended with: it is counted, and what was refused is read anew.
fn heard(context: &Context, id: &ObjectId, view: &OpView, wish: Option<&ImageWish>) {
    let OpState::Ended { outcome, .. } = &view.op.state else {
        return;
    };
    context.metrics.deed(id.provider, view.op.deed.name(), outcome);
    if let Err(failure) = outcome {
        tracing::debug!(
            object = %id,
            deed = ?view.op.deed.name(),
            class = ?failure.class,
            error = failure.message,
            request = failure.request_id,
            sent = view.progress.map(|progress| progress.sent),
            "a deed failed"
        );
        if let (FailureClass::Credentials, Some(secret)) = (failure.class, wish.and_then(|wish| wish.secret())) {
            context.secrets.forget(&id.namespace, secret);
        }
    }
}

/// The object as it is when its bytes have been sent: what was sealed then stands in its status, and a watch may be late.
async fn after_transfer(
    context: &Context,
    served: &Served,
    object: Arc<DynamicObject>,
    view: Option<&OpView>,
) -> Arc<DynamicObject> {
    let has_sealed = view.is_some_and(|view| {
        let deed = view.op.deed.name();
        matches!(deed, DeedName::Transfer | DeedName::Build) && matches!(view.op.state, OpState::Ended { .. })
    });
    if !has_sealed {
        return object;
    }
    let api = served.image_api(&context.client, &object.namespace().unwrap_or_default());
    match api.get(&object.name_any()).await {
        Ok(current) if current.metadata.uid == object.metadata.uid => {
            served.images.note(current.clone());
            Arc::new(current)
        }
        // The write that follows is refused where the object is another one by now.
        Ok(_) | Err(_) => object,
    }
}

/// The way to the cloud of an object as there is one now; for one that goes also as there was one.
async fn way(
    context: &Context,
    kind: &Kind,
    id: &ObjectId,
    object: &DynamicObject,
    wish: Option<&ImageWish>,
    memory: &Mutex<ImageMemory>,
) -> Cloud {
    let known = lock(memory).identity().cloned();
    let known = known.or_else(|| identity_of(&status_of(object)));
    let mut cloud = cloud(context, kind, id, wish, known).await;
    // Where nobody can read what is wanted, nothing can be asked of a cloud.
    if object.metadata.deletion_timestamp.is_some() && wish.is_some() {
        cloud = cloud.or_as_before(lock(memory).connection.clone());
    }
    if let Ok(connection) = &cloud.connection {
        lock(memory).opened(connection);
    }
    cloud
}

/// The version of the Secret that status tells of. A process that begins while no Secret can be read would else take it for another one, and begin anew what
/// was given up with it.
fn identity_of(status: &NodeImageStatus) -> Option<String> {
    let halted = status.halted.as_ref().and_then(|halted| halted.identity.clone());
    halted.or_else(|| status.retry.as_ref()?.identity.clone())
}

/// The way to the cloud that an object names. `known` is the version of the Secret that was known before.
async fn cloud(
    context: &Context,
    kind: &Kind,
    id: &ObjectId,
    wish: Option<&ImageWish>,
    known: Option<String>,
) -> Cloud {
    let Some(wish) = wish else { return Cloud::missing() };
    let provider = context.registry.get(id.provider);
    let named = provider.and_then(|provider| provider.cloud_of_image(wish.name()));
    let identity = match context.secrets.identity_of(&id.namespace, kind, wish, named).await {
        Ok(Some(identity)) => identity,
        Ok(None) => return Cloud::missing(),
        Err(ref error @ SecretError::OfAType { ref version, .. }) => return Cloud::of_others(version, chain(error)),
        Err(error) => return Cloud::unknown(known, &error),
    };
    let version = Some(identity.version.clone());
    let connection = context.connections.get(id.provider, identity);
    if let Ok(connection) = &connection {
        let cloud = connection.cloud();
        context.metrics.lies(id.provider, &id.namespace, &id.name, cloud);
    }
    Cloud {
        version,
        // What is in a Secret can be put right; what is in flags is there for as long as the process.
        connection: connection.map_err(|error| Failure::new(FailureClass::Credentials, chain(&error))),
        needs_secret: wish.secret().is_some(),
    }
}

impl Cloud {
    /// Which of the clouds of the Secret, or which of the stores.
    fn name(&self) -> Option<&str> {
        self.connection.as_ref().ok().map(|connection| connection.identity().0)
    }

    fn missing() -> Self {
        let words = "the Secret that is to be used is not there; create it";
        Self {
            version: None,
            connection: Err(Failure::new(FailureClass::Credentials, words)),
            needs_secret: true,
        }
    }

    /// The Secret is there, and not for this.
    fn of_others(version: &str, words: String) -> Self {
        Self {
            version: Some(version.to_owned()),
            connection: Err(Failure::new(FailureClass::Credentials, words)),
            needs_secret: true,
        }
    }

    /// Whether the Secret is there is not known; what was known of it before counts.
    fn unknown(version: Option<String>, error: &SecretError) -> Self {
        let failure = match error {
            // The words say what to do, and the API server's would come behind.
            SecretError::Forbidden { .. } => Failure::new(FailureClass::Permission, error.to_string()),
            error => Failure::new(FailureClass::Unavailable, chain(error)),
        };
        Self {
            version: Some(version.unwrap_or_else(|| "unread".to_owned())),
            connection: Err(failure),
            needs_secret: true,
        }
    }

    /// An object that goes takes its image along also where the Secret, or the right to read it, went before: with a namespace all of it goes in no
    /// order.
    fn or_as_before(self, before: Option<Arc<Connection>>) -> Self {
        match before.filter(|_| self.connection.is_err()) {
            Some(before) => Self {
                version: Some(before.identity().1.to_owned()),
                connection: Ok(before),
                needs_secret: self.needs_secret,
            },
            None => self,
        }
    }
}
