//! Release directories for tests: a good one, to which a test does one thing.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use crds::names::ReleaseTag;
use flate2::{Compression, write::GzEncoder};
use release::{Admitted, Release, Verification, admit};
use tar::{Builder, EntryType, Header};

/// The tag of [`good_release`] in version v1.
pub(crate) const TAG: &str = "docker-harbor-1-34-v1";

pub(crate) fn tag(text: &str) -> ReleaseTag {
    text.parse().expect("the test gives a valid tag")
}

/// The release as its bytes can be read: under a policy that trusts everybody.
pub(crate) fn admitted(release: &Release) -> Admitted {
    admit(Arc::new(release.clone()), Verification::Off).expect("nothing is required")
}

/// An archive under construction.
pub(crate) struct Archive(Builder<GzEncoder<Vec<u8>>>);

impl Archive {
    pub(crate) fn new() -> Self {
        Self(Builder::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    pub(crate) fn chart(directory: &str) -> Self {
        Self::new().file(
            &format!("{directory}/Chart.yaml"),
            format!("name: {directory}\nversion: v1\n").as_bytes(),
        )
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, None, content)
    }

    /// Writes the name as it is, also where the tar crate would refuse it.
    pub(crate) fn entry(mut self, kind: EntryType, name: &str, link: Option<&str>, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(link) = link {
            header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        self.0.append(&header, content).expect("memory takes every byte");
        self
    }

    /// An entry with this long name, in the way of GNU.
    pub(crate) fn long(self, kind: EntryType, name: &str) -> Self {
        let named = self.entry(EntryType::GNULongName, "././@LongLink", None, name.as_bytes());
        named.entry(kind, "short", Some("link"), b"")
    }

    /// A file with nothing in it and a map of its holes in this many blocks.
    pub(crate) fn sparse(mut self, name: &str, blocks: usize) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(EntryType::GNUSparse);
        header.set_size(0);
        if let Some(gnu) = header.as_gnu_mut() {
            gnu.isextended[0] = 1;
            gnu.realsize[0] = b'0';
        }
        header.set_cksum();
        let mut map = vec![0; 512 * blocks];
        (1..blocks).for_each(|block| map[512 * block - 8] = 1);
        self.0.append(&header, map.as_slice()).expect("memory takes every byte");
        self
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let encoder = self.0.into_inner().expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    }
}

/// Writes a complete release with a class chart and one add-on chart below `root` and gives its directory.
pub(crate) fn good_release(root: &Path, text: &str) -> PathBuf {
    let tag = tag(text);
    let directory = root.join("cluster-stacks").join(text);
    write_release(&directory, &tag);
    directory
}

pub(crate) fn write_release(directory: &Path, tag: &ReleaseTag) {
    fs::create_dir_all(directory).unwrap();
    let (stem, version) = (tag.stem(), tag.version());
    fs::write(
        directory.join("metadata.yaml"),
        metadata(&version.to_string(), "v1.34.2"),
    )
    .unwrap();
    let class = format!("{stem}-cluster-class");
    fs::write(
        directory.join(format!("{class}-{version}.tgz")),
        Archive::chart(&class).bytes(),
    )
    .unwrap();
    let addon = format!("{stem}-cluster-addon");
    fs::write(
        directory.join(format!("{addon}-{version}.tgz")),
        Archive::chart(&addon).bytes(),
    )
    .unwrap();
    fs::write(directory.join("cluster-addon-values.yaml"), "values: |\n").unwrap();
}

pub(crate) fn metadata(version: &str, kubernetes: &str) -> String {
    format!(
        "apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n  clusterStack: {version}\n  kubernetes: {kubernetes}\n  \
         components:\n    clusterAddon: {version}\n    nodeImage: {version}\n"
    )
}

/// The whole chain of an error, as an operator prints it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
