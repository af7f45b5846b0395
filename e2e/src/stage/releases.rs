//! Releases with images for OpenStack, without any chart: as much of one as a provider of images reads.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::providers::{
    image_status::ProviderReleaseStatus,
    openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease},
};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

use super::{API_VERSION, DISK, SECRET, Stage};
use crate::{eventually, journey::SOON};

/// The name of the image.
pub const IMAGE: &str = "ubuntu";
/// The object of the image: the stack, the image, and the version of the node images.
pub const IMAGE_OBJECT: &str = "openstack-scs-1-32-ubuntu-v1";

/// The tag of a version.
pub fn tag(version: &str) -> String {
    format!("openstack-scs-1-32-{version}")
}

impl Stage<'_> {
    /// Publishes a version whose image is the disk at the usual path, in the version v1 of node images whatever its own is.
    pub fn publish(&self, version: &str) -> Result<()> {
        self.publish_with(version, &[])
    }

    /// The same with further lines of what the image is to be.
    pub fn publish_with(&self, version: &str, options: &[&str]) -> Result<()> {
        let mut image = format!(
            "- url: {}\n  createOpts:\n    name: {IMAGE}\n    disk_format: qcow2\n    container_format: bare\n    visibility: private\n",
            self.source.url(DISK)
        );
        for option in options {
            image.extend(["    ", *option, "\n"]);
        }
        self.publish_image(version, &image)
    }

    /// Publishes a version with this one image, an entry of a list in YAML.
    pub fn publish_image(&self, version: &str, image: &str) -> Result<()> {
        let images = format!(
            "apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1\nopenStackNodeImages:\n{image}"
        );
        let metadata = format!(
            "apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\n\
             versions:\n  clusterStack: {version}\n  kubernetes: v1.32.1\n  components:\n    clusterAddon: v1\n    nodeImage: v1\n"
        );
        let files = [("metadata.yaml", metadata), ("node-images.yaml", images)];
        let folder = self.journey.folder().join("packed").join(tag(version));
        fs::create_dir_all(&folder).context("failed to make the folder of a release")?;
        for (name, text) in files {
            fs::write(folder.join(name), text).with_context(|| format!("failed to write {name}"))?;
        }
        self.journey.releases.publish(&folder)
    }

    /// Applies the release object of a tag, as the core operator does from a template.
    pub async fn want_release(&self, tag: &str) -> Result<()> {
        let object = json!({
            "apiVersion": API_VERSION, "kind": "OpenStackClusterStackRelease", "metadata": { "name": tag },
            "spec": { "identityRef": { "kind": "Secret", "name": SECRET } },
        });
        self.journey.apply(object).await.map(drop)
    }

    /// Waits until the images of a release are ready, or are not any more.
    pub async fn release_is(&self, tag: &str, ready: bool) -> Result<ProviderReleaseStatus> {
        let is_so = |release: &OpenStackClusterStackRelease| {
            let status = release.status.as_ref();
            status.is_some_and(|status| status.ready == ready && !status.conditions.is_empty())
        };
        let what = if ready {
            "its images ready"
        } else {
            "its images not ready"
        };
        let release = self.journey.until(tag, what, is_so).await?;
        release.status.context("a status")
    }

    /// Deletes a release object, and returns when it is gone.
    pub async fn delete_release(&self, tag: &str) -> Result<()> {
        self.journey.delete::<OpenStackClusterStackRelease>(tag).await?;
        self.journey.gone::<OpenStackClusterStackRelease>(tag).await
    }

    /// Waits until the image of the releases belongs to exactly these.
    pub async fn image_belongs_to(&self, tags: &[String]) -> Result<()> {
        eventually(SOON, format!("the image to belong to {tags:?}"), async || {
            let object = self
                .journey
                .api::<OpenStackNodeImageRelease>()
                .get(IMAGE_OBJECT)
                .await?;
            let mut owners: Vec<_> = object
                .owner_references()
                .iter()
                .map(|owner| owner.name.clone())
                .collect();
            owners.sort();
            ensure!(owners == tags, "{owners:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// How many image objects there are.
    pub async fn image_objects(&self) -> Result<usize> {
        let objects = self.journey.api::<OpenStackNodeImageRelease>();
        Ok(objects.list(&ListParams::default()).await?.items.len())
    }
}
