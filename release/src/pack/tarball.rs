//! Writing gzip-compressed tar archives that depend on nothing but the names and bytes of the files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// "Unknown" in the gzip format, so that the machine does not show.
const NO_OPERATING_SYSTEM: u8 = 255;
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// An archive of these files with their directories: sorted by name, no times, no owners, the same permissions for all.
///
/// The directories are entries too, because the Go operator creates no others when it unpacks.
pub(super) fn tarball(files: &BTreeMap<String, Vec<u8>>) -> io::Result<Vec<u8>> {
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(NO_OPERATING_SYSTEM)
        .write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    let mut directories = BTreeSet::new();
    for (path, content) in files {
        for (end, _) in path.match_indices('/') {
            if directories.insert(&path[..end]) {
                append(&mut archive, EntryType::Directory, &path[..end], &[])?;
            }
        }
        append(&mut archive, EntryType::Regular, path, content)?;
    }
    archive.into_inner()?.finish()
}

fn append(archive: &mut Builder<impl Write>, kind: EntryType, path: &str, content: &[u8]) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(if kind == EntryType::Directory {
        DIRECTORY_MODE
    } else {
        FILE_MODE
    });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, path, content)
}
