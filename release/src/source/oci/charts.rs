//! Helm charts in a registry: which versions there are, and the archive of one. Reads no archive, and chooses no version.

use super::{ManifestName, OciError, OciOptions, Repository, Wanted, manifest, registry::Registry};
use crate::{
    Digest,
    http::{HttpError, Network, StatusCode},
};

/// One repository with the versions of one chart, as `helm push` makes it. Keeps a token and nothing that it found.
#[derive(Debug)]
pub struct ChartRepository {
    registry: Registry,
}

/// A chart as a registry gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledChart {
    /// The tag of its version.
    pub tag: String,
    /// Of the manifest that had this tag.
    pub manifest: Digest,
    /// The archive, which has the digest that the manifest names.
    pub archive: Vec<u8>,
}

impl ChartRepository {
    /// Asks nobody yet.
    ///
    /// # Errors
    /// The credentials or certificates cannot be used, or the network allows no plain HTTP and it is asked for.
    pub fn new(network: &Network, options: OciOptions) -> Result<Self, HttpError> {
        let registry = Registry::new(network, options)?;
        Ok(Self { registry })
    }

    /// The versions that there are, as texts in no order of theirs; none where there is no such repository. Tags that are no whole versions, such as
    /// `latest`, are passed over, as Helm does.
    ///
    /// # Errors
    /// The registry gave no answer that can be used.
    pub async fn versions(&self) -> Result<Vec<String>, OciError> {
        match self.registry.tags().await {
            Ok(tags) => Ok(tags
                .iter()
                .map(|tag| version_of(tag))
                .filter(|text| is_version(text))
                .collect()),
            Err(OciError::MissingRepository { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The chart that has this version now, with at most `limit` bytes; `None` when there is none. Whether it is that version, its archive says.
    ///
    /// # Errors
    /// It is no chart or too large, its bytes are not those that its manifest names, or the registry gave no answer that can be used.
    pub async fn pull(&self, version: &str, limit: u64) -> Result<Option<PulledChart>, OciError> {
        let tag = tag_of(version);
        // Nothing but a tag becomes part of a URL.
        if !matches!(tag.parse(), Ok(ManifestName::Tag(_))) {
            return Ok(None);
        }
        let repository = || self.repository().clone();
        let Some(given) = self.registry.manifest(&tag).await? else {
            return Ok(None);
        };
        let read = manifest::chart(&given.bytes, given.media_type.as_deref());
        let layer = read.map_err(|source| OciError::Chart {
            repository: repository(),
            tag: tag.clone(),
            source: Box::new(source),
        })?;
        // Told before anything of it is fetched.
        let too_large = || OciError::ChartTooLarge {
            repository: repository(),
            tag: tag.clone(),
            size: layer.size,
            limit,
        };
        let room = usize::try_from(layer.size.min(limit)).map_err(|_| too_large())?;
        if layer.size > limit {
            return Err(too_large());
        }
        let wanted = || Wanted::File(format!("{} of {tag}", layer.digest));
        let response = self.registry.blob(wanted(), layer.digest, 0).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(OciError::MissingFile {
                file: format!("{} of {tag}", layer.digest),
                repository: repository(),
            });
        }
        let archive = self.registry.bytes(wanted(), response, room).await?;
        let found = Digest::of(&archive);
        if found != layer.digest {
            return Err(OciError::ChartDigest {
                repository: repository(),
                tag,
                promised: layer.digest,
                found,
            });
        }
        Ok(Some(PulledChart {
            tag,
            manifest: given.digest,
            archive: archive.to_vec(),
        }))
    }

    /// Which one it is.
    pub fn repository(&self) -> &Repository {
        &self.registry.repository
    }
}

/// Tags have no plus sign: Helm writes an underscore for it, which versions do not have.
fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

fn version_of(tag: &str) -> String {
    tag.replace('_', "+")
}

/// Whether this is a whole version by the specification of Semantic Versioning: three numbers, and what may stand behind.
pub(crate) fn is_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text
        .split_once('-')
        .map_or((text, None), |(core, pre)| (core, Some(pre)));
    let is_number = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
    };
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_before = |text: &str| is_word(text) && (is_number(text) || !text.bytes().all(|byte| byte.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_before))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_whole_versions_are_versions_and_others_are_not() {
        for (tag, version) in [
            ("1.17.4", "1.17.4"),
            ("0.1.0-rc.1", "0.1.0-rc.1"),
            ("1.2.3_build.7", "1.2.3+build.7"),
            ("1.2.3-a-b_0-1", "1.2.3-a-b+0-1"),
        ] {
            let read = version_of(tag);
            assert!(is_version(&read), "{tag}");
            assert_eq!((read.as_str(), tag_of(&read).as_str()), (version, tag));
        }
        for tag in [
            "latest",
            "v1.2.3",
            "1.2",
            "1.2.3.4",
            "1.02.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3_",
            "1.2.x",
            "sha256-00.sig",
        ] {
            assert!(!is_version(&version_of(tag)), "{tag}");
        }
    }
}
