//! The objects that stages wait for: whether there can be such ones in a cluster. Operators leave what they do not know to the cluster, which may be newer than
//! they are; whoever makes a release is told at once what cannot have been meant.

use std::collections::BTreeSet;

use crds::{
    names::KubernetesMinor,
    release_files::{ClusterAddonConfig, WatchedObject},
};
use expressions::{ObjectKind, Schemas};

use crate::{
    files::conditions::{Condition, conditions},
    marked::{Node, Place, Remark},
};

/// Kinds that Kubernetes had in preliminary versions not long ago: a cluster that is a little older may serve them in no other.
const LATE: [&str; 14] = [
    "DeviceClass",
    "FlowSchema",
    "IPAddress",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "SelfSubjectReview",
    "ServiceCIDR",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "VolumeAttributesClass",
];

/// The first Kubernetes that no longer serves the preliminary versions of kinds that had become final long before.
const WITHOUT_OLD: (u32, u32) = (1, 27);

/// The key of an object with its group and version.
const API_VERSION: &str = "apiVersion";
/// The key with its kind.
const KIND: &str = "kind";

/// Finds objects that there cannot be: of a kind that Kubernetes has not, or without the namespace that their kind has. Where the stages do not say of what
/// kind an object is, nothing is said of it.
pub(super) fn check(
    stages: &ClusterAddonConfig,
    schemas: &Schemas,
    kubernetes: KubernetesMinor,
    text: &str,
    file: &Node<'_>,
) -> Vec<Remark> {
    let of_condition = |condition: Condition<'_>| {
        let node = condition.node(file).and_then(|(_, node)| node.entry("objects"));
        let objects = condition.waits.objects.iter().enumerate();
        let found = objects.filter_map(|(index, object)| {
            let (key, problem) = problem(object, schemas, kubernetes)?;
            let start = node.and_then(|(_, objects)| objects.item(index)?.entry(key)?.0.start);
            let Condition {
                hook,
                index: stage,
                key,
                ..
            } = condition;
            Some(Remark {
                place: start.map(|start| Place::line_of(text, start)),
                words: format!("addonStages.{hook}[{stage}].{key}.objects[{index}]: {problem}"),
            })
        });
        found.collect::<Vec<_>>()
    };
    conditions(stages).flat_map(of_condition).collect()
}

/// Why there cannot be this object, behind the key with what is wrong.
fn problem(object: &WatchedObject, schemas: &Schemas, kubernetes: KubernetesMinor) -> Option<(&'static str, String)> {
    let WatchedObject {
        key: _,
        api_version,
        kind,
        name,
        namespace,
    } = object;
    if [api_version, kind, name].iter().any(|word| word.is_empty()) {
        return None;
    }
    let of = ObjectKind::new(api_version.clone(), kind.clone());
    if !schemas.describes(&of) {
        return unknown(&of, schemas, kubernetes);
    }
    // Of what is in no namespace the operators pass the namespace over.
    (schemas.is_namespaced(&of)? && namespace.is_empty()).then(|| {
        let words = format!("a {kind} is always in a namespace, so {name:?} would never be found");
        (KIND, format!("{words}: add `namespace:`"))
    })
}

/// Why there is no such kind, if that is certain: its group is one of Kubernetes itself.
fn unknown(kind: &ObjectKind, schemas: &Schemas, kubernetes: KubernetesMinor) -> Option<(&'static str, String)> {
    let ObjectKind { api_version, kind } = kind;
    // No version has a dot.
    if api_version.contains('.') && !api_version.contains('/') {
        let words = format!("{api_version} is a group without a version: write both, as in {api_version}/v1");
        return Some((API_VERSION, words));
    }
    let group = group_of(api_version);
    let is_of_group = |(version, _): &(&str, &str)| group_of(version) == group;
    // Those of definitions always have a dot.
    if group.contains('.') && !Schemas::kinds_of_kubernetes().any(|known| is_of_group(&known)) {
        return None;
    }
    let is_preliminary = ["alpha", "beta"]
        .iter()
        .any(|word| version_of(api_version).contains(word));
    if is_preliminary && (u32::from(kubernetes.major()), kubernetes.minor()) < WITHOUT_OLD {
        return None;
    }
    let versions = versions_of(kind, group);
    if !versions.is_empty() {
        let versions = versions.into_iter().collect::<Vec<_>>().join(" and ");
        let is_certain = !(is_preliminary && LATE.contains(&kind.as_str()));
        let words = format!("{api_version} has no {kind}; Kubernetes has it in {versions}");
        return is_certain.then_some((API_VERSION, words));
    }
    let known: BTreeSet<&str> = Schemas::kinds_of_kubernetes()
        .filter(is_of_group)
        .map(|(_, kind)| kind)
        .collect();
    let near = expressions::nearest(kind, known.iter().copied());
    if is_preliminary || (near.is_empty() && schemas.is_of_older_kubernetes()) {
        return None;
    }
    Some(if known.is_empty() {
        let words = format!("Kubernetes has no {api_version}, and what others define is in a group with a dot");
        (API_VERSION, words)
    } else {
        let instead = expressions::instead(kind, known);
        (KIND, format!("{api_version} has no {kind}{instead}"))
    })
}

/// In which versions Kubernetes has a kind of this name: those of the group, or of others where the group has none.
fn versions_of(kind: &str, group: &str) -> BTreeSet<&'static str> {
    let named = || Schemas::kinds_of_kubernetes().filter(move |(_, known)| *known == kind);
    let of_group = named().map(|(version, _)| version);
    let of_group: BTreeSet<_> = of_group.filter(|version| group_of(version) == group).collect();
    if of_group.is_empty() {
        named().map(|(version, _)| version).collect()
    } else {
        of_group
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn version_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or(api_version, |(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(api_version: &str, kind: &str, namespace: &str, kubernetes: (u32, u32)) -> Option<String> {
        let object = WatchedObject {
            key: "it".to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "one".to_owned(),
            namespace: namespace.to_owned(),
        };
        let (major, minor) = kubernetes;
        let version = KubernetesMinor::of_full_version(&format!("v{major}.{minor}.0")).expect("a version");
        problem(&object, &Schemas::of_kubernetes(kubernetes), version).map(|(_, words)| words)
    }

    #[test]
    fn kinds_that_kubernetes_never_had_or_has_no_longer_are_told_with_what_is_meant() {
        for (api_version, kind, told) in [
            (
                "apps/v1",
                "Daemonset",
                "apps/v1 has no Daemonset: did you mean DaemonSet?",
            ),
            (
                "apps/v1beta1",
                "DaemonSet",
                "apps/v1beta1 has no DaemonSet; Kubernetes has it in apps/v1",
            ),
            ("v1", "Deployment", "v1 has no Deployment; Kubernetes has it in apps/v1"),
            (
                "extensions/v1beta1",
                "Ingress",
                "extensions/v1beta1 has no Ingress; Kubernetes has it in networking.k8s.io/v1",
            ),
            (
                "autoscaling/v2beta2",
                "HorizontalPodAutoscaler",
                "autoscaling/v2beta2 has no HorizontalPodAutoscaler; Kubernetes has it in autoscaling/v1 and autoscaling/v2",
            ),
            ("batch/v1", "Quay", "batch/v1 has no Quay; there are CronJob, Job"),
            (
                "harbor/v1",
                "Quay",
                "Kubernetes has no harbor/v1, and what others define is in a group with a dot",
            ),
            (
                "cert-manager.io",
                "Certificate",
                "cert-manager.io is a group without a version: write both, as in cert-manager.io/v1",
            ),
        ] {
            assert_eq!(said(api_version, kind, "here", (1, 34)).as_deref(), Some(told));
        }
    }

    #[test]
    fn kinds_that_a_cluster_may_have_nevertheless_are_left_to_it() {
        for (api_version, kind, kubernetes) in [
            ("cilium.io/v2", "CiliumNode", (1, 34)),
            ("gateway.networking.k8s.io/v1", "Gateway", (1, 34)),
            ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", (1, 28)),
            ("resource.k8s.io/v1beta1", "ResourceClaim", (1, 33)),
            ("resource.k8s.io/v1alpha2", "ResourceClass", (1, 30)),
            ("storage.k8s.io/v1beta1", "CSIStorageCapacity", (1, 26)),
            ("batch/v1beta1", "CronJob", (1, 24)),
            ("certificates.k8s.io/v1alpha1", "ClusterTrustBundle", (1, 33)),
            // Newer than what is known here.
            ("batch/v1", "Quay", (1, 99)),
        ] {
            assert_eq!(said(api_version, kind, "", kubernetes), None, "{kind}");
        }
        assert!(said("apps/v1", "Daemonset", "here", (1, 99)).is_some());
    }

    #[test]
    fn preliminary_versions_are_left_to_a_cluster_until_the_first_kubernetes_without_them() {
        let told = |kubernetes| said("storage.k8s.io/v1beta1", "CSIStorageCapacity", "here", kubernetes);
        let words = "storage.k8s.io/v1beta1 has no CSIStorageCapacity; Kubernetes has it in storage.k8s.io/v1";
        assert_eq!(told((1, 26)), None);
        assert_eq!(told((1, 27)).as_deref(), Some(words));
    }

    #[test]
    fn a_namespace_is_given_where_the_kind_has_one_and_passed_over_elsewhere() {
        assert_eq!(
            said("apps/v1", "DaemonSet", "", (1, 34)).as_deref(),
            Some("a DaemonSet is always in a namespace, so \"one\" would never be found: add `namespace:`")
        );
        assert_eq!(said("apps/v1", "DaemonSet", "kube-system", (1, 34)), None);
        for namespace in ["", "kube-system"] {
            assert_eq!(said("v1", "Node", namespace, (1, 34)), None);
        }
    }
}
