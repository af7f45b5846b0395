//! What the real Helm has answered before: a digest for each binary, chart and arguments.
//!
//! It only ever spares asking where our answer is the remembered one. Where ours is another, the real Helm is asked anew: so nothing that depends
//! on time or chance is judged by it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::Answer;

pub(super) struct Memory {
    folder: Option<PathBuf>,
}

/// The place of one answer.
pub(super) struct Remembered {
    file: Option<PathBuf>,
}

impl Memory {
    /// Without a folder it remembers nothing.
    pub(super) fn open(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    pub(super) fn of(&self, binary: &[u8; 32], chart: &[u8; 32], variant: &[u8]) -> Remembered {
        let key = Sha256::new()
            .chain_update(binary)
            .chain_update(chart)
            .chain_update(variant)
            .finalize();
        let file = self.folder.as_ref().map(|folder| folder.join(hex::encode(key)));
        Remembered { file }
    }
}

impl Remembered {
    pub(super) fn knows(&self, answer: &Answer) -> bool {
        let known = self.file.as_ref().and_then(|file| fs::read(file).ok());
        known.is_some_and(|digest| digest == answer.digest())
    }

    /// Written by rename: another run may read it now.
    pub(super) fn keep(&self, answer: &Answer) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let write = || -> io::Result<()> {
            let folder = file.parent().unwrap_or(file);
            fs::create_dir_all(folder)?;
            let partial = tempfile::NamedTempFile::new_in(folder)?;
            fs::write(partial.path(), answer.digest())?;
            partial.persist(file)?;
            Ok(())
        };
        write().with_context(|| format!("failed to write {}", file.display()))
    }
}

/// Of a program.
pub(super) fn digest_of(program: &Path) -> Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let read = fs::File::open(program).and_then(|mut file| io::copy(&mut file, &mut digest));
    read.with_context(|| format!("unable to read {}", program.display()))?;
    Ok(digest.finalize().into())
}
