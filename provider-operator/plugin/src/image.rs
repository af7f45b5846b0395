//! Which image is meant, and what it shall be. Plain values without behaviour; the names in them are checked when they are made.

use std::{convert::Infallible, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::Pinned;

/// An image in the cloud, in the cloud's own words. Opaque to everybody but its provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageId(pub String);

impl fmt::Display for ImageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What an image is made of and whose it is, as one digest: 64 lower-case hex digits. A provider stores and compares it and never makes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentKey(String);

impl ContentKey {
    /// The key in this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_key.then(|| Self(text.to_owned()))
    }

    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ContentKey {
    type Error = ImageError;

    fn try_from(text: String) -> Result<Self, ImageError> {
        Self::parse(&text).ok_or(ImageError::ParseKey { text })
    }
}

impl From<ContentKey> for String {
    fn from(key: ContentKey) -> Self {
        key.0
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One installation of the operator: 1 to 64 letters, digits, dots, dashes and underscores. Images that carry another one are strangers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerId(String);

impl OwnerId {
    /// The owner in this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_owner = (1..=64).contains(&text.len()) && text.bytes().all(is_word);
        is_owner.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for OwnerId {
    type Error = ImageError;

    fn try_from(text: String) -> Result<Self, ImageError> {
        Self::parse(&text).ok_or(ImageError::ParseOwner { text })
    }
}

impl From<OwnerId> for String {
    fn from(owner: OwnerId) -> Self {
        owner.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why a text is not the name of something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// No [`ContentKey`].
    #[error("{text:?} is not a content key, which is 64 lower-case hex digits")]
    ParseKey {
        /// What it was.
        text: String,
    },
    /// No [`OwnerId`].
    #[error(
        "{text:?} is not the name of an installation, which is 1 to 64 letters, digits, dots, dashes and underscores"
    )]
    ParseOwner {
        /// What it was.
        text: String,
    },
}

/// The number of a record of one object, from 1. The same object never uses one twice.
pub type Attempt = u32;

/// What the image shall be called and have, in the provider's own words.
pub type CreateOptions = Map<String, Value>;

/// Whose image is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// The installation that owns the image.
    pub owner: OwnerId,
    /// The object that the image belongs to, and no other: `namespace/name`.
    pub object: String,
    /// What the object wants now. Its older images have other keys.
    pub key: ContentKey,
    /// The name of the image for people and for clusters that look for it by name.
    pub name: String,
    /// The image that was noted down for the object. A hint to find it fast: marks decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<ImageId>,
    /// The image that was made last for what the object wants now, where that is known: the one that was noted down may be of an earlier content. A hint
    /// like that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<ImageId>,
    /// The attempt that was noted down for what the object wants now. A hint like that: its record may be there though no list shows it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// An image that somebody else made and that the object shall use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<ImageId>,
    /// Whether images of the same name that are not ours are wanted too. They cost another call.
    #[serde(default)]
    pub look_for_others: bool,
    /// Which of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reach: Reach,
    /// Whether the image that was noted down was all there was a while ago: where it is still there and ours, nobody needs to look for more. Where a look
    /// at everything costs no more, that may be done all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_recorded: bool,
}

impl Subject {
    /// The record of this object with this attempt.
    pub fn marked(&self, attempt: Attempt) -> Marked {
        Marked {
            owner: self.owner.clone(),
            object: self.object.clone(),
            attempt,
            holder: None,
        }
    }
}

/// How far images of others are looked for by their name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reach {
    /// Those that lie where ours would: one that lies elsewhere would not be used, and takes no name from ours.
    BesideOurs,
    /// Also those that lie elsewhere and are shown to us by whoever may say so: the cloud, or an owner whose offer was accepted.
    #[default]
    Shown,
    /// Also those that their owners, who may be anybody, give to everybody in the cloud. Anybody can keep them from being listed: then there are none but
    /// the one that was noted down, and it is no error.
    Everybody,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One record, by the marks that it must carry. They name no other one: an object uses no attempt twice, for whatever content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The installation that owns it.
    pub owner: OwnerId,
    /// The object that it was made for: `namespace/name`.
    pub object: String,
    /// The number it was made with.
    pub attempt: Attempt,
    /// Who must hold it, where that matters: whoever decides about an image that no object of his is for, or whose object is being deleted, leaves alone
    /// what another installation has taken over. `None` for whoever has the object and keeps it.
    pub holder: Option<OwnerId>,
}

/// What an image shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageSpec {
    /// Whose it is.
    pub subject: Subject,
    /// The provider's own options. [`Provider::check`](crate::Provider::check) has found them good.
    #[serde(default)]
    pub options: CreateOptions,
    /// What its bytes are, if that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The digest of the bytes at the source, as they are there; marked on the image for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_digest: Option<Pinned>,
    /// The id that users want it to have, where the cloud lets them choose; only for the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_id: Option<ImageId>,
    /// Where inside the cloud it shall be stored; empty: where the cloud likes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<String>,
}

/// What the bytes of an image are. Written as clouds write it: `raw`, `qcow2`, …
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Format {
    /// The disk as it is.
    Raw,
    /// QEMU's, versions 2 and 3.
    Qcow2,
    /// Of `VMware`.
    Vmdk,
    /// The older one of Virtual PC and Hyper-V, also called `vpc`.
    Vhd,
    /// The newer one of Hyper-V.
    Vhdx,
    /// Of `VirtualBox`.
    Vdi,
    /// A CD.
    Iso,
    /// Whatever else a cloud knows, in its word; nothing is known about its bytes.
    Other(String),
}

impl Format {
    /// The word of clouds for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Vmdk => "vmdk",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::Vdi => "vdi",
            Self::Iso => "iso",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for Format {
    fn from(text: String) -> Self {
        match text.as_str() {
            "raw" => Self::Raw,
            "qcow2" => Self::Qcow2,
            "vmdk" => Self::Vmdk,
            "vhd" | "vpc" => Self::Vhd,
            "vhdx" => Self::Vhdx,
            "vdi" => Self::Vdi,
            "iso" => Self::Iso,
            _ => Self::Other(text),
        }
    }
}

impl FromStr for Format {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text.to_owned()))
    }
}

impl From<Format> for String {
    fn from(format: Format) -> Self {
        format.as_str().to_owned()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
