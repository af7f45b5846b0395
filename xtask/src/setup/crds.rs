//! The CRDs of Cluster API and its providers, and of cert-manager, as their Go modules carry them. Not committed: they are other projects' files.

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

/// One module and the folders in it whose YAML files are CRDs.
struct Module {
    /// How the description of the lab calls them.
    name: &'static str,
    /// Path and version, as the go tool writes them.
    source: &'static str,
    /// The sum of the module's files as in `go.sum`.
    sum: &'static str,
    folders: &'static [&'static str],
}

/// Cluster API 1.10 stores v1beta1, which the releases use: without its managers no conversion webhook is needed.
const MODULES: [Module; 5] = [
    Module {
        name: "cluster-api",
        source: "sigs.k8s.io/cluster-api@v1.10.5",
        sum: "h1:yCTEWpbw5SaXMupG0U9GTOs13/q36dGcc9+cFdPuMdE=",
        folders: &[
            "config/crd/bases",
            "bootstrap/kubeadm/config/crd/bases",
            "controlplane/kubeadm/config/crd/bases",
        ],
    },
    Module {
        name: "cluster-api-docker",
        source: "sigs.k8s.io/cluster-api/test@v1.10.5",
        sum: "h1:uInODriYhKgSdjrsCdh0ZmwmNAnp+yKgJlp5EmfRXkc=",
        folders: &["infrastructure/docker/config/crd/bases"],
    },
    Module {
        name: "cluster-api-openstack",
        source: "sigs.k8s.io/cluster-api-provider-openstack@v0.10.5",
        sum: "h1:oLaLnX+SzdT0xsP3Inq8+usM4tvhy/J9qVmEC7rjZVQ=",
        folders: &["config/crd/bases"],
    },
    Module {
        name: "openstack-resource-controller",
        source: "github.com/k-orc/openstack-resource-controller@v1.0.0",
        sum: "h1:XfwU/uS2ZXldvQkICgZXU/lUoqqzN2kNo5U0s+/wEo0=",
        folders: &["config/crd/bases"],
    },
    Module {
        name: "cert-manager",
        source: "github.com/cert-manager/cert-manager@v1.19.1",
        sum: "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
        folders: &["deploy/crds"],
    },
];

/// A folder of CRD files for each project.
pub(super) fn fetch(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    MODULES
        .iter()
        .map(|module| Ok((module.name.to_owned(), fetch_one(workspace, cache, go, module)?)))
        .collect()
}

fn fetch_one(workspace: &Workspace, cache: &Cache, go: &Go, module: &Module) -> anyhow::Result<PathBuf> {
    let key = Key::of([module.source, module.sum].iter().chain(module.folders));
    cache.entry(&format!("crds/{}", module.name), &key, |partial| {
        let title = format!("fetch {}", module.source);
        go.step(workspace, &title, |command| {
            command.current_dir(partial).args(["mod", "download", module.source]);
        })
        .run()?;
        let folder_of_module = locate(go, partial, module)?;
        module
            .folders
            .iter()
            .try_for_each(|folder| copy_yaml(&folder_of_module.join(folder), partial))
    })
}

/// What `go mod download -json` says about a module that is there.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
    sum: String,
}

fn locate(go: &Go, folder: &Path, module: &Module) -> anyhow::Result<PathBuf> {
    let output = go
        .command()
        .current_dir(folder)
        .args(["mod", "download", "-json", module.source])
        .output()
        .context("failed to start go")?;
    let downloaded: Downloaded = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("go says nothing of use about {}", module.source))?;
    ensure!(
        downloaded.sum == module.sum,
        "{} has the sum {}, not {}",
        module.source,
        downloaded.sum,
        module.sum
    );
    Ok(downloaded.dir)
}

fn copy_yaml(from: &Path, to: &Path) -> anyhow::Result<()> {
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
