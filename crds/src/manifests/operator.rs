//! What the core operator may do: one table with what each right is for, of which its roles and a page are made. Tests hold it against what
//! the operator asks the API server for: it asks for nothing else, and for each of these, or the table says why not.

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use strum::IntoEnumIterator;

use super::roles::CLUSTER_API_GROUP;
use crate::{GROUP, PROVIDER_GROUP};

/// A role of the operator, by where it is to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter)]
pub enum OperatorRole {
    /// Everywhere (`ClusterRoleBinding`), or in the one namespace that the operator looks after (`RoleBinding`): its work.
    Work,
    /// Everywhere, also for an operator of one namespace: what has no namespace, and who uses classes from elsewhere.
    Everywhere,
    /// In the namespace of the operator: who leads, and which shards are whose.
    Leases,
    /// In each namespace whose stacks name Secrets.
    Secrets,
    /// As the first one, unless the operator is not to look after the add-ons of clusters.
    ClusterAddons,
    /// In each namespace with Clusters whose add-ons are looked after.
    Clusters,
}

impl OperatorRole {
    /// The name of the `ClusterRole`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "clusterstack-core-operator",
            Self::Everywhere => "clusterstack-core-operator-everywhere",
            Self::Leases => "clusterstack-core-operator-leases",
            Self::Secrets => "clusterstack-core-operator-secrets",
            Self::ClusterAddons => "clusterstack-core-operator-cluster-addons",
            Self::Clusters => "clusterstack-core-operator-clusters",
        }
    }
}

/// Something that an operator may do: the core operator, unless other roles are named.
#[derive(Clone, Copy, Debug)]
pub struct OperatorRight<Role = OperatorRole> {
    /// Of which role.
    pub role: Role,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Plurals, with their subresource; `*` for all of the group.
    pub resources: &'static [&'static str],
    /// What it does to them.
    pub verbs: &'static [&'static str],
    /// Verbs that no request of our tests has, each with what it is needed for.
    pub unseen: &'static [(&'static str, &'static str)],
    /// What the right is for.
    pub purpose: &'static str,
}

/// What the operator does to the objects of releases.
pub const VERBS_OF_OBJECTS: &[&str] = &["delete", "get", "list", "patch", "watch"];

/// An apply is one request, which the API server authorises twice where it makes the object.
const MADE_BY_APPLY: (&str, &str) = (
    "create",
    "a server-side apply of what is not there is authorised as `patch` and as `create`",
);

/// All rights, in the order of the roles.
pub const OPERATOR_RIGHTS: &[OperatorRight] = &[
    OperatorRight {
        role: OperatorRole::Work,
        group: GROUP,
        resources: &["clusterstacks"],
        verbs: &["list", "watch"],
        unseen: &[],
        purpose: "what is asked for",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: GROUP,
        resources: &["clusterstackreleases"],
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        unseen: &[],
        purpose: "making, adopting and deleting releases, their finalizer, and asking whether one is still there",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: GROUP,
        resources: &["clusteraddons"],
        verbs: &["list", "watch"],
        unseen: &[("patch", "noting a call of a lifecycle hook that leaves no other trace")],
        purpose: "what lifecycle hooks of Cluster API are answered from",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: GROUP,
        resources: &["clusterstacks/status", "clusterstackreleases/status"],
        verbs: &["update"],
        unseen: &[],
        purpose: "what is told",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: GROUP,
        resources: &["clusterstacks/finalizers", "clusterstackreleases/finalizers"],
        verbs: &[],
        unseen: &[(
            "update",
            "owner references that block deletion are refused without it where the admission plugin OwnerReferencesPermissionEnforcement is on",
        )],
        purpose: "releases belong to their stack, and the provider's objects to their release",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: PROVIDER_GROUP,
        resources: &["*"],
        verbs: &["get", "list", "patch", "watch"],
        unseen: &[MADE_BY_APPLY],
        purpose: "templates and release objects of any provider; kinds that do not exist yet cannot be named",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: CLUSTER_API_GROUP,
        resources: &["clusterclasses"],
        verbs: VERBS_OF_OBJECTS,
        unseen: &[MADE_BY_APPLY],
        purpose: "objects of releases",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: "bootstrap.cluster.x-k8s.io",
        resources: &["kubeadmconfigtemplates"],
        verbs: VERBS_OF_OBJECTS,
        unseen: &[MADE_BY_APPLY],
        purpose: "objects of releases",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: "controlplane.cluster.x-k8s.io",
        resources: &["kubeadmcontrolplanetemplates"],
        verbs: VERBS_OF_OBJECTS,
        unseen: &[MADE_BY_APPLY],
        purpose: "objects of releases",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: "infrastructure.cluster.x-k8s.io",
        resources: &[
            "dockerclustertemplates",
            "dockermachinetemplates",
            "openstackclustertemplates",
            "openstackmachinetemplates",
        ],
        verbs: VERBS_OF_OBJECTS,
        unseen: &[MADE_BY_APPLY],
        purpose: "objects of releases",
    },
    OperatorRight {
        role: OperatorRole::Work,
        group: "events.k8s.io",
        resources: &["events"],
        verbs: &["create"],
        unseen: &[],
        purpose: "what happened",
    },
    OperatorRight {
        role: OperatorRole::Everywhere,
        group: CLUSTER_API_GROUP,
        resources: &["clusters"],
        verbs: &["get", "list", "watch"],
        unseen: &[],
        purpose: "which classes are in use",
    },
    OperatorRight {
        role: OperatorRole::Everywhere,
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        verbs: &["list", "watch"],
        unseen: &[],
        purpose: "which kinds there are",
    },
    OperatorRight {
        role: OperatorRole::Everywhere,
        group: GROUP,
        resources: &["clusterstackreleases"],
        verbs: &["list"],
        unseen: &[],
        purpose: "whether the release is still there whose mark an object without a namespace carries: only what was left behind is adopted or deleted",
    },
    OperatorRight {
        role: OperatorRole::Everywhere,
        group: "",
        resources: &["namespaces"],
        verbs: &["get"],
        unseen: &[],
        purpose: "telling at the start that the namespace of `--namespace` is not there; nothing fails without",
    },
    OperatorRight {
        role: OperatorRole::Leases,
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["create", "get", "update"],
        unseen: &[],
        purpose: "agreeing with other processes who works",
    },
    OperatorRight {
        role: OperatorRole::Secrets,
        group: "",
        resources: &["secrets"],
        verbs: &["get"],
        unseen: &[],
        purpose: "credentials and authorities of sources, keys and trust roots that a `spec` names",
    },
    OperatorRight {
        role: OperatorRole::ClusterAddons,
        group: GROUP,
        resources: &["clusteraddons"],
        verbs: &["create", "delete", "get", "list", "patch", "watch"],
        unseen: &[],
        purpose: "each Cluster of ours has one for as long as it is there; their finalizer and owner, and whether one is still there before the first object \
                  is written for it",
    },
    OperatorRight {
        role: OperatorRole::ClusterAddons,
        group: GROUP,
        resources: &["clusteraddons/status"],
        verbs: &["update"],
        unseen: &[],
        purpose: "what is told",
    },
    OperatorRight {
        role: OperatorRole::ClusterAddons,
        group: "controlplane.cluster.x-k8s.io",
        resources: &["kubeadmcontrolplanes"],
        verbs: &["get", "list", "watch"],
        unseen: &[],
        purpose: "how far a cluster is: of the kinds that Clusters of ours name",
    },
    OperatorRight {
        role: OperatorRole::ClusterAddons,
        group: "infrastructure.cluster.x-k8s.io",
        resources: &["dockerclusters", "openstackclusters"],
        verbs: &["get", "list", "watch"],
        unseen: &[],
        purpose: "what values of add-ons are made of: of the kinds that Clusters of ours name",
    },
    OperatorRight {
        role: OperatorRole::Clusters,
        group: "",
        resources: &["secrets"],
        verbs: &["get", "list", "watch"],
        unseen: &[
            (
                "create",
                "what the charts drew at random is kept beside the ClusterAddon",
            ),
            ("update", "what they drew since"),
        ],
        purpose: "how clusters are reached, what their charts drew at random, and values that Clusters take from Secrets; \
                  listed and watched is the metadata of those of type `cluster.x-k8s.io/secret`, and of those with the label `clusterstack.x-k8s.io/values`: \
                  without that a kubeconfig is noticed later, and a change of values when they are made for another reason",
    },
    OperatorRight {
        role: OperatorRole::Clusters,
        group: "",
        resources: &["configmaps"],
        verbs: &["get", "list", "watch"],
        unseen: &[],
        purpose: "values that Clusters take from ConfigMaps: of those with the label `clusterstack.x-k8s.io/values` the metadata, and of those that are \
                  named the content; nobody asks for them while no Cluster names one",
    },
];

/// The roles of the operator, to be bound to its service account.
pub fn core_operator_roles() -> impl Iterator<Item = ClusterRole> {
    OperatorRole::iter().map(|role| role_of(OPERATOR_RIGHTS, role, role.name()))
}

/// The role of this name with what the table says of it.
pub(super) fn role_of<Role: Copy + PartialEq>(rights: &[OperatorRight<Role>], role: Role, name: &str) -> ClusterRole {
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        rules: Some(rules(rights, role)),
        ..ClusterRole::default()
    }
}

fn rules<Role: Copy + PartialEq>(rights: &[OperatorRight<Role>], role: Role) -> Vec<PolicyRule> {
    let owned = |words: &mut dyn Iterator<Item = &&str>| words.map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let of_role = rights.iter().filter(|right| right.role == role);
    let rules = of_role.map(|right| {
        let unseen = right.unseen.iter().map(|(verb, _)| verb);
        let mut verbs = owned(&mut right.verbs.iter().chain(unseen));
        verbs.sort();
        PolicyRule {
            api_groups: Some(vec![right.group.to_owned()]),
            resources: Some(owned(&mut right.resources.iter())),
            verbs,
            ..PolicyRule::default()
        }
    });
    rules.collect()
}
