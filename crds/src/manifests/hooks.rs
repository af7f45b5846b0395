//! The Service of the hook server, and the ExtensionConfig by which the managers of Cluster API hear of it. Names are those of the Go operator: applying ours
//! replaces its own.
//!
//! Written as JSON: the types are those of Cluster API's own CRDs, which a test holds these against.

use std::iter;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::certificates::HOOK_SECRET;
use super::webhooks::{SERVICE_PORT, service_of_the_operator};
use crate::hooks::PORT;

const CONFIGURATION: &str = "cso-hook-server-extensionconfig";
pub(super) const SERVICE: &str = "cso-hook-server-svc";
/// Every namespace has it, with its own name.
const NAME_OF_A_NAMESPACE: &str = "kubernetes.io/metadata.name";

/// The Service that the hook server is reached by in this namespace: the Pods of the operator need its label.
pub fn hook_service(namespace: &str) -> Service {
    service_of_the_operator(SERVICE, PORT, namespace)
}

/// What tells Cluster API to call an operator in this namespace, in the one API version that all minors from 1.10 to 1.14 serve.
///
/// It is asked about the Clusters of these namespaces, of every namespace when there are none. Cluster API cannot be told of classes, so that an operator
/// that is down holds up whoever it is asked about (F40). Cluster API puts the CA in, which cert-manager has written into the Secret.
pub fn extension_config<'a>(namespace: &str, clusters: impl IntoIterator<Item = &'a str>) -> Value {
    let mut clusters = clusters.into_iter();
    let selector = match clusters.next() {
        None => json!({}),
        Some(first) => {
            let namespaces: Vec<&str> = iter::once(first).chain(clusters).collect();
            json!({ "matchExpressions": [{ "key": NAME_OF_A_NAMESPACE, "operator": "In", "values": namespaces }] })
        }
    };
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1alpha1", "kind": "ExtensionConfig",
        "metadata": {
            "name": CONFIGURATION,
            "annotations": { "runtime.cluster.x-k8s.io/inject-ca-from-secret": format!("{namespace}/{HOOK_SECRET}") },
        },
        "spec": {
            "clientConfig": { "service": { "namespace": namespace, "name": SERVICE, "port": SERVICE_PORT } },
            "namespaceSelector": selector,
        },
    })
}
