//! A release, two API servers, and a process that remembers a cluster.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crds::cluster_addon::ClusterAddon;
use crds::labels;
use crds::policy::HelmProfile;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::in_memory::{Served, Server, WORKLOAD};
use operator_kit::objects::{Marked, Notice, ObjectWatches};
use operator_kit::telemetry::{Readiness, registry};
use planning::addon::{HolderKind, Values, ValuesFrom};
use planning::object_key::ObjectKey;
use planning::objects::Rendering;
use release::pack::{self, Versioning};
use release::{Admitted, Release, Verification, admit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::bundle::Bundles;
use super::super::{AddonCharts, Bundle, ChartMemory, ChartWork, GivenMarks, MemoError, Occasion, Sight};
use crate::charts::{Charts, Woken};
use crate::clusters::Mark;
use crate::lanes::Unrendered;
use crate::metrics::Metrics;
use crate::objects::{Intents, Place};

/// The name of the Cluster.
pub(super) const CLUSTER: &str = "wharf";

/// What the management cluster serves.
static MANAGEMENT: [Served; 8] = [
    Served::CRD,
    Served::NAMESPACE,
    Served::CONFIG_MAP,
    Served::SECRET,
    Served::EVENT,
    Served::namespaced("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters"),
    Served::namespaced(
        "controlplane.cluster.x-k8s.io",
        "v1beta1",
        "QuayControlPlane",
        "quaycontrolplanes",
    ),
    Served::namespaced(
        "infrastructure.cluster.x-k8s.io",
        "v1beta1",
        "QuayCluster",
        "quayclusters",
    ),
];

/// The files of a stack by path; the second is clusteraddon.yaml.
pub(in super::super) type Files = Vec<(String, String)>;

/// A stack with these stages: folder, template of the chart, template of its values.
pub(in super::super) fn staged(stages: &[(&str, &str, Option<&str>)]) -> Files {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let listed = stages
        .iter()
        .map(|(name, ..)| format!("  - {{name: {name}, action: apply}}\n"));
    let config = format!(
        "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages:\n  AfterControlPlaneInitialized:\n{}",
        listed.collect::<Vec<_>>().concat()
    );
    let mut files = vec![
        file(
            "csctl.yaml",
            "apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1\nconfig: {kubernetesVersion: v1.34.0, clusterStackName: harbor, provider: {type: docker}}\n",
        ),
        file("clusteraddon.yaml", &config),
        file(
            "cluster-class/Chart.yaml",
            "apiVersion: v2\nname: docker-harbor-1-34-cluster-class\ntype: application\nversion: v0\n",
        ),
        file("cluster-class/values.yaml", "{}\n"),
        file("cluster-class/templates/class.yaml", "{}\n"),
    ];
    for (name, template, values) in stages {
        let chart = format!("apiVersion: v2\nname: {name}\ntype: application\nversion: v0\n");
        files.push((format!("cluster-addon/{name}/Chart.yaml"), chart));
        files.push((format!("cluster-addon/{name}/values.yaml"), "length: 7\n".to_owned()));
        files.push((
            format!("cluster-addon/{name}/templates/all.yaml"),
            (*template).to_owned(),
        ));
        if let Some(values) = values {
            files.push((format!("cluster-addon/{name}/overwrite.yaml"), (*values).to_owned()));
        }
    }
    files
}

/// A release, and where it is.
pub(in super::super) struct Released {
    pub(in super::super) files: Admitted,
    _folder: TempDir,
}

/// A release of a stack with these files.
pub(in super::super) fn released(files: &Files) -> Released {
    let stack = TempDir::new().expect("a folder");
    for (path, text) in files {
        let file = stack.path().join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    released_of(stack.path(), "docker-harbor-1-34-v1")
}

fn released_of(stack: &Path, tag: &str) -> Released {
    let folder = TempDir::new().expect("a folder");
    let versioning = Versioning::Given("v1".parse().expect("a version"));
    pack::create(stack, folder.path(), &versioning).expect("a release");
    let release = Release::open(&folder.path().join(tag), &tag.parse().expect("a tag")).expect("a release");
    Released {
        files: admit(Arc::new(release), Verification::Off).expect("a release"),
        _folder: folder,
    }
}

/// A Cluster with these labels.
pub(super) fn class(labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": { "name": CLUSTER, "namespace": "fleet", "labels": labels },
        "spec": { "topology": { "class": "docker-harbor-1-34-v1", "version": "v1.34.0" } },
    })
}

/// A process with its caches, and what is around it.
pub(super) struct World {
    pub(super) management: Server,
    pub(super) workload: Server,
    pub(super) release: Released,
    charts: Arc<Process>,
}

/// What is lost with a process.
struct Process {
    charts: Charts,
    shared: AddonCharts,
    woken: tokio::sync::Mutex<UnboundedReceiver<ObjectRef<ClusterAddon>>>,
}

impl Process {
    fn begun() -> Arc<Self> {
        let (queue, woken) = unbounded();
        let queues = Woken {
            releases: unbounded().0,
            addons: Some(queue.clone()),
        };
        Arc::new(Self {
            charts: Charts::new(16 << 20, Metrics::register(&mut registry()), queues),
            shared: AddonCharts::new(queue),
            woken: tokio::sync::Mutex::new(woken),
        })
    }
}

impl World {
    pub(super) fn new(files: &Files) -> Self {
        Self::with(released(files))
    }

    /// With one of the stacks of the repository.
    pub(super) fn of_folder(stack: &str) -> Self {
        let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks").join(stack);
        Self::with(released_of(&stack, "shim-quay-1-34-v1"))
    }

    fn with(release: Released) -> Self {
        let management = Server::new(&MANAGEMENT, None);
        let workload = Server::new(&WORKLOAD, None);
        let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        management.apply(&namespace("fleet"));
        workload.apply(&namespace("kube-system"));
        Self {
            management,
            workload,
            release,
            charts: Process::begun(),
        }
    }

    /// Labels the Cluster, made if it is not there.
    pub(super) fn cluster(&self, labels: &Value) {
        self.management.apply(&class(labels));
    }

    /// Has the Cluster take values from these, made if it is not there.
    pub(super) fn cluster_with_values_from(&self, named: &str) {
        let mut cluster = class(&json!({}));
        cluster["metadata"]["annotations"] = json!({ labels::VALUES_FROM: named });
        self.management.apply(&cluster);
    }
}

/// One ClusterAddon, as a process remembers it.
pub(super) struct Remembering<'a> {
    world: &'a World,
    process: Arc<Process>,
    addon: ClusterAddon,
    bundle: Arc<Bundle>,
    management: Place,
    workload: Place,
    pub(super) memory: ChartMemory,
    pub(super) is_reachable: bool,
    now: Timestamp,
    _notices: [mpsc::Receiver<Notice>; 2],
    _stop: tokio_util::sync::DropGuard,
}

fn place(server: &Server, part_of: &str, stop: &CancellationToken) -> (Place, mpsc::Receiver<Notice>) {
    let client = server.client();
    let discovery = Discovery::new(client.clone());
    let crds = CrdWatch::start(client.clone(), discovery.clone(), &Readiness::default(), stop.clone());
    let marked = Marked::by(labels::PART_OF, part_of);
    let (objects, notices) = ObjectWatches::new(client.clone(), discovery.clone(), marked, stop.clone());
    let place = Place {
        client,
        discovery,
        crds,
        objects,
    };
    (place, notices)
}

impl<'a> Remembering<'a> {
    /// In the process of the world.
    pub(super) async fn new(world: &'a World, name: &str) -> Self {
        Self::within(world, name, Arc::clone(&world.charts)).await
    }

    /// In a process that has just begun.
    pub(super) async fn anew(world: &'a World, name: &str) -> Self {
        Self::within(world, name, Process::begun()).await
    }

    async fn within(world: &'a World, name: &str, process: Arc<Process>) -> Self {
        operator_kit::client::install_crypto();
        let spec = json!({ "clusterRef": { "kind": "Cluster", "name": CLUSTER } });
        let mut addon = ClusterAddon::new(
            &format!("cluster-addon-{name}"),
            serde_json::from_value(spec).expect("a spec"),
        );
        addon.metadata.namespace = Some("fleet".to_owned());
        addon.metadata.uid = Some(format!("uid of {name}"));
        let owner = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": CLUSTER, "controller": true,
            "uid": world.management.find("Cluster", CLUSTER)["metadata"]["uid"],
        });
        addon.metadata.owner_references = Some(vec![serde_json::from_value(owner).expect("an owner")]);
        let bundles = &process.shared.bundles;
        let bundle = bundles.of(&process.charts, &world.release.files).await;
        let bundle = bundle.expect("a bundle");
        let stop = CancellationToken::new();
        let (management, first) = place(&world.management, name, &stop);
        let (workload, second) = place(&world.workload, name, &stop);
        Self {
            world,
            process,
            addon,
            bundle,
            management,
            workload,
            memory: ChartMemory::default(),
            is_reachable: true,
            now: Timestamp::now(),
            _notices: [first, second],
            _stop: stop.drop_guard(),
        }
    }

    /// From now on its release is for this version of Kubernetes, with the same charts.
    pub(super) async fn for_kubernetes(&mut self, version: &str) {
        // One that nobody else has.
        let bundle = Bundles::default()
            .of(&self.process.charts, &self.world.release.files)
            .await;
        let mut bundle = bundle.expect("a bundle");
        let own = Arc::get_mut(&mut bundle).expect("nobody else has it");
        version.clone_into(&mut own.kubernetes_version);
        self.bundle = bundle;
    }

    fn work(&self) -> ChartWork<'_> {
        ChartWork {
            shared: &self.process.shared,
            charts: &self.process.charts,
            management: &self.management,
            workload: self.is_reachable.then_some(&self.workload),
            addon: &self.addon,
            part_of: "0123",
            cluster: CLUSTER,
            files: &self.world.release.files,
            bundle: &self.bundle,
            profile: HelmProfile::default(),
            now: self.now,
        }
    }

    /// What watches show of what the Cluster takes values from.
    fn given(&self) -> GivenMarks {
        let cluster = self.world.management.find("Cluster", CLUSTER);
        let annotation = cluster["metadata"]["annotations"][labels::VALUES_FROM].as_str();
        let named = planning::addon::values_from(annotation.unwrap_or_default()).unwrap_or_default();
        let version = |given: &ValuesFrom| {
            let kind = match given.holder.kind {
                HolderKind::Secret => "Secret",
                HolderKind::ConfigMap => "ConfigMap",
            };
            let metadata = self.world.management.find(kind, &given.holder.name)["metadata"].clone();
            let version = metadata["resourceVersion"].as_str().map(str::to_owned);
            version.filter(|_| metadata["labels"][labels::VALUES] == labels::VALUES_ALLOWED)
        };
        (annotation.map(str::to_owned), named.iter().map(version).collect())
    }

    /// What a watch shows of the Cluster.
    fn occasion(&self) -> Occasion {
        let cluster = self.world.management.find("Cluster", CLUSTER);
        let metadata: ObjectMeta = serde_json::from_value(cluster["metadata"].clone()).expect("metadata");
        Occasion::of(
            &self.bundle,
            HelmProfile::default(),
            (&[Some(Mark::of(&metadata)), None, None], &self.given()),
            true,
        )
    }

    /// One look.
    pub(super) async fn look(&mut self) -> Sight {
        let occasion = self.occasion();
        let mut memory = std::mem::take(&mut self.memory);
        let sight = self.work().look(&mut memory, &occasion).await;
        self.memory = memory;
        sight
    }

    /// Looks until it is so, as often as somebody is woken.
    pub(super) async fn look_until(&mut self, is_so: impl Fn(&Sight) -> bool) -> Sight {
        for _ in 0..100 {
            let sight = self.look().await;
            if is_so(&sight) {
                return sight;
            }
            let mut woken = self.process.woken.lock().await;
            // What is over before anybody waits wakes nobody.
            let _ = timeout(std::time::Duration::from_millis(300), woken.next()).await;
        }
        panic!("{} never comes so far", self.addon.name_any());
    }

    /// Looks until all charts have objects.
    pub(super) async fn settled(&mut self) -> Sight {
        self.look_until(|sight| {
            let is_rendered = |chart: &Rendering| matches!(chart, Rendering::Rendered { .. });
            matches!(sight.values, Values::Known { .. }) && sight.charts.values().all(is_rendered)
        })
        .await
    }

    /// The objects of a chart.
    pub(super) async fn bodies(&mut self, chart: &str) -> Result<Intents, Unrendered> {
        let mut memory = std::mem::take(&mut self.memory);
        let bodies = self.work().bodies(&mut memory, chart).await;
        self.memory = memory;
        bodies
    }

    /// The body of an object.
    pub(super) async fn body(&mut self, chart: &str, key: &ObjectKey) -> Value {
        let bodies = self.bodies(chart).await.expect("bodies").bodies;
        let body = bodies.get(key).cloned();
        body.unwrap_or_else(|| panic!("{key} is none of {:?}", bodies.keys()))
    }

    pub(super) async fn record(&mut self) -> Result<(), MemoError> {
        self.memory.record(&self.management, &self.addon).await
    }

    pub(super) fn settle(&mut self) {
        self.memory.settle(&self.bundle);
    }

    /// So many seconds go by.
    pub(super) fn later(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// How many charts were rendered in this process.
    pub(super) fn renderings(&self) -> u64 {
        self.process.charts.renderings().rendered
    }
}
