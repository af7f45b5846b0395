//! What a cloud has stored, read from it again and digested: where nothing else tells whether it is what it should be.

use std::time::Duration;

use futures::StreamExt;
use planning::image::{FailureClass, ReadBack};
use provider_plugin::{Algorithm, ByteStream, ErrorClass, Hasher, Progress, Report, SourceError, Stage};
use tokio::time;

use super::{Failed, Whose};

/// How long a cloud may give nothing.
const SILENCE: Duration = Duration::from_mins(1);

/// Reads all of it.
pub(super) async fn read(mut bytes: ByteStream, report: &dyn Report) -> Result<ReadBack, Failed> {
    let (mut sha256, mut sha512) = (Hasher::new(Algorithm::Sha256), Hasher::new(Algorithm::Sha512));
    loop {
        let next = time::timeout(SILENCE, bytes.next()).await.map_err(|_| {
            let words = format!("the cloud gave nothing of the image for {} seconds", SILENCE.as_secs());
            Failed::new(FailureClass::Unavailable, words, Whose::Cloud)
        })?;
        let Some(piece) = next else { break };
        let piece = piece.map_err(|error| of_reading(&error))?;
        sha256.update(&piece);
        sha512.update(&piece);
        report.progress(Progress {
            sent: sha512.count(),
            // The next look says it, and nobody waits for this one by its size.
            total: None,
            resumes: 0,
            stage: Stage::ReadingBack,
        });
    }
    Ok(ReadBack::Found {
        bytes: sha512.count(),
        sha256: sha256.finish().hex().to_owned(),
        sha512: sha512.finish().hex().to_owned(),
    })
}

/// The source of these bytes is the cloud: what broke off there is read again later.
fn of_reading(error: &SourceError) -> Failed {
    let class = match error.class {
        ErrorClass::Throttled => FailureClass::Throttled,
        ErrorClass::Unavailable => FailureClass::Unavailable,
        _ => FailureClass::Unknown,
    };
    let mut failed = Failed::new(class, &error.message, Whose::Cloud);
    failed.failure.retry_after = error.retry_after;
    failed
}
