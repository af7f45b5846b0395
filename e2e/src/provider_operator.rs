//! A provider operator as a process of its own, as its user would start one, and the Secret by which it finds a cloud. What becomes of images is up to
//! it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use openstack_lab::Site;
use serde_json::{Value, json};

use crate::{FaultProxy, Identity, Journey, Lab, Operator, built::Program, operator::sources_of_this_machine};

/// How a provider operator is started.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// Whom it talks to and as whom.
    pub kubeconfig: PathBuf,
    /// The namespace it looks after; all when empty.
    pub namespace: String,
    /// The directory of releases.
    pub release_dir: PathBuf,
    /// Its log and what it downloads are here; made when it is not there.
    pub folder: PathBuf,
    /// Whose images it brings.
    pub destination: Destination,
    /// Further flags; later ones win.
    pub flags: Vec<OsString>,
}

/// Where a provider operator brings images.
#[derive(Clone, Debug)]
pub enum Destination {
    /// The directory of the store `default` of the provider filestore; made when it is not there.
    FileStore(PathBuf),
    /// Clouds on this machine, which Secrets name.
    OpenStack,
    /// Registries, where images are already.
    Docker,
}

impl ProviderOptions {
    /// One for the namespace and the releases of a journey, with an identity of its own.
    pub async fn of(journey: &Journey, destination: Destination) -> Result<Self> {
        Ok(Self {
            kubeconfig: journey
                .control_plane()
                .kubeconfig_for(&identity_in(&journey.namespace))
                .await?,
            namespace: journey.namespace.clone(),
            release_dir: journey.releases.root().to_owned(),
            folder: journey.folder().join("provider"),
            destination,
            flags: Vec::new(),
        })
    }

    /// The same one, that talks to the API server by way of a proxy.
    pub async fn by_way_of(self, proxy: &FaultProxy) -> Result<Self> {
        let kubeconfig = proxy.kubeconfig_for(&identity_in(&self.namespace)).await?;
        Ok(Self { kubeconfig, ..self })
    }

    /// Starts one without waiting for anything.
    pub fn start(&self, lab: &Lab) -> Result<Operator> {
        Operator::start_as(lab, &self.command()?, &self.log())
    }

    /// The file that its log is appended to.
    pub fn log(&self) -> PathBuf {
        self.folder.join("provider-operator.log")
    }

    /// The command line, for whoever starts it otherwise.
    pub fn command(&self) -> Result<Command> {
        make(&self.folder)?;
        let mut command = Command::new(Program::ProviderOperator.path()?);
        command.arg("--local");
        command.args(sources_of_this_machine(&self.folder.join("cache")));
        // Port 0: the system chooses, and the log says which.
        command.args([
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        ]);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--namespace").arg(&self.namespace);
        command.arg("--release-dir").arg(&self.release_dir);
        match &self.destination {
            Destination::FileStore(directory) => {
                make(directory)?;
                let mut store = OsString::from("default=");
                store.push(directory);
                command.arg("--providers=filestore").arg("--filestore").arg(store)
            }
            Destination::OpenStack => command.args(["--providers=openstack", "--allow-cloud-network=127.0.0.0/8"]),
            Destination::Docker => command.arg("--providers=docker"),
        };
        let elected = |flag: &OsString| flag.to_string_lossy().starts_with("--leader-elect");
        if !self.flags.iter().any(elected) {
            command.arg("--leader-elect=false");
        }
        command.args(&self.flags);
        Ok(command)
    }
}

fn identity_in(namespace: &str) -> Identity {
    Identity::User {
        name: format!("provider-{namespace}"),
        groups: vec!["system:masters".to_owned()],
    }
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))
}

/// The Secret of this name with the clouds of a site, of which objects use `openstack`; without namespace.
pub fn identity(name: &str, site: &Site) -> Value {
    let mut data = json!({ "clouds.yaml": site.clouds_yaml(None) });
    if let Some(ca) = &site.ca {
        data["cacert"] = ca.as_str().into();
    }
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data })
}
