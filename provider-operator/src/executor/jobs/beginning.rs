//! Why a Job does not go on before its program sends, from what its Pods say: no node takes it, an image cannot be had. Told in words that stay the same as
//! long as the trouble does. Pure.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;

use super::ending::{is_of, last_words};
use crate::objects::ObjectId;

/// What a container waits for that will come by itself.
const USUAL: [&str; 2] = ["PodInitializing", "ContainerCreating"];
/// A node takes these in turns for one and the same trouble.
const WITHOUT_IMAGE: [&str; 5] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
];

/// What holds up the Job of this identity; `None` when nothing is known to.
pub(super) fn held_up(object: &ObjectId, uid: &str, pods: &[Pod]) -> Option<String> {
    let Some(pod) = last(object, uid, pods) else {
        return Some("the cluster makes no Pod of it; look at the events of the Job".to_owned());
    };
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let unscheduled = conditions.find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let why = last_words(condition.message.as_deref().unwrap_or_default());
        return Some(format!("no node takes it: {why}"));
    }
    let first = status.init_container_statuses.iter().flatten();
    let mut containers = first.chain(status.container_statuses.iter().flatten());
    containers.find_map(waits)
}

/// Whether the last Pod of this Job has not come to send: an earlier one may have, and was driven from its node. What runs on a node that does not answer
/// any more has.
pub(super) fn is_before_sending(object: &ObjectId, uid: &str, pods: &[Pod]) -> bool {
    let status = last(object, uid, pods).and_then(|pod| pod.status.as_ref());
    status.is_some_and(|status| status.phase.as_deref() == Some("Pending"))
}

fn last<'a>(object: &ObjectId, uid: &str, pods: &'a [Pod]) -> Option<&'a Pod> {
    let own = pods.iter().filter(|pod| is_of(pod, &object.namespace, uid));
    own.max_by_key(|pod| pod.creation_timestamp().map(|time| time.0))
}

fn waits(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !USUAL.contains(reason))?;
    let (name, image) = (&container.name, &container.image);
    if WITHOUT_IMAGE.contains(&reason) {
        return Some(format!(
            "the image {image} of its container {name} cannot be had; see that it is there, and that its registry lets the node read it"
        ));
    }
    let why = last_words(waiting.message.as_deref().unwrap_or(reason));
    Some(format!("its container {name} does not start: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::stand_ins::object;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "pod", "namespace": "fleet",
                "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "one", "controller": true }],
            },
            "status": status,
        }))
        .expect("a Pod")
    }

    fn waiting(reason: &str, message: &str) -> Pod {
        let state = json!({ "waiting": { "reason": reason, "message": message } });
        let build = json!({ "name": "build", "image": "images.example/make:1", "imageID": "", "ready": false, "restartCount": 0, "state": state });
        pod(&json!({ "initContainerStatuses": [build] }))
    }

    fn told(pods: &[Pod]) -> Option<String> {
        held_up(&object("fleet", "ubuntu"), "one", pods)
    }

    #[test]
    fn a_job_that_no_node_takes_says_why() {
        let words = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
        let unscheduled = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": words }] });
        assert_eq!(told(&[pod(&unscheduled)]), Some(format!("no node takes it: {words}")));
    }

    #[test]
    fn an_image_that_cannot_be_had_is_told_in_the_same_words_however_the_node_calls_it() {
        let calls = [("ErrImagePull", "not found"), ("ImagePullBackOff", "Back-off 10s")];
        let [one, other] = calls.map(|(reason, message)| told(&[waiting(reason, message)]).expect("words"));
        assert_eq!(one, other);
        assert!(one.contains("images.example/make:1 of its container build"), "{one}");
    }

    #[test]
    fn a_pod_is_before_sending_until_its_last_container_runs_whether_or_not_its_node_answers() {
        let object = object("fleet", "ubuntu");
        let of = |phase: &str, made: &str| {
            let mut pod = pod(&json!({ "phase": phase }));
            let made = serde_json::from_value(json!(made)).expect("a time");
            pod.metadata.creation_timestamp = Some(made);
            pod
        };
        let sent = of("Failed", "2026-01-01T00:00:00Z");
        let (pending, running) = (
            of("Pending", "2026-01-01T01:00:00Z"),
            of("Running", "2026-01-01T01:00:00Z"),
        );
        let is_before = |pods: &[Pod]| is_before_sending(&object, "one", pods);
        assert!(is_before(&[pending.clone(), sent.clone()]), "the last one counts");
        assert!(!is_before(&[running, sent.clone()]) && !is_before(&[sent]) && !is_before(&[]));
        assert!(!is_before_sending(&object, "other", &[pending]));
    }

    #[test]
    fn what_comes_by_itself_holds_nothing_up_and_a_job_without_a_pod_is_told() {
        assert_eq!(told(&[waiting("PodInitializing", "")]), None);
        assert_eq!(told(&[pod(&json!({}))]), None);
        let broken = told(&[waiting("CreateContainerError", "no such\nprogram")]).expect("words");
        assert!(broken.ends_with("does not start: no such | program"), "{broken}");
        let mut stranger = waiting("ErrImagePull", "");
        stranger.metadata.owner_references.as_mut().expect("owners")[0].uid = "other".to_owned();
        let none = told(&[stranger]).expect("words");
        assert!(none.contains("no Pod"), "{none}");
    }
}
