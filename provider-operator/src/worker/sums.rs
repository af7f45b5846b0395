//! The digest that an image must have: the one that is told, or the one that a file of sums gives, read anew for each deed that needs it.

use std::time::Duration;

use futures::StreamExt;
use planning::image::FailureClass;
use provider_plugin::sums::{LARGEST, SumsError, find};
use provider_plugin::{Opened, Pinned};
use tokio::time;

use super::{ContentSpec, Failed, Whose};
use crate::source::{Files, SumsFile};

/// How long reading such a file may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The digest that the file must have, where somebody says so.
pub(super) async fn pinned(content: &ContentSpec, files: &Files) -> Result<Option<Pinned>, Failed> {
    let Some(sums) = files.sums.as_ref().filter(|_| content.pinned.is_none()) else {
        return Ok(content.pinned.clone());
    };
    let text = time::timeout(PATIENCE, read(sums)).await.unwrap_or_else(|_| {
        let words = format!(
            "{} was not read within {} seconds",
            sums.file.place(),
            PATIENCE.as_secs()
        );
        Err(Failed::new(FailureClass::SourceBroken, words, Whose::Source))
    })?;
    Ok(Some(find(&text, &sums.name)?))
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
