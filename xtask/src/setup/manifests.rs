//! YAML of other projects, as their Go modules carry it: the CRDs of Cluster API and its providers and of cert-manager here, and what
//! [`super::managers`] asks for. Not committed: they are other projects' files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::{
    cache::{Cache, Key},
    go::Go,
};
use crate::workspace::Workspace;

/// YAML files of one module.
pub(super) struct Manifests {
    /// How the description of the lab calls them.
    pub(super) name: &'static str,
    /// Path and version, as the go tool writes them.
    pub(super) source: &'static str,
    /// The sum of the module's files as in `go.sum`.
    pub(super) sum: &'static str,
    /// The folders in it whose YAML files are meant. What is below them is not.
    pub(super) folders: &'static [&'static str],
}

/// Cluster API 1.10 stores v1beta1, which the releases use: without its managers no conversion webhook is needed.
const CRDS: [Manifests; 5] = [
    Manifests {
        name: "cluster-api",
        source: "sigs.k8s.io/cluster-api@v1.10.5",
        sum: "h1:yCTEWpbw5SaXMupG0U9GTOs13/q36dGcc9+cFdPuMdE=",
        folders: &[
            "config/crd/bases",
            "bootstrap/kubeadm/config/crd/bases",
            "controlplane/kubeadm/config/crd/bases",
        ],
    },
    Manifests {
        name: "cluster-api-docker",
        source: "sigs.k8s.io/cluster-api/test@v1.10.5",
        sum: "h1:uInODriYhKgSdjrsCdh0ZmwmNAnp+yKgJlp5EmfRXkc=",
        folders: &["infrastructure/docker/config/crd/bases"],
    },
    Manifests {
        name: "cluster-api-openstack",
        source: "sigs.k8s.io/cluster-api-provider-openstack@v0.10.5",
        sum: "h1:oLaLnX+SzdT0xsP3Inq8+usM4tvhy/J9qVmEC7rjZVQ=",
        folders: &["config/crd/bases"],
    },
    Manifests {
        name: "openstack-resource-controller",
        source: "github.com/k-orc/openstack-resource-controller@v1.0.0",
        sum: "h1:XfwU/uS2ZXldvQkICgZXU/lUoqqzN2kNo5U0s+/wEo0=",
        folders: &["config/crd/bases"],
    },
    Manifests {
        name: "cert-manager",
        source: "github.com/cert-manager/cert-manager@v1.19.1",
        sum: "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
        folders: &["deploy/crds"],
    },
];

/// A folder of CRD files for each project.
pub(super) fn fetch_crds(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    CRDS.iter()
        .map(|project| Ok((project.name.to_owned(), project.fetch(workspace, cache, go)?)))
        .collect()
}

impl Manifests {
    /// The folder with the files, below it as in the module.
    pub(super) fn fetch(&self, workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
        let key = Key::of([self.source, self.sum].iter().chain(self.folders));
        cache.entry(&format!("manifests/{}", self.name), &key, |partial| {
            let title = format!("fetch {}", self.source);
            go.step(workspace, &title, |command| {
                command.current_dir(partial).args(["mod", "download", self.source]);
            })
            .run()?;
            let module = self.locate(go, partial)?;
            self.folders
                .iter()
                .try_for_each(|folder| copy_yaml(&module.join(folder), &partial.join(folder)))
        })
    }

    /// Where the module is on this machine.
    fn locate(&self, go: &Go, folder: &Path) -> anyhow::Result<PathBuf> {
        let output = go
            .command()
            .current_dir(folder)
            .args(["mod", "download", "-json", self.source])
            .output()
            .context("failed to start go")?;
        let downloaded: Downloaded = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("go says nothing of use about {}", self.source))?;
        ensure!(
            downloaded.sum == self.sum,
            "{} has the sum {}, not {}",
            self.source,
            downloaded.sum,
            self.sum
        );
        Ok(downloaded.dir)
    }
}

/// What `go mod download -json` says about a module that is there.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
    sum: String,
}

fn copy_yaml(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to list {}", from.display()))? {
        let path = entry
            .with_context(|| format!("failed to list {}", from.display()))?
            .path();
        let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|extension| extension == "yaml"))
        else {
            continue;
        };
        let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        // Written anew instead of copied: files of the module cache are read-only, and so would be the copies.
        fs::write(to.join(name), bytes).with_context(|| format!("failed to write into {}", to.display()))?;
    }
    Ok(())
}
