//! Every effect on the directory, one call each. Blocks; decides nothing about their order.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use rustix::{fs::OFlags, io::Errno};

#[cfg(test)]
use crate::faults::Faults;

/// A file beside the bytes of a record has no more bytes.
const LARGEST: u64 = 64 * 1024;

/// A word that no other call of any process gets.
pub(crate) fn word() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = Timestamp::now().as_nanosecond();
    format!("{now}-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The disk. In tests it breaks when it is told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    pub(crate) faults: std::sync::Arc<Faults>,
}

/// Which file something is, whatever its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
    pub(crate) size: u64,
    /// How many names it has.
    pub(crate) names: u64,
}

impl Inode {
    fn of(status: &Metadata) -> Self {
        Self {
            device: status.dev(),
            number: status.ino(),
            size: status.len(),
            names: status.nlink(),
        }
    }

    /// Whether both are one file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.device, self.number) == (other.device, other.number)
    }
}

impl Disk {
    /// Stands before every effect: how many of `count` bytes it still has.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "in tests it breaks here")]
    fn step(&self, count: usize) -> io::Result<usize> {
        Ok(count)
    }

    #[cfg(test)]
    fn step(&self, count: usize) -> io::Result<usize> {
        self.faults.step(count)
    }

    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        self.step(0)?;
        fs::create_dir_all(path)
    }

    /// A whole file, written and on the disk, which nobody looks at yet.
    pub(crate) fn write_new(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.step(0)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let count = self.step(content.len())?;
        file.write_all(&content[..count])?;
        if count < content.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        self.step(0)?;
        file.sync_all()
    }

    /// Gives a file a second name; an error of kind `AlreadyExists` where that is taken. Nobody else gets it at the same time.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(0)?;
        fs::hard_link(from, to)
    }

    /// Gives a file another name, in place of what has it.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(0)?;
        fs::rename(from, to)
    }

    /// Takes a name away. That it is gone already is no error.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(0)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// What was done to the names in a folder is on the disk.
    pub(crate) fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step(0)?;
        File::open(path)?.sync_all()
    }

    /// A file to write at and read from, made when it is not there.
    pub(crate) fn open_part(&self, path: &Path) -> io::Result<File> {
        self.step(0)?;
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
    }

    pub(crate) fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        self.step(0)?;
        file.set_len(length)
    }

    pub(crate) fn write_at(&self, file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        let count = self.step(bytes.len())?;
        file.write_all_at(&bytes[..count], at)?;
        if count < bytes.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        self.step(0)?;
        file.sync_data()
    }
}

/// A file to read from; `None` when there is none of this name, or something else than a file. Follows no link, and waits for nobody.
pub(crate) fn open_file(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(|_| ErrorKind::Unsupported)?;
    let is_link = |error: &io::Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound || is_link(&error) => return Ok(None),
        file => file?,
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The content of a small file; `None` when it is not there.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut content = Vec::new();
    file.take(LARGEST).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// At most so many bytes of a file from a byte on; none at its end.
pub(crate) fn read_at(file: &File, at: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match file.read_at(&mut piece[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    piece.truncate(filled);
    Ok(piece)
}

/// Which file this name is of; `None` when there is none.
pub(crate) fn inode(path: &Path) -> io::Result<Option<Inode>> {
    match fs::symlink_metadata(path) {
        Ok(status) => Ok(Some(Inode::of(&status))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which file this is.
pub(crate) fn inode_of(file: &File) -> io::Result<Inode> {
    Ok(Inode::of(&file.metadata()?))
}

/// The names in a folder, sorted; none when it is not there.
pub(crate) fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        // A name that is no text is none of ours.
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
