//! What the operator of the providers of node images may do: one table with what each right is for, of which its roles and a page are made.
//!
//! It works for all providers that it was started with, and needs no more for one than for another. What is done in Jobs needs rights of its own, in a
//! role that nobody has to bind who has no Jobs: who may make Jobs reads with them whatever a Pod may read.

use k8s_openapi::api::rbac::v1::ClusterRole;
use strum::IntoEnumIterator;

use super::operator::{OperatorRight, role_of};
use crate::{GROUP, PROVIDER_GROUP};

/// A role of the operator, by where it is to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter)]
pub enum ProviderOperatorRole {
    /// Everywhere (`ClusterRoleBinding`), or in the one namespace that the operator looks after (`RoleBinding`): its work.
    Work,
    /// Everywhere, also for an operator of one namespace: what has no namespace.
    Everywhere,
    /// In the namespace of the operator: who leads.
    Leases,
    /// In each namespace whose images name Secrets.
    Secrets,
    /// Everywhere, or in the one namespace that the operator looks after, where it has Jobs: it follows those of all namespaces in one watch.
    SightOfJobs,
    /// In each namespace whose images are built, or sent by Jobs.
    Jobs,
}

impl ProviderOperatorRole {
    /// The name of the `ClusterRole`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Work => "clusterstack-provider-operator",
            Self::Everywhere => "clusterstack-provider-operator-everywhere",
            Self::Leases => "clusterstack-provider-operator-leases",
            Self::Secrets => "clusterstack-provider-operator-secrets",
            Self::SightOfJobs => "clusterstack-provider-operator-sight-of-jobs",
            Self::Jobs => "clusterstack-provider-operator-jobs",
        }
    }
}

/// All rights, in the order of the roles. A test holds the kinds against those of the providers.
pub const PROVIDER_OPERATOR_RIGHTS: &[OperatorRight<ProviderOperatorRole>] = &[
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: GROUP,
        resources: &["clusterstackreleases"],
        verbs: &["get"],
        unseen: &[],
        purpose: "where the files of a release come from",
    },
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: PROVIDER_GROUP,
        resources: &[
            "openstackclusterstackreleases",
            "filestoreclusterstackreleases",
            "dockerclusterstackreleases",
        ],
        verbs: &["list", "patch", "watch"],
        unseen: &[],
        purpose: "which releases need images, and their finalizer",
    },
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: PROVIDER_GROUP,
        resources: &[
            "openstacknodeimagereleases",
            "filestorenodeimagereleases",
            "dockernodeimagereleases",
        ],
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        unseen: &[],
        purpose: "making, sharing, changing and deleting the objects of images, their finalizer, and whose the image in the cloud is",
    },
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: PROVIDER_GROUP,
        resources: &[
            "openstackclusterstackreleases/status",
            "filestoreclusterstackreleases/status",
            "dockerclusterstackreleases/status",
        ],
        verbs: &["update"],
        unseen: &[],
        purpose: "what is told of releases",
    },
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: PROVIDER_GROUP,
        resources: &[
            "openstacknodeimagereleases/status",
            "filestorenodeimagereleases/status",
            "dockernodeimagereleases/status",
        ],
        verbs: &["patch", "update"],
        unseen: &[],
        purpose: "what is told of images, how far a transfer is, and what was sent",
    },
    OperatorRight {
        role: ProviderOperatorRole::Work,
        group: "events.k8s.io",
        resources: &["events"],
        verbs: &["create"],
        unseen: &[],
        purpose: "what happened",
    },
    OperatorRight {
        role: ProviderOperatorRole::Everywhere,
        group: "",
        resources: &["namespaces"],
        verbs: &["get"],
        unseen: &[],
        purpose: "the identity of the installation, by which images in a cloud are known as its own",
    },
    OperatorRight {
        role: ProviderOperatorRole::Leases,
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["create", "get", "update"],
        unseen: &[],
        purpose: "agreeing with other processes who works",
    },
    OperatorRight {
        role: ProviderOperatorRole::Secrets,
        group: "",
        resources: &["secrets"],
        verbs: &["get"],
        unseen: &[],
        purpose: "credentials of clouds, and credentials and authorities of sources, that a `spec` names",
    },
    OperatorRight {
        role: ProviderOperatorRole::SightOfJobs,
        group: "batch",
        resources: &["jobs"],
        verbs: &["list", "watch"],
        unseen: &[],
        purpose: "which Jobs there are, and how they end",
    },
    OperatorRight {
        role: ProviderOperatorRole::Jobs,
        group: "batch",
        resources: &["jobs"],
        verbs: &["create", "delete", "get", "patch"],
        unseen: &[],
        purpose: "building and sending images in Jobs, ending them, and noting whose end is known",
    },
    OperatorRight {
        role: ProviderOperatorRole::Jobs,
        group: "",
        resources: &["pods"],
        verbs: &["list"],
        unseen: &[],
        purpose: "why a Job does not begin, how its program ended, and the last lines of a build",
    },
    OperatorRight {
        role: ProviderOperatorRole::Jobs,
        group: "",
        resources: &["serviceaccounts"],
        verbs: &["create", "delete", "get"],
        unseen: &[],
        purpose: "who the program of a Job is, one for each object of an image",
    },
    OperatorRight {
        role: ProviderOperatorRole::Jobs,
        group: "rbac.authorization.k8s.io",
        resources: &["roles", "rolebindings"],
        verbs: &["create", "delete", "get"],
        unseen: &[],
        purpose: "what it may: patch the status of this one object",
    },
];

/// The roles of the operator, to be bound to its service account.
pub fn provider_operator_roles() -> impl Iterator<Item = ClusterRole> {
    ProviderOperatorRole::iter().map(|role| role_of(PROVIDER_OPERATOR_RIGHTS, role, role.name()))
}
