//! What people may do: three `ClusterRole`s, to be bound in the namespaces where they work.
//!
//! The core operator's own are in `operator`.

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{GROUP, PROVIDER_GROUP};

pub(super) const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// `clusterstack-provider`, `clusterstack-user` and `clusterstack-viewer`.
///
/// - A *provider of clusters* writes ClusterStacks and the templates of providers, and annotates releases (approvals, requests).
/// - A *user* writes Clusters and sees which classes there are.
/// - A *viewer* reads; the role is aggregated into Kubernetes' own `view`, `edit` and `admin`.
pub fn cluster_roles() -> [ClusterRole; 3] {
    [provider(), user(), viewer()]
}

fn provider() -> ClusterRole {
    let rules = vec![
        rule(GROUP, &["clusterstacks"], &[&READ[..], &WRITE[..]].concat()),
        rule(
            GROUP,
            &["clusterstackreleases", "clusteraddons"],
            &[&READ[..], &["patch", "update"]].concat(),
        ),
        // Templates and release objects of any provider; kinds that do not exist yet cannot be named.
        rule(PROVIDER_GROUP, &["*"], &[&READ[..], &WRITE[..]].concat()),
        rule(CLUSTER_API_GROUP, &["clusters", "clusterclasses"], &READ),
    ];
    role("clusterstack-provider", rules)
}

fn user() -> ClusterRole {
    let rules = vec![
        rule(CLUSTER_API_GROUP, &["clusters"], &[&READ[..], &WRITE[..]].concat()),
        rule(CLUSTER_API_GROUP, &["clusterclasses"], &READ),
        rule(
            GROUP,
            &["clusterstacks", "clusterstackreleases", "clusteraddons"],
            &READ,
        ),
    ];
    role("clusterstack-user", rules)
}

fn viewer() -> ClusterRole {
    let rules = vec![
        rule(
            GROUP,
            &["clusterstacks", "clusterstackreleases", "clusteraddons"],
            &READ,
        ),
        rule(PROVIDER_GROUP, &["*"], &READ),
        rule(CLUSTER_API_GROUP, &["clusters", "clusterclasses"], &READ),
    ];
    let mut role = role("clusterstack-viewer", rules);
    // `view` is itself aggregated into `edit`, and that into `admin`.
    role.metadata.labels = Some(
        [(
            "rbac.authorization.k8s.io/aggregate-to-view".to_owned(),
            "true".to_owned(),
        )]
        .into(),
    );
    role
}

fn role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        rules: Some(rules),
        ..ClusterRole::default()
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
