//! What lies outside of this room: the real binaries, our own, the charts of the repository and of the corpus.
//!
//! Reads the description that `cargo xtask setup` writes; builds and fetches nothing.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

const LAB_VARIABLE: &str = "STACKWRIGHT_LAB";
const CORPUS_VARIABLE: &str = "STACKWRIGHT_CORPUS";

/// The programs that are compared.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Real Helm, by profile (`v3.19`).
    pub helm: BTreeMap<String, PathBuf>,
    /// Our `helm-template`.
    pub ours: PathBuf,
}

impl Lab {
    /// Reads the file that the environment variable `STACKWRIGHT_LAB` names, else `.lab/lab.json` of this workspace, and finds our binary
    /// beside the running program, of the same profile of cargo.
    pub fn load() -> Result<Self> {
        #[derive(Deserialize)]
        struct Description {
            helm: BTreeMap<String, PathBuf>,
        }
        let path = env::var_os(LAB_VARIABLE).map_or_else(|| workspace().join(".lab/lab.json"), PathBuf::from);
        let text = fs::read(&path)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` first", path.display()))?;
        let Description { helm } = serde_json::from_slice(&text)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` again", path.display()))?;
        Ok(Self { helm, ours: ours()? })
    }

    /// The real Helm of a profile.
    pub fn helm(&self, profile: &str) -> Result<&Path> {
        let path = self.helm.get(profile).filter(|path| path.is_file());
        path.map(PathBuf::as_path)
            .with_context(|| format!("the lab has no helm of profile {profile}: run `cargo xtask setup` again"))
    }
}

/// Real charts, where the environment names a corpus.
pub fn corpus() -> Option<PathBuf> {
    env::var_os(CORPUS_VARIABLE).map(|corpus| PathBuf::from(corpus).join("charts"))
}

/// Folders with charts of this repository: what the tests of the engine are made of, and what real charts seldom have in one place.
pub(crate) fn own_charts() -> [PathBuf; 2] {
    ["helm/tests/charts", "helm/oracle/charts"].map(|folder| workspace().join(folder))
}

/// Where what was found out is kept for the next run: `$XDG_CACHE_HOME`, or `~/.cache`.
pub(crate) fn cache() -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let folder = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    let folder = folder.or_else(|| env::home_dir().filter(absolute).map(|home| home.join(".cache")))?;
    Some(folder.join("stackwright/conformance"))
}

fn workspace() -> &'static Path {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    room.ancestors().nth(2).unwrap_or(room)
}

fn ours() -> Result<PathBuf> {
    let running = env::current_exe().context("failed to find the running program")?;
    let folder = running.parent().context("the running program has no folder")?;
    // Tests lie one folder deeper than programs.
    let folder = folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder);
    let path = folder.join("helm-template");
    let release = if folder.ends_with("release") { " --release" } else { "" };
    ensure!(
        path.is_file(),
        "{} is not built: run `cargo build -p helm{release} --bins`",
        path.display()
    );
    Ok(path)
}
