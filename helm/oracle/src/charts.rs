//! The charts that are rendered, and in which variants.

use std::{
    ffi::OsString,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// Values files of a chart are at most this long; the real Helm takes 5 MiB for any file.
const LONGEST_VALUES: u64 = 5 << 20;

/// A chart archive, with the values that it carries for its own tests.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The archive's path below the folder that was asked for.
    pub name: String,
    /// The archive.
    pub path: PathBuf,
    /// What it is rendered with.
    pub variants: Vec<Variant>,
    pub(crate) digest: [u8; 32],
}

/// One way to render a chart.
#[derive(Clone, Debug)]
pub struct Variant {
    /// `default`, `flags`, or the values file's path in the chart.
    pub name: String,
    /// What follows the chart on the command line.
    pub arguments: Vec<OsString>,
    /// Tells the arguments from all others; files count by their content.
    pub(crate) key: Vec<u8>,
}

impl Chart {
    /// Reads a chart; what it carries is written below `scratch`. An archive that cannot be read, or a link to none, carries nothing: what is
    /// to be said of it, Helm says.
    pub(crate) fn read(name: String, path: PathBuf, scratch: &Path) -> Result<Self> {
        let bytes = fs::read(&path).unwrap_or_default();
        let digest = Sha256::digest(&bytes).into();
        let flags = ["--kube-version", "1.33.0", "-n", "ns", "--include-crds"];
        let mut variants = vec![
            Variant {
                name: "default".to_owned(),
                arguments: Vec::new(),
                key: Vec::new(),
            },
            Variant {
                name: "flags".to_owned(),
                arguments: flags.map(OsString::from).to_vec(),
                key: flags.join(" ").into_bytes(),
            },
        ];
        for (file, values) in carried_values(&bytes).unwrap_or_default() {
            let target = scratch.join(hex::encode(digest)).join(&file);
            write(&target, &values)?;
            variants.push(Variant {
                name: file,
                arguments: vec!["-f".into(), target.into()],
                key: values,
            });
        }
        Ok(Self {
            name,
            path,
            variants,
            digest,
        })
    }
}

/// Every `*.tgz` below a folder, sorted.
pub(crate) fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut archives = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            archives.extend(self::archives(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "tgz") {
            archives.push(path);
        }
    }
    Ok(archives)
}

/// Packs the charts that lie below `folder` as folders into archives below `scratch`, at the same places.
pub(crate) fn pack(folder: &Path, scratch: &Path) -> Result<()> {
    for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let target = scratch.join(path.file_name().unwrap_or_default());
        if !path.join("Chart.yaml").is_file() {
            pack(&path, &target)?;
            continue;
        }
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        archive.mode(tar::HeaderMode::Deterministic);
        archive
            .append_dir_all(target.file_name().unwrap_or_default(), &path)
            .and_then(|()| archive.into_inner()?.finish())
            .with_context(|| format!("failed to pack {}", path.display()))
            .and_then(|bytes| write(&target.with_added_extension("tgz"), &bytes))?;
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    read().with_context(|| format!("unable to read {}", folder.display()))
}

/// The files `ci/*-values.yaml` of the archived chart, with their paths in it.
fn carried_values(archive: &[u8]) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries()? {
        let entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let Some((_, path)) = path.split_once('/') else {
            continue;
        };
        let name = path.strip_prefix("ci/").filter(|name| !name.contains('/'));
        if name.is_some_and(|name| name.ends_with("-values.yaml")) {
            let path = path.to_owned();
            let mut values = Vec::new();
            entry.take(LONGEST_VALUES).read_to_end(&mut values)?;
            found.push((path, values));
        }
    }
    found.sort();
    Ok(found)
}

fn write(target: &Path, bytes: &[u8]) -> Result<()> {
    let folder = target.parent().unwrap_or(target);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(target, bytes))
        .with_context(|| format!("failed to write {}", target.display()))
}
