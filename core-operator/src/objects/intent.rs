//! What is applied for one rendered object: its body with our marks, and the digest of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::labels;
use crds::resource::Resource;
use planning::digest::digest_of_everything;
use planning::object_key::{GroupKind, ObjectKey, ObjectRef};
use planning::objects::{Intent, KindScope};
use planning::waves::wave_of;
use serde_json::{Map, Value};

use super::place::Place;
use super::scopes::{self, Scopes};

/// How the objects of an owner are marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'a> {
    /// Where those are that name no namespace, of kinds that have some.
    pub(crate) namespace: &'a str,
    /// The mark of the owner.
    pub(crate) part_of: &'a str,
    /// The chart that they come from, where the owner has several.
    pub(crate) stage: Option<&'a str>,
}

/// The objects of one owner, ready to be applied.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    /// Which objects, for the plan.
    pub(crate) planned: BTreeMap<ObjectKey, Intent>,
    /// Their bodies.
    pub(crate) bodies: BTreeMap<ObjectKey, Value>,
    /// Whether the objects of kinds that the owner brings have namespaces.
    pub(crate) brought: Scopes,
    /// The kinds of which discovery did not say whether their objects have namespaces.
    pub(crate) unknown: BTreeSet<GroupKind>,
}

/// What a rendering asks for. The bodies are rendered again when they are needed.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    /// What it was made from.
    pub(crate) made_from: String,
    pub(crate) intents: Arc<BTreeMap<ObjectKey, Intent>>,
    /// Whether the objects of kinds that the owner brings have namespaces.
    pub(crate) brought: Scopes,
    /// The kinds of which discovery did not say whether their objects have namespaces. When it does, objects may turn out to have other keys.
    pub(crate) unknown: BTreeSet<GroupKind>,
}

impl Remembered {
    /// Whether it is of these bytes, and discovery, which says this now, does not tell more of its kinds than it did.
    pub(crate) fn holds(&self, made_from: &str, scope_of: impl Fn(&GroupKind) -> KindScope) -> bool {
        self.made_from == made_from && self.unknown.iter().all(|kind| scope_of(kind) == KindScope::Unknown)
    }
}

impl Intents {
    /// What is to be remembered of them, which were made from this.
    pub(crate) fn remembered(&self, made_from: String) -> Remembered {
        Remembered {
            made_from,
            intents: Arc::new(self.planned.clone()),
            brought: self.brought.clone(),
            unknown: self.unknown.clone(),
        }
    }
}

impl Place {
    /// Marks rendered objects as parts of an owner. `rows` are its inventory: where nothing else tells whether a kind has namespaces, its objects are
    /// addressed as they were before.
    pub(crate) async fn intents(
        &self,
        rendered: impl Iterator<Item = &Value> + Clone + Send,
        marks: Marks<'_>,
        rows: &[Resource],
    ) -> Intents {
        let brought = scopes::brought(rendered.clone());
        let (mut asked, mut scoped, mut unknown) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for kind in rendered.clone().filter_map(kind_of) {
            if !asked.insert(kind.clone()) {
                continue;
            }
            let served = self.kind(&kind).await.scope();
            if served == KindScope::Unknown {
                unknown.insert(kind.clone());
            }
            let scope = served
                .or_else(|| brought.get(&kind).copied().unwrap_or_default())
                .or_else(|| scopes::applied(rows, &kind));
            if scope == KindScope::ClusterWide {
                scoped.insert(kind);
            }
        }
        Intents {
            brought,
            unknown,
            ..intents(rendered, marks, |kind| scoped.contains(kind))
        }
    }
}

fn kind_of(body: &Value) -> Option<GroupKind> {
    let api_version = body.get("apiVersion")?.as_str()?;
    let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(GroupKind::new(group, body.get("kind")?.as_str()?))
}

/// Marks rendered objects as parts of their owner. `cluster_scoped` says of a kind whether its objects have no namespace.
fn intents<'a>(
    rendered: impl Iterator<Item = &'a Value>,
    marks: Marks<'_>,
    cluster_scoped: impl Fn(&GroupKind) -> bool,
) -> Intents {
    let mut intents = Intents::default();
    for value in rendered {
        let mut body = value.clone();
        let Some(object) = identify(&body, marks.namespace, &cluster_scoped) else {
            continue;
        };
        mark(&mut body, labels::INSTANCE, labels::INSTANCE_OWNED);
        mark_pod_template(&mut body);
        if let Some(stage) = marks.stage
            && let Some(annotations) = texts_at(&mut body, &["metadata"], "annotations")
        {
            annotations.insert(labels::STAGE.to_owned(), Value::from(stage));
        }
        let digest = digest_of_everything(&body);
        mark(&mut body, labels::PART_OF, marks.part_of);
        let wave = wave_of(&object.key.group_kind());
        let key = object.key.clone();
        intents.planned.insert(key.clone(), Intent { object, digest, wave });
        intents.bodies.insert(key, body);
    }
    intents
}

fn identify(body: &Value, namespace: &str, cluster_scoped: &impl Fn(&GroupKind) -> bool) -> Option<ObjectRef> {
    let api_version = body.get("apiVersion")?.as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupKind::new(group, body.get("kind")?.as_str()?);
    let own_namespace = body.pointer("/metadata/namespace").and_then(Value::as_str);
    let namespace = if cluster_scoped(&kind) {
        ""
    } else {
        own_namespace.unwrap_or(namespace)
    };
    let name = body.pointer("/metadata/name")?.as_str()?;
    Some(ObjectRef {
        version: version.to_owned(),
        key: ObjectKey::new(kind.group, kind.kind, namespace, name),
    })
}

fn mark(body: &mut Value, label: &str, value: &str) {
    if let Some(labels) = texts_at(body, &["metadata"], "labels") {
        labels.insert(label.to_owned(), Value::from(value));
    }
}

/// The label of the contract is on the Pods of these kinds too; adding it later would roll them.
fn mark_pod_template(body: &mut Value) {
    let kind = (
        body.get("apiVersion").and_then(Value::as_str),
        body.get("kind").and_then(Value::as_str),
    );
    let has_template = matches!(
        kind,
        (
            Some("apps/v1" | "extensions/v1beta1"),
            Some("Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        ) | (Some("batch/v1"), Some("Job"))
    );
    if has_template && let Some(labels) = texts_at(body, &["spec", "template", "metadata"], "labels") {
        labels.insert(labels::INSTANCE.to_owned(), Value::from(labels::INSTANCE_OWNED));
    }
}

/// The labels or annotations below a path, made where they are missing; `None` where something else than an object is in the way.
fn texts_at<'a>(body: &'a mut Value, path: &[&str], name: &str) -> Option<&'a mut Map<String, Value>> {
    let mut place = body;
    for step in path.iter().chain(&[name]) {
        let map = place.as_object_mut()?;
        let next = map.entry((*step).to_owned()).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        place = next;
    }
    place.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rendering_with_kinds_that_are_not_served_is_remembered_until_one_of_them_is() {
        let group = "harbor.example.org";
        let (one, other) = (GroupKind::new(group, "Quay"), GroupKind::new(group, "Crane"));
        let rendering = Remembered {
            made_from: "a".to_owned(),
            intents: Arc::default(),
            brought: Scopes::new(),
            unknown: BTreeSet::from([one, other.clone()]),
        };
        assert!(rendering.holds("a", |_| KindScope::Unknown));
        assert!(!rendering.holds("b", |_| KindScope::Unknown));
        for scope in [KindScope::ClusterWide, KindScope::Namespaced] {
            let one_is_served = |kind: &GroupKind| if *kind == other { scope } else { KindScope::Unknown };
            assert!(!rendering.holds("a", one_is_served), "{scope:?}");
        }
    }

    fn of(values: &[Value]) -> Intents {
        let marks = Marks {
            namespace: "fleet",
            part_of: "0123",
            stage: None,
        };
        intents(values.iter(), marks, |kind| kind.kind == "ClusterRole")
    }

    #[test]
    fn objects_of_an_owner_without_stages_get_no_annotations() {
        let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let marks = Marks {
            namespace: "fleet",
            part_of: "0123",
            stage: None,
        };
        let intents = intents([&note].into_iter(), marks, |_| false);
        let body = &intents.bodies[&ObjectKey::new("", "ConfigMap", "fleet", "a")];
        assert_eq!(body["metadata"].get("annotations"), None, "{body:#}");
    }

    #[test]
    fn objects_of_a_chart_say_which_one_it_is_and_are_others_where_it_is_another() {
        let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let key = ObjectKey::new("", "ConfigMap", "kube-system", "a");
        let of_stage = |stage: &str| {
            let marks = Marks {
                namespace: "kube-system",
                part_of: "0123",
                stage: Some(stage),
            };
            let intents = intents([&note].into_iter(), marks, |_| false);
            (
                intents.bodies[&key]["metadata"]["annotations"].clone(),
                intents.planned[&key].digest.clone(),
            )
        };
        let (annotations, digest) = of_stage("network");
        assert_eq!(annotations, json!({ "clusterstack.x-k8s.io/stage": "network" }));
        assert_ne!(of_stage("lighthouse").1, digest, "it is applied again");
    }

    #[test]
    fn every_object_carries_the_marks_of_its_owner() {
        let intents =
            of(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"own": "x"}}})]);
        let body = &intents.bodies[&ObjectKey::new("", "ConfigMap", "fleet", "a")];
        assert_eq!(
            body["metadata"]["labels"],
            json!({"own": "x", "clusterstack.x-k8s.io/instance": "owned", "clusterstack.x-k8s.io/part-of": "0123"})
        );
    }

    #[test]
    fn no_field_of_an_object_is_overlooked_for_its_name() {
        let digest = |field: &str, value: &str| {
            let intents = of(&[
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {field: value}}),
            ]);
            intents.planned[&ObjectKey::new("", "ConfigMap", "fleet", "a")]
                .digest
                .clone()
        };
        for field in planning::digest::VOLATILE_FIELDS {
            assert_ne!(digest(field, "one"), digest(field, "two"), "{field}");
            assert_eq!(digest(field, "one"), digest(field, "one"), "{field}");
        }
    }

    #[test]
    fn pods_of_workloads_carry_the_label_of_the_contract_only() {
        let intents = of(&[
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {}}}),
        ]);
        let body = &intents.bodies[&ObjectKey::new("apps", "Deployment", "fleet", "a")];
        assert_eq!(
            body["spec"]["template"]["metadata"]["labels"],
            json!({"clusterstack.x-k8s.io/instance": "owned"})
        );
    }

    #[test]
    fn objects_of_cluster_scoped_kinds_have_no_namespace() {
        let group = "rbac.authorization.k8s.io";
        let intents =
            of(&[json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "a"}})]);
        assert!(
            intents
                .planned
                .contains_key(&ObjectKey::new(group, "ClusterRole", "", "a"))
        );
    }
}
