//! Whom news concern. Everybody else is left alone, however many objects of others come and go. Pure.

use std::collections::BTreeSet;

use crds::names::ReleaseTag;
use crds::{ClusterStack, ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::object::GroupKind;
use planning::stack::release_kind;

use crate::release::group_kind;

/// Whether a release of this name is one of the stack's, or could become so.
pub(super) fn is_for(stack: &ClusterStack, namespace: &str, release: &str) -> bool {
    let tag = release.parse::<ReleaseTag>().ok();
    let stem = stack.spec.stem().ok();
    stack.namespace().as_deref() == Some(namespace)
        && stem.is_some()
        && stem.as_ref() == tag.as_ref().map(ReleaseTag::stem)
}

/// Whether a stack has its templates of this kind, or the objects that are made of them are of it.
pub(super) fn is_provided_by(stack: &ClusterStack, kind: &GroupKind) -> bool {
    template_kind(stack).is_some_and(|template| {
        template == *kind || template.group == kind.group && release_kind(&template.kind) == Some(kind.kind.as_str())
    })
}

/// Whether this is the template of a stack.
pub(super) fn names_template(stack: &ClusterStack, kind: &GroupKind, (namespace, name): (&str, &str)) -> bool {
    let named = stack
        .spec
        .provider_ref
        .as_ref()
        .and_then(|reference| reference.name.as_deref());
    stack.namespace().as_deref() == Some(namespace)
        && named == Some(name)
        && template_kind(stack).as_ref() == Some(kind)
}

/// Whether a stack hangs on kinds of one of these groups.
pub(super) fn stack_names_group(stack: &ClusterStack, groups: &BTreeSet<String>) -> bool {
    template_kind(stack).is_some_and(|kind| groups.contains(&kind.group))
}

/// Whether a release hangs on kinds of one of these groups. One that has no inventory yet may be about to use any kind.
pub(super) fn release_names_group(release: &ClusterStackRelease, groups: &BTreeSet<String>) -> bool {
    let rows = release
        .status
        .as_ref()
        .map(|status| status.resources.as_slice())
        .unwrap_or_default();
    let marked = release.annotations().get(labels::CONTAINS_GROUP_KINDS);
    let marked = labels::parse_group_kinds(marked.map(String::as_str).unwrap_or_default());
    let provider = release.spec.provider_ref.as_ref().and_then(group_kind);
    rows.is_empty()
        || rows.iter().any(|row| groups.contains(&row.group))
        || marked.into_iter().any(|(group, _)| groups.contains(&*group))
        || provider.is_some_and(|kind| groups.contains(&kind.group))
}

fn template_kind(stack: &ClusterStack) -> Option<GroupKind> {
    stack.spec.provider_ref.as_ref().and_then(group_kind)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PROVIDER: &str = "infrastructure.clusterstack.x-k8s.io";

    fn stack(provider: &str) -> ClusterStack {
        let reference = json!({
            "apiVersion": format!("{PROVIDER}/v1"), "kind": format!("{provider}ClusterStackReleaseTemplate"), "name": "images",
        });
        serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
            "metadata": { "name": "harbor", "namespace": "fleet" },
            "spec": { "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "providerRef": reference },
        }))
        .expect("a stack")
    }

    fn release(groups: &[&str], provider: &Value) -> ClusterStackRelease {
        let row = |group: &&str| json!({ "group": group, "kind": "Any", "name": "a" });
        let rows: Vec<Value> = groups.iter().map(row).collect();
        serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": {
                "name": "docker-harbor-1-34-v1", "namespace": "fleet",
                "annotations": { labels::CONTAINS_GROUP_KINDS: "Marked.marked.example.org" },
            },
            "spec": { "providerRef": provider }, "status": { "resources": rows },
        }))
        .expect("a release")
    }

    fn groups(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_release_concerns_the_stacks_of_its_namespace_that_can_have_it() {
        let stack = stack("Docker");
        for (namespace, release, concerned) in [
            ("fleet", "docker-harbor-1-34-v1", true),
            ("fleet", "docker-harbor-1-34-v0-sha-ab", true),
            ("fleet", "docker-harbor-1-35-v1", false),
            ("fleet", "docker-ferrol-1-34-v1", false),
            ("depot", "docker-harbor-1-34-v1", false),
            ("fleet", "by-hand", false),
        ] {
            assert_eq!(is_for(&stack, namespace, release), concerned, "{namespace}/{release}");
        }
    }

    #[test]
    fn objects_of_a_provider_concern_the_stacks_that_name_it() {
        let stack = stack("Docker");
        let kind = |kind: &str| GroupKind::new(PROVIDER, kind);
        for (template, name, concerned) in [
            ("DockerClusterStackReleaseTemplate", "images", true),
            ("DockerClusterStackReleaseTemplate", "others", false),
            ("OpenStackClusterStackReleaseTemplate", "images", false),
        ] {
            assert_eq!(
                names_template(&stack, &kind(template), ("fleet", name)),
                concerned,
                "{template} {name}"
            );
            assert!(!names_template(&stack, &kind(template), ("depot", name)));
        }
        for (of, concerned) in [
            ("DockerClusterStackReleaseTemplate", true),
            ("DockerClusterStackRelease", true),
            ("OpenStackClusterStackRelease", false),
            ("OpenStackClusterStackReleaseTemplate", false),
        ] {
            assert_eq!(is_provided_by(&stack, &kind(of)), concerned, "{of}");
        }
    }

    #[test]
    fn a_crd_concerns_who_has_or_wants_kinds_of_its_group() {
        let provider = json!({ "apiVersion": format!("{PROVIDER}/v1"), "kind": "DockerClusterStackRelease" });
        let installed = release(&["cluster.x-k8s.io", ""], &provider);
        for (group, concerned) in [
            ("cluster.x-k8s.io", true),
            ("marked.example.org", true),
            (PROVIDER, true),
            ("foreign.example.org", false),
            ("x-k8s.io", false),
        ] {
            assert_eq!(release_names_group(&installed, &groups(&[group])), concerned, "{group}");
        }
        assert!(!release_names_group(&installed, &groups(&[])));
        assert!(release_names_group(
            &release(&[], &Value::Null),
            &groups(&["foreign.example.org"])
        ));
        let stack = stack("Docker");
        assert!(stack_names_group(&stack, &groups(&["foreign.example.org", PROVIDER])));
        assert!(!stack_names_group(
            &stack,
            &groups(&["cluster.x-k8s.io", "foreign.example.org"])
        ));
    }
}
