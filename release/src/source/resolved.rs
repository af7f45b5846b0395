//! What a tag stands for at one moment: the files of the release, before any byte of them is here.

use std::collections::BTreeSet;

use crds::names::ReleaseTag;

use crate::{
    Digest, FileRef, ReleaseError,
    files::{MAX_FILES, MAX_NAME_BYTES, bounded_together, is_file_name, limit},
    trust::sums::is_beside,
};

/// A file that a source offers as part of a release. All of it is what the source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name in the release.
    pub name: String,
    /// Bytes, where the source tells.
    pub size: Option<u64>,
    /// Digest of its content, where the source tells.
    pub sha256: Option<Digest>,
    /// Where in the source its bytes are; only the source can read it. Another content has another location, or another digest.
    pub location: String,
}

/// The release that a tag stood for when the source was asked: at most 64 files, each within the size that its name allows, no name twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    tag: ReleaseTag,
    files: Vec<RemoteFile>,
    beside: Vec<RemoteFile>,
    manifest: Option<Digest>,
}

impl Resolved {
    /// Takes what a source says of a release, and refuses what can be refused before anything is downloaded. Names that begin with a dot
    /// are no part of a release, and what vouches for it stands [beside](Self::beside).
    pub fn new(tag: ReleaseTag, files: impl IntoIterator<Item = RemoteFile>) -> Result<Self, ReleaseError> {
        let mut names = BTreeSet::new();
        let (mut kept, mut beside) = (Vec::new(), Vec::new());
        for file in files {
            if !is_file_name(&file.name) {
                let file = file.name.chars().take(MAX_NAME_BYTES).collect();
                return Err(ReleaseError::FileName { file });
            }
            if file.name.starts_with('.') {
                continue;
            }
            if is_beside(&file.name) {
                if !names.insert(file.name.clone()) {
                    return Err(ReleaseError::DuplicateFile { file: file.name });
                }
                beside.push(file);
                continue;
            }
            if kept.len() == MAX_FILES {
                return Err(ReleaseError::TooManyFiles { file: file.name });
            }
            let limit = limit(&file.name);
            if let Some(size) = file.size.filter(|size| *size > limit) {
                return Err(ReleaseError::FileTooLarge {
                    file: file.name,
                    size,
                    limit,
                });
            }
            if !names.insert(file.name.clone()) {
                return Err(ReleaseError::DuplicateFile { file: file.name });
            }
            kept.push(file);
        }
        bounded_together(kept.iter().filter_map(|file| file.size).sum())?;
        kept.sort_by(|left, right| left.name.cmp(&right.name));
        beside.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Self {
            tag,
            files: kept,
            beside,
            manifest: None,
        })
    }

    /// The same, as a registry has it under this manifest.
    pub(super) fn of_manifest(self, manifest: Digest) -> Self {
        Self {
            manifest: Some(manifest),
            ..self
        }
    }

    /// The tag that was resolved.
    pub fn tag(&self) -> &ReleaseTag {
        &self.tag
    }

    /// The files, sorted by name.
    pub fn files(&self) -> &[RemoteFile] {
        &self.files
    }

    /// The files that vouch for the release and are no part of it: a list of sums and its signatures. They may come and change, and the
    /// release is what it was.
    pub fn beside(&self) -> &[RemoteFile] {
        &self.beside
    }

    /// The digest of the manifest that the tag stood for, in a registry.
    pub fn manifest(&self) -> Option<Digest> {
        self.manifest
    }

    /// The digest that the release will have, if the source tells size and digest of every file: the same as [`Release::digest`](crate::Release::digest).
    pub fn digest(&self) -> Option<Digest> {
        let files: Option<Vec<FileRef>> = self.files.iter().map(RemoteFile::pinned).collect();
        files.map(|files| Digest::of_release(&files))
    }

    /// What changes whenever the source has other bytes under the tag: what is known of the release of one identity holds of it in every
    /// later answer of the same source.
    pub fn identity(&self) -> Digest {
        // Every part but the last is without spaces, so that no two lists of files have one text.
        let line = |file: &RemoteFile| {
            let size = file.size.map(|size| size.to_string()).unwrap_or_default();
            let sha256 = file.sha256.map(|digest| digest.hex()).unwrap_or_default();
            format!("{} {size} {sha256} {:?}\n", file.name, file.location)
        };
        let text: String = self.files.iter().map(line).collect();
        Digest::of(text.as_bytes())
    }
}

impl RemoteFile {
    fn pinned(&self) -> Option<FileRef> {
        Some(FileRef {
            name: self.name.clone(),
            size: self.size?,
            sha256: self.sha256?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> RemoteFile {
        RemoteFile {
            name: name.to_owned(),
            size: Some(3),
            sha256: Some(Digest::of(b"abc")),
            location: format!("files/{name}"),
        }
    }

    fn resolved(files: impl IntoIterator<Item = RemoteFile>) -> Result<Resolved, String> {
        let tag = "docker-harbor-1-34-v1".parse().unwrap();
        Resolved::new(tag, files).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_source_says_of_a_release_is_refused_before_a_byte_is_downloaded() {
        let large = |name: &str, size| RemoteFile {
            size: Some(size),
            ..file(name)
        };
        let crowd = || (0..=MAX_FILES).map(|number| file(&format!("file-{number}")));
        for (files, words) in [
            (
                vec![file("../metadata.yaml")],
                "\"../metadata.yaml\": file names must be",
            ),
            (vec![file("a/b")], "\"a/b\": file names must be"),
            (vec![file("a\\b")], "file names must be"),
            (vec![file("a b")], "file names must be"),
            (vec![file("")], "file names must be"),
            (vec![file(&"a".repeat(256))], "of at most 255 bytes"),
            (vec![file("a"), file("a")], "a: is there twice"),
            (
                vec![large("metadata.yaml", 2 << 30)],
                "metadata.yaml: has 2147483648 bytes",
            ),
            (vec![file(&" ".repeat(1 << 20))], "of at most 255 bytes"),
            (crowd().collect(), "is one file too many"),
            (
                vec![
                    large("a.tgz", 100 << 20),
                    large("b.tgz", 100 << 20),
                    large("c.tgz", 57 << 20),
                ],
                "its files have 269484032 bytes or more, and may have 268435456 together",
            ),
        ] {
            let error = resolved(files).expect_err(words);
            assert!(error.contains(words), "{error}");
            assert!(error.len() < 1000, "{error}");
        }
    }

    #[test]
    fn hidden_files_are_no_part_of_a_release() {
        let with = resolved([file("a"), file(".a.swp")]).unwrap();
        assert_eq!(with, resolved([file("a")]).unwrap());
    }

    #[test]
    fn what_vouches_for_a_release_is_no_part_of_it() {
        let unsigned = resolved([file("a")]).unwrap();
        let signed = resolved([file("sha256sums.txt.sig"), file("a"), file("sha256sums.txt")]).unwrap();
        assert_eq!(
            (signed.digest(), signed.identity()),
            (unsigned.digest(), unsigned.identity())
        );
        let beside: Vec<_> = signed.beside().iter().map(|file| file.name.as_str()).collect();
        assert_eq!(beside, ["sha256sums.txt", "sha256sums.txt.sig"]);
        let twice = resolved([file("sha256sums.txt"), file("sha256sums.txt")]).unwrap_err();
        assert!(twice.contains("is there twice"), "{twice}");
    }

    #[test]
    fn digest_is_known_before_the_download_only_where_the_source_tells_all() {
        let whole = resolved([file("a"), file("b")]).unwrap();
        let pinned: Vec<_> = whole.files().iter().filter_map(RemoteFile::pinned).collect();
        assert_eq!(whole.digest(), Some(Digest::of_release(&pinned)));
        let partly = RemoteFile {
            sha256: None,
            ..file("b")
        };
        assert_eq!(resolved([file("a"), partly]).unwrap().digest(), None);
    }

    #[test]
    fn identity_ignores_the_order_of_files_and_sees_every_part() {
        let whole = resolved([file("a"), file("b")]).unwrap().identity();
        assert_eq!(whole, resolved([file("b"), file("a")]).unwrap().identity());
        let other = [
            file("c"),
            RemoteFile {
                size: None,
                ..file("b")
            },
            RemoteFile {
                sha256: None,
                ..file("b")
            },
            RemoteFile {
                location: "elsewhere".to_owned(),
                ..file("b")
            },
        ];
        for file_b in other {
            let name = file_b.clone();
            assert_ne!(whole, resolved([file("a"), file_b]).unwrap().identity(), "{name:?}");
        }
    }
}
