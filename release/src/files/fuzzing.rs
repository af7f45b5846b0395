//! What must hold of the descriptions of a release.

use std::{collections::BTreeMap, path::PathBuf};

use crds::{
    names::ReleaseTag,
    release_files::{
        CLUSTER_ADDON_CONFIG, ClusterAddonConfig, HASHES, Hashes, METADATA, Metadata, NODE_IMAGES, NodeImages,
        ReleaseFileError,
    },
};

use super::{AddonConfiguration, Charts, FileRef, Release, ReleaseError, limit, understanding::bounded};
use crate::{
    Digest,
    fuzzing::{Outcome, refused},
};

/// A description, taken for each of those that a release may have.
pub fn descriptions(input: &[u8]) -> Outcome {
    if input.len() as u64 > limit(METADATA) {
        return Outcome::Refused;
    }
    let text = match bounded(METADATA, input.to_vec()) {
        Ok(text) => text,
        Err(error) => return refused(&error, error.class(), error.reason()),
    };
    let all = [metadata(&text), stages(&text), images(&text), hashes(&text)];
    if all.contains(&Outcome::Accepted) {
        return Outcome::Accepted;
    }
    Outcome::Refused
}

/// A release of these files, whose bytes nobody can read.
pub(crate) fn release(tag: &ReleaseTag, files: Vec<FileRef>) -> Option<Release> {
    let named = |part: &str| files.iter().find(|file| file.name.contains(part)).cloned();
    let metadata = b"versions: {clusterStack: v1, kubernetes: v1.34.2, components: {clusterAddon: v1}}";
    Some(Release {
        tag: tag.clone(),
        digest: Digest::of_release(&files),
        metadata: Metadata::parse(metadata).ok()?,
        charts: Some(Charts {
            class_chart: named("-cluster-class-")?,
            addon_chart: named("-cluster-addon-")?,
            addons: AddonConfiguration::Values(named("cluster-addon-values")?),
            notes: Vec::new(),
        }),
        files,
        directory: PathBuf::new(),
    })
}

fn metadata(text: &[u8]) -> Outcome {
    match Metadata::parse(text) {
        Ok(metadata) => {
            assert!(metadata.kubernetes_minor().is_ok());
            let again = Metadata::parse(metadata.to_yaml().as_bytes()).ok();
            assert_eq!(again.as_ref(), Some(&metadata), "{}", metadata.to_yaml());
            Outcome::Accepted
        }
        Err(error) => told(METADATA, error),
    }
}

fn stages(text: &[u8]) -> Outcome {
    match ClusterAddonConfig::parse(text) {
        Ok(stages) => {
            let written = serde_yaml::to_string(&stages).unwrap_or_default();
            let again = ClusterAddonConfig::parse(written.as_bytes()).ok();
            assert_eq!(again.as_ref(), Some(&stages), "{written}");
            // Any map is one, with no stages.
            if stages.addon_stages.is_empty() {
                return Outcome::Refused;
            }
            Outcome::Accepted
        }
        Err(error) => told(CLUSTER_ADDON_CONFIG, error),
    }
}

fn images(text: &[u8]) -> Outcome {
    match NodeImages::parse(text) {
        Ok(NodeImages(images)) => {
            let written = serde_yaml::to_string(&images).unwrap_or_default();
            let again = NodeImages::parse(written.as_bytes())
                .ok()
                .map(|NodeImages(images)| images);
            let keys = |images: &BTreeMap<String, Vec<_>>| {
                let counts = images.iter().map(|(key, images)| (key.clone(), images.len()));
                counts.collect::<Vec<_>>()
            };
            assert_eq!(again.as_ref().map(keys), Some(keys(&images)), "{written}");
            if images.is_empty() {
                return Outcome::Refused;
            }
            Outcome::Accepted
        }
        Err(error) => told(NODE_IMAGES, error),
    }
}

fn hashes(text: &[u8]) -> Outcome {
    match Hashes::parse(text) {
        Ok(hashes) => {
            let again = Hashes::parse(hashes.to_json().as_bytes()).ok();
            assert_eq!(again.as_ref(), Some(&hashes));
            Outcome::Accepted
        }
        Err(error) => told(HASHES, error),
    }
}

fn told(file: &str, source: ReleaseFileError) -> Outcome {
    let file = file.to_owned();
    let error = ReleaseError::Parse { file, source };
    refused(&error, error.class(), error.reason())
}
