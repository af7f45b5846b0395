//! Manifests as files, one for each template.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use helm::{Printing, Rendering};

use crate::Failure;
use crate::arguments::Arguments;
use crate::inputs::opened;

/// Writes what would be printed into files below a folder, and their names to the standard output.
pub(crate) fn write(rendering: &Rendering, folder: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let mut release = folder.display().to_string();
    if arguments.output.by_release {
        release = folder.join(&arguments.options.release_name).display().to_string();
    }
    let mut files = Files::default();
    for crd in &rendering.crds {
        files.write(&folder.display().to_string(), &crd.source, &crd.data)?;
    }
    for manifest in &rendering.manifests {
        files.write(&release, &manifest.source, &manifest.text)?;
    }
    for hook in rendering.hooks_for(&arguments.printing) {
        if Path::new(&release).join(&hook.source).exists() {
            files.begun.insert(hook.source.clone());
        }
        files.write(&release, &hook.source, &hook.text)?;
    }
    // What is left to print has no manifest in it.
    let printing = Printing {
        only: arguments.printing.only.clone(),
        ..Printing::default()
    };
    crate::write(&Rendering::default().print(&printing, arguments.options.profile)?)
}

#[derive(Default)]
struct Files {
    /// Files that are continued when they are written to again.
    begun: HashSet<String>,
}

impl Files {
    fn write(&mut self, folder: &str, name: &str, text: &[u8]) -> Result<(), Failure> {
        let path = PathBuf::from(format!("{folder}/{name}"));
        let failed = |error| Failure(opened(&path, &error));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = if self.begun.insert(name.to_owned()) {
            File::create(&path).map_err(failed)?
        } else {
            OpenOptions::new().append(true).open(&path).map_err(failed)?
        };
        for part in [b"---\n# Source: ", name.as_bytes(), b"\n", text, b"\n"] {
            file.write_all(part).map_err(failed)?;
        }
        crate::write(format!("wrote {}\n", path.display()).as_bytes())
    }
}
