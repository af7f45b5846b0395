//! Where Jobs run: a kubelet, its control plane with our definitions, an operator beside them, and a web server whose files stop in the middle until
//! somebody lets them go on.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::labels;
use e2e::{
    Identity, Lab, Operator,
    built::Program,
    definitions, eventually,
    kubelet::{Kind, Kubelet},
    workers,
};
use http::Method;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ContainerStateTerminated, Namespace, Pod},
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use openstack_lab::client::{self, whole};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Mutex as AsyncMutex,
};
use url::Url;

use crate::rights;

/// What runs longer than one test.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.expect("threads can be started")
});

/// Longer than a Job takes on a machine that has much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The operator that all tests of a place share looks after objects with this label's value.
pub(crate) const SHARED: &str = "shared";

/// The image with the shell, in which builds run.
pub(crate) use e2e::workers::SHELL;

/// One kubelet and what is around it.
pub(crate) struct Place {
    pub(crate) kubelet: Kubelet,
    pub(crate) client: Client,
    pub(crate) store: PathBuf,
    kind: Kind,
    operator: Option<Operator>,
    /// Where the metrics of the operator are.
    metrics: Option<Url>,
    folder: TempDir,
}

impl Place {
    /// The one of this kind: started for the first test that asks, and gone when nobody needs it any more.
    pub(crate) async fn of(kind: Kind) -> Result<Arc<Self>> {
        static REAL: AsyncMutex<Weak<Place>> = AsyncMutex::const_new(Weak::new());
        static STAND_IN: AsyncMutex<Weak<Place>> = AsyncMutex::const_new(Weak::new());
        let place = match kind {
            Kind::Real => &REAL,
            Kind::StandIn => &STAND_IN,
        };
        let mut place = place.lock().await;
        if let Some(place) = place.upgrade() {
            return Ok(place);
        }
        let started = Arc::new(Self::start(kind).await?);
        *place = Arc::downgrade(&started);
        Ok(started)
    }

    async fn start(kind: Kind) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stackwright-jobs-").tempdir()?;
        let store = folder.path().join("store");
        fs::create_dir_all(folder.path().join("releases/cluster-stacks"))?;
        fs::create_dir(&store)?;
        for path in [folder.path(), &store] {
            // The containers are nobody in particular.
            fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
        }
        let kubelet = Kubelet::start(kind).await?;
        workers::import(&kubelet)?;
        let client = kubelet.control_plane().client();
        definitions::install(&client, &definitions::ours()?).await?;
        let kubeconfig = folder.path().join("kubeconfig");
        let identity = rights::operator(&client).await?;
        fs::copy(kubelet.control_plane().kubeconfig_for(&identity).await?, &kubeconfig)?;
        fs::set_permissions(&kubeconfig, fs::Permissions::from_mode(0o644))?;
        let mut place = Self {
            kind,
            kubelet,
            client,
            store,
            operator: None,
            metrics: None,
            folder,
        };
        let mut operator = place.operate("operator", "", SHARED).await?;
        place.metrics = Some(Url::parse(&operator.metrics_url().await?)?);
        place.operator = Some(operator);
        Ok(place)
    }

    /// What the operator counts, as the page that is scraped.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let url = self.metrics.as_ref().context("no operator runs")?;
        let page = client::Client::new(None)?
            .send(Method::GET, url, &[], whole(""))
            .await?;
        ensure!(page.status.is_success(), "{}: {}", page.status, page.text());
        Ok(page.text())
    }

    /// Starts an operator that looks after one namespace, or after all, and there after what has this value as its label; it has a log of this name.
    pub(crate) async fn operate(&self, name: &str, namespace: &str, label: &str) -> Result<Operator> {
        let folder = self.folder.path();
        let mut command = Command::new(Program::ProviderOperator.path()?);
        command.args([
            format!("--kubeconfig={}", folder.join("kubeconfig").display()),
            format!("--namespace={namespace}"),
            format!("--watch-filter={label}"),
            "--leader-elect=false".to_owned(),
            "--local".to_owned(),
            format!("--release-dir={}", folder.join("releases").display()),
            "--metrics-bind-address=127.0.0.1:0".to_owned(),
            "--health-probe-bind-address=127.0.0.1:0".to_owned(),
            "--providers=filestore,openstack".to_owned(),
            format!("--filestore=default={}", self.store.display()),
            "--allow-plain-http".to_owned(),
            format!("--allow-source-network={}/32", self.kubelet.host()),
            format!("--allow-cloud-network={}/32", self.kubelet.host()),
            format!("--cache-dir={}", folder.join(format!("{name}-cache")).display()),
        ]);
        command.args(workers::flags(Some(&self.store)));
        let command = workers::as_jobs(self.kind, command);
        let log = folder.join(format!("{name}.log"));
        let mut operator = Operator::start_as(&Lab::load()?, &command, &log)?;
        operator.ready().await?;
        Ok(operator)
    }

    /// What a command of kubectl answers to somebody who may do everything.
    pub(crate) async fn typed(&self, command: &str) -> Result<String> {
        let kubeconfig = self.kubelet.control_plane().kubeconfig_for(&Identity::Admin).await?;
        let mut kubectl = tokio::process::Command::new(&Lab::load()?.controlplane);
        kubectl.args(command.split(' ')).arg("--kubeconfig").arg(kubeconfig);
        // It keeps what it discovered there.
        let answer = kubectl.env("HOME", self.folder.path()).kill_on_drop(true).output();
        let answer = answer.await.context("failed to start kubectl")?;
        let words = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            answer.status.success(),
            "{command} ended with {}: {words}",
            answer.status
        );
        Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// What the operator has logged.
    pub(crate) fn log(&self) -> Result<String> {
        let path = self.folder.path().join("operator.log");
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    }

    /// Makes a namespace, in which the operator may make Jobs and read Secrets.
    async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = Namespace {
            metadata: kube::core::ObjectMeta {
                name: Some(name.to_owned()),
                ..Default::default()
            },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await?;
        rights::in_namespace(&self.client, name).await
    }

    /// A namespace of its own with one object of this kind in it, which the shared operator looks after.
    pub(crate) async fn object(&self, name: &'static str, kind: &str, spec: Value, paused: bool) -> Result<Wish<'_>> {
        self.object_for(SHARED, name, kind, spec, paused).await
    }

    /// The same with an object that those operators look after who were started for this label.
    pub(crate) async fn object_for(
        &self,
        label: &str,
        name: &'static str,
        kind: &str,
        spec: Value,
        paused: bool,
    ) -> Result<Wish<'_>> {
        self.namespace(name).await?;
        let group = "infrastructure.clusterstack.x-k8s.io";
        let plural = format!("{}s", kind.to_lowercase());
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1alpha1", kind), &plural);
        let mut object = DynamicObject::new(name, &resource).data(json!({ "spec": spec }));
        object.metadata.labels = Some([(labels::WATCH_FILTER.to_owned(), label.to_owned())].into());
        if paused {
            object.metadata.annotations = Some([(labels::PAUSED.to_owned(), String::new())].into());
        }
        let api = Api::namespaced_with(self.client.clone(), name, &resource);
        api.create(&PostParams::default(), &object).await?;
        Ok(Wish { place: self, name, api })
    }

    /// A namespace of its own with one image for the store in it, as this spec of its image and these other fields say.
    pub(crate) async fn image(&self, name: &'static str, image: Value, more: Value) -> Result<Wish<'_>> {
        self.object(name, "FileStoreNodeImageRelease", for_store(name, image, more), false)
            .await
    }
}

/// The spec of an image for the store.
pub(crate) fn for_store(name: &str, image: Value, more: Value) -> Value {
    let mut spec = json!({ "store": "default" });
    spec["image"] = image;
    spec["image"]["name"] = json!(format!("{name}.raw"));
    spec["image"]["format"] = json!("raw");
    if let Value::Object(more) = more {
        spec.as_object_mut().expect("it is one").extend(more);
    }
    spec
}

/// An image that is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) place: &'a Place,
    pub(crate) name: &'static str,
    pub(crate) api: Api<DynamicObject>,
}

impl Wish<'_> {
    /// Its status, when it is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let look = async || {
            let object = self.api.get(self.name).await.map_err(|error| error.to_string())?;
            let status = object.data["status"].clone();
            if is_so(&status) {
                Ok(status)
            } else {
                Err(format!("{status:#}"))
            }
        };
        eventually(PATIENCE, what, look).await
    }

    pub(crate) async fn ready(&self) -> Result<Value> {
        self.until("the image to be ready", |status| status["ready"] == true)
            .await
    }

    /// What went wrong last, in words.
    pub(crate) async fn failure(&self, part: &str) -> Result<Value> {
        let has = |status: &Value| {
            status["lastFailure"]["message"]
                .as_str()
                .is_some_and(|message| message.contains(part))
        };
        self.until(&format!("a failure with {part:?}"), has).await
    }

    /// Bytes move in a Job.
    pub(crate) async fn moves(&self) -> Result<Value> {
        let has_sent = |status: &Value| status["transfer"]["sentBytes"].as_i64() > Some(0);
        self.until("bytes to move", has_sent).await
    }

    /// Waits until a container of one of its Pods has ended with this code; what it left as its message.
    pub(crate) async fn ended_with(&self, container: &str, code: i32) -> Result<String> {
        let look = async || {
            let pods = self.pods().await?;
            let ends: Vec<_> = pods.iter().flat_map(|pod| ends_of(pod, container)).collect();
            let end = ends.iter().find(|end| end.exit_code == code);
            let end = end.with_context(|| format!("{ends:?} of {} Pods", pods.len()))?;
            anyhow::Ok(end.message.clone().unwrap_or_default())
        };
        eventually(PATIENCE, format!("{container} to end with {code}"), look).await
    }

    /// Changes its one Pod.
    pub(crate) async fn patch_pod(&self, patch: &Value) -> Result<()> {
        let pod = self.pods().await?.pop().context("no Pod")?;
        let pods: Api<Pod> = Api::namespaced(self.place.client.clone(), self.name);
        let name = pod.metadata.name.context("a name")?;
        pods.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// The bytes of the image, as the store has them.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        let path = self.place.store.join(format!("{}.raw", self.name));
        fs::read(&path).with_context(|| format!("no {}", path.display()))
    }

    pub(crate) async fn jobs(&self) -> Result<Vec<Job>> {
        let jobs: Api<Job> = Api::namespaced(self.place.client.clone(), self.name);
        Ok(jobs.list(&ListParams::default()).await?.items)
    }

    pub(crate) async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.place.client.clone(), self.name);
        Ok(pods.list(&ListParams::default()).await?.items)
    }

    /// Changes the object.
    pub(crate) async fn patch(&self, patch: &Value) -> Result<()> {
        let params = PatchParams::default();
        self.api.patch(self.name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Changes its one Job.
    pub(crate) async fn patch_job(&self, patch: &Value) -> Result<()> {
        let job = self.jobs().await?.pop().context("no Job")?;
        let jobs: Api<Job> = Api::namespaced(self.place.client.clone(), self.name);
        let name = job.metadata.name.context("a name")?;
        jobs.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn delete_job(&self) -> Result<()> {
        let job = self.jobs().await?.pop().context("no Job")?;
        let jobs: Api<Job> = Api::namespaced(self.place.client.clone(), self.name);
        let name = job.metadata.name.context("a name")?;
        jobs.delete(&name, &DeleteParams::foreground()).await?;
        Ok(())
    }

    /// Deletes the object, and waits until nothing is left of it.
    pub(crate) async fn delete(&self) -> Result<()> {
        self.api.delete(self.name, &DeleteParams::default()).await?;
        let look = async || {
            let object = self.api.get_opt(self.name).await?;
            let (jobs, pods) = (self.jobs().await?, self.pods().await?);
            ensure!(object.is_none(), "the object is there");
            ensure!(
                jobs.is_empty() && pods.is_empty(),
                "{} Jobs, {} Pods",
                jobs.len(),
                pods.len()
            );
            Ok(())
        };
        eventually(PATIENCE, "all of it to be gone", look).await?;
        let left = self.bytes();
        ensure!(left.is_err(), "the image is still in the store");
        Ok(())
    }
}

fn ends_of(pod: &Pod, container: &str) -> Vec<ContainerStateTerminated> {
    let Some(status) = &pod.status else {
        return Vec::new();
    };
    let first = status.init_container_statuses.iter().flatten();
    let all = first.chain(status.container_statuses.iter().flatten());
    let named = all.filter(|status| status.name == container);
    named.filter_map(|status| status.state.clone()?.terminated).collect()
}

/// A web server with one file. Its second half is held back until [`Web::go_on`].
pub(crate) struct Web {
    pub(crate) url: String,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

/// No text, and more than a provider holds back.
pub(crate) fn disk() -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..8 * 1024 * 1024).map(|_| next()).collect()
}

impl Web {
    pub(crate) fn start(place: &Place, is_open: bool) -> Result<Self> {
        let listener = TcpListener::bind((place.kubelet.host(), 0))?;
        let url = format!("http://{}/disk.raw", listener.local_addr()?);
        let gate = Arc::new((Mutex::new(is_open), Condvar::new()));
        let held = Arc::clone(&gate);
        // Ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let held = Arc::clone(&held);
                // Whoever asked may have gone.
                thread::spawn(move || drop(serve(&stream, &held)));
            }
        });
        Ok(Self { url, gate })
    }

    pub(crate) fn go_on(&self) {
        *self.gate.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.gate.1.notify_all();
    }
}

fn serve(mut stream: &TcpStream, (open, opened): &(Mutex<bool>, Condvar)) -> Result<()> {
    let mut lines = BufReader::new(stream).lines().map_while(std::io::Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    if !first.contains("/disk.raw") {
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        return Ok(());
    }
    let file = disk();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"one\"\r\nConnection: close\r\n\r\n",
        file.len()
    );
    stream.write_all(head.as_bytes())?;
    if first.starts_with("HEAD") {
        return Ok(());
    }
    let (one, other) = file.split_at(file.len() / 2);
    stream.write_all(one)?;
    let is_open = open.lock().unwrap_or_else(PoisonError::into_inner);
    drop(
        opened
            .wait_while(is_open, |is_open| !*is_open)
            .unwrap_or_else(PoisonError::into_inner),
    );
    stream.write_all(other)?;
    Ok(())
}
