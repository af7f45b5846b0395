//! The life of one Pod: volumes, init containers one after another, then its containers, until they end, its deadline passes, or it is deleted.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Binding, Container, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    Ground,
    container::Running,
    status::{Report, State},
    volumes,
};
use crate::{eventually, web::lock};

/// What the node of these Pods is called; there is none.
const NODE: &str = "stand-in";
/// A kubelet waits for what a volume is made of as long as the Pod lives; a test does not.
const VOLUMES_DEADLINE: Duration = Duration::from_mins(2);
const NO_DEADLINE: Duration = Duration::from_hours(24);

/// What is to become of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Run,
    /// In that many seconds.
    End {
        grace: u64,
    },
    /// It is out of the API server.
    Gone,
}

impl Wish {
    fn grace(self) -> Option<Duration> {
        match self {
            Self::Run => None,
            Self::End { grace } => Some(Duration::from_secs(grace)),
            Self::Gone => Some(Duration::ZERO),
        }
    }
}

/// A Pod and what is known of it.
pub(super) struct Life {
    ground: Arc<Ground>,
    pod: Pod,
    wish: watch::Receiver<Wish>,
    report: Mutex<Report>,
}

impl Life {
    pub(super) fn new(ground: Arc<Ground>, pod: Pod, wish: watch::Receiver<Wish>) -> Self {
        let report = Report {
            phase: "Pending",
            reason: None,
            message: None,
            began: Timestamp::now(),
            states: BTreeMap::new(),
        };
        Self {
            ground,
            pod,
            wish,
            report: Mutex::new(report),
        }
    }

    /// From its first sight until it is out of the API server.
    pub(super) async fn live(self) {
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if !matches!(phase, Some("Succeeded" | "Failed")) {
            let failed = self.run().await.err();
            let message = failed.map(|error| format!("{error:#}"));
            self.conclude(message).await;
        }
        let mut wish = self.wish.clone();
        // An error says that nobody watches any more.
        if let Ok(wish) = wish.wait_for(|wish| *wish != Wish::Run).await.map(|wish| *wish) {
            if wish != Wish::Gone {
                self.complain_of("deleted", self.delete().await);
            }
            let _ = fs::remove_dir_all(self.folder());
        }
    }

    async fn run(&self) -> Result<()> {
        let spec = self.pod.spec.clone().unwrap_or_default();
        ensure!(
            spec.restart_policy.as_deref() == Some("Never"),
            "the stand-in of the kubelet restarts nothing: say restartPolicy: Never"
        );
        if spec.node_name.is_none() {
            self.bind().await?;
        }
        let deadline = spec
            .active_deadline_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        let deadline = Instant::now() + deadline.map_or(NO_DEADLINE, Duration::from_secs);
        let Some(volumes) = self.volumes().await? else {
            return Ok(());
        };
        for container in spec.init_containers.iter().flatten() {
            if self.run_container(container, &volumes, deadline).await? != 0 {
                return Ok(());
            }
        }
        lock(&self.report).phase = "Running";
        let all = spec
            .containers
            .iter()
            .map(|container| self.run_container(container, &volumes, deadline));
        join_all(all)
            .await
            .into_iter()
            .try_for_each(|outcome| outcome.map(drop))
    }

    /// `None` when the Pod is deleted before they are ready.
    async fn volumes(&self) -> Result<Option<Vec<(String, PathBuf)>>> {
        let folders = self.folder().join("volumes");
        let mut wish = self.wish.clone();
        let prepared = async {
            let mut prepared = Vec::new();
            for volume in self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
                let what = format!("the volume {}", volume.name);
                let client = &self.ground.client;
                // What it is made of may come later.
                let look = || volumes::prepare(client, &self.pod, volume, &folders);
                let folder = Box::pin(eventually(VOLUMES_DEADLINE, what, look)).await?;
                prepared.push((volume.name.clone(), folder));
            }
            Ok(Some(prepared))
        };
        tokio::select! {
            prepared = prepared => prepared,
            _ = wish.wait_for(|wish| *wish != Wish::Run) => Ok(None),
        }
    }

    /// Returns its exit code.
    async fn run_container(
        &self,
        container: &Container,
        volumes: &[(String, PathBuf)],
        deadline: Instant,
    ) -> Result<i32> {
        let what = || format!("the container {} does not start", container.name);
        let mut wish = self.wish.clone();
        if wish.borrow().grace().is_some() {
            return Ok(1);
        }
        let mut running = Running::start(&self.ground, &self.pod, container, volumes).with_context(what)?;
        let since = running.began();
        self.tell(container, State::Running { since }).await;
        let ended = tokio::select! {
            ended = running.ends() => ended?,
            wish = grace_of(&mut wish) => running.end(wish).await?,
            () = sleep_until(deadline) => {
                lock(&self.report).reason = Some("DeadlineExceeded");
                running.end(self.grace()).await?
            }
        };
        let end = running.report(ended);
        let code = end.code;
        // Before anybody hears of the end, nothing of it runs any more.
        drop(running);
        self.tell(container, State::Ended(end)).await;
        Ok(code)
    }

    fn grace(&self) -> Duration {
        let seconds = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.termination_grace_period_seconds);
        Duration::from_secs(
            seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or_default(),
        )
    }

    async fn tell(&self, container: &Container, state: State) {
        lock(&self.report).states.insert(container.name.clone(), state);
        self.complain_of("reported", self.patch().await);
    }

    /// Says how it went as a whole.
    async fn conclude(&self, message: Option<String>) {
        let containers = self.pod.spec.as_ref().map_or(0, |spec| {
            spec.containers.len() + spec.init_containers.as_ref().map_or(0, Vec::len)
        });
        lock(&self.report).conclude(containers, message);
        self.complain_of("reported", self.patch().await);
    }

    async fn bind(&self) -> Result<()> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(self.pod.name_any()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(NODE.to_owned()),
                ..ObjectReference::default()
            },
        };
        let name = self.pod.name_any();
        self.pods()
            .create_subresource::<Binding, serde_json::Value>("binding", &name, &PostParams::default(), &binding)
            .await
            .map(drop)
            .context("failed to take the Pod")
    }

    /// As a kubelet does it: conditions of others stay, by which somebody who evicts a Pod says so.
    async fn patch(&self) -> kube::Result<()> {
        let patch = lock(&self.report).patch(&self.pod);
        let name = self.pod.name_any();
        let patched = self
            .pods()
            .patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch))
            .await;
        patched.map(drop)
    }

    /// Out of the API server, at once: nothing of it runs.
    async fn delete(&self) -> kube::Result<()> {
        let only_this = Preconditions {
            uid: self.pod.uid(),
            ..Preconditions::default()
        };
        let parameters = DeleteParams::default().grace_period(0).preconditions(only_this);
        self.pods().delete(&self.pod.name_any(), &parameters).await.map(drop)
    }

    /// A Pod that is gone already has no use for it.
    fn complain_of(&self, what: &str, outcome: kube::Result<()>) {
        match outcome {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            Err(error) => eprintln!("{} is not {what}: {error}", self.name()),
            Ok(()) => {}
        }
    }

    fn name(&self) -> impl Display {
        format!("{}/{}", self.namespace(), self.pod.name_any())
    }

    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.ground.client.clone(), &self.namespace())
    }

    fn folder(&self) -> PathBuf {
        self.ground.folder_of(&self.namespace(), &self.pod.name_any())
    }
}

/// Waits until the Pod is to end, and says in which time.
async fn grace_of(wish: &mut watch::Receiver<Wish>) -> Duration {
    let asked = wish.wait_for(|wish| *wish != Wish::Run).await;
    asked.ok().and_then(|wish| wish.grace()).unwrap_or_default()
}
