//! The CRDs of the providers of node images.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::finished;
use crate::{
    VERSION, labels,
    providers::{
        Provider,
        docker::{DockerClusterStackRelease, DockerClusterStackReleaseTemplate, DockerNodeImageRelease},
        filestore::{FileStoreClusterStackRelease, FileStoreClusterStackReleaseTemplate, FileStoreNodeImageRelease},
        openstack::{OpenStackClusterStackRelease, OpenStackClusterStackReleaseTemplate, OpenStackNodeImageRelease},
    },
};

/// The CRDs of one provider, in the order release object, its template, image object.
pub fn provider_definitions(provider: Provider) -> [CustomResourceDefinition; 3] {
    let definitions = match provider {
        Provider::OpenStack => [
            OpenStackClusterStackRelease::crd(),
            OpenStackClusterStackReleaseTemplate::crd(),
            OpenStackNodeImageRelease::crd(),
        ],
        Provider::FileStore => [
            FileStoreClusterStackRelease::crd(),
            FileStoreClusterStackReleaseTemplate::crd(),
            FileStoreNodeImageRelease::crd(),
        ],
        Provider::Docker => [
            DockerClusterStackRelease::crd(),
            DockerClusterStackReleaseTemplate::crd(),
            DockerNodeImageRelease::crd(),
        ],
    };
    definitions.map(|definition| {
        let mut definition = finished(definition, &format!("cluster-stack-provider-{provider}"));
        let contract = (labels::CONTRACT_V1ALPHA1.to_owned(), VERSION.to_owned());
        definition.metadata.labels.get_or_insert_default().extend([contract]);
        definition
    })
}
