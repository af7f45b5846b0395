//! The images for OpenStack, as the Go provider reads them, with a digest and more beside; or in the shape of the OpenStack resource controller.

use super::{
    NodeImageError, NodeImages,
    entry::{Fields, entries},
    orc,
};
use crate::providers::{
    Provider,
    openstack::{OpenStackCreateOptions, OpenStackImage},
};

/// The images under `openStackNodeImages`; none when a release has no such key.
pub fn openstack_images(file: &NodeImages) -> Result<Vec<OpenStackImage>, NodeImageError> {
    entries(file, Provider::OpenStack).map(image).collect()
}

fn image(mut entry: Fields) -> Result<OpenStackImage, NodeImageError> {
    if entry.has("image") {
        if let Some(other) = ["url", "createOpts"].into_iter().find(|field| entry.has(field)) {
            return Err(entry.exclude("image", other));
        }
        return orc::image(entry.needed("image")?);
    }
    let url: String = entry.take("url")?.unwrap_or_default();
    let create_opts = create_options(entry.needed("createOpts")?)?;
    let content = entry.content(&url)?;
    Ok(OpenStackImage {
        url,
        create_opts,
        content,
    })
}

fn create_options(mut options: Fields) -> Result<OpenStackCreateOptions, NodeImageError> {
    Ok(OpenStackCreateOptions {
        name: options.text("name")?,
        id: options.take("id")?,
        visibility: options.take("visibility")?,
        os_hidden: options.take("os_hidden")?,
        tags: options.take("tags")?.unwrap_or_default(),
        container_format: options.take("container_format")?,
        disk_format: options.take("disk_format")?,
        min_disk: options.take("min_disk")?,
        min_ram: options.take("min_ram")?,
        protected: options.take("protected")?,
        properties: options.take("properties")?.unwrap_or_default(),
    })
}
