//! A release as files in one flat directory: which there must be, what they must say, and reading them again later.
//!
//! Opening verifies everything once, by streaming, and pins every file by its digest; afterwards only names, sizes and digests are in
//! memory. What opened is readable only as long as it is byte for byte what was verified.

pub(crate) mod conditions;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod stages;
mod understanding;
mod verification;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use crds::{
    names::ReleaseTag,
    release_files::{CLUSTER_ADDON_CONFIG, ClusterAddonConfig, HASHES, METADATA, Metadata, NODE_IMAGES},
};

pub use self::error::ReleaseError;
pub(crate) use self::{
    understanding::{Files, understand},
    verification::{Stamp, Stamps, stamps},
};
use crate::{Digest, description};

/// Real releases have at most eight files.
pub(crate) const MAX_FILES: usize = 64;
/// Largest archive, in bytes.
pub(crate) const MAX_ARCHIVE_BYTES: u64 = 100 << 20;
/// Largest file of any other kind, in bytes, unless it is a description.
pub(crate) const MAX_TEXT_BYTES: u64 = 5 << 20;

/// Largest release, in bytes of all files: real ones stay below 300 KiB.
pub(crate) const MAX_RELEASE_BYTES: u64 = 256 << 20;

/// One file of a release, pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The name in the directory of the release.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Digest of the content.
    pub sha256: Digest,
}

/// How the values and the order of the add-on charts are given.
#[derive(Clone, Debug, PartialEq)]
pub enum AddonConfiguration {
    /// Several charts, applied in stages: `clusteraddon.yaml`. Every stage's chart is in the archive.
    Stages(ClusterAddonConfig),
    /// One chart: the values template `cluster-addon-values.yaml`.
    Values(FileRef),
}

/// What a release is opened for. It decides which files there must be and which are looked into; all that there are get pinned either way, so that
/// a release has one digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// For clusters: its charts are there, and are charts.
    #[default]
    Clusters,
    /// For its node images alone: the metadata and node-images.yaml are there. Charts may be missing, and nobody looks into those that are not.
    /// Without node-images.yaml it has no images, which is believed only if all else is there that clusters need.
    NodeImages,
}

/// The charts of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Charts {
    /// The Helm chart of the `ClusterClass` and its templates.
    pub class_chart: FileRef,
    /// The archive with the chart, or with one chart per stage, of the add-ons.
    pub addon_chart: FileRef,
    /// How the add-ons are applied.
    pub addons: AddonConfiguration,
    /// What nobody could check before there is a cluster, and what its maker may not have meant, a sentence each.
    pub notes: Vec<String>,
}

/// A release whose files were all read, understood and found to belong together. Its descriptions can be looked at; its bytes only come
/// out of [`Admitted`](crate::Admitted).
#[derive(Clone, Debug)]
pub struct Release {
    /// The name of the release.
    pub tag: ReleaseTag,
    /// Digest over names, sizes and digests of all files; the same for the same files from any source.
    pub digest: Digest,
    /// The versions of the release. The stack's version and the Kubernetes minor are those of the tag.
    pub metadata: Metadata,
    /// Its charts; always there in what was opened for [clusters](Purpose::Clusters); `None` where nobody looked into them.
    pub charts: Option<Charts>,
    /// All files, sorted by name.
    pub files: Vec<FileRef>,
    directory: PathBuf,
}

impl Release {
    /// Reads and verifies the directory of a release that is for clusters. Blocks; memory does not grow with the size of the archives.
    pub fn open(directory: &Path, tag: &ReleaseTag) -> Result<Self, ReleaseError> {
        Self::open_for(Purpose::Clusters, directory, tag)
    }

    /// The same for another purpose.
    pub fn open_for(purpose: Purpose, directory: &Path, tag: &ReleaseTag) -> Result<Self, ReleaseError> {
        verification::open(purpose, directory, tag)
    }

    /// The digest of the class chart: the same in all releases that have the same one. Of the whole release where it was not opened for
    /// clusters.
    pub fn class_digest(&self) -> Digest {
        let charts = self.charts.as_ref();
        charts.map_or(self.digest, |charts| charts.class_chart.sha256)
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The directory that the release lies in beside others. Whoever reads it may have to wait for ever, and then so has everybody who reads
    /// others there.
    pub fn storage(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    /// The same release after its directory was renamed.
    pub(crate) fn moved_to(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// The bytes of one of [`Release::files`], exactly as they were hashed: [`ReleaseError::Changed`] if the file is another one by now.
    /// Blocks. For [`Admitted`](crate::Admitted) alone.
    pub(crate) fn read(&self, file: &FileRef) -> Result<Vec<u8>, ReleaseError> {
        let FileRef { name, size, sha256 } = file;
        let unreadable = |source| ReleaseError::ReadFile {
            file: name.clone(),
            source,
        };
        let mut bytes = Vec::new();
        // One byte more than verified shows a file that grew, without reading all of it.
        fs::File::open(self.directory.join(name))
            .and_then(|opened| opened.take(size + 1).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        if Digest::of(&bytes) == *sha256 {
            Ok(bytes)
        } else {
            Err(ReleaseError::Changed { file: name.clone() })
        }
    }
}

/// Longest name of a file, in bytes, as on Linux.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// Whether a file of a release may have this name: it is one line of a manifest, and one file in one directory on every system.
pub(crate) fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

/// Refuses a release whose files have too many bytes together.
pub(crate) fn bounded_together(size: u64) -> Result<(), ReleaseError> {
    if size > MAX_RELEASE_BYTES {
        return Err(ReleaseError::TooLarge { size });
    }
    Ok(())
}

/// The largest size, in bytes, of a file of this name.
pub(crate) fn limit(name: &str) -> u64 {
    match name {
        METADATA | CLUSTER_ADDON_CONFIG | NODE_IMAGES | HASHES => description::MAX_BYTES,
        _ if Path::new(name).extension().is_some_and(|extension| extension == "tgz") => MAX_ARCHIVE_BYTES,
        _ => MAX_TEXT_BYTES,
    }
}

/// The tag whose release is in a directory of this name; only its exact spelling, because `v01` would not be found again as `v1`.
pub(crate) fn tag_of_directory(name: &str) -> Option<ReleaseTag> {
    name.parse().ok().filter(|tag: &ReleaseTag| tag.to_string() == name)
}

/// The name of the archive with the class chart of this release.
pub(crate) fn class_chart_name(tag: &ReleaseTag) -> String {
    format!("{}-cluster-class-{}.tgz", tag.stem(), tag.version())
}

/// The name of the archive with the add-on charts of this version, which need not be the version of the release.
pub(crate) fn addon_chart_name(tag: &ReleaseTag, addon: &crds::names::StackVersion) -> String {
    format!("{}-cluster-addon-{addon}.tgz", tag.stem())
}
