//! Charts of add-ons: read from the folder of a stage, with what is in crds/, and with all that they need.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod charts;

use std::path::Path;

use rendering::{
    ChartBytes, ErrorClass, FileProblem, HelmProfile, Lane, RenderError, RenderRequest, Rendered, Renderer,
    newest_in_range,
};

use charts::{archive, chain, request, values};

fn render_with_crds(files: &[(&str, &str)]) -> Result<Rendered, RenderError> {
    let chart = || Ok(archive(files));
    let request = RenderRequest {
        include_crds: true,
        ..request(&chart)
    };
    Renderer::new(0).render(&request, Lane::Slow)
}

fn names(rendered: &Rendered) -> Vec<(&str, &str)> {
    let objects = rendered.objects.iter();
    objects
        .map(|object| {
            (
                object.value["metadata"]["name"].as_str().unwrap(),
                object.source.as_str(),
            )
        })
        .collect()
}

const CRDS: &str = "# two of them\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: quays}\n\
    ---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \"{{ ships }}\"}\n";
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: pier}\n";

#[test]
fn what_is_in_crds_comes_first_as_it_is_and_only_where_it_is_asked_for() {
    let crds = CRDS.replace("\"{{ ships }}\"", "ships");
    let files = [
        ("crds/all.yaml", crds.as_str()),
        ("crds/README.md", "no manifest"),
        ("templates/n.yaml", NAMESPACE),
    ];
    let with_crds = render_with_crds(&files).unwrap();
    assert_eq!(
        names(&with_crds),
        [
            ("quays", "c/crds/all.yaml"),
            ("ships", "c/crds/all.yaml"),
            ("pier", "c/templates/n.yaml")
        ]
    );
    let renderer = Renderer::new(1 << 20);
    let chart = || Ok(archive(&files));
    let without = renderer.render(&request(&chart), Lane::Slow).unwrap();
    assert_eq!(names(&without), [("pier", "c/templates/n.yaml")]);
    let with = RenderRequest {
        include_crds: true,
        ..request(&chart)
    };
    assert_eq!(renderer.kept(&with), None, "they are two renderings");
}

#[test]
fn what_is_in_crds_is_held_to_what_objects_are_held_to() {
    let error = chain(&render_with_crds(&[("crds/all.yaml", CRDS)]).unwrap_err());
    assert!(
        error.contains("c/crds/all.yaml renders CustomResourceDefinition"),
        "{error}"
    );
    let twice = [("crds/a.yaml", NAMESPACE), ("templates/n.yaml", NAMESPACE)];
    let error = chain(&render_with_crds(&twice).unwrap_err());
    assert!(
        error.contains("c/crds/a.yaml and c/templates/n.yaml both render Namespace"),
        "{error}"
    );

    let error = render_with_crds(&[("crds/a.yaml", "# first\na: b\n---\n\na: b: c\n")]).unwrap_err();
    assert_eq!(error.place(), Some(("c/crds/a.yaml", Some(5))));
    assert_eq!(error.class(), ErrorClass::Terminal);
    let text = chain(&error);
    assert!(
        text.starts_with("unable to read what the chart has in crds/: "),
        "{text}"
    );
}

#[test]
fn the_folder_of_a_stage_renders_as_its_chart_without_what_it_ignores() {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let chart = || {
        Ok(ChartBytes::Files(vec![
            file(
                "Chart.yaml",
                "apiVersion: v2\nname: openstack-scs-1-32-cluster-addon\nversion: v1\n",
            ),
            file(".helmignore", "templates/left-out.yaml\n"),
            file("overwrite.yaml", "values: |\n  a: {{ .Cluster.metadata.name }}\n"),
            file("templates/left-out.yaml", "{{ fail \"it is a part of the chart\" }}"),
            file("templates/n.yaml", NAMESPACE),
        ]))
    };
    let request = RenderRequest {
        identity: "sha256:archive/cni",
        ..request(&chart)
    };
    let rendered = Renderer::new(0).render(&request, Lane::Slow).unwrap();
    assert_eq!(values(&rendered)[0]["kind"], "Namespace");
    assert_eq!(
        names(&rendered),
        [("pier", "openstack-scs-1-32-cluster-addon/templates/n.yaml")]
    );
}

#[test]
fn charts_of_different_identities_are_not_taken_for_each_other() {
    let renderer = Renderer::new(0);
    for folder in ["cni", "ccm"] {
        let namespace = NAMESPACE.replace("pier", folder);
        let chart = || Ok(archive(&[("templates/n.yaml", &namespace)]));
        let identity = format!("sha256:archive/{folder}");
        let request = RenderRequest {
            identity: &identity,
            ..request(&chart)
        };
        // The chart that was rendered last stays loaded in this lane.
        let objects = renderer.render(&request, Lane::Quick).unwrap();
        assert_eq!(names(&objects), [(folder, "c/templates/n.yaml")]);
    }
}

#[test]
fn a_chart_without_its_dependencies_says_which_and_what_brings_them() {
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n\
        - {name: cilium, version: 1.17.4, repository: https://helm.cilium.io/}\n- {name: b, version: 1.0.0}\n- {name: there, version: 1.0.0}\n";
    let chart = || {
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        Ok(ChartBytes::Files(vec![
            file("Chart.yaml", chart),
            file(
                "charts/there/Chart.yaml",
                "apiVersion: v2\nname: there\nversion: 1.0.0\n",
            ),
        ]))
    };
    let error = Renderer::new(0).render(&request(&chart), Lane::Slow).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the chart needs cilium, b, which its folder charts/ does not have: make the release again with \
         `kubectl stacks release create --charts DIR`, which takes what is missing from DIR, or with `--chart-registry OCI`, which fetches it from there"
    );
    assert_eq!(error.class(), ErrorClass::Terminal);
}

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// What is wrong with a chart that has these files.
fn found(files: &[(&str, &str)]) -> Vec<FileProblem> {
    let files = files.iter();
    let files = files.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let renderer = Renderer::new(0).with_tera_of(Path::new(env!("CARGO_BIN_EXE_rendering-tera")));
    let found = renderer.problems(ChartBytes::Files(files.collect()), HelmProfile::V3_19, "v1.34.2");
    found.unwrap()
}

/// Files with what is wrong with them, of a chart that has these besides its `Chart.yaml`.
fn problems(files: &[(&str, &str)]) -> Vec<(String, Option<usize>)> {
    found(&[&[("Chart.yaml", CHART)][..], files].concat())
        .into_iter()
        .map(|problem| (problem.file, problem.line))
        .collect()
}

/// The file of each problem of a chart whose `Chart.yaml` declares this, and whether values may switch off what it is in.
fn problems_of_declared(declared: &str, files: &[(&str, &str)]) -> Vec<(String, bool)> {
    let chart = format!("{CHART}{declared}");
    let mut found: Vec<_> = found(&[&[("Chart.yaml", chart.as_str())][..], files].concat())
        .into_iter()
        .map(|problem| (problem.file, problem.is_optional))
        .collect();
    found.sort();
    found
}

#[test]
fn what_is_wrong_whatever_the_values_are_is_found_in_every_file_and_nothing_is_executed() {
    let sub = "apiVersion: v2\nname: sub\nversion: 1.0.0\n";
    let good = [
        (
            "templates/a.yaml",
            "{{ fail .Values.none.more }}{{ include \"nowhere\" . }}",
        ),
        ("templates/b.tera", "{{ Values.none.more }}"),
        ("charts/sub/Chart.yaml", sub),
    ];
    assert!(problems(&good).is_empty(), "{:?}", problems(&good));
    let wrong = [
        ("templates/a.yaml", "a: b\n{{ nosuch }}\n"),
        ("templates/NOTES.txt", "{{ end }}"),
        ("templates/b.tera", "\n\n{{ Values.a | nosuch }}"),
        ("values.schema.json", "{"),
        ("charts/folder/Chart.yaml", sub),
        ("charts/folder/values.yaml", "a: b: c\n"),
        ("charts/folder/templates/_a.tpl", "{{ if .Values.a }}"),
    ];
    let mut found = problems(&wrong);
    found.sort();
    let at = |file: &str, line: Option<usize>| (file.to_owned(), line);
    assert_eq!(
        found,
        [
            at("charts/folder/templates/_a.tpl", Some(1)),
            at("charts/folder/values.yaml", None),
            at("templates/NOTES.txt", Some(1)),
            at("templates/a.yaml", Some(2)),
            at("templates/b.tera", Some(3)),
            at("values.schema.json", None),
        ]
    );
    // What cannot be loaded has nothing else to be looked at.
    assert_eq!(
        problems(&[("charts/folder/Chart.yaml", "name: [")]),
        [at("charts/folder/Chart.yaml", None)]
    );
}

#[test]
fn what_is_wrong_with_a_chart_that_values_may_switch_off_is_marked_unless_helm_reads_it_nevertheless() {
    let own = "apiVersion: v2\nname: own\nversion: 1.2.0\ndependencies: []\n";
    let below = "apiVersion: v2\nname: below\nversion: 1.0.0\n";
    let files = [
        ("templates/a.tera", "{{ Values.a | nosuch }}"),
        ("charts/own/Chart.yaml", own),
        ("charts/own/values.schema.json", "{"),
        ("charts/own/crds/a.yaml", "kind: [\n"),
        ("charts/own/templates/a.tera", "{{ Values.a | nosuch }}"),
        ("charts/own/charts/below/Chart.yaml", below),
        ("charts/own/charts/below/values.yaml", "a: b: c\n"),
        ("charts/own/charts/below/templates/a.yaml", "{{ nosuch }}"),
    ];
    let found = problems_of_declared(
        "dependencies: [{name: own, version: 1.x, condition: own.enabled}]\n",
        &files,
    );
    let at = |file: &str, is_optional: bool| (file.to_owned(), is_optional);
    assert_eq!(
        found,
        [
            at("charts/own/charts/below/templates/a.yaml", true),
            at("charts/own/charts/below/values.yaml", false),
            at("charts/own/crds/a.yaml", true),
            at("charts/own/templates/a.tera", true),
            at("charts/own/values.schema.json", true),
            at("templates/a.tera", false),
        ]
    );
}

#[test]
fn values_may_switch_off_a_chart_where_helm_decides_about_every_name_that_it_has() {
    let own = "apiVersion: v2\nname: own\nversion: 1.2.0\n";
    let wrong = "{{ nosuch }}";
    let files = [("charts/own/Chart.yaml", own), ("charts/own/templates/a.yaml", wrong)];
    for (declared, is_optional) in [
        ("", false),
        ("dependencies: []", false),
        ("dependencies: [{name: own, version: 1.x}]", false),
        ("dependencies: [{name: own, version: 1.x, condition: ' , on'}]", true),
        ("dependencies: [{name: own, version: 1.x, condition: ','}]", false),
        ("dependencies: [{name: own, version: 1.x, tags: []}]", false),
        ("dependencies: [{name: own, version: 1.x, tags: [extra]}]", true),
        (
            "dependencies: [{name: own, version: 1.x, alias: two, condition: two.on}]",
            true,
        ),
        (
            "dependencies: [{name: own, version: 1.x, alias: two, condition: two.on}, {name: own, version: 1.x}]",
            false,
        ),
        // Another version than the declared one is used, until the name is switched off.
        ("dependencies: [{name: own, version: 2.x, condition: own.on}]", true),
        (
            "dependencies: [{name: own, version: 2.x, alias: two, condition: two.on}]",
            false,
        ),
    ] {
        let found = problems_of_declared(declared, &files);
        let expected = [("charts/own/templates/a.yaml".to_owned(), is_optional)];
        assert_eq!(found, expected, "{declared}");
    }
    // Helm asks nothing of what is below a chart that declares nothing.
    let between = "apiVersion: v2\nname: own\nversion: 1.2.0\ndependencies: [{name: b, version: 1.x, tags: [b]}]\n";
    let below = [
        ("charts/own/Chart.yaml", between),
        (
            "charts/own/charts/b/Chart.yaml",
            "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        ),
        ("charts/own/charts/b/templates/a.yaml", wrong),
    ];
    for (declared, is_optional) in [("", false), ("dependencies: []", true)] {
        let expected = [("charts/own/charts/b/templates/a.yaml".to_owned(), is_optional)];
        assert_eq!(problems_of_declared(declared, &below), expected, "{declared}");
    }
}

#[test]
fn a_chart_is_asked_for_the_kubernetes_version_and_the_charts_in_it_are_not() {
    for (range, is_wrong) in [
        ("<1.30", true),
        (">=1.34.3", true),
        ("not a range", true),
        (">=1.25.0-0 <2", false),
        ("v1.34.2", false),
    ] {
        let found = problems_of_declared(&format!("kubeVersion: \"{range}\"\n"), &[]);
        let expected: Vec<_> = is_wrong.then(|| ("Chart.yaml".to_owned(), false)).into_iter().collect();
        assert_eq!(found, expected, "{range}");
    }
    let inner = "apiVersion: v2\nname: own\nversion: 1.0.0\nkubeVersion: <1.30\n";
    assert!(problems(&[("charts/own/Chart.yaml", inner)]).is_empty());
}

#[test]
fn a_file_of_crds_that_no_rendering_can_read_is_found() {
    let template = "---\nkind: CustomResourceDefinition\nmetadata:\n  name: {{ .Release.Name }}-quays\n";
    for (text, line) in [
        ("kind: [\n", None),
        (template, Some(2)),
        ("a: b\n---\nc: d: e\n", Some(3)),
    ] {
        assert_eq!(
            problems(&[("crds/quays.yaml", text)]),
            [("crds/quays.yaml".to_owned(), line)],
            "{text}"
        );
        assert!(render_with_crds(&[("crds/quays.yaml", text)]).is_err(), "{text}");
    }
    assert!(problems(&[("crds/README.md", "kind: [\n"), ("crds/a.yaml", NAMESPACE)]).is_empty());
}

#[test]
fn the_newest_version_in_a_range_is_chosen_as_helm_reads_versions() {
    let versions = ["1.16.6", "1.17.4", "v1.17.10", "1.18.0-rc.1", "nonsense", "1.17.10"];
    for (range, expected) in [
        ("1.17.4", Some(1)),
        ("~1.17.0", Some(2)),
        (">=1.16 <1.17 || 2.x", Some(0)),
        ("*", Some(2)),
        (">= 1.18.0-0", Some(3)),
        ("2.0.0", None),
        ("no range", None),
    ] {
        assert_eq!(newest_in_range(range, &versions), expected, "{range}");
    }
}
