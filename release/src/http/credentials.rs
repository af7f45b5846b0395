//! What a client proves its name with.

use base64::{Engine, prelude::BASE64_STANDARD};
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
}

/// In whose name a host is asked: the same for the same credentials, and useless to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Identity(Option<Digest>);

impl Identity {
    pub(super) fn of(authorization: Option<&HeaderValue>) -> Self {
        Self(authorization.map(|value| Digest::of(value.as_bytes())))
    }
}
