//! Watches of everything that is shown, as one stream of changes. Judges nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Instant,
};

use crds::{
    ClusterStack, ClusterStackRelease, PROVIDER_GROUP, VERSION, labels,
    providers::{Provider, image_status::NodeImageStatus},
};
use futures::StreamExt;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ObjectMeta},
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};

/// Something that an API server told, and when it arrived.
pub(super) struct Change {
    pub(super) at: Instant,
    pub(super) what: What,
}

pub(super) enum What {
    Stack(Box<ClusterStack>),
    StackGone,
    Release(Box<ClusterStackRelease>),
    ReleaseGone(String),
    /// Kind and metadata of an applied object.
    Object(String, Box<ObjectMeta>),
    /// Kind and name.
    ObjectGone(String, String),
    Image(Box<Image>),
    /// Its name.
    ImageGone(String),
    Job(Box<Job>),
    /// Its name.
    JobGone(String),
    Pod(Box<Pod>),
    /// Its name.
    PodGone(String),
}

/// A node image as its object tells it.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// The releases that need it.
    pub(super) owners: BTreeSet<String>,
    pub(super) deleting: bool,
    pub(super) status: NodeImageStatus,
}

impl Image {
    fn of(kind: &'static str, object: &DynamicObject) -> Self {
        let owners = object.owner_references().iter().map(|owner| owner.name.clone());
        // What cannot be read says nothing yet.
        let status = serde_json::from_value(object.data["status"].clone()).unwrap_or_default();
        Self {
            kind,
            name: object.name_any(),
            owners: owners.collect(),
            deleting: object.metadata.deletion_timestamp.is_some(),
            status,
        }
    }
}

/// Running watches of one namespace; dropped, they end.
pub(super) struct Watches {
    client: Client,
    namespace: String,
    kinds: BTreeSet<(String, String, String)>,
    tasks: JoinSet<()>,
    sender: UnboundedSender<Change>,
    changes: UnboundedReceiver<Change>,
}

impl Watches {
    /// Starts with our own kinds, those of a provider of node images where there is one, and Jobs and Pods where these run.
    pub(super) fn start(client: &Client, namespace: &str, provider: Option<Provider>, pods_run: bool) -> Self {
        let (sender, changes) = unbounded_channel();
        let mut watches = Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            kinds: BTreeSet::new(),
            tasks: JoinSet::new(),
            sender,
            changes,
        };
        watches.follow(
            Api::namespaced(client.clone(), namespace),
            Config::default(),
            |stack| What::Stack(Box::new(stack)),
            |_| What::StackGone,
        );
        watches.follow(
            Api::namespaced(client.clone(), namespace),
            Config::default(),
            |release| What::Release(Box::new(release)),
            What::ReleaseGone,
        );
        if let Some(provider) = provider {
            let definition = provider.definition();
            let kind = GroupVersionKind::gvk(PROVIDER_GROUP, VERSION, definition.image_kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, definition.image_plural);
            let images: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
            let image = move |object: DynamicObject| What::Image(Box::new(Image::of(definition.image_kind, &object)));
            watches.follow(images, Config::default(), image, What::ImageGone);
        }
        if pods_run {
            watches.follow(
                Api::namespaced(client.clone(), namespace),
                Config::default(),
                |job| What::Job(Box::new(job)),
                What::JobGone,
            );
            watches.follow(
                Api::namespaced(client.clone(), namespace),
                Config::default(),
                |pod| What::Pod(Box::new(pod)),
                What::PodGone,
            );
        }
        watches
    }

    /// Also watches the applied objects of the kinds in a release's inventory.
    pub(super) fn include(&mut self, release: &ClusterStackRelease) {
        for row in release.status.iter().flat_map(|status| &status.resources) {
            let key = (row.group.clone(), row.version.clone(), row.kind.clone());
            if !self.kinds.insert(key) {
                continue;
            }
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&row.group, &row.version, &row.kind));
            let api: Api<PartialObjectMeta<DynamicObject>> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
            let ours = Config::default().labels(&format!("{}={}", labels::INSTANCE, labels::INSTANCE_OWNED));
            let (here, gone) = (row.kind.clone(), row.kind.clone());
            self.follow(
                api,
                ours,
                move |object| What::Object(here.clone(), Box::new(object.metadata)),
                move |name| What::ObjectGone(gone.clone(), name),
            );
        }
    }

    /// The next change; waits for it.
    pub(super) async fn next(&mut self) -> Option<Change> {
        self.changes.recv().await
    }

    /// A change that has arrived already.
    pub(super) fn arrived(&mut self) -> Option<Change> {
        self.changes.try_recv().ok()
    }

    fn follow<K>(
        &mut self,
        api: Api<K>,
        config: Config,
        here: impl Fn(K) -> What + Send + Sync + 'static,
        gone: impl Fn(String) -> What + Send + Sync + 'static,
    ) where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let sender = self.sender.clone();
        // What is there, and whether the list that is being read has it.
        let mut known: BTreeMap<String, bool> = BTreeMap::new();
        // An error is followed by a new attempt.
        let told = watcher(api, config).default_backoff().for_each(move |event| {
            let changes = match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    known.insert(object.name_any(), true);
                    vec![here(object)]
                }
                Ok(Event::Delete(object)) => {
                    known.remove(&object.name_any());
                    vec![gone(object.name_any())]
                }
                Ok(Event::Init) => {
                    for listed in known.values_mut() {
                        *listed = false;
                    }
                    Vec::new()
                }
                // A watch that begins anew may have missed deletions.
                Ok(Event::InitDone) => {
                    let missed = known.extract_if(.., |_, listed| !*listed);
                    missed.map(|(name, _)| gone(name)).collect()
                }
                Err(_) => Vec::new(),
            };
            for what in changes {
                let at = Instant::now();
                // Nobody listens only when the show is over.
                let _ = sender.send(Change { at, what });
            }
            std::future::ready(())
        });
        self.tasks.spawn(told);
    }
}
