//! An image in the shape of `spec` of an Image of the OpenStack resource controller (openstack.k-orc.cloud/v1alpha1), as many stacks have it.
//!
//! Only `resource` is read: whose credentials are used and what becomes of the image, the objects of the cluster say, not the release. A field
//! that is not known is an error.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    NodeImageError,
    entry::{Fields, is_digest},
};
use crate::providers::{
    image_options::{Compression, ImageContent},
    openstack::{OpenStackCreateOptions, OpenStackImage},
};

/// Fields of `properties.hardware`, and the properties of Glance that they are.
const HARDWARE: [(&str, &str); 11] = [
    ("cdromBus", "hw_cdrom_bus"),
    ("cpuCores", "hw_cpu_cores"),
    ("cpuPolicy", "hw_cpu_policy"),
    ("cpuSockets", "hw_cpu_sockets"),
    ("cpuThreadPolicy", "hw_cpu_thread_policy"),
    ("cpuThreads", "hw_cpu_threads"),
    ("diskBus", "hw_disk_bus"),
    ("qemuGuestAgent", "hw_qemu_guest_agent"),
    ("rngModel", "hw_rng_model"),
    ("scsiModel", "hw_scsi_model"),
    ("vifModel", "hw_vif_model"),
];
/// The same of `properties.operatingSystem`.
const OPERATING_SYSTEM: [(&str, &str); 2] = [("distro", "os_distro"), ("version", "os_version")];
/// The same of `properties` itself.
const PROPERTIES: [(&str, &str); 2] = [("architecture", "architecture"), ("hypervisorType", "hypervisor_type")];

/// How a file is compressed, in the controller's words.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decompress {
    Xz,
    Gz,
    Bz2,
}

/// The image that an entry's `image` asks for.
pub(super) fn image(mut image: Fields) -> Result<OpenStackImage, NodeImageError> {
    let mut resource = image.needed("resource")?;
    image.finish()?;
    let mut content = resource.needed("content")?;
    let mut create_opts = OpenStackCreateOptions {
        name: resource.text("name")?,
        visibility: resource.take("visibility")?,
        tags: resource.take("tags")?.unwrap_or_default(),
        protected: resource.take("protected")?,
        // The controller's own default.
        container_format: Some(content.take("containerFormat")?.unwrap_or_else(|| "bare".to_owned())),
        disk_format: Some(content.text("diskFormat")?),
        ..OpenStackCreateOptions::default()
    };
    if let Some(mut properties) = resource.object("properties")? {
        create_opts.min_disk = properties.take("minDiskGB")?;
        create_opts.min_ram = properties.take("minMemoryMB")?;
        create_opts.properties = glance_properties(properties)?;
    }
    resource.finish()?;
    let (url, bytes) = download(content.needed("download")?)?;
    content.finish()?;
    Ok(OpenStackImage {
        url,
        create_opts,
        content: bytes,
    })
}

fn glance_properties(mut properties: Fields) -> Result<BTreeMap<String, String>, NodeImageError> {
    let mut found = BTreeMap::new();
    for (field, names) in [("hardware", &HARDWARE[..]), ("operatingSystem", &OPERATING_SYSTEM[..])] {
        if let Some(mut group) = properties.object(field)? {
            found.extend(named(&mut group, names)?);
            group.finish()?;
        }
    }
    found.extend(named(&mut properties, &PROPERTIES)?);
    properties.finish()?;
    Ok(found)
}

fn named(fields: &mut Fields, names: &[(&str, &str)]) -> Result<BTreeMap<String, String>, NodeImageError> {
    let mut found = BTreeMap::new();
    for (field, property) in names {
        if let Some(value) = fields.scalar(field)? {
            found.insert((*property).to_owned(), value);
        }
    }
    Ok(found)
}

fn download(mut download: Fields) -> Result<(String, ImageContent), NodeImageError> {
    let url = download.text("url")?;
    let compression = match download.take("decompress")? {
        // The controller decompresses nothing that it is not told to.
        None => Compression::None,
        Some(Decompress::Xz) => Compression::Xz,
        Some(Decompress::Gz) => Compression::Gzip,
        Some(Decompress::Bz2) => Compression::Bzip2,
    };
    let digest = download.object("hash")?.map(digest).transpose()?;
    download.finish()?;
    let content = ImageContent {
        digest,
        compression: Some(compression),
        ..ImageContent::default()
    };
    Ok((url, content))
}

fn digest(mut hash: Fields) -> Result<String, NodeImageError> {
    let (algorithm, value) = (hash.text("algorithm")?, hash.text("value")?);
    if matches!(algorithm.as_str(), "md5" | "sha1") {
        let field = hash.path("algorithm");
        return Err(NodeImageError::WeakDigest { field, algorithm });
    }
    if !matches!(algorithm.as_str(), "sha256" | "sha512") {
        return Err(hash.no_digest("algorithm", "sha256 or sha512"));
    }
    let digest = format!("{algorithm}:{value}");
    if !is_digest(&digest) {
        return Err(hash.no_digest("value", "64 (sha256) or 128 (sha512) hexadecimal digits in lower case"));
    }
    hash.finish()?;
    Ok(digest)
}
