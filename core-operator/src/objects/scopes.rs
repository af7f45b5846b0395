//! Whether the objects of a kind have namespaces where discovery does not say: the definitions that an owner brings tell it, and what it has applied
//! before. Pure.

use std::collections::BTreeMap;

use crds::resource::Resource;
use operator_kit::object::GroupKind;
use planning::objects::KindScope;
use planning::stored_data::is_definition;
use serde_json::Value;

/// What is known of kinds.
pub(crate) type Scopes = BTreeMap<GroupKind, KindScope>;

/// What the definitions among these objects say of their kinds.
pub(super) fn brought<'a>(objects: impl Iterator<Item = &'a Value>) -> Scopes {
    objects.filter_map(defined).collect()
}

fn defined(object: &Value) -> Option<(GroupKind, KindScope)> {
    let text = |path: &str| object.pointer(path)?.as_str();
    let group = text("/apiVersion")?.split_once('/')?.0;
    if !is_definition(&GroupKind::new(group, text("/kind")?)) {
        return None;
    }
    let scope = match text("/spec/scope")? {
        "Namespaced" => KindScope::Namespaced,
        "Cluster" => KindScope::ClusterWide,
        _ => return None,
    };
    Some((GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?), scope))
}

/// What an inventory says of a kind: how its objects were addressed before. So they are not taken for others, and the ones before for leftovers,
/// only because discovery fails.
pub(super) fn applied(rows: &[Resource], kind: &GroupKind) -> KindScope {
    let rows = rows
        .iter()
        .filter(|row| row.group == kind.group && row.kind == kind.kind);
    let mut without: Vec<bool> = rows.map(|row| row.namespace.is_empty()).collect();
    without.dedup();
    match without[..] {
        [true] => KindScope::ClusterWide,
        [false] => KindScope::Namespaced,
        _ => KindScope::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(kind: &str, scope: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "any" },
            "spec": { "group": "harbor.example.org", "scope": scope, "names": { "kind": kind } },
        })
    }

    #[test]
    fn definitions_tell_whether_their_kinds_have_namespaces_before_they_are_served() {
        let mut stranger = definition("Crane", "Namespaced");
        stranger["apiVersion"] = json!("example.org/v1");
        let objects = [
            definition("Quay", "Namespaced"),
            definition("Sea", "Cluster"),
            definition("Fog", "Everywhere"),
            stranger,
            json!({}),
        ];
        let of = |kind: &str| GroupKind::new("harbor.example.org", kind);
        let known = [(of("Quay"), KindScope::Namespaced), (of("Sea"), KindScope::ClusterWide)];
        assert_eq!(brought(objects.iter()), Scopes::from(known));
    }

    #[test]
    fn an_inventory_tells_how_the_objects_of_a_kind_were_addressed() {
        let row = |kind: &str, namespace: &str| Resource {
            group: "harbor.example.org".into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: "a".into(),
            ..Resource::default()
        };
        let rows = [
            row("Quay", "fleet"),
            row("Quay", "fleet"),
            row("Sea", ""),
            row("Fog", ""),
            row("Fog", "fleet"),
        ];
        let of = |kind: &str| applied(&rows, &GroupKind::new("harbor.example.org", kind));
        assert_eq!(of("Quay"), KindScope::Namespaced);
        assert_eq!(of("Sea"), KindScope::ClusterWide);
        assert_eq!((of("Fog"), of("Crane")), (KindScope::Unknown, KindScope::Unknown));
    }
}
