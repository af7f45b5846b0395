//! How we prove to Keystone who we are: what is sent for a token. Pure; it sends nothing.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

/// How we prove who we are.
#[derive(Clone, Debug)]
pub enum Auth {
    /// By name and password.
    Password {
        /// Who.
        user: Who,
        /// The password.
        password: SecretString,
        /// For what.
        scope: Scope,
    },
    /// By an application credential, which is good for one project.
    ApplicationCredential {
        /// Which.
        by: CredentialName,
        /// Its secret.
        secret: SecretString,
    },
    /// By another token.
    Token {
        /// The token.
        token: SecretString,
        /// For what.
        scope: Scope,
    },
}

/// Which application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialName {
    /// The one with this id.
    Id(String),
    /// The one that a user calls so.
    OfUser {
        /// Its name.
        name: String,
        /// Whose.
        user: Who,
    },
}

/// What a token is to be good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A project.
    Project(Who),
    /// The cloud itself.
    System,
}

/// A user, a project or a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// By its id.
    Id(String),
    /// By its name; domains alone are in no domain.
    Name {
        /// The name.
        name: String,
        /// The domain that the name is of.
        domain: Option<Box<Self>>,
    },
}

impl Who {
    /// One of this name in a domain.
    pub fn named(name: String, domain: Self) -> Self {
        Self::Name {
            name,
            domain: Some(Box::new(domain)),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name { name, domain: None } => json!({ "name": name }),
            Self::Name {
                name,
                domain: Some(domain),
            } => json!({ "name": name, "domain": domain.value() }),
        }
    }
}

impl Auth {
    /// What Keystone is sent. It holds the secret.
    pub fn body(&self) -> Value {
        let auth = match self {
            Self::Password { user, password, scope } => {
                let mut user = user.value();
                user["password"] = password.expose_secret().into();
                json!({
                    "identity": { "methods": ["password"], "password": { "user": user } },
                    "scope": scope.value(),
                })
            }
            Self::ApplicationCredential { by, secret } => {
                let mut credential = match by {
                    CredentialName::Id(id) => json!({ "id": id }),
                    CredentialName::OfUser { name, user } => json!({ "name": name, "user": user.value() }),
                };
                credential["secret"] = secret.expose_secret().into();
                // It has its project, and Keystone refuses another word about it.
                json!({ "identity": { "methods": ["application_credential"], "application_credential": credential } })
            }
            Self::Token { token, scope } => json!({
                "identity": { "methods": ["token"], "token": { "id": token.expose_secret() } },
                "scope": scope.value(),
            }),
        };
        json!({ "auth": auth })
    }

    /// What nobody else may read.
    pub(crate) fn secret(&self) -> &SecretString {
        match self {
            Self::Password { password, .. } => password,
            Self::ApplicationCredential { secret, .. } => secret,
            Self::Token { token, .. } => token,
        }
    }
}

impl Scope {
    fn value(&self) -> Value {
        match self {
            Self::Project(project) => json!({ "project": project.value() }),
            Self::System => json!({ "system": { "all": true } }),
        }
    }
}
