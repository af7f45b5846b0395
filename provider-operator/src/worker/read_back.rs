//! What a cloud has stored, read from it again and digested: where nothing else tells whether it is what it should be.

use std::time::Duration;

use futures::StreamExt;
use planning::image::{FailureClass, ReadBack};
use provider_plugin::{Algorithm, ByteStream, ErrorClass, Hasher, Progress, Report, SourceError, Speed, Stage, Turn};
use tokio::time::{self, Instant};

use super::{Failed, Whose};

/// How long a cloud may give nothing.
const SILENCE: Duration = Duration::from_mins(1);

/// Reads all of it.
pub(super) async fn read(mut bytes: ByteStream, report: &dyn Report) -> Result<ReadBack, Failed> {
    let (mut sha256, mut sha512) = (Hasher::new(Algorithm::Sha256), Hasher::new(Algorithm::Sha512));
    let mut speed = Speed::default();
    loop {
        let asked = Instant::now();
        let next = time::timeout(SILENCE, bytes.next()).await.map_err(|_| {
            let words = format!("the cloud gave nothing of the image for {} seconds", SILENCE.as_secs());
            Failed::new(FailureClass::Unavailable, words, Whose::Cloud)
        })?;
        let Some(piece) = next else { break };
        let piece = piece.map_err(|error| of_reading(&error))?;
        speed.waited(Turn::Cloud, asked.elapsed());
        speed.moved(piece.len() as u64);
        if let Some(whose) = speed.too_slow().filter(|_| report.others_wait()) {
            return Err(Failed::new(
                FailureClass::Unavailable,
                Speed::words(whose),
                Whose::Cloud,
            ));
        }
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;

    use super::*;
    use crate::stand_ins::Notes;

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_drips_what_it_has_stored_is_given_up() {
        let drips = stream::iter(0..1000).then(|_| async {
            time::sleep(Duration::from_secs(50)).await;
            Ok::<_, SourceError>(Bytes::from_static(b"x"))
        });
        let begun = Instant::now();
        let failed = read(drips.boxed(), &Notes::default()).await.unwrap_err();
        assert_eq!(failed.failure.class, FailureClass::Unavailable);
        assert!(failed.failure.message.contains("64 KiB a second"), "{failed:?}");
        assert!(begun.elapsed() < Duration::from_mins(12), "{:?}", begun.elapsed());
    }
}
