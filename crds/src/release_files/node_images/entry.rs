//! The fields of one entry, read one by one, so that whatever is wrong can be named by its path.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{NodeImageError, NodeImages};
use crate::providers::{Provider, image_options::ImageContent};

/// What a digest of a file may be.
const DIGESTS: &str = "sha256: or sha512: and hexadecimal digits in lower case";

/// Fields of an object that were not read yet, and where it is.
#[derive(Debug)]
pub(super) struct Fields {
    at: String,
    rest: Map<String, Value>,
}

/// The entries of a provider; none without its key.
pub(super) fn entries(file: &NodeImages, provider: Provider) -> impl Iterator<Item = Fields> {
    let key = provider.definition().images_key;
    let images = file.0.get(key).into_iter().flatten().enumerate();
    images.map(move |(index, image)| {
        let mut rest = image.other.clone();
        if let Some(url) = &image.url {
            rest.insert("url".to_owned(), url.as_str().into());
        }
        if !image.create_opts.is_empty() {
            rest.insert("createOpts".to_owned(), image.create_opts.clone().into());
        }
        Fields {
            at: format!("{key}[{index}]"),
            rest,
        }
    })
}

impl Fields {
    /// The path of a field.
    pub(super) fn path(&self, field: &str) -> String {
        format!("{}.{field}", self.at)
    }

    /// Whether a field is there and was not read yet.
    pub(super) fn has(&self, field: &str) -> bool {
        self.rest.get(field).is_some_and(|value| !value.is_null())
    }

    /// A field, if it is there.
    pub(super) fn take<T: DeserializeOwned>(&mut self, field: &str) -> Result<Option<T>, NodeImageError> {
        let Some(value) = self.rest.remove(field).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|source| NodeImageError::Read {
                field: self.path(field),
                source,
            })
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, field: &str) -> Result<String, NodeImageError> {
        let text: Option<String> = self.take(field)?;
        text.filter(|text| !text.is_empty()).ok_or_else(|| self.missing(field))
    }

    /// The fields of an object, if it is there.
    pub(super) fn object(&mut self, field: &str) -> Result<Option<Self>, NodeImageError> {
        let rest: Option<Map<String, Value>> = self.take(field)?;
        Ok(rest.map(|rest| Self {
            at: self.path(field),
            rest,
        }))
    }

    /// The fields of an object that must be there.
    pub(super) fn needed(&mut self, field: &str) -> Result<Self, NodeImageError> {
        self.object(field)?.ok_or_else(|| self.missing(field))
    }

    /// A text, a number or a boolean as text, if it is there.
    pub(super) fn scalar(&mut self, field: &str) -> Result<Option<String>, NodeImageError> {
        match self.rest.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Some(value.to_string())),
            Some(Value::Array(_) | Value::Object(_)) => Err(NodeImageError::NotScalar {
                field: self.path(field),
            }),
        }
    }

    /// What the bytes must be; the fields of [`ImageContent`] that a release may set.
    pub(super) fn content(&mut self, url: &str) -> Result<ImageContent, NodeImageError> {
        for field in ["caSecretRef", "credentialsSecretRef"] {
            if self.has(field) {
                let field = self.path(field);
                return Err(NodeImageError::SecretOfRelease { field });
            }
        }
        if self.has("digest") && self.has("sums") {
            return Err(self.exclude("digest", "sums"));
        }
        if !url.is_empty() && self.has("build") {
            return Err(self.exclude("url", "build"));
        }
        let digest: Option<String> = self.take("digest")?;
        if digest.as_deref().is_some_and(|digest| !is_digest(digest)) {
            return Err(self.no_digest("digest", DIGESTS));
        }
        Ok(ImageContent {
            digest,
            sums: self.take("sums")?,
            compression: self.take("compression")?,
            build: self.take("build")?,
            ..ImageContent::default()
        })
    }

    /// Fails when a field is left that nobody read.
    pub(super) fn finish(self) -> Result<(), NodeImageError> {
        match self.rest.keys().next() {
            None => Ok(()),
            Some(field) => Err(NodeImageError::Unknown {
                field: self.path(field),
            }),
        }
    }

    pub(super) fn missing(&self, field: &str) -> NodeImageError {
        NodeImageError::Missing {
            field: self.path(field),
        }
    }

    pub(super) fn exclude(&self, field: &str, other: &str) -> NodeImageError {
        NodeImageError::Exclude {
            field: self.path(field),
            other: self.path(other),
        }
    }

    pub(super) fn no_digest(&self, field: &str, expected: &'static str) -> NodeImageError {
        NodeImageError::Digest {
            field: self.path(field),
            expected,
        }
    }
}

/// Whether a text is a digest as it stands in a spec.
pub(super) fn is_digest(text: &str) -> bool {
    let is_hex = |hex: &str, length: usize| {
        hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match text.split_once(':') {
        Some(("sha256", hex)) => is_hex(hex, 64),
        Some(("sha512", hex)) => is_hex(hex, 128),
        _ => false,
    }
}
