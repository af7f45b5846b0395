//! The way from a Certificate to a request of the API server, as cert-manager goes it: its cainjector writes `ca.crt` of the Secret of the
//! Certificate that the annotation names into every webhook, and an issuer finds its Secret in its own namespace (cert-manager.io, "CA Injector"
//! and "CA").

use crds::manifests::{Installation, NAMESPACE, Part};
use crds::webhooks::PORT;
use serde_json::Value;

/// What people mount is there in words only: no Deployment is among the manifests.
const GUIDE: &str = include_str!("../../docs/reference/admission.md");

/// The manifests of the webhooks and of their certificate in one namespace.
struct Printed {
    namespace: &'static str,
    manifests: Vec<Value>,
}

impl Printed {
    fn each() -> impl Iterator<Item = Self> {
        [NAMESPACE, "fleet-1"].into_iter().map(|namespace| {
            let parts = [Part::Webhooks, Part::Certificates].into_iter();
            let files = parts.flat_map(|part| {
                part.files(&Installation::in_namespace(namespace))
                    .expect("manifests can be written")
            });
            let manifests = files.map(|(_, text)| serde_yaml::from_str(&text).expect("a manifest is YAML"));
            Self {
                namespace,
                manifests: manifests.collect(),
            }
        })
    }

    /// The one of a kind that this is true of. There is no other, and none in another namespace.
    fn only(&self, kind: &str, is_meant: impl Fn(&Value) -> bool) -> &Value {
        let of_kind = self.manifests.iter().filter(|manifest| manifest["kind"] == kind);
        let found: Vec<&Value> = of_kind.filter(|manifest| is_meant(manifest)).collect();
        assert!(found.len() == 1, "{kind} in {}: {found:#?}", self.namespace);
        let own = &found[0]["metadata"]["namespace"];
        assert!(own.is_null() || own == self.namespace, "{own}");
        found[0]
    }

    fn configuration(&self) -> &Value {
        self.only("ValidatingWebhookConfiguration", |_| true)
    }

    /// The Certificate whose authority cert-manager tells the API server.
    fn trusted(&self) -> &Value {
        let annotation = &self.configuration()["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        self.only("Certificate", |certificate| {
            let name = certificate["metadata"]["name"].as_str().expect("a name");
            *annotation == format!("{}/{name}", self.namespace)
        })
    }

    fn issuer_of(&self, certificate: &Value) -> &Value {
        let reference = &certificate["spec"]["issuerRef"];
        assert_eq!(reference["group"], "cert-manager.io");
        assert_eq!(reference["kind"], "Issuer");
        self.only("Issuer", |issuer| issuer["metadata"]["name"] == reference["name"])
    }
}

#[test]
fn f40_the_authority_that_the_api_server_is_told_has_signed_what_the_operator_is_given() {
    for printed in Printed::each() {
        let served = printed.trusted();
        let secret = &served["spec"]["secretName"];
        printed.only("Certificate", |certificate| {
            certificate["spec"]["secretName"] == *secret
        });
        let secret = secret.as_str().expect("a Secret");
        assert!(
            GUIDE.contains(&format!("mounted from the Secret\n`{secret}`")),
            "{secret}"
        );

        let signer = printed.issuer_of(served);
        let authority = printed.only("Certificate", |certificate| {
            certificate["spec"]["secretName"] == signer["spec"]["ca"]["secretName"]
        });
        assert_ne!(authority, served);
        assert!(served["spec"]["isCA"].is_null() && authority["spec"]["isCA"] == true);
        assert!(printed.issuer_of(authority)["spec"]["selfSigned"].is_object());
        for webhook in printed.configuration()["webhooks"].as_array().expect("webhooks") {
            let client = webhook["clientConfig"].as_object().expect("who is asked");
            // An authority that stood here would be written over the one that cert-manager puts in, at each `kubectl apply`.
            assert_eq!(client.keys().collect::<Vec<_>>(), ["service"], "{webhook:#}");
        }
    }
}

#[test]
fn f40_the_certificate_has_the_name_and_the_service_the_port_by_which_the_api_server_asks() {
    for printed in Printed::each() {
        let hosts = printed.trusted()["spec"]["dnsNames"].as_array().expect("names");
        let service = printed.only("Service", |_| true);
        let port = &service["spec"]["ports"][0];
        for webhook in printed.configuration()["webhooks"].as_array().expect("webhooks") {
            let called = &webhook["clientConfig"]["service"];
            assert_eq!(called["name"], service["metadata"]["name"]);
            assert_eq!(called["namespace"], printed.namespace);
            assert_eq!(called["port"], port["port"]);
            // What the API server holds the certificate against: the name of the Service, whatever address it has.
            let host = format!("{}.{}.svc", called["name"].as_str().expect("a name"), printed.namespace);
            assert!(hosts.contains(&Value::from(host.as_str())), "{host} in {hosts:?}");
        }
        assert_eq!(port["targetPort"], PORT);
        assert!(GUIDE.contains(&format!("`--webhook-port` ({PORT})")));
    }
}
