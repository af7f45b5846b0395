//! What templates of values see, what their output means, and what two outputs have in common.

use helm::yaml::Node;
use rendering::{ChartValues, ErrorClass, ValuesError};
use serde_json::{Value, json};

use crate::{chain, check, roots, values_of, values_over};

#[test]
fn a_root_that_the_cluster_does_not_refer_to_is_not_there() {
    let cluster = json!({"Cluster": {"metadata": {"name": "blue"}}});
    let text = "a: {{ hasKey . \"ControlPlane\" }}\nb: {{ hasKey . \"InfraCluster\" }}\nc: {{ len . }}";
    let given = |roots: &Value| values_over(roots, "overwrite.yaml", text).unwrap().values;
    assert_eq!(given(&cluster), json!({"a": false, "b": false, "c": 1}));
    assert_eq!(given(&roots()), json!({"a": true, "b": true, "c": 3}));
}

#[test]
fn nothing_written_is_no_values() {
    for text in [
        "",
        "\n",
        "# comment\n",
        "---\n",
        "{{ if .Cluster.nothing }}a: 1{{ end }}",
        "values: \"\"\n",
        "values: |\n  # none\n",
    ] {
        assert_eq!(
            values_of("overwrite.yaml", text).unwrap(),
            ChartValues::none(),
            "{text}"
        );
    }
    assert_eq!(ChartValues::none().values, json!({}));
}

#[test]
fn what_is_no_mapping_is_mended_by_somebody_and_not_by_another_try() {
    for text in ["- a\n", "7\n", "{{ .Cluster.metadata.name }}\n"] {
        let error = values_of("cni/overwrite.yaml", text).unwrap_err();
        assert!(matches!(error, ValuesError::NoMapping { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Terminal, "{text}");
        assert_eq!(error.place(), Some(("cni/overwrite.yaml", None)));
    }
}

#[test]
fn one_template_does_not_see_what_another_one_did_to_the_objects() {
    let changes = "{{ $_ := set .Cluster.metadata \"name\" \"red\" }}a: {{ .Cluster.metadata.name }}";
    assert_eq!(
        values_of("a/overwrite.yaml", changes).unwrap().values,
        json!({"a": "red"})
    );
    let looks = "a: {{ .Cluster.metadata.name }}";
    assert_eq!(
        values_of("b/overwrite.yaml", looks).unwrap().values,
        json!({"a": "blue"})
    );
}

#[test]
fn equal_values_have_equal_digests_whatever_made_them() {
    let digest = |text: &str| values_of("overwrite.yaml", text).unwrap().digest;
    let first = digest("a: 1\nb: {x: [1.0, two]}\n");
    for same in [
        "b: {x: [1, \"two\"]}\na: 1.0\n",
        "values: |\n  a: 1\n  b:\n    x:\n    - 1\n    - two\n",
        "{\"b\": {\"x\": [1e0, \"two\"]}, \"a\": {{ .ControlPlane.spec.rolloutStrategy.rollingUpdate.maxSurge }}}",
    ] {
        assert_eq!(digest(same), first, "{same}");
    }
    for other in [
        "a: 1\n",
        "a: 1\nb: {x: [two, 1]}\n",
        "a: \"1\"\nb: {x: [1, two]}\n",
        "a: 1\nb: {x: [1, two]}\nc: null\n",
    ] {
        assert_ne!(digest(other), first, "{other}");
    }
    assert!(first.starts_with("sha256:") && first.len() == 71, "{first}");
}

#[test]
fn what_no_template_asks_for_changes_no_digest() {
    let mut changed = roots();
    changed["Cluster"]["metadata"]["resourceVersion"] = json!("918273646");
    changed["Cluster"]["status"]["phase"] = json!("Provisioning");
    let text = "a: {{ .Cluster.metadata.name }}";
    let before = values_of("overwrite.yaml", text).unwrap();
    assert_eq!(values_over(&changed, "overwrite.yaml", text).unwrap(), before);
}

#[test]
fn a_null_takes_a_default_away_and_so_stays() {
    assert_eq!(
        values_of("overwrite.yaml", "a: {b: null}").unwrap().values,
        json!({"a": {"b": null}})
    );
}

#[test]
fn errors_name_file_line_and_expression() {
    let error = values_of("ccm/overwrite.yaml", "a: 1\nb: {{ .Cluster.metadata.name.first }}\n").unwrap_err();
    assert_eq!(error.place(), Some(("ccm/overwrite.yaml", Some(2))));
    let said = chain(&error);
    assert!(
        said.contains("ccm/overwrite.yaml:2:") && said.contains("<.Cluster.metadata.name.first>"),
        "{said}"
    );
    let error = values_of("ccm/overwrite.yaml", "a: 1\n\nb: {{ if }}\n").unwrap_err();
    assert_eq!(
        error.place(),
        Some(("ccm/overwrite.yaml", Some(3))),
        "{}",
        chain(&error)
    );
}

#[test]
fn what_is_no_template_is_found_without_a_cluster_and_what_fails_in_one_alone_is_not() {
    let error = check("ccm/overwrite.yaml", "a: 1\nb: {{ .Cluster.metadata.name | qote }}\n").unwrap_err();
    assert_eq!(error.place(), Some(("ccm/overwrite.yaml", Some(2))));
    assert_eq!(error.unknown_function(), Some("qote"));
    let error = check("ccm/overwrite.yaml", "a: 1\n{{ if .Cluster }}\n").unwrap_err();
    assert_eq!(error.unknown_function(), None);
    let error = check(
        "ccm/overwrite.yaml.tera",
        "a: 1\nb: {{ Cluster.metadata.name | qote }}\n",
    )
    .unwrap_err();
    assert_eq!(
        error.place(),
        Some(("ccm/overwrite.yaml.tera", Some(2))),
        "{}",
        chain(&error)
    );
    for (path, text) in [
        ("overwrite.yaml", "a: {{ .Cluster.metadata.name.first }}"),
        ("overwrite.yaml", "a: {{ fail \"no\" }}"),
        ("overwrite.yaml.tera", "a: {{ Cluster.metadata.none.more }}"),
    ] {
        assert!(check(path, text).is_ok(), "{text}");
        assert!(values_of(path, text).is_err(), "{text}");
    }
}

#[test]
fn tera_templates_see_the_same_roots() {
    let text = "{% for variable in Cluster.spec.topology.variables -%}\n{% if variable.name == \"workload_loadbalancer\" %}lb: {{ variable.value }}{% endif -%}\n{% endfor %}\nport: {{ Cluster.spec.controlPlaneEndpoint.port }}\nreplicas: {{ ControlPlane.spec.replicas }}\ncloud: {{ InfraCluster.spec.identityRef.cloudName }}\n";
    let expected = json!({"lb": "octavia-ovn", "port": 6443, "replicas": 3, "cloud": "openstack"});
    for path in ["cluster-addon-values.yaml.tera", "cni/overwrite.yaml.tera"] {
        assert_eq!(values_of(path, text).unwrap().values, expected);
    }
    let as_text = "values: |\n  name: {{ Cluster.metadata.name }}\n";
    assert_eq!(
        values_of("overwrite.yaml.tera", as_text).unwrap().values,
        json!({"name": "blue"})
    );
}

#[test]
fn errors_of_tera_name_file_and_line() {
    let error = values_of("cni/overwrite.yaml.tera", "a: 1\nb: {{ Cluster.metadata.none.more }}\n").unwrap_err();
    let said = chain(&error);
    assert_eq!(error.place(), Some(("cni/overwrite.yaml.tera", Some(2))), "{said}");
}

#[test]
fn values_reach_the_chart_as_they_are() {
    let values = values_of(
        "overwrite.yaml",
        "whole: 3\nfraction: 2.5\nbig: 9007199254740993\nlist: [1, x]\n",
    )
    .unwrap();
    let read = helm::yaml::parse(values.values.to_string().as_bytes()).unwrap();
    assert_eq!(read.get("whole"), Some(&Node::Float(3.0)));
    assert_eq!(read.get("big"), Some(&Node::Float(9_007_199_254_740_992.0)));
}
