//! Errors as data: what a program finds in them.

use helm::{ArchiveLimits, Chart, Place, Profile, RenderError, RenderOptions, RenderProblem, SchemaFinding, yaml};

use crate::cases::Case;

fn error(files: &[(&str, &str)]) -> RenderError {
    error_in(Profile::V3_19, files)
}

fn error_in(profile: &'static Profile, files: &[(&str, &str)]) -> RenderError {
    let files = Case::of(files).all_files();
    let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
    let options = RenderOptions {
        profile,
        ..RenderOptions::new("r", "ns")
    };
    chart.render(&yaml::parse(b"").unwrap(), &options).unwrap_err()
}

/// Where a failure passed: template, file, line, column, node.
fn places(error: &RenderError) -> Vec<String> {
    let RenderProblem::Execute(error) = error.problem() else {
        panic!("{error:?}");
    };
    let written = |place: &Place| {
        let Place {
            template,
            file,
            line,
            column,
            node,
            ..
        } = place;
        format!("{template} {file}:{line}:{column} {node}")
    };
    error.places().iter().map(written).collect()
}

fn message(error: &RenderError) -> &str {
    match error.problem() {
        RenderProblem::Execute(error) => error.message(),
        _ => panic!("{error:?}"),
    }
}

const HELPERS: (&str, &str) = (
    "templates/_helpers.tpl",
    "{{ define \"outer\" }}\n  {{ include \"inner\" .Values.image }}{{ end }}\n{{ define \"inner\" }}{{ .name.tag }}{{ end }}\n",
);

#[test]
fn the_way_of_a_failure_leads_from_the_file_to_the_helper() {
    let image = ("values.yaml", "image: {}\n");
    let error = error(&[
        HELPERS,
        image,
        ("templates/a.yaml", "a: 1\nb: {{ include \"outer\" . }}\n"),
    ]);
    let expected = [
        "c/templates/a.yaml c/templates/a.yaml:2:6 include \"outer\" .",
        "outer c/templates/_helpers.tpl:2:5 include \"inner\" .Values.image",
        "inner c/templates/_helpers.tpl:3:28 .name.tag",
    ];
    assert_eq!(places(&error), expected);
    assert_eq!(message(&error), "nil pointer evaluating interface {}.tag");
    assert_eq!(error.place(), Some(("c/templates/_helpers.tpl", Some(3))));
    assert_eq!(error.value_path().as_deref(), Some(".name.tag"));
}

#[test]
fn the_path_of_a_value_ends_where_it_could_not_be_read() {
    for (template, path) in [
        ("{{ .Values.a.b.c }}", ".Values.a.b"),
        ("{{ $x := .Values }}{{ $x.a.b }}", "$x.a.b"),
        ("{{ (.Values | default 1).a.b.c }}", "(.Values | default 1).a"),
        ("{{ .Release.Name.First }}", ".Release.Name.First"),
    ] {
        let error = error(&[("templates/a.yaml", template)]);
        assert_eq!(error.value_path().as_deref(), Some(path), "{template}");
    }
}

#[test]
fn a_text_given_to_tpl_is_on_the_way_but_in_no_file() {
    let error = error(&[("templates/a.yaml", "\n{{ tpl \"x\\n{{ .a.b }}\" (dict) }}")]);
    let expected = [
        "c/templates/a.yaml c/templates/a.yaml:2:3 tpl \"x\\n{{ .a.b }}\" (dict)",
        "gotpl gotpl:2:5 .a.b",
    ];
    assert_eq!(places(&error), expected);
    assert_eq!(error.place(), Some(("c/templates/a.yaml", Some(2))));
}

#[test]
fn the_message_of_fail_and_required_is_what_the_chart_says() {
    for template in ["{{ fail \"no: never\" }}", "{{ required \"no: never\" .Values.a }}"] {
        let error = error(&[("templates/a.yaml", template)]);
        assert_eq!(message(&error), "no: never");
    }
}

#[test]
fn a_function_that_failed_is_named_at_its_place() {
    let error = error(&[("templates/a.yaml", "{{ first 1 }}")]);
    let RenderProblem::Execute(error) = error.problem() else {
        panic!("{error:?}");
    };
    assert_eq!(error.place().unwrap().function.as_deref(), Some("first"));
    assert_eq!(error.message(), "Cannot find first on type int");
}

#[test]
fn values_that_a_schema_refuses_are_listed_with_their_paths() {
    let of_root = r#"{"properties": {"port": {"type": "integer"}, "hosts": {"items": {"type": "string"}}}}"#;
    let of_child = r#"{"required": ["size"], "properties": {"name/x": {"type": "string"}}}"#;
    let error = error(&[
        ("values.yaml", "port: high\nhosts: [a, 1]\nd:\n  name/x: 1\n"),
        ("values.schema.json", of_root),
        ("charts/d/Chart.yaml", "apiVersion: v2\nname: d\nversion: 1.0.0\n"),
        ("charts/d/values.schema.json", of_child),
    ]);
    let RenderProblem::Schema(findings) = error.problem() else {
        panic!("{error:?}");
    };
    let paths: Vec<String> = findings.findings().iter().map(SchemaFinding::value_path).collect();
    assert_eq!(
        paths,
        [".Values.hosts.1", ".Values.port", ".Values.d", ".Values.d.name/x"]
    );
    assert_eq!(findings.findings()[1].message, "got string, want integer");
    assert_eq!(error.value_path().as_deref(), Some(".Values.hosts.1"));
}

#[test]
fn a_thousand_includes_make_a_text_of_a_thousand_places_in_every_form() {
    let recursion = ("templates/_r.tpl", "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}");
    for profile in Profile::all() {
        let error = error_in(profile, &[recursion, ("templates/a.yaml", "{{ include \"r\" . }}")]);
        assert_eq!(places(&error).len(), 1_002);
        assert!(error.to_string().len() < 120_000, "{}", error.to_string().len());
    }
}

#[test]
fn an_error_text_has_an_end_however_large_the_nodes_on_its_way_are() {
    let long = "x".repeat(50_000);
    let recursion = format!("{{{{ define \"r\" }}}}{{{{ include \"r\" (list . \"{long}\") }}}}{{{{ end }}}}");
    for profile in Profile::all() {
        let files = [
            ("templates/_r.tpl", recursion.as_str()),
            ("templates/a.yaml", "{{ include \"r\" . }}"),
        ];
        let text = error_in(profile, &files).to_string();
        assert!(text.len() < 2 << 20, "{}", text.len());
        assert!(text.ends_with("unable to execute template"));
    }
}
