//! The way of a lifecycle hook to the operator, as Cluster API goes it: it calls the Service that the ExtensionConfig names, and trusts the `ca.crt` of the Secret
//! that the annotation names, which cert-manager fills from a Certificate.

use crds::hooks::PORT;
use crds::manifests::{Installation, NAMESPACE, Part, extension_config};
use serde_json::{Value, json};

fn manifests(installation: &Installation) -> Vec<Value> {
    let parts = [Part::Hooks, Part::Certificates].into_iter();
    let files = parts.flat_map(|part| part.files(installation).expect("manifests can be written"));
    files
        .map(|(_, text)| serde_yaml::from_str(&text).expect("a manifest is YAML"))
        .collect()
}

fn only<'a>(manifests: &'a [Value], kind: &str, is_meant: impl Fn(&Value) -> bool) -> &'a Value {
    let of_kind = manifests.iter().filter(|manifest| manifest["kind"] == kind);
    let found: Vec<&Value> = of_kind.filter(|manifest| is_meant(manifest)).collect();
    assert_eq!(found.len(), 1, "{kind}: {found:#?}");
    found[0]
}

/// F40: the Go operator's manifests have the namespace `cso-system` in them, wherever they are installed.
#[test]
fn f40_cluster_api_calls_the_service_whose_name_the_certificate_has_and_trusts_who_signed_it() {
    for namespace in [NAMESPACE, "fleet-1"] {
        let manifests = manifests(&Installation::in_namespace(namespace));
        let configuration = only(&manifests, "ExtensionConfig", |_| true);
        let annotation = &configuration["metadata"]["annotations"]["runtime.cluster.x-k8s.io/inject-ca-from-secret"];
        let certificate = only(&manifests, "Certificate", |certificate| {
            let secret = certificate["spec"]["secretName"].as_str().expect("a Secret");
            *annotation == format!("{namespace}/{secret}")
        });
        assert_eq!(certificate["metadata"]["namespace"], namespace);
        let service = only(&manifests, "Service", |_| true);
        let called = &configuration["spec"]["clientConfig"]["service"];
        assert_eq!(called["name"], service["metadata"]["name"]);
        assert_eq!(
            (&called["namespace"], &service["metadata"]["namespace"]),
            (&json!(namespace), &json!(namespace))
        );
        let port = &service["spec"]["ports"][0];
        assert_eq!((&called["port"], &port["targetPort"]), (&port["port"], &json!(PORT)));
        let host = format!("{}.{namespace}.svc", called["name"].as_str().expect("a name"));
        let hosts = certificate["spec"]["dnsNames"].as_array().expect("names");
        assert!(hosts.contains(&json!(host)), "{host} in {hosts:?}");
    }
}

/// F40: the Go operator is asked about the Clusters of all namespaces, and there is no way to say otherwise.
#[test]
fn f40_an_operator_is_asked_about_the_clusters_of_the_namespaces_that_somebody_names() {
    let everywhere = extension_config(NAMESPACE, []);
    assert_eq!(everywhere["spec"]["namespaceSelector"], json!({}));
    let installation = Installation {
        clusters: vec!["team-a".to_owned(), "team-b".to_owned()],
        ..Installation::in_namespace(NAMESPACE)
    };
    let manifests = manifests(&installation);
    let configuration = only(&manifests, "ExtensionConfig", |_| true);
    let named = json!({ "key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"] });
    assert_eq!(
        configuration["spec"]["namespaceSelector"],
        json!({ "matchExpressions": [named] })
    );
}
