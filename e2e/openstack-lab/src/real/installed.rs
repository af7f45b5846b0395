//! What `cargo xtask setup` installed of OpenStack, and where: reads the description that it writes. Installs nothing itself.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Names another description than the one of this workspace.
const LAB_VARIABLE: &str = "STACKWRIGHT_LAB";
/// The databases that nobody has used yet.
const DATABASES: [&str; 2] = ["keystone.sqlite", "glance.sqlite"];

/// A folder with an environment of Python in which Keystone, Glance and openstacksdk are installed, and with empty databases for them.
#[derive(Clone, Debug)]
pub struct Installed {
    folder: PathBuf,
}

/// What of the description matters here.
#[derive(Deserialize)]
struct Lab {
    openstack: Option<Found>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Found {
    Folder(PathBuf),
    Missing(String),
}

impl Installed {
    /// Reads the file that the environment variable `STACKWRIGHT_LAB` names, else `.lab/lab.json` of this workspace. A set-up that never ran is
    /// an error.
    ///
    /// `None` where this machine cannot have them; then it says so in the words that make a line of the summary.
    pub fn find() -> Result<Option<Self>> {
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.lab/lab.json");
        let path = env::var_os(LAB_VARIABLE).map_or_else(default, PathBuf::from);
        let text = fs::read(&path)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` first", path.display()))?;
        let lab: Lab = serde_json::from_slice(&text)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` again", path.display()))?;
        let found = lab
            .openstack
            .with_context(|| format!("{} knows no OpenStack: run `cargo xtask setup` again", path.display()))?;
        match found {
            Found::Folder(folder) => {
                let installed = Self { folder };
                let python = installed.python();
                ensure!(
                    python.exists(),
                    "{} is not there: run `cargo xtask setup` again",
                    python.display()
                );
                Ok(Some(installed))
            }
            Found::Missing(why) => {
                // Not by a macro: the harness of tests keeps what those write to itself when a test passes.
                let said = format!("REDUCED: nothing is tested on a real Keystone and Glance: {why}\n");
                let _ = io::stderr().write_all(said.as_bytes());
                Ok(None)
            }
        }
    }

    /// The Python of the environment.
    pub fn python(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }

    /// How Glance puts its parts together, as it comes with it.
    pub(super) fn paste(&self) -> PathBuf {
        self.folder.join("venv/etc/glance/glance-api-paste.ini")
    }

    /// The password of the administrator in the database of Keystone.
    pub(super) fn password(&self) -> Result<String> {
        let path = self.folder.join("password");
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    }

    pub(super) fn copy_databases(&self, to: &Path) -> Result<()> {
        for name in DATABASES {
            let what = || format!("failed to copy {name} to {}", to.display());
            fs::copy(self.folder.join(name), to.join(name)).with_context(what)?;
        }
        Ok(())
    }
}
