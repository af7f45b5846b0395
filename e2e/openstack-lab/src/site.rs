//! What a test may know about a cloud: where it is, and who may log in. It says nothing about how the cloud is run.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use url::Url;

/// What runs behind the URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The fake of this room, in this process.
    Fake,
    /// Keystone and Glance themselves.
    Real,
}

/// How somebody proves who he is.
#[derive(Clone)]
pub enum Login {
    /// Name and password in the domain `Default`, for a project of that domain.
    Password {
        /// The name of the user.
        user: String,
        /// The password.
        password: String,
        /// The name of the project.
        project: String,
    },
    /// An application credential, which has its project.
    ApplicationCredential {
        /// Its id.
        id: String,
        /// Its secret.
        secret: String,
    },
}

impl Login {
    /// What Keystone is sent to log in so.
    pub(crate) fn auth(&self) -> Value {
        let auth = match self {
            Self::Password {
                user,
                password,
                project,
            } => json!({
                "identity": { "methods": ["password"], "password": { "user": {
                    "name": user, "password": password, "domain": { "name": "Default" },
                } } },
                "scope": { "project": { "name": project, "domain": { "name": "Default" } } },
            }),
            Self::ApplicationCredential { id, secret } => json!({
                "identity": { "methods": ["application_credential"], "application_credential": { "id": id, "secret": secret } },
            }),
        };
        json!({ "auth": auth })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Password { .. } => "Password",
            Self::ApplicationCredential { .. } => "ApplicationCredential",
        })
    }
}

/// What a project may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MiB of all images together.
    pub size_total: u64,
    /// MiB of all that is staged.
    pub stage_total: u64,
    /// Images.
    pub count_total: u64,
    /// Images that are sent or imported at once.
    pub count_uploading: u64,
}

impl Limits {
    /// More than a test needs.
    pub const WIDE: Self = Self {
        size_total: 100_000,
        stage_total: 100_000,
        count_total: 1000,
        count_uploading: 100,
    };
    /// 8 MiB, three images, one at a time.
    pub const TINY: Self = Self {
        size_total: 8,
        stage_total: 8,
        count_total: 3,
        count_uploading: 1,
    };
}

/// A cloud to test against.
///
/// It has the projects `demo`, `other`, `tiny` and `admin`, and a login for each name of a cloud: `openstack` (an application credential of
/// demo, role member), `demo`, `other`, `tiny`, `admin` (passwords), `reader` (may look at demo's images and no more), `images-only`
/// (restricted to the image service), `wrong-secret` and `no-such-credential`.
#[derive(Clone, Debug)]
pub struct Site {
    /// What runs behind the URLs.
    pub kind: Kind,
    /// Where tokens are given, with `/v3` at its end.
    pub keystone: Url,
    /// The image endpoint of the catalogue, without a version and without a slash at its end.
    pub glance: String,
    /// The authority to trust, in PEM, where the services speak TLS.
    pub ca: Option<String>,
    /// The region of the endpoints.
    pub region: String,
    /// Who may log in, by the name of the cloud.
    pub clouds: BTreeMap<String, Login>,
    /// The store that images are put into when nobody chooses one.
    pub default_store: String,
    /// What the project `tiny` may hold.
    pub tiny: Limits,
    /// A Python that has openstacksdk, for the one fact that asks another client.
    pub python: Option<PathBuf>,
}

impl Site {
    /// What Keystone is sent to log in so.
    pub fn auth(&self, cloud: &str) -> Result<Value> {
        let login = self.clouds.get(cloud);
        let login = login.with_context(|| format!("the site has no cloud called {cloud}"))?;
        Ok(login.auth())
    }

    /// The clouds as users of OpenStack write them down. `cacert` is where the authority lies, for clients that read it from a file.
    pub fn clouds_yaml(&self, cacert: Option<&Path>) -> String {
        let mut text = String::from("clouds:\n");
        for (name, login) in &self.clouds {
            let mut lines = vec![
                format!("{name}:"),
                format!("  region_name: {}", quoted(&self.region)),
                "  interface: public".to_owned(),
                "  identity_api_version: 3".to_owned(),
            ];
            if let Some(path) = cacert {
                lines.push(format!("  cacert: {}", quoted(&path.display().to_string())));
            }
            lines.extend(self.auth_lines(login));
            for line in lines {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    fn auth_lines(&self, login: &Login) -> Vec<String> {
        let url = format!("    auth_url: {}", quoted(self.keystone.as_str()));
        match login {
            Login::Password {
                user,
                password,
                project,
            } => vec![
                "  auth:".to_owned(),
                url,
                format!("    username: {}", quoted(user)),
                format!("    password: {}", quoted(password)),
                format!("    project_name: {}", quoted(project)),
                "    user_domain_name: Default".to_owned(),
                "    project_domain_name: Default".to_owned(),
            ],
            Login::ApplicationCredential { id, secret } => vec![
                "  auth_type: v3applicationcredential".to_owned(),
                "  auth:".to_owned(),
                url,
                format!("    application_credential_id: {}", quoted(id)),
                format!("    application_credential_secret: {}", quoted(secret)),
            ],
        }
    }
}

/// A text of JSON is one of YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
