//! What makes two images the same one. Reads nothing.

use serde::Serialize;

use crate::digest::digest_of_everything;

/// Everything an image is made of that cannot be changed afterwards, and whose it is. What is not here may be amended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyParts {
    /// Name of the provider.
    pub provider: String,
    /// Namespace of the object. With the name: one image belongs to one object, and goes with it.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Where the bytes come from; empty when they are built.
    pub url: String,
    /// The build, as canonical JSON.
    pub build: Option<String>,
    /// The digest at the source, or where the file of sums is.
    pub digest: Option<String>,
    /// How the bytes at the source are packed.
    pub compression: String,
    /// The image's name in the cloud.
    pub image_name: String,
    /// The disk format.
    pub format: Option<String>,
    /// The container format.
    pub container_format: Option<String>,
    /// The stores it goes to.
    pub stores: Vec<String>,
}

/// The name of an image's content: 64 hexadecimal digits, the same for the same parts in every version of ours.
pub fn content_key(parts: &KeyParts) -> String {
    let digest = digest_of_everything(parts);
    digest.trim_start_matches("sha256:").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_and_whose() {
        let parts = KeyParts {
            provider: "openstack".to_owned(),
            namespace: "fleet".to_owned(),
            name: "ubuntu".to_owned(),
            url: "https://images.example/ubuntu.qcow2".to_owned(),
            ..KeyParts::default()
        };
        let other = KeyParts {
            namespace: "team".to_owned(),
            ..parts.clone()
        };
        let key = content_key(&parts);
        assert_eq!(key.len(), 64);
        assert_eq!(key, content_key(&parts.clone()));
        assert_ne!(key, content_key(&other));
    }
}
