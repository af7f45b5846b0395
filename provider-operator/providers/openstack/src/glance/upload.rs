//! The bytes of an image on their way to Glance, and somebody who watches that they move. What an answer that got lost meant is asked for once.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use provider_plugin::{Body, CloudError, ErrorClass, ImageId, Quota, Sent, SumsHandle, Turn};
use tokio::time::{self, Instant};

use super::{Glance, Question, room::Room};
use crate::session::Need;

/// What the call is for, to read after "unable to".
const OPERATION: &str = "send the image";
/// A token that ends within a body does no harm; one that ends before it is met as a broken connection.
const FRESH: Need = Need::Fresh(Duration::from_mins(10));
/// How long the cloud may take nothing of what is there for it. Shorter than what stands between us and a cloud waits, so that it is us who say why.
const STALL: Duration = Duration::from_secs(55);
/// How long the source may give nothing. Whoever reads it opens it again meanwhile, and says so if that is in vain: this is longer than one break, the pause
/// after it, and a slow answer then.
const SILENT: Duration = Duration::from_mins(3);
/// How long the cloud may take to confirm what it has as a whole, and a second more for so many bytes: it reads them once more, or copies them.
const CONFIRM: Duration = Duration::from_mins(15);
const CONFIRM_RATE: u64 = 2 * MIB;
/// Between two looks at what moved.
const LOOK: Duration = Duration::from_secs(1);
/// What bounds the images of a project, and what bounds those of them that are staged.
const IN_A_STORE: &str = "image_size_total";
const STAGED: &str = "image_stage_total";
/// Where in the cloud.
const STORE: &str = "x-image-meta-store";

const MIB: u64 = 1 << 20;

impl Glance {
    /// Sends an image as a whole. Dropping the future closes the connection, and the image is empty again.
    pub async fn upload(&self, id: &ImageId, store: Option<&str>, body: Body) -> Result<Sent, CloudError> {
        self.put(id, "file", store, body).await
    }

    /// The same to a stage, which is in no store: an import makes an image of it.
    pub async fn stage(&self, id: &ImageId, body: Body) -> Result<Sent, CloudError> {
        self.put(id, "stage", None, body).await
    }

    async fn put(&self, id: &ImageId, part: &str, store: Option<&str>, body: Body) -> Result<Sent, CloudError> {
        let Body {
            length, stream, sums, ..
        } = body;
        let token = self.session.token(FRESH).await?;
        let path = ["images", &id.0, part];
        let question = Question::new(OPERATION, Method::PUT, &path);
        let url = self.url(&token, &question)?;
        let mut headers = HeaderMap::new();
        if let Some(store) = store {
            let store = HeaderValue::from_str(store);
            let words = "the name of the store has characters that no header can carry";
            headers.insert(
                STORE,
                store.map_err(|_| CloudError::new(ErrorClass::Invalid, OPERATION, words))?,
            );
        }
        let room = self.room(length).await;
        let stream = match &room {
            Some(room) => room.bound(stream),
            None => stream,
        };
        let transport = self.session.transport();
        let sending = transport.put(OPERATION, url, &token.value, headers, length, stream);
        let answered = tokio::select! {
            answered = sending => answered,
            stalled = stall(&sums) => Err(stalled),
        };
        let error = match answered {
            Ok(answer) if answer.status.is_success() => {
                let sums = sums.sums().ok_or_else(|| {
                    let words = "the cloud took the image before it was sent as a whole";
                    CloudError::new(ErrorClass::Unknown, OPERATION, words)
                })?;
                let bytes = sums.bytes;
                return Ok(Sent { bytes, sums });
            }
            Ok(answer) => self.error(&question, &answer),
            Err(error) => error,
        };
        if let Some(passed) = room.and_then(|room| room.passed(OPERATION)) {
            return Err(passed);
        }
        if let Some(failure) = sums.failure() {
            return Err(CloudError::of_content(OPERATION, failure));
        }
        match error.class {
            ErrorClass::Unknown => Err(self.evident(id, part, length, error).await),
            // The content is read, so that the next try is another transfer; it is refused too only if it is us who are refused.
            ErrorClass::Credentials => match self.session.renewed(&token).await {
                Ok(_) => Err(CloudError {
                    class: ErrorClass::Unknown,
                    ..error
                }),
                Err(refused) => Err(refused),
            },
            _ => Err(error),
        }
    }

    /// The room for a body of unknown length. Where a cloud does not say how much there is, it is its own to notice.
    async fn room(&self, length: Option<u64>) -> Option<Room> {
        match length {
            Some(_) => None,
            None => self.usage(IN_A_STORE).await.ok().flatten().map(Room::of),
        }
    }

    /// Why a connection broke, where that is evident now: an answer that comes before the body is often lost.
    async fn evident(&self, id: &ImageId, part: &str, length: Option<u64>, error: CloudError) -> CloudError {
        let resource = if part == "stage" { STAGED } else { IN_A_STORE };
        let looked = self.get(id).await;
        let class = match &looked {
            Err(looked) if looked.class == ErrorClass::Credentials => ErrorClass::Credentials,
            Ok(None) => ErrorClass::Gone,
            _ => match self.usage(resource).await {
                Ok(Some(usage))
                    if length.is_some_and(|length| usage.free().is_some_and(|free| free < length / MIB)) =>
                {
                    let quota = Quota {
                        resource: resource.to_owned(),
                        limit: usage.limit,
                        used: Some(usage.used),
                        requested: length.map(|length| length / MIB),
                    };
                    return CloudError {
                        class: ErrorClass::Quota,
                        quota: Some(Box::new(quota)),
                        ..error
                    };
                }
                _ => ErrorClass::Unknown,
            },
        };
        CloudError { class, ..error }
    }
}

/// Ends when nothing moved for too long, with whose turn it was.
async fn stall(sums: &SumsHandle) -> CloudError {
    let mut since = Instant::now();
    let mut before = moved(sums);
    loop {
        time::sleep(LOOK).await;
        let now = moved(sums);
        if now != before {
            (before, since) = (now, Instant::now());
        }
        let rested = since.elapsed();
        if let Some(whole) = sums.sums() {
            let patience = CONFIRM + Duration::from_secs(whole.bytes / CONFIRM_RATE);
            if rested >= patience {
                let minutes = patience.as_secs() / 60;
                let words = format!("the cloud has all bytes, and did not confirm the image within {minutes} minutes");
                return CloudError::new(ErrorClass::Unavailable, OPERATION, words);
            }
            continue;
        }
        match sums.turn() {
            Turn::Source if rested >= SILENT => {
                let words = format!(
                    "the source of the image sent nothing for {} minutes",
                    SILENT.as_secs() / 60
                );
                return CloudError::new(ErrorClass::SourceBroken, OPERATION, words);
            }
            Turn::Cloud if rested >= STALL => {
                let words = format!("the cloud took nothing for {} seconds", STALL.as_secs());
                return CloudError::new(ErrorClass::Unavailable, OPERATION, words);
            }
            Turn::Source | Turn::Cloud => {}
        }
    }
}

/// What changes for as long as something moves. When the turn changes, somebody has done his part.
fn moved(sums: &SumsHandle) -> (u64, u64, bool, bool) {
    (
        sums.sent(),
        sums.read(),
        sums.turn() == Turn::Cloud,
        sums.sums().is_some(),
    )
}
