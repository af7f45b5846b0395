//! Jobs in the picture, with their Pods: rows, and answers to what an act waits for.

use crds::names::ReleaseTag;
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ContainerStatus, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

use super::{super::watches::Image, Picture, Row, Tone};

/// The container that builds, of Jobs that build.
const BUILD: &str = "build";

impl Picture {
    /// The rows of the Jobs that work on an image, and of their Pods.
    pub(super) fn job_rows(&self, image: &Image) -> Vec<Row> {
        let jobs = self.jobs.values().filter(|job| is_owned(*job, image.kind, &image.name));
        jobs.flat_map(|job| {
            let pods = self.pods_of(job).map(pod_row);
            std::iter::once(job_row(job)).chain(pods).collect::<Vec<_>>()
        })
        .collect()
    }

    /// The name of the Pod whose script has built the image of a release.
    pub(in super::super) fn pod_that_built(&self, tag: &ReleaseTag) -> Option<String> {
        let tag = tag.to_string();
        let images = self.images.values().filter(|image| image.owners.contains(&tag));
        let jobs = images.flat_map(|image| self.jobs.values().filter(|job| is_owned(*job, image.kind, &image.name)));
        let mut pods = jobs.flat_map(|job| self.pods_of(job));
        pods.find(|pod| has_built(pod)).map(ResourceExt::name_any)
    }

    fn pods_of(&self, job: &Job) -> impl Iterator<Item = &Pod> {
        let name = job.name_any();
        self.pods.values().filter(move |pod| is_owned(*pod, "Job", &name))
    }
}

fn is_owned(object: &impl ResourceExt, kind: &str, name: &str) -> bool {
    let is_it = |owner: &OwnerReference| owner.kind == kind && owner.name == name;
    object.owner_references().iter().any(is_it)
}

fn row(kind: &str, name: String, (tone, state): (Tone, &str), note: String) -> Row {
    Row {
        depth: 2,
        id: (kind.to_owned(), name),
        tone,
        state: state.to_owned(),
        note,
        is_image: true,
        percent: None,
    }
}

fn job_row(job: &Job) -> Row {
    let status = job.status.as_ref();
    let counts = status.map_or((0, 0), |status| {
        (status.succeeded.unwrap_or_default(), status.failed.unwrap_or_default())
    });
    let state = match counts {
        _ if job.metadata.deletion_timestamp.is_some() => (Tone::Busy, "going"),
        (0, 0) => (Tone::Busy, "running"),
        (0, _) => (Tone::Bad, "failed"),
        _ => (Tone::Good, "done"),
    };
    row("Job", job.name_any(), state, String::new())
}

/// With the phase of the Pod in the words of Kubernetes.
fn pod_row(pod: &Pod) -> Row {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let phase = phase.unwrap_or("Pending");
    let tone = match phase {
        "Succeeded" => Tone::Good,
        "Failed" => Tone::Bad,
        _ => Tone::Busy,
    };
    let running = containers(pod).find(|container| is_running(container));
    let note = running.map_or_else(String::new, |container| format!("{} runs", container.name));
    row("Pod", pod.name_any(), (tone, phase), note)
}

fn has_built(pod: &Pod) -> bool {
    let mut builders = containers(pod).filter(|container| container.name == BUILD);
    builders.any(|container| {
        let ended = container.state.as_ref().and_then(|state| state.terminated.as_ref());
        ended.is_some_and(|ended| ended.exit_code == 0)
    })
}

fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Those that build before those that send.
fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let first = status.init_container_statuses.iter().flatten();
        first.chain(status.container_statuses.iter().flatten())
    })
}
