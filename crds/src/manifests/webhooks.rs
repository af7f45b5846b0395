//! The Service and the configuration of the validating webhooks.
//!
//! A stopped operator is in nobody's way: `Fail` stands only behind conditions that the API server evaluates by itself, and what may not
//! wait for us (every deletion) has `Ignore`.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration,
            WebhookClientConfig,
        },
        core::v1::{Service, ServicePort, ServiceSpec},
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{certificates::CERTIFICATE, roles::CLUSTER_API_GROUP};
use crate::{
    GROUP, VERSION,
    webhooks::{
        CLASS_NAME_PATTERN, CLUSTER_ADDON_PATH, CLUSTER_PATH, CLUSTER_STACK_PATH, CLUSTER_STACK_RELEASE_PATH, PORT,
        TIMEOUT_SECONDS,
    },
};

/// The configuration of the Go operator has the same name: applying ours replaces it, and with it the webhook that no Cluster passes
/// while the operator is down.
const CONFIGURATION: &str = "cso-validating-webhook-configuration";
pub(super) const SERVICE: &str = "cso-webhook-service";
pub(super) const SERVICE_PORT: i32 = 443;

/// The configuration of the webhooks of an operator in this namespace. Cert-manager puts the CA in.
pub fn validating_webhook_configuration(namespace: &str) -> ValidatingWebhookConfiguration {
    let certificate = format!("{namespace}/{CERTIFICATE}");
    let annotation = ("cert-manager.io/inject-ca-from".to_owned(), certificate);
    let mut webhooks = vec![clusters(), cluster_stacks(), cluster_stack_releases(), cluster_addons()];
    for webhook in &mut webhooks {
        if let Some(service) = &mut webhook.client_config.service {
            namespace.clone_into(&mut service.namespace);
        }
    }
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(CONFIGURATION.to_owned()),
            annotations: Some([annotation].into()),
            ..ObjectMeta::default()
        },
        webhooks: Some(webhooks),
    }
}

/// The Service that the webhooks are reached by in this namespace: the Pods of the operator need its label.
pub fn webhook_service(namespace: &str) -> Service {
    service_of_the_operator(SERVICE, PORT, namespace)
}

/// A Service of this name by which a port of the operator's Pods is reached.
pub(super) fn service_of_the_operator(name: &str, port: u16, namespace: &str) -> Service {
    let port = ServicePort {
        port: SERVICE_PORT,
        target_port: Some(IntOrString::Int(port.into())),
        ..ServicePort::default()
    };
    let selector = ("app.kubernetes.io/name".to_owned(), "core-operator".to_owned());
    Service {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            ports: Some(vec![port]),
            selector: Some([selector].into()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Whoever creates a Cluster with a class of ours, or changes its class or version, has to wait for the operator. Nobody else is asked about:
/// not Clusters of others, not what Cluster API writes, not labels, status and finalizers, not a Cluster that goes.
fn clusters() -> ValidatingWebhook {
    let ours = |object: &str| format!("{}.matches('{CLASS_NAME_PATTERN}')", class(object));
    let (new, old) = ("object", "oldObject");
    let differs = |of: fn(&str) -> String| format!("{} != {}", of(new), of(old));
    ValidatingWebhook {
        match_conditions: Some(vec![
            condition(
                "class-of-a-cluster-stack",
                format!(
                    "{} || (request.operation == 'UPDATE' && {} != '' && {})",
                    ours(new),
                    class(new),
                    ours(old)
                ),
            ),
            condition(
                "created-or-changes-class-or-version",
                format!(
                    "request.operation == 'CREATE' || {} || {} || {}",
                    differs(class),
                    differs(class_namespace),
                    differs(version)
                ),
            ),
            condition(
                "not-being-deleted",
                "!has(object.metadata.deletionTimestamp)".to_owned(),
            ),
        ]),
        ..webhook(
            "validation.cluster.cluster.x-k8s.io",
            CLUSTER_PATH,
            "Fail",
            rule(CLUSTER_API_GROUP, "*", "clusters", &["CREATE", "UPDATE"]),
        )
    }
}

fn cluster_stacks() -> ValidatingWebhook {
    ValidatingWebhook {
        match_conditions: Some(vec![not_yet_deleted()]),
        ..webhook(
            "validation.clusterstack.clusterstack.x-k8s.io",
            CLUSTER_STACK_PATH,
            "Ignore",
            rule(GROUP, VERSION, "clusterstacks", &["DELETE"]),
        )
    }
}

fn cluster_stack_releases() -> ValidatingWebhook {
    ValidatingWebhook {
        match_conditions: Some(vec![not_yet_deleted()]),
        ..webhook(
            "validation.clusterstackrelease.clusterstack.x-k8s.io",
            CLUSTER_STACK_RELEASE_PATH,
            "Ignore",
            rule(GROUP, VERSION, "clusterstackreleases", &["DELETE"]),
        )
    }
}

/// What passes the condition is what would be refused: the operator need not be there to let anything through.
fn cluster_addons() -> ValidatingWebhook {
    let namespace = |object: &str| format!("{object}.?spec.?clusterRef.?namespace.orValue('')");
    let (new, old) = (namespace("object"), namespace("oldObject"));
    ValidatingWebhook {
        match_conditions: Some(vec![condition(
            "cluster-of-another-namespace",
            format!("{new} != '' && {new} != object.metadata.namespace && {new} != {old}"),
        )]),
        ..webhook(
            "validation.clusteraddon.clusterstack.x-k8s.io",
            CLUSTER_ADDON_PATH,
            "Fail",
            rule(GROUP, VERSION, "clusteraddons", &["UPDATE"]),
        )
    }
}

/// The name of a Cluster's class in either spelling of the API, empty without one.
fn class(object: &str) -> String {
    let topology = format!("{object}.?spec.?topology");
    format!("{topology}.?classRef.?name.orValue({topology}.?class.orValue(''))")
}

fn class_namespace(object: &str) -> String {
    let topology = format!("{object}.?spec.?topology");
    format!("{topology}.?classRef.?namespace.orValue({topology}.?classNamespace.orValue(''))")
}

fn version(object: &str) -> String {
    format!("{object}.?spec.?topology.?version.orValue('')")
}

/// A second request to delete changes nothing.
fn not_yet_deleted() -> MatchCondition {
    condition(
        "not-yet-deleted",
        "!has(oldObject.metadata.deletionTimestamp)".to_owned(),
    )
}

fn condition(name: &str, expression: String) -> MatchCondition {
    MatchCondition {
        name: name.to_owned(),
        expression,
    }
}

fn webhook(name: &str, path: &str, failure_policy: &str, rule: RuleWithOperations) -> ValidatingWebhook {
    let service = ServiceReference {
        // Whoever puts the webhooks together says which.
        namespace: String::new(),
        name: SERVICE.to_owned(),
        path: Some(path.to_owned()),
        port: Some(SERVICE_PORT),
    };
    ValidatingWebhook {
        name: name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: WebhookClientConfig {
            service: Some(service),
            ..WebhookClientConfig::default()
        },
        failure_policy: Some(failure_policy.to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        rules: Some(vec![rule]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        ..ValidatingWebhook::default()
    }
}

fn rule(group: &str, version: &str, resource: &str, operations: &[&str]) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        operations: Some(operations.iter().map(|operation| (*operation).to_owned()).collect()),
        scope: Some("Namespaced".to_owned()),
    }
}
