//! The digest that an image must have: the one that is told, the one that a file of sums gives, read anew for each deed that needs it, or the one by which its
//! source knows it. What contradicts itself is told before anything is read.

use std::time::Duration;

use futures::StreamExt;
use planning::image::FailureClass;
use provider_plugin::sums::{LARGEST, SumsError, find};
use provider_plugin::{Opened, Pinned, Probe};
use tokio::time;

use super::{ContentSpec, Failed, Whose};
use crate::source::{Files, SumsFile};

/// How long reading such a file may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The digest that the file must have, where somebody says so. `probe` is what its source says of it now.
pub(super) async fn pinned(content: &ContentSpec, files: &Files, probe: &Probe) -> Result<Option<Pinned>, Failed> {
    let demanded = match &files.sums {
        _ if content.pinned.is_some() => content.pinned.clone(),
        Some(sums) => Some(in_sums(sums).await?),
        None => None,
    };
    let Some(known) = known(files, probe) else {
        return Ok(demanded);
    };
    let place = files.image.place();
    // Two algorithms say nothing of each other; the bytes will.
    let differs = |other: &&Pinned| other.algorithm() == known.algorithm() && **other != known;
    let words = if let Some(demanded) = demanded.as_ref().filter(differs) {
        format!("{place} has the digest {known}, and {demanded} is demanded")
    } else if let Some(before) = content
        .remembered
        .as_ref()
        .filter(|_| demanded.is_none())
        .filter(differs)
    {
        format!("{place} has the digest {known}, and had {before} before; pin the one that is meant")
    } else {
        return Ok(demanded.or(Some(known)));
    };
    Err(Failed::new(FailureClass::SourceMismatch, words, Whose::Source))
}

/// The digest by which its source knows the image.
fn known(files: &Files, probe: &Probe) -> Option<Pinned> {
    let tag = probe.tag.as_ref().filter(|_| files.tag_is_digest)?;
    Pinned::parse(tag).ok()
}

async fn in_sums(sums: &SumsFile) -> Result<Pinned, Failed> {
    let text = time::timeout(PATIENCE, read(sums)).await.unwrap_or_else(|_| {
        let words = format!(
            "{} was not read within {} seconds",
            sums.file.place(),
            PATIENCE.as_secs()
        );
        Err(Failed::new(FailureClass::SourceBroken, words, Whose::Source))
    })?;
    Ok(find(&text, &sums.name)?)
}

async fn read(sums: &SumsFile) -> Result<String, Failed> {
    let probe = sums.file.probe().await?;
    let mut bytes = match sums.file.open(0, &probe).await? {
        Opened::At(bytes) | Opened::FromStart(bytes) => bytes,
        Opened::Changed => {
            let words = format!("{} changed while it was read", sums.file.place());
            return Err(Failed::new(FailureClass::SourceChanged, words, Whose::Source));
        }
    };
    let mut text = Vec::new();
    while let Some(piece) = bytes.next().await {
        text.extend_from_slice(&piece?);
        if text.len() > LARGEST {
            return Err(SumsError::TooLarge.into());
        }
    }
    // Whatever else is in it names no file.
    Ok(String::from_utf8_lossy(&text).into_owned())
}
