//! What things are called in a directory of images. Pure: touches nothing.
//!
//! ```text
//! DIR/node-image-v2              a published image, for everybody to read
//! DIR/node-image-v2.sha256       its digest, as `sha256sum` writes it
//! DIR/.parts/KEY.ATTEMPT.json    the marks of a record: whose it is. Made once, and never changed
//! DIR/.parts/KEY.ATTEMPT.part    its bytes: the same file as the published one, once it is published
//! DIR/.parts/KEY.ATTEMPT.state   what is known of the bytes
//! DIR/.parts/KEY.ATTEMPT.holder  which installation works on it, where that is not its owner any more
//! DIR/.parts/KEY.ATTEMPT.WORD.new    what is about to become one of these
//! ```

use std::path::{Path, PathBuf};

use provider_plugin::{Attempt, ContentKey, ImageId};

/// Where records lie.
const PARTS: &str = ".parts";
/// So many digits of a key name a record; its marks have all of them.
const KEY: usize = 16;
/// The longest name of an image, in bytes: what file systems take, without what is put behind it.
const LONGEST: usize = 200;

/// One record, by its name: the beginning of its key, and its attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stem(String);

impl Stem {
    pub(crate) fn new(key: &ContentKey, attempt: Attempt) -> Self {
        Self(format!("{}.{attempt}", &key.as_str()[..KEY]))
    }

    /// The record that an id names, if it is an id of ours.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        let (key, attempt) = id.split_once('.')?;
        let is_key = key.len() == KEY && key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_attempt = attempt
            .parse::<Attempt>()
            .is_ok_and(|number| number.to_string() == attempt);
        (is_key && is_attempt).then(|| Self(id.to_owned()))
    }

    pub(crate) fn id(&self) -> ImageId {
        ImageId(self.0.clone())
    }

    /// The record of a file in the folder of records, if it is the file that makes it one.
    pub(crate) fn of_marks(name: &str) -> Option<Self> {
        Self::parse(name.strip_suffix(".json")?)
    }

    /// Whether a file in the folder of records belongs to this one.
    pub(crate) fn has(&self, name: &str) -> bool {
        name.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// A directory of images.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    directory: PathBuf,
}

impl Layout {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn parts(&self) -> PathBuf {
        self.directory.join(PARTS)
    }

    pub(crate) fn marks(&self, stem: &Stem) -> PathBuf {
        self.parts().join(format!("{}.json", stem.0))
    }

    pub(crate) fn part(&self, stem: &Stem) -> PathBuf {
        self.parts().join(format!("{}.part", stem.0))
    }

    pub(crate) fn state(&self, stem: &Stem) -> PathBuf {
        self.parts().join(format!("{}.state", stem.0))
    }

    pub(crate) fn holder(&self, stem: &Stem) -> PathBuf {
        self.parts().join(format!("{}.holder", stem.0))
    }

    /// Something that is about to become a file of this record; `word` tells it from all others.
    pub(crate) fn coming(&self, stem: &Stem, word: &str) -> PathBuf {
        self.parts().join(format!("{}.{word}.new", stem.0))
    }

    pub(crate) fn published(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn sums(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.sha256"))
    }
}

/// Why an image cannot be called so, if it cannot.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("an image needs a name");
    }
    if name.len() > LONGEST {
        return Some("the name of the image is longer than 200 bytes; shorten it");
    }
    if name.starts_with('.') {
        return Some("the name of the image begins with a dot; choose one that begins with a letter or a digit");
    }
    if name.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
        return Some("the name of the image has a slash or a control character; leave them out");
    }
    if name.ends_with(".sha256") {
        return Some("the name of the image ends like that of a digest; leave out .sha256");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_by_its_id_and_by_nothing_else() {
        let key = ContentKey::parse(&"0123456789abcdef".repeat(4)).unwrap();
        let stem = Stem::new(&key, 12);
        assert_eq!(stem.id(), ImageId("0123456789abcdef.12".to_owned()));
        assert_eq!(Stem::parse(&stem.id().0), Some(stem.clone()));
        assert_eq!(Stem::of_marks("0123456789abcdef.12.json"), Some(stem.clone()));
        for id in [
            "",
            "..",
            "../0123456789abcdef.12",
            "0123456789abcdef.012",
            "0123456789abcdef.-1",
            "0123456789abcdef.1.2",
            "0123456789ABCDEF.1",
            "0123456789abcdef",
            "node-image.1",
        ] {
            assert_eq!(Stem::parse(id), None, "{id}");
        }
        assert!(stem.has("0123456789abcdef.12.part") && stem.has("0123456789abcdef.12.7.new"));
        assert!(!stem.has("0123456789abcdef.123.part") && !stem.has("0123456789abcdef.1.part"));
    }

    #[test]
    fn a_name_stays_in_the_directory_and_out_of_the_way() {
        for name in ["node-image-v2", "Ubuntu 24.04 (1).img", "ubuntu.sha256.img", "ä"] {
            assert_eq!(refusal(name), None, "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            ".parts",
            "a/b",
            "/etc/passwd",
            "a\0b",
            "a\nb",
            "image.sha256",
            &"a".repeat(201),
        ] {
            assert!(refusal(name).is_some(), "{name:?}");
        }
    }
}
