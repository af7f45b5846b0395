//! What each Kubernetes version that a Helm was built for is assumed to have.

/// The API versions that a Kubernetes minor is assumed to have.
#[derive(Clone, Copy, Debug)]
pub struct ApiVersions {
    minor: u8,
}

impl ApiVersions {
    /// Those of Kubernetes 1.`minor`, as its client library registers them.
    pub(super) const fn of_minor(minor: u8) -> Self {
        Self { minor }
    }

    /// In the order that `.Capabilities.APIVersions` shows.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        KNOWN
            .iter()
            .filter(move |(_, first, last)| (*first..=*last).contains(&self.minor))
            .map(|(name, _, _)| *name)
    }
}

/// Stands for the first or last minor of what all profiles have in common.
const OLDER: u8 = 0;
const NEWER: u8 = u8::MAX;

/// Each API version with the first and the last minor that has it.
const KNOWN: &[(&str, u8, u8)] = &[
    ("v1", OLDER, NEWER),
    ("admissionregistration.k8s.io/v1", OLDER, NEWER),
    ("admissionregistration.k8s.io/v1alpha1", OLDER, NEWER),
    ("admissionregistration.k8s.io/v1beta1", OLDER, NEWER),
    ("internal.apiserver.k8s.io/v1alpha1", OLDER, NEWER),
    ("apps/v1", OLDER, NEWER),
    ("apps/v1beta1", OLDER, NEWER),
    ("apps/v1beta2", OLDER, NEWER),
    ("authentication.k8s.io/v1", OLDER, NEWER),
    ("authentication.k8s.io/v1alpha1", OLDER, NEWER),
    ("authentication.k8s.io/v1beta1", OLDER, NEWER),
    ("authorization.k8s.io/v1", OLDER, NEWER),
    ("authorization.k8s.io/v1beta1", OLDER, NEWER),
    ("autoscaling/v1", OLDER, NEWER),
    ("autoscaling/v2", OLDER, NEWER),
    ("autoscaling/v2beta1", OLDER, 35),
    ("autoscaling/v2beta2", OLDER, 35),
    ("batch/v1", OLDER, NEWER),
    ("batch/v1beta1", OLDER, NEWER),
    ("certificates.k8s.io/v1", OLDER, NEWER),
    ("certificates.k8s.io/v1beta1", OLDER, NEWER),
    ("certificates.k8s.io/v1alpha1", OLDER, NEWER),
    ("coordination.k8s.io/v1alpha2", OLDER, NEWER),
    ("coordination.k8s.io/v1beta1", OLDER, NEWER),
    ("coordination.k8s.io/v1", OLDER, NEWER),
    ("discovery.k8s.io/v1", OLDER, NEWER),
    ("discovery.k8s.io/v1beta1", OLDER, NEWER),
    ("events.k8s.io/v1", OLDER, NEWER),
    ("events.k8s.io/v1beta1", OLDER, NEWER),
    ("extensions/v1beta1", OLDER, NEWER),
    ("flowcontrol.apiserver.k8s.io/v1", OLDER, NEWER),
    ("flowcontrol.apiserver.k8s.io/v1beta1", OLDER, NEWER),
    ("flowcontrol.apiserver.k8s.io/v1beta2", OLDER, NEWER),
    ("flowcontrol.apiserver.k8s.io/v1beta3", OLDER, NEWER),
    ("lifecycle.k8s.io/v1alpha1", 37, NEWER),
    ("networking.k8s.io/v1", OLDER, NEWER),
    ("networking.k8s.io/v1beta1", OLDER, NEWER),
    ("node.k8s.io/v1", OLDER, NEWER),
    ("node.k8s.io/v1alpha1", OLDER, NEWER),
    ("node.k8s.io/v1beta1", OLDER, NEWER),
    ("policy/v1", OLDER, NEWER),
    ("policy/v1beta1", OLDER, NEWER),
    ("rbac.authorization.k8s.io/v1", OLDER, NEWER),
    ("rbac.authorization.k8s.io/v1beta1", OLDER, NEWER),
    ("rbac.authorization.k8s.io/v1alpha1", OLDER, NEWER),
    ("resource.k8s.io/v1", OLDER, NEWER),
    ("resource.k8s.io/v1beta2", OLDER, NEWER),
    ("resource.k8s.io/v1beta1", OLDER, NEWER),
    ("resource.k8s.io/v1alpha3", OLDER, NEWER),
    ("scheduling.k8s.io/v1alpha3", 37, NEWER),
    ("scheduling.k8s.io/v1alpha2", 36, 36),
    ("scheduling.k8s.io/v1alpha1", OLDER, 35),
    ("scheduling.k8s.io/v1beta1", OLDER, NEWER),
    ("scheduling.k8s.io/v1", OLDER, NEWER),
    ("storage.k8s.io/v1beta1", OLDER, NEWER),
    ("storage.k8s.io/v1", OLDER, NEWER),
    ("storage.k8s.io/v1alpha1", OLDER, NEWER),
    ("storagemigration.k8s.io/v1", 37, NEWER),
    ("storagemigration.k8s.io/v1beta1", 35, NEWER),
    ("storagemigration.k8s.io/v1alpha1", OLDER, 34),
    ("apiextensions.k8s.io/v1beta1", OLDER, NEWER),
    ("apiextensions.k8s.io/v1", OLDER, NEWER),
];
