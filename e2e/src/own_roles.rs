//! An operator that is nobody but the service account to which its users bind its roles: what these do not allow, it cannot do.

use anyhow::{Context, Result, ensure};
use crds::manifests::{OperatorRole, core_operator_roles};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{Identity, Journey, eventually, journey::SOON};

/// The service account.
pub const ACCOUNT: &str = "core-operator";

/// A role of the operator bound to its account.
fn bound(kind: &str, role: OperatorRole, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.name() },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace }],
    })
}

/// Gives a service account of the journey's namespace the operator's roles, as an installation for this namespace does, and makes the operator use it. No
/// Secret is readable with them. The answer is the name of the user.
pub async fn with_its_own_roles(journey: &mut Journey) -> Result<String> {
    let namespace = journey.namespace.clone();
    for role in core_operator_roles() {
        journey.apply_for_all(serde_json::to_value(role)?).await?;
    }
    let (role, everywhere) = (OperatorRole::Everywhere, format!("{ACCOUNT}-of-{namespace}"));
    let binding = bound("ClusterRoleBinding", role, &everywhere, &namespace);
    journey.apply_for_all(binding).await?;
    for role in [OperatorRole::Work, OperatorRole::Leases, OperatorRole::ClusterAddons] {
        bind(journey, role).await?;
    }
    let flags = [
        "--leader-elect=true".to_owned(),
        format!("--leader-elect-namespace={namespace}"),
    ];
    journey.options.flags = flags.map(Into::into).to_vec();
    let account = Identity::service_account(&namespace, ACCOUNT);
    journey.options.kubeconfig = journey.control_plane().kubeconfig_for(&account).await?;
    Ok(format!("system:serviceaccount:{namespace}:{ACCOUNT}"))
}

async fn bind(journey: &Journey, role: OperatorRole) -> Result<()> {
    let binding = bound("RoleBinding", role, role.name(), &journey.namespace);
    journey.apply(binding).await.map(drop)
}

/// Binds a role with which Secrets of the journey's namespace can be read, and waits until the API server knows.
pub async fn bind_for_secrets(journey: &Journey, user: &str, role: OperatorRole) -> Result<()> {
    bind(journey, role).await?;
    // The API server learns of a binding from its own watch.
    eventually(SOON, "the right to read Secrets", async || {
        ensure!(may(journey, user, "get", "secrets").await?, "not yet");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Whether a user may do something in the journey's namespace, in the words of the API server.
pub async fn may(journey: &Journey, user: &str, verb: &str, resource: &str) -> Result<bool> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(journey.namespace.clone()),
                verb: Some(verb.to_owned()),
                resource: Some(resource.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews = Api::<SubjectAccessReview>::all(journey.client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("no verdict")?.allowed)
}
