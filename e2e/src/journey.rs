//! One journey of a user: a namespace with an operator, a directory of releases and a log of its own, on a control plane
//! that all journeys of a test program share.
//!
//! What an operator asks for is held against the rights that it is given. The control plane ends with the process. When a journey fails, what it leaves is dumped for a person.

mod elsewhere;
mod steps;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use crds::{ClusterStack, ClusterStackRelease, labels};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::{GroupVersionKind, NamespaceResourceScope},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    ControlPlane, FaultProxy, Identity, Lab, Options,
    addons::Beyond,
    audit::{AuditEvents, Mark},
    eventually,
    operator::{Operator, OperatorOptions},
    releases::Releases,
    rights::{OperatorName, PROVIDER_OPERATOR, hold_against_rights},
    traces,
    web::IndexServer,
};

/// For everything that is seconds on an idle machine: many journeys run at once on two cores, which may be slow ones.
pub const SOON: Duration = Duration::from_mins(3);
/// Field manager of everything that a journey does in the name of a user.
pub const USER: &str = "e2e";
/// Room for a counter behind it in a name of 63 characters.
const LONGEST_NAME: usize = 50;

/// What the journeys of one process share.
struct Shared {
    // Clients live on the runtime that made them, so all journeys run on this one.
    runtime: Runtime,
    control_plane: Arc<ControlPlane>,
    lab: Lab,
}

static SHARED: LazyLock<Result<Shared>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let control_plane = Arc::new(runtime.block_on(start(Options::default()))?);
    Ok(Shared {
        runtime,
        control_plane,
        lab: Lab::load()?,
    })
});

async fn start(options: Options) -> Result<ControlPlane> {
    let options = Options {
        crds: true,
        audit_bodies: true,
        ..options
    };
    ControlPlane::start(options).await
}

/// Runs one journey in the test that calls this. The namespace is named after the test. No journey arrives on which the operator
/// panicked, although it catches that for the object that it looks at.
///
/// ```no_run
/// # use e2e::journey::journey;
/// # fn main() -> anyhow::Result<()> {
/// journey(async |journey| {
///     let tag = journey.releases.publish_harbor("v1", "v1")?;
///     journey.operate().await?;
///     journey.stack("harbor", serde_json::json!({ "versions": ["v1"] })).await?;
///     journey.release_ready(&tag).await?;
///     Ok(())
/// })
/// # }
/// ```
pub fn journey(travel: impl AsyncFnOnce(&mut Journey) -> Result<()>) -> Result<()> {
    let shared = SHARED.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    shared.runtime.block_on(async {
        let namespace = new_namespace(&shared.control_plane.client(), &name_of_this_test()).await?;
        let journey = Journey::begin(Arc::clone(&shared.control_plane), &shared.lab, namespace).await?;
        journey.travel(travel).await
    })
}

/// Where a journey happens.
pub struct Journey {
    /// Does everything, in the name of the administrator.
    pub client: Client,
    /// The namespace of the journey, and of its operator.
    pub namespace: String,
    /// The directory of releases of its operator.
    pub releases: Releases,
    /// A server of releases besides, where a course has one.
    pub source: Option<IndexServer>,
    /// Where its Cluster is, where a course has one with add-ons.
    pub beyond: Option<Beyond>,
    /// How its operator is started the next time.
    pub options: OperatorOptions,
    operator: Option<Operator>,
    folder: PathBuf,
    /// In the audit log, before any operator of the journey.
    begun: Mark,
    control_plane: Arc<ControlPlane>,
    lab: &'static Lab,
}

impl Journey {
    async fn begin(control_plane: Arc<ControlPlane>, lab: &'static Lab, namespace: String) -> Result<Self> {
        let client = control_plane.client();
        let begun = control_plane.audit_log().end()?;
        let folder = control_plane.folder().join("journeys").join(&namespace);
        let releases = Releases::at(&folder.join("releases"))?;
        let kubeconfig = control_plane.kubeconfig_for(&operator_of(&namespace)).await?;
        let options = OperatorOptions {
            program: crate::built::Program::CoreOperator,
            kubeconfig,
            namespace: namespace.clone(),
            release_dir: releases.root().to_owned(),
            record: Some(folder.join("decisions")),
            flags: Vec::new(),
            log: folder.join("core-operator.log"),
        };
        Ok(Self {
            client,
            namespace,
            releases,
            source: None,
            beyond: None,
            options,
            operator: None,
            folder,
            begun,
            control_plane,
            lab,
        })
    }

    async fn travel(mut self, travel: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let dump = self.control_plane.failure_dump().with_logs(&self.folder);
        travel(&mut self).await?;
        self.nothing_panicked()?;
        self.nothing_beyond_its_rights().await?;
        dump.call_off();
        Ok(())
    }

    /// A folder for files of the journey, with the operator's log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the operator stores its decisions.
    pub fn decisions(&self) -> PathBuf {
        self.folder.join("decisions")
    }

    /// The control plane, which other journeys use at the same time unless this one is [elsewhere](Journey::elsewhere).
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The programs from outside this repository.
    pub fn lab(&self) -> &'static Lab {
        self.lab
    }

    /// Starts the operator and returns when it is ready.
    pub async fn operate(&mut self) -> Result<()> {
        self.operator = Some(Operator::start(self.lab, &self.options)?);
        self.operator()?.ready().await
    }

    /// The running operator.
    pub fn operator(&mut self) -> Result<&mut Operator> {
        self.operator.as_mut().context("no operator runs")
    }

    /// Kills the operator between two instructions.
    pub async fn kill_operator(&mut self) -> Result<()> {
        self.operator.take().context("no operator runs")?.kill().await
    }

    /// Kills the operator and starts it again.
    pub async fn restart_operator(&mut self) -> Result<()> {
        self.kill_operator().await?;
        self.operate().await
    }

    /// What the operator asked the API server for since `mark`. Its own clock tells nothing of other operators.
    pub async fn requests_since(&self, mark: Mark) -> Result<AuditEvents> {
        let Identity::User { name, .. } = operator_of(&self.namespace) else {
            return Ok(AuditEvents::default());
        };
        self.control_plane.audit_log().since_by(mark, &name).await
    }

    /// Puts a proxy between the API server and the operator, which is still to be started. Nobody reads what it decides there.
    pub async fn behind_a_proxy(&mut self) -> Result<FaultProxy> {
        let proxy = FaultProxy::start(&self.control_plane).await?;
        self.options.kubeconfig = proxy.kubeconfig_for(&operator_of(&self.namespace)).await?;
        self.options.record = None;
        Ok(proxy)
    }

    /// Now, in the audit log.
    pub async fn mark(&self) -> Result<Mark> {
        self.control_plane.audit_log().mark().await
    }

    /// Objects of one of our kinds in the journey's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of any kind in the journey's namespace; the plural is guessed as English has it.
    pub fn objects(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(api_version, kind))
    }

    /// Makes a further namespace, which ends with the control plane like the first.
    pub async fn another_namespace(&self) -> Result<String> {
        new_namespace(&self.client, &self.namespace).await
    }

    fn nothing_panicked(&self) -> Result<()> {
        let Ok(files) = fs::read_dir(&self.folder) else {
            return Ok(());
        };
        for file in files {
            let path = file.context("failed to list the folder of a journey")?.path();
            if path.extension().is_none_or(|end| end != "log") {
                continue;
            }
            let log = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
            if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
                bail!("an operator panicked: {line}");
            }
        }
        Ok(())
    }

    /// Whoever ran as an operator here is named after the namespace.
    async fn nothing_beyond_its_rights(&self) -> Result<()> {
        let asked = self.control_plane.audit_log().told(self.begun, &self.namespace).await?;
        let names = [
            format!("operator-{}", self.namespace),
            format!("-of-{}", self.namespace),
        ];
        let of_providers = asked.clone().of_agent(PROVIDER_OPERATOR);
        hold_against_rights(OperatorName::Provider, of_providers.iter())?;
        let of_operators = asked.filter(|event| event.user == names[0] || event.user.ends_with(&names[1]));
        hold_against_rights(OperatorName::Core, of_operators.iter())
    }

    /// Server-side apply of a whole object, as a user; a namespace of its own wins over the journey's.
    pub async fn apply(&self, object: Value) -> Result<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (api_version, kind) = (
            text("/apiVersion").context("no apiVersion")?,
            text("/kind").context("no kind")?,
        );
        let name = text("/metadata/name").context("no name")?.to_owned();
        let namespace = text("/metadata/namespace").unwrap_or(&self.namespace);
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource(api_version, kind));
        let what = format!("failed to apply {kind} {name}");
        api.patch(&name, &PatchParams::apply(USER).force(), &Patch::Apply(object))
            .await
            .context(what)
    }

    /// The same for an object that is in no namespace; the other journeys of the process see it too.
    pub async fn apply_for_all(&self, object: Value) -> Result<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (api_version, kind) = (
            text("/apiVersion").context("no apiVersion")?,
            text("/kind").context("no kind")?,
        );
        let name = text("/metadata/name").context("no name")?.to_owned();
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource(api_version, kind));
        let what = format!("failed to apply {kind} {name}");
        api.patch(&name, &PatchParams::apply(USER).force(), &Patch::Apply(object))
            .await
            .context(what)
    }

    /// Applies a ClusterStack of our own stack, without provider and subscription unless `spec` says so: what `spec` leaves out
    /// is as by default.
    pub async fn stack(&self, name: &str, spec: Value) -> Result<()> {
        let mut whole = json!({
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34",
            "autoSubscribe": false, "noProvider": true,
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        let stack = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
            "metadata": { "name": name }, "spec": whole,
        });
        self.apply(stack).await.map(drop)
    }

    /// Merges into an object's metadata annotations, as a user.
    pub async fn annotate<K>(&self, name: &str, key: &str, value: Option<&str>) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let patch = json!({ "metadata": { "annotations": { key: value } } });
        let patched = self
            .api::<K>()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.map(drop).with_context(|| format!("failed to annotate {name}"))
    }

    /// Asks for the deletion of an object.
    pub async fn delete<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.map(drop).with_context(|| format!("failed to delete {name}"))
    }

    /// Waits until an object exists for which `holds`, and returns it. `what` completes the sentence "waited for …".
    pub async fn until<K>(&self, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>();
        eventually(SOON, format!("{name}: {what}"), async || {
            match api.get_opt(name).await {
                Ok(Some(object)) if holds(&object) => Ok(object),
                Ok(Some(object)) => Err(format!("{object:?}")),
                Ok(None) => Err("it does not exist".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// Waits until there is no object with this name.
    pub async fn gone<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>();
        eventually(SOON, format!("{name} to be gone"), async || {
            match api.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(object)) => Err(format!("{object:?}")),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// Waits until a release is ready and returns it.
    pub async fn release_ready(&self, tag: &str) -> Result<ClusterStackRelease> {
        self.until_release(tag, "ready", |release| status(release).ready).await
    }

    /// [`Journey::until`] for a release.
    pub async fn until_release(
        &self,
        tag: &str,
        what: &str,
        holds: impl Fn(&ClusterStackRelease) -> bool,
    ) -> Result<ClusterStackRelease> {
        self.until(tag, what, holds).await
    }

    /// Waits until the status of a stack is as asked and returns the stack.
    pub async fn until_stack(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&ClusterStack) -> bool,
    ) -> Result<ClusterStack> {
        self.until(name, what, holds).await
    }

    /// Kind and name of every object that carries the mark of this release, of whatever kind and wherever.
    pub async fn marked(&self, tag: &str) -> Result<Vec<String>> {
        let mark = labels::part_of("ClusterStackRelease", &self.namespace, tag);
        traces::with_labels(&self.client, &format!("{}={mark}", labels::PART_OF)).await
    }

    /// The inventory of a release as it is now, with every object in it as it is live; `None` for those that are not there.
    pub async fn inventory(&self, tag: &str) -> Result<BTreeMap<String, Option<DynamicObject>>> {
        let release = self.api::<ClusterStackRelease>().get(tag).await?;
        let mut objects = BTreeMap::new();
        for row in status(&release).resources {
            let api_version = if row.group.is_empty() {
                row.version.clone()
            } else {
                format!("{}/{}", row.group, row.version)
            };
            let object = self.objects(&api_version, &row.kind).get_opt(&row.name).await?;
            objects.insert(format!("{} {}", row.kind, row.name), object);
        }
        Ok(objects)
    }
}

/// The status of a release, empty when it has none yet.
pub fn status(release: &ClusterStackRelease) -> crds::ClusterStackReleaseStatus {
    release.status.clone().unwrap_or_default()
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn operator_of(namespace: &str) -> Identity {
    Identity::User {
        name: format!("operator-{namespace}"),
        groups: vec!["system:masters".to_owned()],
    }
}

/// The harness of the tests names each test's thread after the test.
fn name_of_this_test() -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("journey");
    let name = name
        .rsplit("::")
        .next()
        .unwrap_or(name)
        .replace('_', "-")
        .to_lowercase();
    name.chars()
        .take(LONGEST_NAME)
        .collect::<String>()
        .trim_end_matches('-')
        .to_owned()
}

async fn new_namespace(client: &Client, stem: &str) -> Result<String> {
    static COUNTER: AtomicU32 = AtomicU32::new(1);
    let stem: String = stem.chars().take(LONGEST_NAME).collect();
    let name = format!(
        "{}-{}",
        stem.trim_end_matches('-'),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    );
    make_namespace(client, &name).await?;
    Ok(name)
}

async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    let created = Api::<Namespace>::all(client.clone())
        .create(&kube::api::PostParams::default(), &namespace)
        .await;
    created.map(drop).context("failed to make a namespace")
}
