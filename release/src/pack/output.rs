//! Writing a release so that it appears at once and complete, and only if its readers would accept it.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use crds::names::ReleaseTag;

use super::{PackError, Packed, Packing};
use crate::Release;

/// Writes the files into the directory `<output>/<tag>`, which must not have another content.
pub(super) fn write(output: &Path, tag: &ReleaseTag, files: &BTreeMap<String, Vec<u8>>) -> Result<Packed, PackError> {
    let directory = output.join(tag.to_string());
    let unwritable = |source| PackError::Write {
        path: directory.clone(),
        source,
    };
    fs::create_dir_all(output).map_err(|source| PackError::Write {
        path: output.to_owned(),
        source,
    })?;
    // In the same directory, so that it can be renamed; with a dot, so that nobody takes it for a release.
    let temporary = tempfile::Builder::new()
        .prefix(&format!(".{tag}."))
        .tempdir_in(output)
        .map_err(unwritable)?;
    write_files(temporary.path(), files).map_err(unwritable)?;
    let release = Release::open(temporary.path(), tag).map_err(|source| PackError::Unusable {
        tag: tag.clone(),
        source: Box::new(source),
    })?;

    let packing = match fs::rename(temporary.path(), &directory) {
        Ok(()) => Packing::Created,
        // A directory with content is never replaced by a rename.
        Err(source) if !directory.exists() => return Err(unwritable(source)),
        Err(_) => match Release::open(&directory, tag) {
            Ok(there) if there.digest == release.digest => Packing::AlreadyThere,
            _ => return Err(PackError::OtherRelease { path: directory }),
        },
    };
    let Release {
        digest, files, charts, ..
    } = release;
    Ok(Packed {
        tag: tag.clone(),
        directory,
        digest,
        files,
        packing,
        notes: charts.map(|charts| charts.notes).unwrap_or_default(),
    })
}

/// The permissions are set because the umask takes from those of new files, and because a temporary directory is private.
fn write_files(directory: &Path, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for (name, content) in files {
        let mut file = File::create_new(directory.join(name))?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
    }
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    File::open(directory)?.sync_all()
}
