//! The real Helm on the class chart of a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;

use crate::Journey;

/// The documents that Helm renders for this namespace.
pub fn manifests(journey: &Journey, tag: &str, namespace: &str) -> Result<Vec<String>> {
    let rendered = helm_template(journey, tag, namespace)?;
    // A separator begins its line; files within objects have indented ones.
    let documents = rendered
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let documents = documents.filter(|document| !document.trim().is_empty());
    Ok(documents.map(|document| format!("{document}\n")).collect())
}

fn helm_template(journey: &Journey, tag: &str, namespace: &str) -> Result<String> {
    let helm = journey
        .lab()
        .helm
        .get("v3.19")
        .context("no helm v3.19 in the lab: run `cargo xtask setup`")?;
    let release_name: Vec<&str> = tag.splitn(5, '-').take(4).collect();
    let unpacked = tempfile::tempdir().context("failed to make a folder")?;
    let chart = in_go(&class_chart(&journey.releases.folder_of(tag))?, unpacked.path())?;
    let mut command = Command::new(helm);
    command.args(["template", &release_name.join("-")]).arg(chart);
    command.args(["--namespace", namespace]);
    let answer = command.output().context("failed to start helm")?;
    ensure!(
        answer.status.success(),
        "helm: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(String::from_utf8(answer.stdout)?)
}

fn class_chart(release: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(release)?.collect::<Result<Vec<_>, _>>()?;
    let chart = files
        .iter()
        .map(fs::DirEntry::path)
        .find(|path| path.to_string_lossy().contains("-cluster-class-"));
    chart.with_context(|| format!("no class chart in {}", release.display()))
}

/// The chart unpacked, with the Go forms of its Tera templates in their place, which Helm would take for its own.
fn in_go(chart: &Path, place: &Path) -> Result<PathBuf> {
    let packed = fs::File::open(chart).with_context(|| format!("failed to open {}", chart.display()))?;
    tar::Archive::new(GzDecoder::new(packed)).unpack(place)?;
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
