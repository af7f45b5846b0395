//! The control plane's one binary and the guard of other programs, built from the Go module in `e2e/controlplane`.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::{
    cache::Cache,
    go::Go,
    module::{Module, Source},
};
use crate::workspace::Workspace;

/// The packages that carry the version which the server and its clients report.
const STAMPED: [&str; 2] = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];

const MODULE: Module = Module {
    folder: "e2e/controlplane",
    title: "the control plane",
    kind: "control-plane",
    programs: "./...",
};

/// The path of the binary, beside which the guard is; some four minutes on two cores the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    let linker_flags = linker_flags(&MODULE.sources(workspace)?, MODULE.folder)?;
    Ok(MODULE.build(workspace, cache, go, &linker_flags)?.join("controlplane"))
}

/// A program of Kubernetes built from modules calls itself `v0.0.0-master+$Format:%H$`, which Cluster API refuses of a server: the version is
/// stamped in, as the release of Kubernetes does it. `sources` are those of the module in `folder`.
pub(super) fn linker_flags(sources: &[Source], folder: &str) -> anyhow::Result<String> {
    let go_mod = sources
        .iter()
        .find_map(|(name, text)| (name == "go.mod").then_some(text))
        .context("no go.mod")?;
    let version = go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some("k8s.io/kubernetes"))
            .then(|| words.next())
            .flatten()
    });
    let Some(version) = version else {
        bail!("{folder}/go.mod requires no version of k8s.io/kubernetes")
    };
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        bail!("{folder}/go.mod requires k8s.io/kubernetes {version:?}, which is no version");
    };
    let stamps = STAMPED.map(|package| {
        format!(
            " -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
             -X {package}.gitTreeState=clean"
        )
    });
    Ok(format!("-s -w{}", stamps.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_the_server_is_the_one_that_go_mod_requires() {
        let go_mod = "module lab\n\nrequire (\n\tk8s.io/kubernetes v1.36.3 // indirect\n)\n";
        let flags = linker_flags(&[("go.mod".into(), go_mod.into())], "e2e/controlplane").unwrap();
        assert!(
            flags.contains("-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 "),
            "{flags}"
        );
        assert!(
            flags.contains("-X k8s.io/component-base/version.gitMinor=36 "),
            "{flags}"
        );
    }
}
