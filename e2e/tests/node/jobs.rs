//! Jobs of these tests, and what became of them.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use e2e::{
    eventually,
    kubelet::{Image, Kind, Kubelet},
};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ContainerStateTerminated, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

/// Jobs take three seconds on an idle machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);
/// What every container runs, unless it says otherwise.
pub(crate) const SHELL: &str = "lab.local/sh:1";
const NAMESPACE: &str = "default";

/// One kubelet with the shell as an image.
pub(crate) async fn start(kind: Kind) -> Result<Kubelet> {
    let kubelet = Kubelet::start(kind).await?;
    kubelet.import_image(&Image::shell(SHELL))?;
    Ok(kubelet)
}

/// A container that runs a script.
pub(crate) fn script(name: &str, script: &str) -> Value {
    json!({ "name": name, "image": SHELL, "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", script] })
}

/// A Job that is tried once.
pub(crate) fn job(name: &str, pod: &Value) -> Result<Job> {
    let mut spec = json!({ "restartPolicy": "Never", "terminationGracePeriodSeconds": 3 });
    let fields = pod.as_object().context("the spec of a Pod")?;
    for (field, value) in fields {
        spec[field] = value.clone();
    }
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "backoffLimit": 0, "template": { "spec": spec } },
    });
    Ok(serde_json::from_value(job)?)
}

/// The Jobs of one kubelet.
pub(crate) struct Jobs<'a> {
    kubelet: &'a Kubelet,
    api: Api<Job>,
}

impl<'a> Jobs<'a> {
    pub(crate) fn of(kubelet: &'a Kubelet) -> Self {
        let api = Api::namespaced(kubelet.control_plane().client(), NAMESPACE);
        Self { kubelet, api }
    }

    pub(crate) async fn create(&self, job: &Job) -> Result<()> {
        let created = self.api.create(&PostParams::default(), job).await;
        created.map(drop).context("failed to make a Job")
    }

    /// Makes one and returns the condition that it ends with.
    pub(crate) async fn run(&self, job: &Job) -> Result<String> {
        self.create(job).await?;
        self.end(&job.name_any()).await
    }

    /// `Complete` or `Failed`, and for the latter the reason.
    pub(crate) async fn end(&self, name: &str) -> Result<String> {
        eventually(SOON, format!("the end of the Job {name}"), async || {
            let job = self.api.get(name).await?;
            let status = job.status.unwrap_or_default();
            let conditions = status.conditions.iter().flatten();
            let mut held = conditions.filter(|condition| condition.status == "True");
            let end = held.find_map(|condition| match condition.type_.as_str() {
                "Complete" => Some("Complete".to_owned()),
                "Failed" => Some(format!("Failed: {}", condition.reason.clone().unwrap_or_default())),
                _ => None,
            });
            end.ok_or_else(|| anyhow!("{status:?}"))
        })
        .await
    }

    /// Waits until it has a Pod that runs and has said this in its log.
    pub(crate) async fn says(&self, name: &str, container: &str, word: &str) -> Result<()> {
        eventually(SOON, format!("{name} to say {word}"), async || {
            let said = self.log(name, container).await?;
            if said.contains(word) { Ok(()) } else { bail!("{said:?}") }
        })
        .await
    }

    pub(crate) async fn log(&self, name: &str, container: &str) -> Result<String> {
        self.kubelet
            .logs(NAMESPACE, &self.pod(name).await?.name_any(), container)
            .await
    }

    pub(crate) async fn pod(&self, name: &str) -> Result<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.kubelet.control_plane().client(), NAMESPACE);
        let of_job = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
        let pod = pods.list(&of_job).await?.items.into_iter().next();
        pod.with_context(|| format!("the Job {name} has no Pod"))
    }

    /// How a container of it has ended, be it an init container.
    pub(crate) async fn terminated(&self, name: &str, container: &str) -> Result<ContainerStateTerminated> {
        let status = self.pod(name).await?.status.unwrap_or_default();
        let all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses)
            .flatten();
        let mut of_name = all.filter(|status| status.name == container);
        let state = of_name.next().and_then(|status| status.state.clone());
        let ended = state.and_then(|state| state.terminated);
        ended.with_context(|| format!("{container} of {name} has not ended"))
    }

    /// Deletes it, and returns when it is gone with its Pods.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.api.delete(name, &DeleteParams::foreground()).await?;
        eventually(SOON, format!("the Job {name} to be gone"), async || {
            match self.api.get_opt(name).await? {
                None => Ok(()),
                Some(job) => bail!("{:?}", job.status),
            }
        })
        .await
    }
}
