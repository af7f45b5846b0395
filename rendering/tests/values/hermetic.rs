//! Values follow from the objects of a cluster alone.

use rendering::ErrorClass;
use serde_json::json;

use crate::{chain, check, values_of};

/// Calls of functions that look at the world, with what they would look at.
const WORLDLY: &[(&str, &str, &str)] = &[
    ("env \"HOME\"", "env", "reads the environment of the program"),
    (
        "\"$HOME\" | expandenv",
        "expandenv",
        "reads the environment of the program",
    ),
    ("getHostByName \"localhost\"", "getHostByName", "asks the network"),
    ("now", "now", "reads the clock"),
    ("now | date \"2006\"", "now", "reads the clock"),
    ("ago 0", "ago", "reads the clock"),
    (
        "date \"2006\" \"today\"",
        "date",
        "reads the clock when it is given no time",
    ),
    ("date \"2006\" nil", "date", "reads the clock when it is given no time"),
    (
        "dateInZone \"2006\" \"\" \"UTC\"",
        "dateInZone",
        "reads the clock when it is given no time",
    ),
    (
        "date_in_zone \"2006\" \"\" \"UTC\"",
        "date_in_zone",
        "reads the clock when it is given no time",
    ),
    ("htmlDate \"\"", "htmlDate", "reads the clock when it is given no time"),
    (
        "htmlDateInZone \"\" \"UTC\"",
        "htmlDateInZone",
        "reads the clock when it is given no time",
    ),
    (
        "durationRound (toDate \"2006\" \"2020\")",
        "durationRound",
        "reads the clock when it is given no time",
    ),
    ("randInt 1 100", "randInt", "is random"),
];

#[test]
fn f36_a_function_that_looks_at_the_world_is_an_error_that_names_it_and_its_place() {
    for (call, function, reads) in WORLDLY {
        let error = values_of("cni/overwrite.yaml", &format!("a: 1\nb: x{{{{ {call} }}}}\n")).unwrap_err();
        assert_eq!(error.place(), Some(("cni/overwrite.yaml", Some(2))), "{call}");
        assert_eq!(error.class(), ErrorClass::Terminal, "{call}");
        let said = chain(&error);
        assert!(said.contains("cni/overwrite.yaml:2:"), "{said}");
        assert!(said.ends_with(&format!("the function {function:?} {reads}")), "{said}");
        assert!(said.contains(&format!(": <{function}")), "{said}");
    }
}

#[test]
fn f36_the_environment_is_in_no_error() {
    // Something that no template says.
    let value = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    for call in [
        "env \"CARGO_MANIFEST_DIR\"",
        "expandenv \"${CARGO_MANIFEST_DIR}\"",
        "fail (env \"CARGO_MANIFEST_DIR\")",
    ] {
        let error = values_of("overwrite.yaml", &format!("a: {{{{ {call} }}}}")).unwrap_err();
        assert!(!chain(&error).contains(&value), "{error}");
    }
}

#[test]
fn a_call_that_is_not_reached_does_no_harm() {
    let text = "a: {{ if .Cluster.nothing }}{{ now }}{{ else }}1{{ end }}";
    assert_eq!(values_of("overwrite.yaml", text).unwrap().values, json!({"a": 1}));
}

#[test]
fn there_are_no_functions_of_charts_and_no_files() {
    for call in [
        "include \"x\" .",
        "tpl \"x\" .",
        "lookup \"v1\" \"Secret\" \"a\" \"b\"",
        "genCA \"a\" 1",
        "randAlphaNum 5",
    ] {
        let error = values_of("overwrite.yaml", &format!("a: {{{{ {call} }}}}")).unwrap_err();
        let said = chain(&error);
        assert!(said.ends_with("not defined"), "{said}");
    }
    let of_chart = "a: {{ .Files }}\nb: {{ .Release }}\nc: {{ .Values }}\nd: {{ .Capabilities }}";
    let nothing = "<no value>";
    let expected = json!({"a": nothing, "b": nothing, "c": nothing, "d": nothing});
    assert_eq!(values_of("overwrite.yaml", of_chart).unwrap().values, expected);
}

/// Whatever is not executed for this cluster may be for another one.
#[test]
fn a_template_that_calls_what_looks_at_the_world_is_found_without_a_cluster() {
    for call in [
        "env \"HOME\"",
        "expandenv \"$HOME\"",
        "getHostByName \"a\"",
        "now",
        "randInt 1 5",
    ] {
        let text = format!("a: 1\n{{{{ if false }}}}b: {{{{ {call} }}}}{{{{ end }}}}\n");
        assert!(values_of("overwrite.yaml", &text).is_ok(), "{call}");
        let error = check("cni/overwrite.yaml", &text).unwrap_err();
        assert_eq!(error.place(), Some(("cni/overwrite.yaml", Some(2))), "{call}");
        let function = call.split(' ').next().unwrap();
        assert!(
            chain(&error).contains(&format!("the function {function:?} ")),
            "{}",
            chain(&error)
        );
    }
    assert!(check("overwrite.yaml", "a: {{ date \"2006\" .Cluster.metadata.none }}").is_ok());
    assert!(check("overwrite.yaml.tera", "a: {{ get_env(name=\"HOME\") }}").is_err());
}

#[test]
fn tera_templates_see_neither_environment_nor_clock() {
    for call in [
        "get_env(name=\"HOME\")",
        "now()",
        "get_random(start=1, end=5)",
        "include_file(path=\"/etc/passwd\")",
    ] {
        let error = values_of("overwrite.yaml.tera", &format!("a: {{{{ {call} }}}}")).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Terminal, "{}", chain(&error));
    }
}
