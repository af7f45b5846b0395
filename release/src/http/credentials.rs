//! What a client proves its name with.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use crds::redaction;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{HttpError, Place};
use crate::Digest;

/// What a client proves its name with. Never printed.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A token, sent as `Bearer`.
    Bearer(SecretString),
    /// A name and a password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: SecretString,
    },
}

impl Credentials {
    /// The value of the header `Authorization`. Surrounding blanks of a token, which files and Secrets often end with, are left out.
    pub(super) fn header(&self, home: &Url) -> Result<HeaderValue, HttpError> {
        let unusable = || HttpError::InvalidCredentials {
            place: Place::origin(home),
        };
        let text = match self {
            Self::Bearer(token) if token.expose_secret().trim().is_empty() => return Err(unusable()),
            Self::Bearer(token) => format!("Bearer {}", token.expose_secret().trim()),
            Self::Basic { username, password } => {
                let pair = format!("{username}:{}", password.expose_secret());
                format!("Basic {}", BASE64_STANDARD.encode(pair))
            }
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// What nobody else may read; the pair as well, because it is sent encoded as a whole.
    fn secrets(&self) -> Vec<String> {
        match self {
            Self::Bearer(token) => vec![token.expose_secret().trim().to_owned()],
            Self::Basic { username, password } => {
                let password = password.expose_secret();
                vec![password.to_owned(), format!("{username}:{password}")]
            }
        }
    }
}

/// How many credentials are remembered, so that they are not told: what the user gave, and the last tokens that servers gave for it.
const REMEMBERED: usize = 8;

/// What a client and those made from it prove their names with: servers repeat it in what they say, and nobody else may read it there.
#[derive(Clone, Debug, Default)]
pub(super) struct Confidence(Arc<Mutex<VecDeque<Credentials>>>);

impl Confidence {
    pub(super) fn learn(&self, credentials: &Credentials) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = credentials.secrets();
        known.retain(|known| known.secrets() != secrets);
        known.push_back(credentials.clone());
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }

    pub(super) fn without_secrets(&self, words: &str) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets: Vec<String> = known.iter().flat_map(Credentials::secrets).collect();
        let told = redaction::without(words, secrets.iter().map(String::as_str));
        told.unwrap_or_else(|| redaction::HIDDEN.to_owned())
    }
}

/// In whose name a host is asked: the same for the same credentials, and useless to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Identity(Option<Digest>);

impl Identity {
    pub(super) fn of(authorization: Option<&HeaderValue>) -> Self {
        Self(authorization.map(|value| Digest::of(value.as_bytes())))
    }
}
