//! Who the operator is before the API server, with the roles that its users bind and nothing else; and that neither it nor the programs of its Jobs ask for
//! anything that these do not give them.

use anyhow::{Result, ensure};
use crds::manifests::{ProviderOperatorRole, provider_operator_roles};
use e2e::{
    AuditEvent, Identity,
    rights::{OperatorName, PROVIDER_OPERATOR, hold_against_rights},
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

/// The user that the operator is.
const NAME: &str = "provider-of-jobs";
/// How the operator and the programs of its Jobs call themselves, as far as they are alike.
pub(crate) const AGENTS: &str = "stackwright-provider-";
/// How the programs of Jobs call themselves.
const WORKER: &str = "stackwright-provider-worker";

/// Installs the roles and binds those that hold everywhere.
pub(crate) async fn operator(client: &Client) -> Result<Identity> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    for role in provider_operator_roles() {
        roles.create(&PostParams::default(), &role).await?;
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for role in [
        ProviderOperatorRole::Work,
        ProviderOperatorRole::Everywhere,
        ProviderOperatorRole::SightOfJobs,
    ] {
        let binding = serde_json::from_value(bound(role))?;
        bindings.create(&PostParams::default(), &binding).await?;
    }
    Ok(Identity::User {
        name: NAME.to_owned(),
        groups: Vec::new(),
    })
}

/// Binds those that are for namespaces with images.
pub(crate) async fn in_namespace(client: &Client, namespace: &str) -> Result<()> {
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
    for role in [ProviderOperatorRole::Secrets, ProviderOperatorRole::Jobs] {
        let binding = serde_json::from_value(bound(role))?;
        bindings.create(&PostParams::default(), &binding).await?;
    }
    Ok(())
}

fn bound(role: ProviderOperatorRole) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": { "name": role.name() },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role.name() },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": NAME }],
    })
}

/// What was asked for was allowed, and is what the roles are for.
pub(crate) fn hold(asked: &[AuditEvent]) -> Result<()> {
    let of = |agent: &'static str| asked.iter().filter(move |event| event.user_agent.starts_with(agent));
    hold_against_rights(OperatorName::Provider, of(PROVIDER_OPERATOR))?;
    for event in of(PROVIDER_OPERATOR) {
        let (verb, uri) = (&event.verb, &event.request_uri);
        ensure!(
            event.user == NAME && event.code != 403,
            "the operator is refused {verb} {uri}"
        );
    }
    for event in of(WORKER) {
        ensure!(is_of_a_program(event), "the program of a Job asks for {event:?}");
    }
    Ok(())
}

/// The status of the object in its own namespace, patched by a service account of a Job, who may.
fn is_of_a_program(event: &AuditEvent) -> bool {
    event.object.as_ref().is_some_and(|object| {
        let account = format!("system:serviceaccount:{}:img-", object.namespace);
        event.verb == "patch"
            && ![401, 403].contains(&event.code)
            && event.user.starts_with(&account)
            && object.resource.ends_with("nodeimagereleases")
            && object.subresource == "status"
    })
}
