//! Who may talk to an API server and how: addresses, credentials, kubeconfigs, clients.

use std::path::Path;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::credentials::write_private;

/// Field manager and user agent of everything that a test itself does.
const OURSELVES: &str = "e2e";
/// Longer than any test, shorter than what the API server shortens by itself.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

/// In whose name requests are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Member of `system:masters`.
    Admin,
    /// Somebody with exactly these groups (and `system:authenticated`), by impersonation.
    User {
        /// The user's name.
        name: String,
        /// Groups, beside those that every user is in.
        groups: Vec<String>,
    },
    /// A service account, with a token of its own; made when it is not there. Its namespace must be.
    ServiceAccount {
        /// The account's namespace.
        namespace: String,
        /// The account's name.
        name: String,
    },
}

impl Identity {
    /// Short for [`Identity::ServiceAccount`].
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Different for different names; groups are not part of it.
    pub(crate) fn file_name(&self) -> String {
        match self {
            Self::Admin => "admin".to_owned(),
            Self::User { name, .. } => format!("user-{}", name.replace(['/', ':'], "_")),
            Self::ServiceAccount { namespace, name } => format!("account-{namespace}-{name}"),
        }
    }
}

/// An API server's address and the administrator's credentials for it.
#[derive(Clone)]
pub struct Access {
    server: String,
    /// PEM.
    certificate_authority: String,
    token: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Access {
    pub(crate) fn admin(server: String, certificate_authority: String, token: String) -> Self {
        Self {
            server,
            certificate_authority,
            token,
        }
    }

    /// The server's URL, without a slash at the end.
    pub fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn certificate_authority(&self) -> &str {
        &self.certificate_authority
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The `user` part of a kubeconfig.
    pub(crate) async fn credentials(&self, identity: &Identity) -> Result<Value> {
        Ok(match identity {
            Identity::Admin => json!({ "token": self.token }),
            Identity::User { name, groups } => json!({ "token": self.token, "as": name, "as-groups": groups }),
            Identity::ServiceAccount { namespace, name } => {
                json!({ "token": self.service_account_token(namespace, name).await? })
            }
        })
    }

    async fn service_account_token(&self, namespace: &str, name: &str) -> Result<String> {
        let accounts = Api::<ServiceAccount>::namespaced(Box::pin(self.client(&Identity::Admin)).await?, namespace);
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
        let what = || format!("service account {namespace}/{name}");
        accounts
            .patch(name, &PatchParams::apply(OURSELVES), &Patch::Apply(account))
            .await
            .with_context(|| format!("failed to make {}", what()))?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer: TokenRequest = accounts
            .create_subresource("token", name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("failed to make a token for {}", what()))?;
        let token = answer.status.and_then(|status| status.token);
        token.with_context(|| format!("there is no token in the answer for {}", what()))
    }

    /// The kubeconfig of the administrator, as YAML.
    pub async fn admin_kubeconfig(&self) -> Result<String> {
        yaml(&self.kubeconfig(&self.credentials(&Identity::Admin).await?))
    }

    /// A kubeconfig for this server with the given `user` part.
    pub(crate) fn kubeconfig(&self, credentials: &Value) -> Value {
        let authority = BASE64_STANDARD.encode(&self.certificate_authority);
        let cluster = json!({ "server": self.server, "certificate-authority-data": authority });
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "lab", "cluster": cluster }],
            "users": [{ "name": "lab", "user": credentials }],
            "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": "lab", "namespace": "default" } }],
            "current-context": "lab",
        })
    }

    pub(crate) async fn write_kubeconfig(&self, path: &Path, identity: &Identity) -> Result<()> {
        write_kubeconfig(path, &self.kubeconfig(&self.credentials(identity).await?))
    }

    /// A client that does not repeat failed requests by itself, so that what a test counts is what it did.
    pub async fn client(&self, identity: &Identity) -> Result<Client> {
        client_of(self.kubeconfig(&self.credentials(identity).await?)).await
    }
}

/// The same, with whatever credentials a kubeconfig has.
pub(super) async fn client_of(kubeconfig: Value) -> Result<Client> {
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig).context("failed to read back our own kubeconfig")?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("failed to use our own kubeconfig")?;
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(OURSELVES)));
    let server = config.cluster_url.clone();
    Client::try_from(config).with_context(|| format!("failed to make a client for {server}"))
}

pub(crate) fn write_kubeconfig(path: &Path, kubeconfig: &Value) -> Result<()> {
    write_private(path, &yaml(kubeconfig)?)
}

pub(super) fn yaml(kubeconfig: &Value) -> Result<String> {
    serde_yaml::to_string(kubeconfig).context("failed to write a kubeconfig as YAML")
}
