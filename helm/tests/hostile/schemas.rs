//! Schemas that lead back to themselves, elsewhere, or to more work than values deserve.

use crate::build::{error, file, render, repeated};

/// What a schema says of some values.
fn checked(schema: &str, values: &str) -> Result<String, String> {
    render(vec![file("values.schema.json", schema), file("values.yaml", values)])
}

#[test]
fn cycles_of_references_are_told() {
    for schema in [
        r##"{"$ref": "#"}"##,
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##,
        r##"{"allOf": [{"$ref": "#"}]}"##,
        r##"{"$anchor": "a", "anyOf": [{"$ref": "#a"}]}"##,
        r##"{"$dynamicAnchor": "a", "$dynamicRef": "#a"}"##,
        r##"{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "$recursiveRef": "#"}"##,
    ] {
        let answer = checked(schema, "a: 1");
        assert!(
            answer
                .as_ref()
                .is_err_and(|error| error.contains("causing reference cycle")),
            "{schema}: {answer:?}"
        );
    }
}

#[test]
fn schemas_of_trees_follow_the_values() {
    let schema = r##"{"type": "object", "additionalProperties": {"$ref": "#"}}"##;
    assert!(checked(schema, "a: {b: {c: {}}}").is_ok());
    let error = checked(schema, "a: {b: {c: 1}}").unwrap_err();
    assert!(error.contains("at '/a/b/c': got number, want object"), "{error}");
}

#[test]
fn nothing_is_fetched_for_a_reference() {
    for (reference, reason) in [
        (
            "http://169.254.169.254/latest/meta-data",
            "schemas are not fetched from the network",
        ),
        (
            "https://example.com/schema.json",
            "schemas are not fetched from the network",
        ),
        (
            "file:///etc/passwd",
            "open /etc/passwd: schemas are not read from files",
        ),
        ("ftp://example.com/x", "no URLLoader registered"),
        ("../../etc/passwd", "schemas are not read from files"),
    ] {
        let error = checked(&format!(r#"{{"$ref": "{reference}"}}"#), "a: 1").unwrap_err();
        assert!(error.contains(reason), "{reference}: {error}");
    }
}

#[test]
fn doubled_references_end_at_the_steps() {
    let levels = repeated(60, |level| {
        let below = format!(r##"{{"$ref": "#/$defs/k{level}"}}"##);
        format!(r#""k{}": {{"allOf": [{below}, {below}]}},"#, level + 1)
    });
    let schema = format!(r##"{{"$ref": "#/$defs/k60", "$defs": {{{levels} "k0": {{}}}}}}"##);
    let error = checked(&schema, "a: 1").unwrap_err();
    assert!(
        error.contains("more steps than are left") || error.contains("too many steps"),
        "{error}"
    );
}

#[test]
fn deep_and_long_schemas_are_refused() {
    let deep = format!("{}true{}", r#"{"not":"#.repeat(5_000), "}".repeat(5_000));
    assert!(error(vec![file("values.schema.json", deep)]).contains("nests deeper than 250 levels"));
    let chain = repeated(3_000, |number| {
        format!(r##""k{}": {{"$ref": "#/$defs/k{number}"}},"##, number + 1)
    });
    let chain = format!(r##"{{"$ref": "#/$defs/k3000", "$defs": {{{chain} "k0": {{}}}}}}"##);
    let error = checked(&chain, "a: 1").unwrap_err();
    assert!(error.contains("schema nests too deeply"), "{error}");
}

#[test]
fn many_anchors_and_identifiers_are_no_more_than_many() {
    for keyword in [r#""$anchor":"a"#, r#""$dynamicAnchor":"a"#, r#""$id":"http://x/"#] {
        let parts = repeated(5_000, |number| format!(r#""k{number}":{{{keyword}{number}"}},"#));
        assert!(
            checked(&format!(r#"{{"$defs":{{{parts}"z":true}}}}"#), "a: 1").is_ok(),
            "{keyword}"
        );
    }
}

#[test]
fn patterns_that_look_catastrophic_take_no_longer_than_others() {
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "^((a{1,50}){1,10}){1,2}$"] {
        let schema = format!(r#"{{"properties": {{"a": {{"pattern": "{pattern}"}}}}}}"#);
        let error = checked(&schema, &format!("a: {}!", "a".repeat(10_000))).unwrap_err();
        assert!(error.contains("does not match pattern"), "{pattern}: {error:.200}");
    }
    let error = checked(r#"{"pattern": "((a{1,1000}){1,1000}){1,1000}"}"#, "a: 1").unwrap_err();
    assert!(error.contains("invalid repeat count"), "{error}");
}

#[test]
fn schemas_that_are_none_are_told() {
    for (schema, reason) in [
        ("", "EOF"),
        ("{", "unexpected EOF"),
        ("[]", "got array, want boolean or object"),
        ("5", "got number, want boolean or object"),
        ("\"x\"", "got string, want boolean or object"),
        ("null", "got null, want boolean or object"),
        (r#"{"type": 5}"#, "is not valid against metaschema"),
        (r#"{"type": "nosuch"}"#, "is not valid against metaschema"),
        (r#"{"properties": []}"#, "got array, want object"),
        (r#"{"pattern": "("}"#, "is not valid against metaschema"),
        (r#"{"multipleOf": 0}"#, "is not valid against metaschema"),
        (r#"{"required": "a"}"#, "got string, want array"),
        (
            r#"{"$schema": "http://example.com/own"}"#,
            "schemas are not fetched from the network",
        ),
        (r#"{"$schema": "x"}"#, "failing loading"),
        (r##"{"$ref": "#/nosuch"}"##, "not found"),
        (r##"{"$ref": "#nosuch"}"##, "not found"),
        (r#"{"$ref": "%zz"}"#, "invalid"),
        ("{} {}", "invalid character after top-level value"),
    ] {
        let error = checked(schema, "a: 1").unwrap_err();
        assert!(error.contains(reason), "{schema}: {error}");
    }
}

#[test]
fn numbers_of_any_size_are_compared() {
    for (schema, value, is_right) in [
        // Numbers with such exponents are none for Helm.
        (r#"{"minimum": 1e999999999}"#, "1", true),
        (r#"{"maximum": 1e-999999999}"#, "1", true),
        (r#"{"multipleOf": 1e-999999999}"#, "1", true),
        (r#"{"multipleOf": 1e300}"#, "1", false),
        (r#"{"maximum": 1e-300}"#, "1", false),
    ] {
        let answer = checked(
            &format!(r#"{{"properties": {{"a": {schema}}}}}"#),
            &format!("a: {value}"),
        );
        assert_eq!(answer.is_ok(), is_right, "{schema}: {answer:?}");
    }
}
