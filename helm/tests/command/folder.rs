//! The folder that calls run in: our charts, and what a repository cannot hold or should not.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// Everything that facts name.
pub(crate) struct Folder {
    charts: PathBuf,
    shared: TempDir,
    home: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/charts");
        Self {
            shared: furnished(&charts),
            charts,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The folder of all calls that only read.
    pub(crate) fn shared(&self) -> &Path {
        self.shared.path()
    }

    /// A folder for one call, which may write into it.
    pub(crate) fn own(&self) -> TempDir {
        furnished(&self.charts)
    }

    /// An empty home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }
}

fn furnished(charts: &Path) -> TempDir {
    let work = tempfile::tempdir().unwrap();
    let here = work.path();
    copy(charts, here);
    std::fs::write(here.join("plain.tgz"), archive(&here.join("plain"), "plain")).unwrap();
    std::fs::write(here.join("bare.tgz"), archive(&here.join("no-chart"), "no-chart")).unwrap();
    std::fs::write(here.join("cut.tgz"), &archive(&here.join("plain"), "plain")[..200]).unwrap();
    std::fs::write(here.join("text.tgz"), "text that is no archive\n".repeat(40)).unwrap();
    std::fs::write(here.join("short.tgz"), "short").unwrap();
    std::fs::write(here.join("keystore"), b"\xfe\xed\xfe\xed\x00\xc3(").unwrap();
    let old = here.join("first-version/charts");
    std::fs::write(old.join("packed-0.3.0.tgz"), archive(&here.join("packed"), "packed")).unwrap();
    // Links to a file, a folder and nothing, a socket, a file that is too large.
    let linked = here.join("linked");
    symlink("../plain/values.yaml", linked.join("values.yaml")).unwrap();
    symlink("../plain/templates", linked.join("templates")).unwrap();
    symlink("nowhere", here.join("dangling/link")).unwrap();
    drop(UnixListener::bind(here.join("irregular/socket")).unwrap());
    std::fs::write(here.join("large/data"), vec![b'x'; (5 << 20) + 1]).unwrap();
    work
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(path, to).unwrap();
        }
    }
}

/// A folder as `.tgz`, in a folder of that name.
fn archive(folder: &Path, name: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    archive.mode(tar::HeaderMode::Deterministic);
    archive.append_dir_all(name, folder).unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}
