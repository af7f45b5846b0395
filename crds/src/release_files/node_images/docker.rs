//! The images that are in a container registry already.

use super::{
    NodeImageError, NodeImages,
    entry::{Fields, entries, is_digest},
};
use crate::providers::{Provider, docker::DockerImage};

/// The images under `dockerImages`; none when a release has no such key.
pub fn docker_images(file: &NodeImages) -> Result<Vec<DockerImage>, NodeImageError> {
    entries(file, Provider::Docker).map(image).collect()
}

/// The reference is the `url` of an entry where it has no `reference`: so other tools write it.
fn image(mut entry: Fields) -> Result<DockerImage, NodeImageError> {
    let reference = match (entry.has("reference"), entry.has("url")) {
        (true, true) => return Err(entry.exclude("reference", "url")),
        (false, true) => entry.text("url")?,
        (true | false, false) => entry.text("reference")?,
    };
    let digest: Option<String> = entry.take("digest")?;
    let is_good = |digest: &String| digest.starts_with("sha256:") && is_digest(digest);
    if digest.as_ref().is_some_and(|digest| !is_good(digest)) {
        return Err(entry.no_digest("digest", "sha256: and 64 hexadecimal digits in lower case"));
    }
    Ok(DockerImage { reference, digest })
}
