//! The control plane's one binary, built from the Go module in `e2e/controlplane`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use super::{
    cache::{Cache, Key},
    go::Go,
};
use crate::{step::read_log, workspace::Workspace};

/// The packages that carry the version which the server and its clients report.
const STAMPED: [&str; 2] = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];

/// The path of the binary; some four minutes on two cores the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    let module = workspace.root.join("e2e/controlplane");
    let sources = sources(&module)?;
    let linker_flags = linker_flags(&sources)?;
    let parts = sources.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]);
    let key = Key::of(parts.chain([go.version.as_str(), linker_flags.as_str()]));
    let folder = cache.entry("control-plane", &key, |partial| {
        let packages = count_packages(workspace, go, &module)?;
        go.step(workspace, "build the control plane", |command| {
            // With -v every package that is compiled makes a line.
            command.current_dir(&module).args([
                "build",
                "-v",
                "-trimpath",
                "-buildvcs=false",
                "-mod=readonly",
                "-ldflags",
            ]);
            // No C compiler is needed, and the binary runs everywhere.
            command
                .env("CGO_ENABLED", "0")
                .arg(&linker_flags)
                .arg("-o")
                .arg(partial.join("controlplane"))
                .arg(".");
        })
        .expecting_lines(packages)
        .run()
        .map(drop)
    })?;
    Ok(folder.join("controlplane"))
}

/// How many packages a build from nothing compiles; fetches their modules on the way.
fn count_packages(workspace: &Workspace, go: &Go, module: &Path) -> anyhow::Result<usize> {
    let step = go.step(workspace, "fetch the modules of the control plane", |command| {
        command
            .current_dir(module)
            .env("CGO_ENABLED", "0")
            .args(["list", "-mod=readonly", "-deps", "."]);
    });
    let log = step.run()?.log;
    // Beside the packages the log has a line for each module fetched.
    Ok(read_log(&log)?.lines().filter(|line| !line.starts_with("go: ")).count())
}

/// Name and text of what the binary is made from, by name.
fn sources(module: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(module).with_context(|| format!("failed to list {}", module.display()))? {
        let path = entry
            .with_context(|| format!("failed to list {}", module.display()))?
            .path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if matches!(name, "go.mod" | "go.sum") || path.extension().is_some_and(|extension| extension == "go") {
            let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
            sources.push((name.to_owned(), text));
        }
    }
    sources.sort();
    Ok(sources)
}

/// A server built from modules calls itself `v0.0.0-master+$Format:%H$`, which Cluster API refuses: the version is stamped in, as the
/// release of Kubernetes does it.
fn linker_flags(sources: &[(String, String)]) -> anyhow::Result<String> {
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
        bail!("e2e/controlplane/go.mod requires no version of k8s.io/kubernetes")
    };
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        bail!("e2e/controlplane/go.mod requires k8s.io/kubernetes {version:?}, which is no version");
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
        let flags = linker_flags(&[("go.mod".into(), go_mod.into())]).unwrap();
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
