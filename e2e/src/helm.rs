//! The real Helm on the charts of a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{
    Journey, Lab,
    releases::{ADD_ONS, CLASS, archive},
};

/// How the Go operator calls the add-ons of every cluster, and where it has them.
const ADD_ON: &str = "cluster-addon";
/// The namespace of whatever of them names none.
pub const ADD_ON_NAMESPACE: &str = "kube-system";

/// The documents that Helm renders for this namespace from the class chart of a release.
pub fn manifests(journey: &Journey, tag: &str, namespace: &str) -> Result<Vec<String>> {
    let release_name: Vec<&str> = tag.splitn(5, '-').take(4).collect();
    let unpacked = tempfile::tempdir().context("failed to make a folder")?;
    let chart = in_go(&archive(&journey.releases.folder_of(tag), CLASS)?, unpacked.path())?;
    template(journey.lab(), |command| {
        command.arg(release_name.join("-")).arg(chart);
        command.args(["--namespace", namespace]);
    })
}

/// The folders of the charts of the add-ons of a release, which has them in stages; unpacked into this place.
pub fn add_ons(release: &Path, place: &Path) -> Result<Vec<PathBuf>> {
    unpack(&archive(release, ADD_ONS)?, place)?;
    let entries = fs::read_dir(place)?.collect::<Result<Vec<_>, _>>()?;
    let mut charts: Vec<_> = entries
        .iter()
        .map(fs::DirEntry::path)
        .filter(|path| path.is_dir())
        .collect();
    charts.sort();
    Ok(charts)
}

/// The documents that Helm renders from one of these charts, called as the Go operator does for a cluster for which the chart has these values.
pub fn manifests_of_add_on(lab: &Lab, chart: &Path, kubernetes: &str, values: &Value) -> Result<Vec<String>> {
    let given = chart.with_extension("values.json");
    fs::write(&given, values.to_string()).with_context(|| format!("failed to write {}", given.display()))?;
    template(lab, |command| {
        command
            .args(["--include-crds", "--kube-version", kubernetes, ADD_ON])
            .arg(chart);
        command.args(["--namespace", ADD_ON_NAMESPACE, "-f"]).arg(given);
    })
}

/// Runs `helm template` of the version that releases have by default.
fn template(lab: &Lab, call: impl FnOnce(&mut Command)) -> Result<Vec<String>> {
    let helm = lab
        .helm
        .get("v3.19")
        .context("no helm v3.19 in the lab: run `cargo xtask setup`")?;
    let mut command = Command::new(helm);
    command.arg("template");
    call(&mut command);
    let answer = command.output().context("failed to start helm")?;
    ensure!(
        answer.status.success(),
        "helm: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(documents(&String::from_utf8(answer.stdout)?))
}

fn documents(rendered: &str) -> Vec<String> {
    // A separator begins its line; files within objects have indented ones.
    let documents = rendered
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let documents = documents.filter(|document| !document.trim().is_empty());
    documents.map(|document| format!("{document}\n")).collect()
}

fn unpack(archive: &Path, place: &Path) -> Result<()> {
    let packed = fs::File::open(archive).with_context(|| format!("failed to open {}", archive.display()))?;
    let unpacked = tar::Archive::new(GzDecoder::new(packed)).unpack(place);
    unpacked.with_context(|| format!("failed to unpack {}", archive.display()))
}

/// The chart unpacked, with the Go forms of its Tera templates in their place, which Helm would take for its own.
fn in_go(chart: &Path, place: &Path) -> Result<PathBuf> {
    unpack(chart, place)?;
    let folder = fs::read_dir(place)?.next().context("an empty chart")??.path();
    for template in fs::read_dir(folder.join("templates"))? {
        let template = template?.path();
        if template.extension().is_some_and(|end| end == "tera") {
            let in_go = template.with_extension("yaml");
            let name = in_go.file_name().context("a template has a name")?;
            let form = Path::new(env!("CARGO_MANIFEST_DIR")).join("stacks/go_forms").join(name);
            fs::copy(&form, &in_go).with_context(|| format!("{} has no Go form", template.display()))?;
            fs::remove_file(&template)?;
        }
    }
    Ok(folder)
}
