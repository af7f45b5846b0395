use serde_json::json;

use super::{ObjectKind, Place, Schemas, Shape, part_of, table, table::Word};

/// The shape of a path below a kind.
fn shape<'s>(schemas: &'s Schemas, version: &str, kind: &str, path: &str) -> Shape<'s> {
    let mut place = schemas.of(&ObjectKind::new(version, kind)).expect(kind);
    for part in path.split('.') {
        place = match (place.shape(), part) {
            (Shape::List(element), "[]") | (Shape::Map(element), "{}") => element,
            (Shape::Object(fields), name) => fields
                .get(name)
                .unwrap_or_else(|| panic!("{kind}: no {name} in {path}")),
            (other, _) => panic!("{kind}: {part} of {other:?}"),
        };
    }
    place.shape()
}

#[test]
fn kinds_that_stages_wait_for_are_in_the_table() {
    let schemas = Schemas::built_in();
    for (version, kind) in [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "Node"),
        ("v1", "Secret"),
        ("v1", "ConfigMap"),
        ("v1", "Namespace"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("storage.k8s.io/v1", "CSIDriver"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy/v1", "PodDisruptionBudget"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("coordination.k8s.io/v1", "Lease"),
    ] {
        let name = shape(&schemas, version, kind, "metadata.name");
        assert!(matches!(name, Shape::Text(_)), "{kind}: {name:?}");
    }
    assert!(schemas.of(&ObjectKind::new("apps/v1", "Deploymen")).is_none());
    assert!(schemas.of(&ObjectKind::new("v1", "Deployment")).is_none());
}

#[test]
fn the_table_knows_the_types_of_fields() {
    let schemas = Schemas::built_in();
    let of = |path| shape(&schemas, "apps/v1", "Deployment", path);
    assert!(matches!(of("spec.replicas"), Shape::Int));
    assert!(matches!(of("spec.paused"), Shape::Bool));
    assert!(matches!(of("status.conditions.[].status"), Shape::Text(_)));
    assert!(matches!(of("metadata.labels.{}"), Shape::Text(_)));
    assert!(matches!(of("metadata.creationTimestamp"), Shape::Text(_)));
    assert!(matches!(of("spec.strategy.rollingUpdate.maxSurge"), Shape::IntOrText));
    assert!(matches!(
        of("spec.template.spec.containers.[].resources.limits.{}"),
        Shape::Text(_)
    ));
    assert!(matches!(
        of("spec.template.spec.containers.[].ports.[].containerPort"),
        Shape::Int
    ));
}

#[test]
fn every_type_that_the_table_names_is_in_it() {
    let text = include_str!("kubernetes.txt");
    assert!(text.len() < 200 * 1024, "{} bytes", text.len());
    let words = text.lines().filter_map(|line| line.strip_prefix(' ')?.split_once(' '));
    let mut count = 0;
    for (_, word) in words {
        let mut place = Place::Table(Word::of(word));
        while let Shape::List(inner) | Shape::Map(inner) = place.shape() {
            place = inner;
        }
        let Place::Table(word) = place else { continue };
        let is_any = format!("{word:?}").contains("\"any\"");
        assert!(is_any || !matches!(word.shape(), Shape::Any), "{word:?}");
        count += 1;
    }
    assert!(count > 2000, "{count}");
}

#[test]
fn what_an_api_server_publishes_comes_before_the_table_and_definitions_before_both() {
    let kind = ObjectKind::new("apps/v1", "Deployment");
    let mut schemas = Schemas::built_in();
    schemas.add_openapi(json!({"components": {"schemas": {
        "a.Deployment": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
            "properties": {
                "metadata": {"allOf": [{"$ref": "#/components/schemas/meta"}], "default": {}},
                "spec": {"$ref": "#/components/schemas/spec"},
                "circle": {"$ref": "#/components/schemas/circle"}
            }
        },
        "spec": {"type": "object", "properties": {"new": {"oneOf": [{"type": "string"}, {"type": "number"}]}}},
        "circle": {"$ref": "#/components/schemas/circle"}
    }}}));
    assert!(matches!(
        shape(&schemas, "apps/v1", "Deployment", "spec.new"),
        Shape::Text(_)
    ));
    assert!(matches!(shape(&schemas, "apps/v1", "Deployment", "circle"), Shape::Any));
    schemas.add_definition(json!({"spec": {"group": "apps", "names": {"kind": "Deployment"}, "versions": [
        {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"own": {"type": "array", "items": {"type": "boolean"}}}}}}
    ]}}));
    assert!(matches!(
        shape(&schemas, "apps/v1", "Deployment", "own.[]"),
        Shape::Bool
    ));
    assert!(schemas.of(&kind).is_some());
}

#[test]
fn an_integer_or_string_is_known_as_an_api_server_publishes_it() {
    let mut schemas = Schemas::without_table();
    schemas.add_openapi(json!({"components": {"schemas": {
        "ring": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Ring"}],
            "properties": {"port": {"$ref": "#/components/schemas/intstr.IntOrString"}}
        },
        "intstr.IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    }}}));
    let port = shape(&schemas, "example.org/v1", "Ring", "port");
    assert!(matches!(port, Shape::IntOrText), "{port:?}");
}

#[test]
fn each_version_of_a_definition_has_the_fields_of_its_own() {
    let version = |name: &str, field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        json!({"name": name, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let versions = [version("v1", "old"), version("v2", "new")];
    let mut schemas = Schemas::built_in();
    schemas.add_definition(json!({"spec": {"group": "example.org", "names": {"kind": "Ring"}, "versions": versions}}));
    for (version, field) in [("example.org/v1", "old"), ("example.org/v2", "new")] {
        let Shape::Object(fields) = shape(&schemas, version, "Ring", "spec") else {
            panic!("{version}: spec is no object");
        };
        assert_eq!(fields.names().collect::<Vec<_>>(), [field], "{version}");
    }
    assert!(schemas.of(&ObjectKind::new("example.org/v3", "Ring")).is_none());
}

#[test]
fn what_is_no_definition_and_no_document_describes_nothing() {
    let mut schemas = Schemas::built_in();
    for nonsense in [
        json!(null),
        json!([1]),
        json!({"spec": 1}),
        json!({"spec": {"group": "x", "names": {"kind": "Y"}, "versions": 3}}),
    ] {
        schemas.add_definition(nonsense.clone());
        schemas.add_openapi(nonsense);
    }
    assert!(schemas.of(&ObjectKind::new("x/v1", "Y")).is_none());
    assert!(schemas.of(&ObjectKind::new("v1", "Pod")).is_some());
}

#[test]
fn kinds_are_in_namespaces_or_not_as_the_table_and_definitions_say() {
    let mut schemas = Schemas::built_in();
    let of = |schemas: &Schemas, version: &str, kind: &str| schemas.is_namespaced(&ObjectKind::new(version, kind));
    for (version, kind, is_namespaced) in [
        ("v1", "Pod", true),
        ("v1", "Event", true),
        ("apps/v1", "DaemonSet", true),
        ("rbac.authorization.k8s.io/v1", "Role", true),
        ("v1", "Namespace", false),
        ("v1", "Node", false),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ] {
        assert_eq!(of(&schemas, version, kind), Some(is_namespaced), "{kind}");
    }
    // What is only ever asked has no objects.
    assert_eq!(of(&schemas, "authentication.k8s.io/v1", "TokenReview"), None);
    assert!(Schemas::kinds_of_kubernetes().any(|known| known == ("apps/v1", "DaemonSet")));
    assert!(Schemas::kinds_of_kubernetes().all(|(version, kind)| schemas.describes(&ObjectKind::new(version, kind))));
    assert_eq!(of(&schemas, "example.org/v1", "Ring"), None);
    for (scope, is_namespaced) in [("Namespaced", true), ("Cluster", false)] {
        let names = json!({"kind": "Ring"});
        schemas.add_definition(json!({"spec": {"group": "example.org", "names": names, "scope": scope}}));
        assert_eq!(of(&schemas, "example.org/v1", "Ring"), Some(is_namespaced));
    }
}

#[test]
fn the_table_says_of_which_kubernetes_it_is() {
    let (major, minor) = table::version().expect("a version");
    assert!(major == 1 && minor >= 36, "{major}.{minor}");
    let named = table::named_version().expect("a version");
    assert!(named.starts_with(&format!("v{major}.{minor}.")), "{named}");
}

#[test]
fn what_an_api_server_says_of_metadata_comes_before_the_table_and_what_a_definition_says_does_not() {
    let metadata = json!({"type": "object", "properties": {"newer": {"type": "boolean"}}});
    let mut schemas = Schemas::without_table();
    schemas.add_openapi(json!({"components": {"schemas": {"ring": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Ring"}],
        "properties": {"metadata": metadata},
    }}}}));
    assert!(matches!(
        shape(&schemas, "example.org/v1", "Ring", "metadata.newer"),
        Shape::Bool
    ));
    schemas.add_definition(
        json!({"spec": {"group": "example.org", "names": {"kind": "Ring"}, "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"metadata": metadata}}}}
        ]}}),
    );
    assert!(matches!(
        shape(&schemas, "example.org/v1", "Ring", "metadata.name"),
        Shape::Text(_)
    ));
    assert!(schemas.of(&ObjectKind::new("v1", "Pod")).is_none());
}

#[test]
fn the_part_of_a_document_that_is_about_a_kind_says_the_same_of_it_and_nothing_of_others() {
    let ring = || ObjectKind::new("example.org/v1", "Ring");
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let of = |kind: &str| json!([{ "group": "example.org", "version": "v1", "kind": kind }]);
    let document = json!({ "paths": { "/apis": {} }, "components": { "schemas": {
        "Ring": {
            "description": "A ring.", "type": "object", "x-kubernetes-group-version-kind": of("Ring"),
            "properties": {
                "spec": { "allOf": [reference("Spec")], "default": {} },
                "description": { "type": "string", "description": "What it is." },
            },
        },
        "Spec": { "type": "object", "properties": {
            "stones": { "type": "array", "items": reference("Stone") }, "inner": reference("Spec"), "lost": reference("Nothing"),
        } },
        "Stone": { "type": "object", "properties": { "carats": { "type": "integer" } } },
        "Chain": { "type": "object", "x-kubernetes-group-version-kind": of("Chain"), "properties": { "spec": reference("Links") } },
        "Links": { "type": "object" },
    } } });
    let part = part_of(document.clone(), &[ring(), ObjectKind::new("v1", "Ring")]).expect("a ring");
    let names: Vec<_> = part["components"]["schemas"]
        .as_object()
        .expect("schemas")
        .keys()
        .collect();
    assert_eq!(names, ["Ring", "Spec", "Stone"]);
    assert!(!part.to_string().contains("What it is"), "{part}");
    let mut schemas = Schemas::without_table();
    schemas.add_openapi(part);
    let of = |path| shape(&schemas, "example.org/v1", "Ring", path);
    assert!(matches!(of("spec.inner.stones.[].carats"), Shape::Int));
    assert!(matches!(of("description"), Shape::Text(_)));
    assert!(matches!(of("spec.lost"), Shape::Any));
    for (version, kind) in [("example.org/v2", "Ring"), ("v1", "Ring"), ("example.org/v1", "Bell")] {
        assert_eq!(part_of(document.clone(), &[ObjectKind::new(version, kind)]), None);
    }
    assert_eq!(part_of(json!([]), &[ring()]), None);
}
