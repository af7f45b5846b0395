//! The objects of images that a release asks for: their names, their specs, and what of them must not differ between releases that share one.

use std::collections::BTreeSet;

use crds::names::ReleaseTag;
use crds::providers::docker::DockerClusterStackReleaseSpec;
use crds::providers::filestore::FileStoreClusterStackReleaseSpec;
use crds::providers::openstack::OpenStackClusterStackReleaseSpec;
use crds::providers::{Provider, ProviderImage, ProviderRelease};
use crds::release_files::{Metadata, NodeImageError, NodeImages};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::names::object_name;
use crate::digest::digest_of_everything;

/// One image that a release asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageEntry {
    /// The name of its object.
    pub name: String,
    /// The spec of its object, in the form of [`normal_spec`].
    pub spec: Value,
    /// The digest of what must not differ between releases that share the object.
    pub content: String,
}

/// A spec in one form: equal specs are equal values, whatever the API server or people have left out or added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormalSpec {
    /// All fields that this version knows, with their defaults.
    pub spec: Value,
    /// The digest of what must not differ between releases that share the object.
    pub content: String,
}

/// The images of a release cannot be told.
#[derive(Debug, Error)]
pub enum EntriesError {
    /// The spec of the release object is in a form that is not known.
    #[error("failed to read the spec of the release object")]
    ReadRelease {
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An entry of node-images.yaml cannot be used.
    #[error("failed to read the images of the release")]
    ReadImages {
        /// Which, and why.
        #[source]
        source: NodeImageError,
    },
    /// The spec of an image cannot be written.
    #[error("failed to write the spec of the image {name}")]
    WriteImage {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Two entries are for the same image.
    #[error("node-images.yaml asks for the image {name} twice; give the two different names")]
    SameName {
        /// Its name in the cloud.
        name: String,
    },
    /// There are too many.
    #[error("node-images.yaml asks for {count} images; at most {most} are brought")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
}

/// The images that a release asks of a provider, in the order of node-images.yaml; none without that file.
///
/// `spec`: of the release object, with what holds for all of its images.
///
/// # Errors
/// The spec or an entry cannot be used, or two entries have one name.
pub fn entries(
    provider: Provider,
    spec: &Value,
    file: Option<&NodeImages>,
    tag: &ReleaseTag,
    metadata: &Metadata,
) -> Result<Vec<ImageEntry>, EntriesError> {
    let Some(file) = file else { return Ok(Vec::new()) };
    match provider {
        Provider::OpenStack => of_release::<OpenStackClusterStackReleaseSpec>(spec, file, tag, metadata),
        Provider::FileStore => of_release::<FileStoreClusterStackReleaseSpec>(spec, file, tag, metadata),
        Provider::Docker => of_release::<DockerClusterStackReleaseSpec>(spec, file, tag, metadata),
    }
}

fn of_release<Release: ProviderRelease>(
    spec: &Value,
    file: &NodeImages,
    tag: &ReleaseTag,
    metadata: &Metadata,
) -> Result<Vec<ImageEntry>, EntriesError> {
    let release = Release::deserialize(spec).map_err(|source| EntriesError::ReadRelease { source })?;
    let images = release
        .images(file)
        .map_err(|source| EntriesError::ReadImages { source })?;
    let most = crds::providers::image_status::MOST_IMAGE_ROWS;
    if images.len() > most {
        let count = images.len();
        return Err(EntriesError::TooMany { count, most });
    }
    // Without a version of its own an image is as new as the stack.
    let version = metadata.node_image.as_ref().unwrap_or(&metadata.cluster_stack);
    let mut names = BTreeSet::new();
    let mut entries = Vec::with_capacity(images.len());
    for image in &images {
        let name = object_name(tag.stem(), image.name(), version);
        let NormalSpec { spec, content } = normal(image).map_err(|source| EntriesError::WriteImage {
            name: image.name().to_owned(),
            source,
        })?;
        if !names.insert(name.clone()) {
            let name = image.name().to_owned();
            return Err(EntriesError::SameName { name });
        }
        entries.push(ImageEntry { name, spec, content });
    }
    Ok(entries)
}

/// The spec of an image object in the form in which it can be compared; `None` when it is in a form that is not known.
pub fn normal_spec(provider: Provider, spec: &Value) -> Option<NormalSpec> {
    match provider {
        Provider::OpenStack => of_image::<OpenStackClusterStackReleaseSpec>(spec),
        Provider::FileStore => of_image::<FileStoreClusterStackReleaseSpec>(spec),
        Provider::Docker => of_image::<DockerClusterStackReleaseSpec>(spec),
    }
}

/// Whether an image of the one spec lies where that of the other is to, be it a cloud or a store: what is there does not move. A spec that cannot be read
/// says nothing of it.
pub(super) fn is_in_place(found: &Value, wanted: &Value) -> bool {
    let mut fields = ["identityRef", "store"].iter();
    fields.all(|field| found[*field].is_null() || found[*field] == wanted[*field])
}

fn of_image<Release: ProviderRelease>(spec: &Value) -> Option<NormalSpec> {
    let image = Release::Image::deserialize(spec).ok()?;
    normal(&image).ok()
}

fn normal<Image: ProviderImage + Serialize>(image: &Image) -> Result<NormalSpec, serde_json::Error> {
    let options = image.options();
    let content = image.content();
    // Where it goes and what its bytes are; all else may be amended.
    let fixed = (
        (image.secret(), image.store(), image.name(), image.url()),
        (&content.digest, &content.sums, &content.compression, &content.build),
        ["format", "disk_format", "container_format"].map(|option| options.get(option)),
    );
    Ok(NormalSpec {
        content: digest_of_everything(&fixed),
        spec: serde_json::to_value(image)?,
    })
}
