//! What a Pod's status says of its containers. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Container, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};

/// What a container does.
#[derive(Clone, Debug)]
pub(super) enum State {
    Running { since: Timestamp },
    Ended(End),
}

/// How a container ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) began: Timestamp,
    pub(super) ended: Timestamp,
}

/// What is known of a Pod.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) phase: &'static str,
    /// Why, where containers do not say it.
    pub(super) reason: Option<&'static str>,
    pub(super) message: Option<String>,
    pub(super) began: Timestamp,
    /// By name; those that are not there wait.
    pub(super) states: BTreeMap<String, State>,
}

impl Report {
    /// Says how it went as a whole: well, when each of so many containers ended well.
    pub(super) fn conclude(&mut self, containers: usize, message: Option<String>) {
        let is_good = |state: &State| matches!(state, State::Ended(end) if end.code == 0);
        let all_are = self.states.len() == containers && self.states.values().all(is_good);
        self.phase = if all_are { "Succeeded" } else { "Failed" };
        self.message = message;
    }

    /// As a patch of the Pod's status.
    pub(super) fn patch(&self, pod: &Pod) -> Value {
        let spec = pod.spec.clone().unwrap_or_default();
        let of = |containers: &[Container]| -> Vec<Value> {
            containers.iter().map(|container| self.container(container)).collect()
        };
        let is_ready = self.phase == "Running"
            && spec
                .containers
                .iter()
                .all(|container| matches!(self.states.get(&container.name), Some(State::Running { .. })));
        let condition = |kind: &str, holds: bool| {
            let status = if holds { "True" } else { "False" };
            json!({ "type": kind, "status": status, "lastTransitionTime": time(self.began) })
        };
        json!({ "status": {
            "phase": self.phase,
            "reason": self.reason,
            "message": self.message,
            "startTime": time(self.began),
            "conditions": [
                condition("PodScheduled", true),
                condition("Initialized", self.phase == "Running"),
                condition("ContainersReady", is_ready),
                condition("Ready", is_ready),
            ],
            "initContainerStatuses": of(&spec.init_containers.unwrap_or_default()),
            "containerStatuses": of(&spec.containers),
        } })
    }

    fn container(&self, container: &Container) -> Value {
        let state = self.states.get(&container.name);
        let told = match state {
            None => json!({ "waiting": { "reason": "PodInitializing" } }),
            Some(State::Running { since }) => json!({ "running": { "startedAt": time(*since) } }),
            Some(State::Ended(end)) => json!({ "terminated": {
                "exitCode": end.code,
                "reason": if end.code == 0 { "Completed" } else { "Error" },
                "message": end.message,
                "startedAt": time(end.began),
                "finishedAt": time(end.ended),
            } }),
        };
        let is_ready = match state {
            Some(State::Running { .. }) => true,
            Some(State::Ended(end)) => end.code == 0,
            None => false,
        };
        json!({
            "name": container.name, "image": container.image, "imageID": "", "restartCount": 0, "ready": is_ready, "state": told,
        })
    }
}

fn time(at: Timestamp) -> Value {
    json!(Time(at))
}
