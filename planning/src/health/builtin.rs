//! Health of the kinds that Kubernetes itself serves.

use serde_json::Value;

use super::Health;
use super::conditions::{condition, explained, is_false, is_true, must_be_true, text};
use crate::object_key::GroupKind;

/// `None` for kinds without a rule of their own.
pub(super) fn health(group_kind: &GroupKind, object: &Value) -> Option<Health> {
    let rule = match (group_kind.group.as_str(), group_kind.kind.as_str()) {
        ("apps", "Deployment") => deployment,
        ("apps", "StatefulSet") => stateful_set,
        ("apps", "DaemonSet") => daemon_set,
        ("apps", "ReplicaSet") => replica_set,
        ("batch", "Job") => job,
        ("", "Pod") => pod,
        ("", "PersistentVolumeClaim") => persistent_volume_claim,
        ("", "Service") => service,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition,
        ("apiregistration.k8s.io", "APIService") => api_service,
        // Its budget is worked out once the generation is observed; how many may be disrupted is no matter of health.
        ("policy", "PodDisruptionBudget") => |_: &Value| Health::current(),
        _ => return None,
    };
    Some(rule(object))
}

/// Counts of a status that have to reach (or not to exceed) what the spec asks for.
struct Counts<'object> {
    object: &'object Value,
    wanted: i64,
}

impl<'object> Counts<'object> {
    /// `spec.replicas`, which the API server defaults to 1.
    fn of_replicas(object: &'object Value) -> Self {
        Self {
            object,
            wanted: number(object, "/spec/replicas").unwrap_or(1),
        }
    }

    fn status(&self, field: &str) -> i64 {
        self.object
            .get("status")
            .and_then(|status| status.get(field))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    /// The first of the counts that is too small; each with the words for it.
    fn lacking(&self, counts: &[(&str, &str)]) -> Option<Health> {
        counts.iter().find_map(|&(field, what)| {
            let have = self.status(field);
            (have < self.wanted).then(|| Health::in_progress(format!("{have} of {} replicas are {what}", self.wanted)))
        })
    }

    fn surplus(&self) -> Option<Health> {
        let surplus = self.status("replicas").saturating_sub(self.wanted);
        (surplus > 0).then(|| Health::in_progress(format!("{surplus} surplus replicas are still there")))
    }
}

fn deployment(object: &Value) -> Health {
    // A deadline of "never" means that the condition never comes.
    let has_deadline = number(object, "/spec/progressDeadlineSeconds") != Some(i64::from(i32::MAX));
    let progressing = condition(object, "Progressing");
    if let Some(progressing) = progressing.filter(|found| text(found, "reason") == "ProgressDeadlineExceeded") {
        return Health::failed(explained(progressing));
    }
    let rolled_out =
        progressing.is_some_and(|found| is_true(found) && text(found, "reason") == "NewReplicaSetAvailable");
    let replicas = Counts::of_replicas(object);
    replicas
        .lacking(&[("replicas", "created"), ("updatedReplicas", "updated")])
        .or_else(|| replicas.surplus())
        .or_else(|| replicas.lacking(&[("availableReplicas", "available"), ("readyReplicas", "ready")]))
        .or_else(|| (has_deadline && !rolled_out).then(|| Health::in_progress("the rollout has not ended")))
        .or_else(|| {
            condition(object, "Available")
                .map(must_be_true)
                .filter(|health| *health != Health::current())
        })
        .unwrap_or_else(Health::current)
}

fn stateful_set(object: &Value) -> Health {
    if string(object, "/spec/updateStrategy/type") == Some("OnDelete") {
        return Health::current();
    }
    let replicas = Counts::of_replicas(object);
    if let Some(lacking) = replicas
        .lacking(&[("replicas", "created"), ("readyReplicas", "ready")])
        .or_else(|| replicas.surplus())
    {
        return lacking;
    }
    if let Some(partition) = number(object, "/spec/updateStrategy/rollingUpdate/partition").filter(|from| *from > 0) {
        let beyond = Counts {
            object,
            wanted: replicas.wanted.saturating_sub(partition),
        };
        return beyond
            .lacking(&[("updatedReplicas", "updated")])
            .unwrap_or_else(Health::current);
    }
    if string(object, "/status/currentRevision") != string(object, "/status/updateRevision") {
        return Health::in_progress("the rollout has not ended");
    }
    Health::current()
}

fn daemon_set(object: &Value) -> Health {
    let (Some(_), Some(wanted)) = (
        number(object, "/status/observedGeneration"),
        number(object, "/status/desiredNumberScheduled"),
    ) else {
        return Health::in_progress("its controller has not seen the object");
    };
    Counts { object, wanted }
        .lacking(&[
            ("currentNumberScheduled", "scheduled"),
            ("updatedNumberScheduled", "updated"),
            ("numberAvailable", "available"),
            ("numberReady", "ready"),
        ])
        .unwrap_or_else(Health::current)
}

fn replica_set(object: &Value) -> Health {
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|found| is_true(found)) {
        return Health::in_progress(explained(failure));
    }
    let replicas = Counts::of_replicas(object);
    replicas
        .lacking(&[
            ("replicas", "created"),
            ("fullyLabeledReplicas", "labelled"),
            ("availableReplicas", "available"),
            ("readyReplicas", "ready"),
        ])
        .or_else(|| replicas.surplus())
        .unwrap_or_else(Health::current)
}

fn job(object: &Value) -> Health {
    for kind in ["Failed", "FailureTarget"] {
        if let Some(failure) = condition(object, kind).filter(|found| is_true(found)) {
            return Health::failed(explained(failure));
        }
    }
    let complete = condition(object, "Complete").is_some_and(is_true);
    let suspended = object.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if complete || suspended {
        return Health::current();
    }
    let parallelism = number(object, "/spec/parallelism").unwrap_or(1);
    let completions = number(object, "/spec/completions").unwrap_or(parallelism);
    let succeeded = number(object, "/status/succeeded").unwrap_or(0);
    Health::in_progress(format!("{succeeded} of {completions} pods have succeeded"))
}

fn pod(object: &Value) -> Health {
    let ready = condition(object, "Ready");
    match string(object, "/status/phase") {
        Some("Succeeded") => Health::current(),
        Some("Failed") => {
            Health::failed(string(object, "/status/message").unwrap_or("the pod has ended without success"))
        }
        Some("Running") if ready.is_some_and(is_true) => Health::current(),
        Some("Running") => match crash_looping(object).as_slice() {
            [] => Health::in_progress(ready.map_or_else(|| "the pod is not ready".to_owned(), explained)),
            containers => Health::failed(format!("containers crash again and again: {}", containers.join(", "))),
        },
        Some("Pending") => match condition(object, "PodScheduled").filter(|found| is_false(found)) {
            Some(scheduled) => Health::in_progress(explained(scheduled)),
            None => Health::in_progress("the pod is pending"),
        },
        _ => Health::in_progress("the pod has no phase yet"),
    }
}

fn crash_looping(pod: &Value) -> Vec<&str> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .iter()
        .filter_map(|path| pod.pointer(path)?.as_array())
        .flatten()
        .filter(|container| string(container, "/state/waiting/reason") == Some("CrashLoopBackOff"))
        .map(|container| text(container, "name"))
        .collect()
}

fn persistent_volume_claim(object: &Value) -> Health {
    match string(object, "/status/phase") {
        Some("Bound") => Health::current(),
        Some("Lost") => Health::failed("the volume of the claim is lost"),
        _ => Health::in_progress("the claim is not bound"),
    }
}

fn service(object: &Value) -> Health {
    let balanced = string(object, "/spec/type") == Some("LoadBalancer");
    let has_address = string(object, "/spec/clusterIP").is_some_and(|address| !address.is_empty());
    if balanced && !has_address {
        Health::in_progress("the service has no cluster IP")
    } else {
        Health::current()
    }
}

fn custom_resource_definition(object: &Value) -> Health {
    let refused = |kind| condition(object, kind).filter(|found| is_false(found));
    if let Some(names) = refused("NamesAccepted") {
        return Health::failed(explained(names));
    }
    match condition(object, "Established") {
        Some(established) if is_true(established) => Health::current(),
        Some(established) if is_false(established) && text(established, "reason") != "Installing" => {
            Health::failed(explained(established))
        }
        _ => Health::in_progress("the kind is not served yet"),
    }
}

fn api_service(object: &Value) -> Health {
    condition(object, "Available").map_or_else(
        || Health::in_progress("the API service has not been tried yet"),
        must_be_true,
    )
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer)?.as_i64()
}

fn string<'object>(object: &'object Value, pointer: &str) -> Option<&'object str> {
    object.pointer(pointer)?.as_str()
}
