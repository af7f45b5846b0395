use std::collections::BTreeMap;

use proptest::prelude::{ProptestConfig, proptest};
use proptest::test_runner::RngSeed;
use serde_json::json;

use super::{Finding, Severity, check};
use crate::{
    schemas::{ObjectKind, Schemas},
    syntax::{parse, tests::words},
};

fn objects() -> BTreeMap<String, ObjectKind> {
    [
        ("d", "apps/v1", "Deployment"),
        ("s", "v1", "Service"),
        ("p", "v1", "Pod"),
        ("r", "example.org/v1", "Ring"),
        ("u", "example.org/v1", "Unknown"),
    ]
    .into_iter()
    .map(|(key, version, kind)| (key.to_owned(), ObjectKind::new(version, kind)))
    .collect()
}

fn schemas() -> Schemas {
    with_rings(Schemas::built_in())
}

fn with_rings(mut schemas: Schemas) -> Schemas {
    schemas.add_definition(json!({
        "kind": "CustomResourceDefinition",
        "spec": {"group": "example.org", "names": {"kind": "Ring"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": {
                    "mode": {"type": "string", "enum": ["Fast", "Safe"]},
                    "parts": {"type": "array", "items": {"type": "object", "properties": {"state": {"type": "string", "enum": ["Ready", "Gone"]}}}},
                    "port": {"x-kubernetes-int-or-string": true},
                    "share": {"type": "number"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "boolean"}}}
                }}
            }
        }}}]}
    }));
    schemas
}

fn findings(text: &str) -> Vec<Finding> {
    let expression = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    check(&expression, &objects(), &schemas())
}

/// The only finding, as `line:column severity path: message`.
fn told(text: &str) -> String {
    let found = findings(text);
    let [finding] = found.as_slice() else {
        panic!("{text}: {found:#?}")
    };
    let Finding {
        severity,
        position,
        path,
        message,
    } = finding;
    format!("{}:{} {severity:?} {path}: {message}", position.line, position.column)
}

#[test]
fn what_is_right_leaves_nothing_to_say() {
    for text in [
        "d.spec.replicas == 1",
        "d.spec.replicas == d.status.readyReplicas && d.status.observedGeneration >= d.metadata.generation",
        "d.status.conditions.exists(c, c.type == 'Available' && c.status == \"True\")",
        "d.spec.template.spec.containers.all(c, c.ports.exists(p, p.containerPort == 53 || p.name == 'dns'))",
        "d.metadata.labels['app.kubernetes.io/name'] == 'a' && d.metadata.labels.app == 'a'",
        "d.metadata.labels.exists(key, key.startsWith('app')) && 'app' in d.metadata.labels",
        "d.metadata.labels.size() > 0 && d.status.conditions.size() > 0",
        "has(d.status.readyReplicas) && d.status.readyReplicas > 0",
        "size(s.spec.ports) > 0 && s.spec.ports[0].targetPort == 80 && s.spec.ports[0].targetPort == 'web'",
        "timestamp(d.metadata.creationTimestamp) < timestamp('2025-01-01T00:00:00Z') + duration('1h')",
        "p.status.phase in ['Running', 'Succeeded'] && p.status.phase != 'Failed'",
        "p.spec.containers[0].resources.limits.memory == '1Gi'",
        "d.spec.replicas == null || d.spec.replicas in [1, 2]",
        "r.spec.mode == 'Fast' && r.spec.share > 1 && r.spec.share < 0.5 && r.spec.half.known && r.metadata.name == 'x' && r.kind == 'Ring'",
        "d.status.conditions.filter(c, c.status == 'True').map(c, c.type).all(t, t.size() > 3)",
        "double(d.spec.replicas) * 1.5 > 2.0 && int(s.spec.clusterIP) > -1",
        "d.spec.replicas > 1 ? d.status.readyReplicas == 2 : true",
        "type(d.spec.replicas) == int && dyn(1) == 1.0",
        "true",
    ] {
        assert_eq!(findings(text), [], "{text}");
    }
}

#[test]
fn a_field_that_no_object_has_is_an_error_with_its_path_and_what_may_be_meant() {
    for (text, expected) in [
        (
            "d.spec.replica == 1",
            "1:1 Error d.spec.replica: there is no field replica: did you mean replicas",
        ),
        (
            "true &&\n  d.status.conditions.exists(c, c.stats == 'True')",
            "2:33 Error d.status.conditions[].stats: there is no field stats: did you mean status",
        ),
        (
            "d.spec.template.spec.container[0].name == 'a'",
            "1:1 Error d.spec.template.spec.container: there is no field container: did you mean containers?",
        ),
        (
            "d['spec'].replicsa == 1",
            "1:1 Error d['spec'].replicsa: there is no field replicsa: did you mean replicas",
        ),
        (
            "r.spec.mood == 'Fast'",
            "1:1 Error r.spec.mood: there is no field mood: did you mean mode",
        ),
        (
            "r.metadata.nam == 'x'",
            "1:1 Error r.metadata.nam: there is no field nam: did you mean name",
        ),
        (
            "d.spec.replicas.wanted == 1",
            "1:1 Error d.spec.replicas.wanted: wanted is asked of an integer, which has no fields",
        ),
        (
            "d.status.conditions.status == 'True'",
            "1:1 Error d.status.conditions.status: status is asked of a list: ask its elements, with exists() or all()",
        ),
    ] {
        let told = told(text);
        assert!(told.starts_with(expected), "{text}:\n{told}\n{expected}");
    }
}

#[test]
fn a_literal_of_the_wrong_type_is_an_error() {
    for (text, expected) in [
        (
            "d.spec.replicas == \"1\"",
            "1:1 Error d.spec.replicas == \"1\": compares an integer with a string, which are never equal",
        ),
        (
            "d.metadata.name != 1",
            "1:1 Error d.metadata.name != 1: compares a string with an integer, which are always different",
        ),
        (
            "d.spec.replicas < '2'",
            "1:1 Error d.spec.replicas < '2': has an integer and a string around <, which do not fit",
        ),
        (
            "d.spec.paused == 'true'",
            "1:1 Error d.spec.paused == 'true': compares a boolean with a string, which are never equal",
        ),
        (
            "1 == 1.0",
            "1:1 Error 1 == 1.0: compares an integer with a number with a fraction, which are never equal",
        ),
        (
            "d.spec.replicas + '1' == '11'",
            "1:1 Error d.spec.replicas + '1': has an integer and a string around +, which do not fit",
        ),
        (
            "'x' in d.spec.replicas",
            "1:1 Error 'x' in d.spec.replicas: looks for a string in an integer, where it never is",
        ),
        (
            "d.spec.replicas in ['1', '2']",
            "1:1 Error d.spec.replicas in ['1', '2']: looks for an integer in a string, where it never is",
        ),
        (
            "r.spec.port == true",
            "1:1 Error r.spec.port == true: compares an integer or a string with a boolean, which are never equal",
        ),
        (
            "d.status.conditions.exists(c, c.status == true)",
            "1:31 Error c.status == true: compares a string with a boolean, which are never equal",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn the_keys_of_a_map_are_texts() {
    for (text, expected) in [
        (
            "1 in d.metadata.labels",
            "1:1 Error 1 in d.metadata.labels: looks for an integer in a string, where it never is",
        ),
        (
            "d.metadata.labels.exists(key, key == 1)",
            "1:31 Error key == 1: compares a string with an integer, which are never equal",
        ),
        (
            "d.spec.exists(key, key == 1)",
            "1:20 Error key == 1: compares a string with an integer, which are never equal",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn what_an_operand_cannot_be_asked_is_an_error() {
    for (text, expected) in [
        (
            "d.spec.replicas.all(x, true)",
            "1:1 Error d.spec.replicas: is an integer and has no elements to walk over",
        ),
        (
            "!d.spec.replicas",
            "1:2 Error d.spec.replicas: is an integer and not true or false: compare it with something",
        ),
        (
            "d.spec.replicas && true",
            "1:1 Error d.spec.replicas: is an integer and not true or false: compare it with something",
        ),
        (
            "d.spec.replicas",
            "1:1 Error d.spec.replicas: the expression gives an integer and not true or false: compare it with something",
        ),
        (
            "d.spec.replicas.contains('1')",
            "1:1 Error d.spec.replicas: is an integer, of which there is no contains()",
        ),
        (
            "d.metadata.name.matches('[')",
            "1:25 Error '[': is no valid pattern, or a too large one",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn a_value_that_a_field_cannot_have_is_an_error_where_the_whole_needs_it() {
    for (text, expected) in [
        (
            "r.spec.mode == 'Fats'",
            "1:1 Error r.spec.mode: is never \"Fats\" but one of Fast, Safe: did you mean Fast?",
        ),
        (
            "d.spec.replicas == 1 && ('Slow' == r.spec.mode && true)",
            "1:36 Error r.spec.mode: is never \"Slow\" but one of Fast, Safe",
        ),
        (
            "r.spec.mode in ['Slow', 'fast']",
            "1:1 Error r.spec.mode: is never \"Slow\" or \"fast\" but one of Fast, Safe: did you mean Fast?",
        ),
        (
            "r.spec.parts.exists(p, p.state == 'Redy')",
            "1:24 Error r.spec.parts[].state: is never \"Redy\" but one of Ready, Gone: did you mean Ready?",
        ),
        (
            "r.spec.parts.exists_one(p, p.state == 'Redy')",
            "1:28 Error r.spec.parts[].state: is never \"Redy\" but one of Ready, Gone: did you mean Ready?",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    assert!(told("p.status.phase == 'Runing'").ends_with("did you mean Running?"));
}

#[test]
fn a_value_that_a_field_cannot_have_is_a_note_where_the_whole_may_hold_without_it() {
    let never = "is never \"Slow\" but one of Fast, Safe";
    for text in [
        "r.spec.mode != 'Slow'",
        "!(r.spec.mode == 'Slow')",
        "r.spec.mode in ['Slow', 'Fast']",
        "r.spec.mode in ['Slow', d.metadata.name]",
        "r.spec.mode == 'Slow' || r.spec.mode == 'Fast'",
        "(r.spec.mode == 'Slow') == false",
        "r.spec.mode == 'Slow' ? false : true",
        "d.status.conditions.all(c, r.spec.mode == 'Slow')",
        "true && !(r.spec.mode in ['Slow'])",
    ] {
        let told = told(text);
        assert!(
            told.contains(" Note r.spec.mode: ") && told.ends_with(never),
            "{text}: {told}"
        );
    }
    for text in ["s.spec.type != ''", "'' != r.spec.mode"] {
        assert_eq!(findings(text), [], "{text}");
    }
}

#[test]
fn variables_and_functions_that_do_not_exist_are_errors() {
    for (text, expected) in [
        (
            "deploy.spec.replicas == 1",
            "1:1 Error deploy: no object of the condition has the key deploy",
        ),
        (
            "D.spec.replicas == 1",
            "1:1 Error D: no object of the condition has the key D: did you mean d",
        ),
        (
            "siz(d.metadata.name) == 1",
            "1:1 Error siz(d.metadata.name): there is no function siz(): did you mean size",
        ),
        (
            "d.metadata.name.startWith('a')",
            "1:1 Error d.metadata.name.startWith('a'): there is no function startWith(): did you mean startsWith?",
        ),
        (
            "contains(d.metadata.name, 'a')",
            "1:1 Error contains(d.metadata.name, 'a'): contains() is called on something, with a dot before it",
        ),
        (
            "d.metadata.name.string() == 'a'",
            "1:1 Error d.metadata.name.string(): string() is called with all its arguments in brackets",
        ),
        (
            "d.status.conditions.all(c)",
            "1:1 Error d.status.conditions.all(c): all() takes a name for the element",
        ),
        ("size() == 1", "1:1 Error size(): size() takes 1 arguments and has 0"),
    ] {
        let found = findings(text).into_iter().next().expect(text);
        let told = format!(
            "{}:{} {:?} {}: {}",
            found.position.line, found.position.column, found.severity, found.path, found.message
        );
        assert!(told.starts_with(expected), "{text}:\n{told}");
    }
}

#[test]
fn what_no_schema_describes_passes_with_one_note() {
    for (text, expected) in [
        (
            "u.spec.anything == 1 && u.status.other == 'x'",
            "1:1 Note u: no schema of Unknown in example.org/v1 is known: its fields are not checked",
        ),
        (
            "r.spec.raw.any.thing == 1",
            "1:1 Note r.spec.raw: the schema does not say what is in it: not checked",
        ),
        (
            "r.spec.half.other == 1",
            "1:1 Note r.spec.half.other: the schema does not describe it, and allows it: not checked",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn what_a_newer_kubernetes_may_have_is_noted_and_what_it_cannot_have_is_an_error() {
    let found = |text: &str, version| {
        let expression = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        check(&expression, &objects(), &with_rings(Schemas::of_kubernetes(version)))
    };
    for text in [
        "d.spec.newField.deeper == 1",
        "d.metadata.newField == 'x'",
        "r.metadata.newField == 'x'",
        "d.spec.template.spec.containers.all(c, c.newField)",
        "p.status.phase == 'Napping'",
        "p.status.phase in ['Dozing', 'Napping']",
    ] {
        let newer = found(text, (1, 99));
        let [finding] = newer.as_slice() else {
            panic!("{text}: {newer:#?}")
        };
        assert_eq!(finding.severity, Severity::Note, "{text}");
        assert!(
            finding.message.contains("Kubernetes v1."),
            "{text}: {}",
            finding.message
        );
        for version in [(1, 30), (1, 36)] {
            let same = found(text, version);
            assert!(
                same.len() == 1 && same[0].severity == Severity::Error,
                "{text}: {same:#?}"
            );
        }
    }
    for text in [
        "d.spec.replicas == '1'",
        "d.spec.replicas.wanted == 1",
        "dd.spec.replicas == 1",
    ] {
        let newer = found(text, (1, 99));
        assert!(
            newer.iter().any(|finding| finding.severity == Severity::Error),
            "{text}: {newer:#?}"
        );
    }
}

#[test]
fn a_field_that_the_expression_asks_for_first_is_only_noted() {
    for text in [
        "!has(d.status.newField) || d.status.newField == 1",
        "has(d.status.newField) && d.status.newField.deeper.x == 'y'",
        "d.status.conditions.all(c, !has(c.newField) || c.newField == 1)",
    ] {
        let found = findings(text);
        assert!(
            !found.is_empty() && found.iter().all(|finding| finding.severity == Severity::Note),
            "{text}: {found:#?}"
        );
    }
    assert_eq!(
        findings("has(d.status.newField) && d.status.newFieldOther == 1").len(),
        2
    );
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_is_looked_at_to_its_end(text in words()) {
        if let Ok(expression) = parse(&text.replace(".a", ".spec").replace('a', "d")) {
            check(&expression, &objects(), &schemas());
        }
    }
}
