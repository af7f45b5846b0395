//! The files of a chart's folder. Links are followed, what `.helmignore` names is not even read.

use std::fs;
use std::path::Path;

use helm::chart::IgnoreRules;

use crate::Failure;
use crate::inputs::{opened, reason};

/// Helm's bound on one file.
const MAX_FILE_BYTES: u64 = 5 << 20;

/// Names in the chart with contents.
type Files = Vec<(String, Vec<u8>)>;

/// Reads the folder of a chart.
pub(crate) fn read(folder: &Path) -> Result<Files, Failure> {
    let folder = std::path::absolute(folder).map_err(|error| Failure(opened(folder, &error)))?;
    let rules = fs::read(folder.join(".helmignore")).unwrap_or_default();
    let mut walk = Walk {
        rules: IgnoreRules::parse(&rules)?,
        files: Vec::new(),
    };
    walk.enter(&folder, "")?;
    Ok(walk.files)
}

struct Walk {
    rules: IgnoreRules,
    files: Files,
}

impl Walk {
    fn enter(&mut self, folder: &Path, name: &str) -> Result<(), Failure> {
        let failed = |error| Failure(opened(folder, &error));
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?.file_name());
        }
        entries.sort();
        for entry in entries {
            let path = folder.join(&entry);
            let entry = entry.to_string_lossy();
            let name = if name.is_empty() {
                entry.into_owned()
            } else {
                format!("{name}/{entry}")
            };
            self.visit(&path, name)?;
        }
        Ok(())
    }

    fn visit(&mut self, path: &Path, name: String) -> Result<(), Failure> {
        let about = fs::metadata(path)
            .map_err(|error| Failure(format!("error evaluating symlink {}: {}", path.display(), reason(&error))))?;
        if self.rules.ignores(&name, about.is_dir()) {
            return Ok(());
        }
        if about.is_dir() {
            return self.enter(path, &name);
        }
        if !about.is_file() {
            return Err(Failure(format!(
                "cannot load irregular file {} as it has file mode type bits set",
                path.display()
            )));
        }
        if about.len() > MAX_FILE_BYTES {
            let base = name.rsplit('/').next().unwrap_or_default();
            return Err(Failure(format!(
                "chart file {base:?} is larger than the maximum file size {MAX_FILE_BYTES}"
            )));
        }
        let text = fs::read(path).map_err(|error| Failure(format!("error reading {name}: {}", opened(path, &error))))?;
        self.files.push((name, text));
        Ok(())
    }
}
