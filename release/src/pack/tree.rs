//! The files of a stack directory as read: path to bytes, under the limits that readers of a release have, and their hashes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    str,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crds::release_files::without_mark;

use super::PackError;
use crate::{
    Digest,
    archive::{MAX_ENTRIES, MAX_ENTRY_BYTES},
    description,
};

/// Files by their path with `/`, below the directory `origin`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Where the files came from, for messages.
    pub(super) origin: PathBuf,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Reads these files and directories of a directory, as far as they are there.
    pub(super) fn read(origin: &Path, parts: &[&str]) -> Result<Self, PackError> {
        let mut tree = Self {
            origin: origin.to_owned(),
            files: BTreeMap::new(),
        };
        for part in parts {
            let path = origin.join(part);
            match fs::symlink_metadata(&path) {
                Ok(status) if status.is_dir() => tree.add_directory(&path, &format!("{part}/"))?,
                Ok(_) => tree.add_file(&path, (*part).to_owned())?,
                Err(source) if source.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(PackError::Read { path, source }),
            }
        }
        Ok(tree)
    }

    /// Reads everything in a directory.
    pub(super) fn read_all(origin: &Path) -> Result<Self, PackError> {
        let mut tree = Self {
            origin: origin.to_owned(),
            files: BTreeMap::new(),
        };
        tree.add_directory(origin, "")?;
        Ok(tree)
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str) -> Result<(), PackError> {
        let unreadable = |source| PackError::Read {
            path: directory.to_owned(),
            source,
        };
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let Some(name) = path
                .file_name()
                .and_then(|name| name.to_str())
                .filter(|name| !name.contains('\\'))
            else {
                return Err(PackError::NotAFile {
                    path,
                    kind: "named in a way that charts cannot hold",
                });
            };
            let inside = format!("{prefix}{name}");
            let status = fs::symlink_metadata(&path).map_err(|source| PackError::Read {
                path: path.clone(),
                source,
            })?;
            if status.is_dir() {
                self.add_directory(&path, &format!("{inside}/"))?;
            } else {
                self.add_file(&path, inside)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, inside: String) -> Result<(), PackError> {
        self.add(inside, read_file(path)?)
    }

    /// Adds a file, in place of one of this path.
    pub(super) fn add(&mut self, inside: String, content: Vec<u8>) -> Result<(), PackError> {
        if self.files.len() == MAX_ENTRIES {
            return Err(PackError::TooManyFiles {
                path: self.origin.clone(),
            });
        }
        self.files.insert(inside, content);
        Ok(())
    }

    /// The files below this directory of the tree, as a tree of their own.
    pub(super) fn below(&self, directory: &str) -> Self {
        let prefix = format!("{directory}/");
        let files = self.files.iter();
        let files = files.filter_map(|(path, content)| Some((path.strip_prefix(&prefix)?.to_owned(), content.clone())));
        Self {
            origin: self.origin.join(directory),
            files: files.collect(),
        }
    }

    /// The names of the directories at the top.
    pub(super) fn directories(&self) -> BTreeSet<&str> {
        self.files
            .keys()
            .filter_map(|path| Some(path.split_once('/')?.0))
            .collect()
    }

    /// Where this file of the tree is, for messages.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.origin.join(file)
    }

    /// The hash of all names and contents as hashes.json has it, in the way of csctl: SHA-256 over one line `<hex>  <path>` per file.
    /// Empty without files.
    pub(super) fn hash(&self) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let lines = self
            .files
            .iter()
            .map(|(path, content)| format!("{}  {path}\n", Digest::of(content).hex()));
        let lines = lines.collect::<Vec<_>>().concat();
        hash(lines.as_bytes())
    }

    /// The content of a file, if it is there: of one that can be given to a parser. Without a byte order mark.
    pub(super) fn description(&self, file: &str) -> Result<Option<&[u8]>, PackError> {
        let Some(content) = self.files.get(file) else {
            return Ok(None);
        };
        if content.len() as u64 > description::MAX_BYTES {
            return Err(PackError::FileTooLarge {
                path: self.path(file),
                limit: description::MAX_BYTES,
            });
        }
        match description::bracket_too_many(content) {
            None => Ok(Some(without_mark(content))),
            Some(line) => Err(PackError::TooManyBrackets {
                path: self.path(file),
                line,
            }),
        }
    }

    /// The content of a file as text, unless it is binary. Without a byte order mark.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).and_then(|content| text(without_mark(content)))
    }
}

/// The hash of one file as hashes.json has it: Base64 of the SHA-256 without signs, in lower case.
pub(super) fn hash(content: &[u8]) -> String {
    STANDARD
        .encode(Digest::of(content))
        .replace(['/', '=', '+'], "")
        .to_lowercase()
}

/// Reads one regular file under the limit of charts.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, PackError> {
    let unreadable = |source| PackError::Read {
        path: path.to_owned(),
        source,
    };
    let status = fs::symlink_metadata(path).map_err(unreadable)?;
    if !status.is_file() {
        let kind = if status.is_symlink() {
            "a symbolic link"
        } else {
            "not a regular file"
        };
        return Err(PackError::NotAFile {
            path: path.to_owned(),
            kind,
        });
    }
    if status.len() > MAX_ENTRY_BYTES {
        return Err(PackError::FileTooLarge {
            path: path.to_owned(),
            limit: MAX_ENTRY_BYTES,
        });
    }
    fs::read(path).map_err(unreadable)
}

/// The content as text, unless it is binary.
pub(super) fn text(content: &[u8]) -> Option<&str> {
    str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

/// The line, from 1, on which this key of a YAML text stands; 1 if there is none.
pub(super) fn line_of(text: &str, key: &str) -> usize {
    let is_key = |line: &str| {
        line.trim_start_matches([' ', '-'])
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(':'))
    };
    text.lines().position(is_key).map_or(1, |index| index + 1)
}
