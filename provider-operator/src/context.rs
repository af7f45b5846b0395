//! The handles that every driver needs. What is remembered of an object lives in the memories of its driver.

use std::sync::Arc;
use std::time::Duration;

use crds::conditions::Condition;
use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource, ResourceExt};
use operator_kit::events::{EventType, Events};
use operator_kit::lease::Tenure;
use operator_kit::record::Recorder;
use planning::warnings::warnings;
use provider_plugin::OwnerId;

use crate::clock::Clock;
use crate::executor::{Executor, InProcess};
use crate::identity::{Connections, Secrets};
use crate::image;
use crate::image_files::ImageFiles;
use crate::kinds::Kind;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::registry::Registry;
use crate::release;
use crate::supply::Supply;

/// Handles only.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) tenure: Tenure,
    pub(crate) registry: Registry,
    pub(crate) secrets: Secrets,
    pub(crate) connections: Connections,
    pub(crate) executor: Arc<dyn Executor>,
    /// What asks clouds on behalf of no object.
    pub(crate) asking: InProcess,
    /// Under which name our images are marked in clouds.
    pub(crate) owner: OwnerId,
    pub(crate) settings: Settings,
    pub(crate) images: image::Memories,
    pub(crate) releases: release::Memories,
    pub(crate) supply: Supply,
    pub(crate) files: ImageFiles,
    pub(crate) events: Events,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) metrics: Metrics,
}

/// What flags say that decisions want to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long a deletion waits for a cloud that does not answer.
    pub(crate) force_finalize_after: Duration,
    /// Whether that holds also for images that machines hold on to.
    pub(crate) force_finalize_in_use: bool,
    /// How long a cloud may take to fetch an image, where flags say it.
    pub(crate) import_patience: Option<Duration>,
}

impl Context {
    /// Tells in events what is wrong with an object, as its new status says it. What was told last is not told again.
    pub(crate) fn warn(&self, about: &ObjectReference, before: &[Condition], after: &[Condition]) {
        for (reason, message) in warnings(before, after) {
            self.events.publish(about.clone(), EventType::Warning, reason, message);
        }
    }
}

/// By what drivers are woken. A closed one means that the process is about to end.
pub(crate) type Waker = UnboundedSender<ObjectRef<DynamicObject>>;

/// One provider's objects.
pub(crate) struct Served {
    pub(crate) kind: &'static Kind,
    pub(crate) images: Objects,
    pub(crate) releases: Objects,
    pub(crate) wakes_images: Waker,
    pub(crate) wakes_releases: Waker,
}

impl Served {
    pub(crate) fn image_api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, self.images.resource())
    }

    pub(crate) fn release_api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, self.releases.resource())
    }

    pub(crate) fn image_reference(&self, image: &DynamicObject) -> ObjectReference {
        image.object_ref(self.images.resource())
    }

    pub(crate) fn release_reference(&self, release: &DynamicObject) -> ObjectReference {
        release.object_ref(self.releases.resource())
    }

    /// An image object is to be looked at.
    pub(crate) fn wake_image(&self, namespace: &str, name: &str) {
        let _ = self.wakes_images.unbounded_send(self.images.reference(namespace, name));
    }

    /// A release object is to be looked at.
    pub(crate) fn wake_release(&self, namespace: &str, name: &str) {
        let _ = self
            .wakes_releases
            .unbounded_send(self.releases.reference(namespace, name));
    }

    /// An image object changed: the releases that it is of tell of it.
    pub(crate) fn wake_owners(&self, image: &DynamicObject) {
        let namespace = image.namespace().unwrap_or_default();
        for owner in image.owner_references() {
            if owner.kind == self.kind.definition().release_kind {
                self.wake_release(&namespace, &owner.name);
            }
        }
    }
}
