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

use crate::{Lab, Operator, built::Program};

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
    /// The directory of the store `default`, which has it serve the provider filestore; without it, it serves openstack, with clouds on this
    /// machine.
    pub filestore: Option<PathBuf>,
    /// Further flags; later ones win.
    pub flags: Vec<OsString>,
}

impl ProviderOptions {
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
        command.args(["--local", "--allow-plain-http", "--allow-source-network=127.0.0.0/8"]);
        // Port 0: the system chooses, and the log says which.
        command.args([
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        ]);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--namespace").arg(&self.namespace);
        command.arg("--release-dir").arg(&self.release_dir);
        command.arg("--cache-dir").arg(self.folder.join("cache"));
        if let Some(directory) = &self.filestore {
            make(directory)?;
            let mut store = OsString::from("default=");
            store.push(directory);
            command.arg("--providers=filestore").arg("--filestore").arg(store);
        } else {
            command.args(["--providers=openstack", "--allow-cloud-network=127.0.0.0/8"]);
        }
        let elected = |flag: &OsString| flag.to_string_lossy().starts_with("--leader-elect");
        if !self.flags.iter().any(elected) {
            command.arg("--leader-elect=false");
        }
        command.args(&self.flags);
        Ok(command)
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
