//! What stands between an API server and the webhooks of an operator on this machine, and between Cluster API and its hook server: certificates in a folder as
//! kubelets mount them, and the configurations with an address of loopback.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use crate::{authority::Authority, hooks::extension_configs};

/// The certificate of an operator's webhooks, and who signed it.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    authority: Authority,
    mounted: usize,
}

impl Certificates {
    /// Makes the folder and mounts the first pair.
    pub fn at(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let mut certificates = Self {
            folder: folder.to_owned(),
            authority: Authority::new()?,
            mounted: 0,
        };
        certificates.renew()?;
        Ok(certificates)
    }

    /// What makes an operator serve webhooks with them, on a port that the system chooses.
    pub fn flags(&self) -> Vec<OsString> {
        let mut directory = OsString::from("--webhook-cert-dir=");
        directory.push(&self.folder);
        vec!["--webhook-port=0".into(), directory]
    }

    /// What makes an operator answer lifecycle hooks with them, on a port that the system chooses.
    pub fn hook_flags(&self) -> Vec<OsString> {
        let mut directory = OsString::from("--hook-cert-dir=");
        directory.push(&self.folder);
        vec!["--hook-port=0".into(), directory]
    }

    /// Mounts a new pair of the same authority.
    pub fn renew(&mut self) -> Result<()> {
        let pair = self.authority.sign()?;
        self.mount(&pair.certificate, &pair.key)
    }

    /// Mounts a pair of a new authority.
    pub fn change_authority(&mut self) -> Result<()> {
        self.authority = Authority::new()?;
        self.renew()
    }

    /// Mounts what is no certificate.
    pub fn spoil(&mut self) -> Result<()> {
        self.mount("no certificate", "no key")
    }

    /// A folder of its own, and a link to it that is replaced in one step.
    fn mount(&mut self, certificate: &str, key: &str) -> Result<()> {
        self.mounted += 1;
        let name = format!("mounted-{}", self.mounted);
        let (data, next) = (self.folder.join("..data"), self.folder.join("..next"));
        let write = || -> std::io::Result<()> {
            fs::create_dir(self.folder.join(&name))?;
            for (file, text) in [("tls.crt", certificate), ("tls.key", key)] {
                fs::write(self.folder.join(&name).join(file), text)?;
                let link = self.folder.join(file);
                if fs::symlink_metadata(&link).is_err() {
                    symlink(format!("..data/{file}"), link)?;
                }
            }
            symlink(&name, &next)?;
            fs::rename(&next, &data)
        };
        write().with_context(|| format!("failed to mount a certificate at {}", self.folder.display()))
    }

    /// A client of whoever serves with them on this port of loopback. It trusts nobody else.
    pub fn client(&self, port: u16) -> Result<Client> {
        crate::use_one_cryptography();
        let url = format!("https://127.0.0.1:{port}");
        let mut config = Config::new(url.parse().context("our own URL is none")?);
        let authority = CertificateDer::from_pem_slice(self.authority.pem.as_bytes());
        config.root_cert = Some(vec![authority.context("our own certificate cannot be read")?.to_vec()]);
        config.default_retry = false;
        Client::try_from(config).with_context(|| format!("failed to make a client for {url}"))
    }

    /// What tells the API server of a webhook at this path of a port of loopback.
    pub(crate) fn client_config(&self, port: u16, path: &str) -> Value {
        let url = format!("https://127.0.0.1:{port}{path}");
        json!({ "url": url, "caBundle": BASE64_STANDARD.encode(&self.authority.pem) })
    }

    /// Tells the API server of the webhooks on this port of loopback, for these namespaces alone: the configuration that is installed, with
    /// another address. It takes the API server a moment to hear.
    pub async fn configure(&self, client: &Client, name: &str, port: u16, namespaces: &[&str]) -> Result<()> {
        let mut configuration = serde_json::to_value(crds::manifests::validating_webhook_configuration(
            crds::manifests::NAMESPACE,
        ))?;
        configuration["metadata"] = json!({ "name": name });
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
            webhook["clientConfig"] = self.client_config(port, path.context("a webhook has a path")?);
            webhook["namespaceSelector"] = json!({ "matchExpressions": [
                { "key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces },
            ] });
        }
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let applied = api
            .patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(&configuration))
            .await;
        applied.map(drop).context("failed to configure the webhooks")
    }

    /// Tells Cluster API under this name of the hook server on this port of loopback, for the Clusters of a namespace: what is installed, with another
    /// address. When it has asked for the handlers, [`Recorder::discovered`](crate::hooks::Recorder::discovered) returns.
    pub async fn extend(&self, client: &Client, name: &str, port: u16, namespace: &str) -> Result<()> {
        let mut configuration = crds::manifests::extension_config(crds::manifests::NAMESPACE, [namespace]);
        configuration["metadata"] = json!({ "name": name });
        configuration["spec"]["clientConfig"] = self.client_config(port, "");
        let configuration = serde_json::from_value(configuration)?;
        let created = extension_configs(client)
            .create(&PostParams::default(), &configuration)
            .await;
        created
            .map(drop)
            .context("failed to tell Cluster API of the hook server")
    }
}
