//! What etcd holds once an API server knows all CRDs, kept for the next control planes.
//!
//! An API server computes for half of its start when it is told of some thirty CRDs, and each of them is written several times before it is established.
//! What comes of it is always the same. So it is made once, and control planes begin with a copy.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{ControlPlane, Options, folder::Folder, free_port, programs};
use crate::{Lab, definitions, lab::workspace};

/// Beside what the set-up has made. What is removed there is made again.
const TEMPLATES: &str = ".lab/etcd";
/// A template that nobody has begun with for so long goes: its CRDs are others by now.
const KEPT: Duration = Duration::from_hours(24);

/// Gives etcd, which is to be started in this folder, the CRDs and what an API server makes of them.
pub(super) async fn fill(lab: &Lab, options: &Options, definitions: &[Value], folder: &Path) -> Result<()> {
    static MAKING: Mutex<()> = Mutex::const_new(());
    let template = workspace().join(TEMPLATES).join(key(lab, options, definitions)?);
    if !template.is_dir() {
        // The control planes of a process wait for the one that makes it; those of others may make one, too.
        let _made = MAKING.lock().await;
        if !template.is_dir() {
            make(lab, options, definitions, &template)
                .await
                .context("failed to make what control planes begin with")?;
        }
    }
    touch(&template)?;
    copy(&template, &folder.join(programs::ETCD_DATA))
}

/// Says that it is still of use.
fn touch(template: &Path) -> Result<()> {
    let touched = File::open(template).and_then(|folder| folder.set_modified(SystemTime::now()));
    touched.with_context(|| format!("failed to touch {}", template.display()))
}

/// Another one for each program, each set of flags and of CRDs. The name of the program says what it was built from.
fn key(lab: &Lab, options: &Options, definitions: &[Value]) -> Result<String> {
    let (_, etcd) = programs::etcd(lab, Path::new(""));
    let (_, api_server) = programs::api_server(lab, Path::new(""), 0, options);
    let mut hash = Sha256::new();
    for command in [etcd, api_server] {
        for word in [command.get_program()].into_iter().chain(command.get_args()) {
            hash.update(word.as_encoded_bytes());
            hash.update([0]);
        }
    }
    hash.update(serde_json::to_vec(definitions)?);
    Ok(format!("{:x}", hash.finalize()))
}

async fn make(lab: &Lab, options: &Options, definitions: &[Value], template: &Path) -> Result<()> {
    let parent = template.parent().unwrap_or(template);
    fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    remove_old(parent);
    let mut made = ControlPlane::serve(lab, options, Folder::temporary()?, free_port()?).await?;
    definitions::install(&made.client, definitions).await?;
    for program in made.programs() {
        program.kill9().await?;
    }
    let unfinished = tempfile::tempdir_in(parent)?;
    let data = unfinished.path().join(programs::ETCD_DATA);
    copy(&made.folder.path().join(programs::ETCD_DATA), &data)?;
    match fs::rename(&data, template) {
        // Somebody else was faster, and has made the same.
        Err(_) if template.is_dir() => Ok(()),
        renamed => renamed.with_context(|| format!("failed to make {}", template.display())),
    }
}

/// Best effort. What goes is renamed first, so that nobody copies half of it.
fn remove_old(parent: &Path) {
    let Ok(bin) = tempfile::tempdir_in(parent) else { return };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let modified = entry.metadata().and_then(|status| status.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = fs::rename(entry.path(), bin.path().join(entry.file_name()));
        }
    }
}

/// Copies a folder. Zeros at the end of a file take no room: etcd's log is 64 MB of them.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("failed to copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let (source, target): (_, PathBuf) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
            continue;
        }
        let content = fs::read(&source).with_context(failed)?;
        let mut file = File::create(&target).with_context(failed)?;
        file.write_all(without_zeros(&content)).with_context(failed)?;
        file.set_len(u64::try_from(content.len())?).with_context(failed)?;
    }
    Ok(())
}

/// What is before the pages of zeros at the end. Compared page by page: looking at each byte takes seconds without an optimiser.
fn without_zeros(content: &[u8]) -> &[u8] {
    const PAGE: usize = 4096;
    let is_blank = |page: &[u8]| *page == [0; PAGE][..page.len()];
    let blank = content.rchunks(PAGE).take_while(|page| is_blank(page));
    let blank: usize = blank.map(<[u8]>::len).sum();
    &content[..content.len() - blank]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_every_byte_and_keeps_no_room_for_zeros_at_the_end() -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let place = tempfile::tempdir()?;
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("member/wal"))?;
        let mut log = vec![0; 8 << 20];
        log[5000] = 1;
        for (name, content) in [("member/wal/log", &log[..]), ("member/none", &[]), ("zeros", &[0; 10])] {
            fs::write(from.join(name), content)?;
        }
        copy(&from, &to)?;
        for name in ["member/wal/log", "member/none", "zeros"] {
            assert!(fs::read(from.join(name))? == fs::read(to.join(name))?, "{name}");
        }
        assert!(fs::metadata(to.join("member/wal/log"))?.blocks() * 512 < 1 << 20);
        Ok(())
    }
}
