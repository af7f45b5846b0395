//! The bytes of an image on their way to Glance, and somebody who watches that they move. What an answer that got lost meant is asked for once.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use provider_plugin::{Body, CloudError, ErrorClass, ImageId, Quota, Sent, SumsHandle, Turn};
use tokio::time::{self, Instant};

use super::{Glance, Question};
use crate::session::Need;

/// What the call is for, to read after "unable to".
const OPERATION: &str = "send the image";
/// A token that ends within a body does no harm; one that ends before it is met as a broken connection.
const FRESH: Need = Need::Fresh(Duration::from_mins(10));
/// How long nothing may move. Shorter than what stands between us and a cloud waits, so that it is us who say why.
const STALL: Duration = Duration::from_secs(55);
/// Between two looks at what moved.
const LOOK: Duration = Duration::from_secs(1);
/// Where in the cloud.
const STORE: &str = "x-image-meta-store";

const MIB: u64 = 1 << 20;

impl Glance {
    /// Sends an image as a whole. Dropping the future closes the connection, and the image is empty again.
    pub async fn upload(&self, id: &ImageId, store: Option<&str>, body: Body) -> Result<Sent, CloudError> {
        let Body {
            length, stream, sums, ..
        } = body;
        let token = self.session.token(FRESH).await?;
        let path = ["images", &id.0, "file"];
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
        if let Some(failure) = sums.failure() {
            return Err(CloudError::of_content(OPERATION, failure));
        }
        match error.class {
            ErrorClass::Unknown => Err(self.evident(id, length, error).await),
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

    /// Why a connection broke, where that is evident now: an answer that comes before the body is often lost.
    async fn evident(&self, id: &ImageId, length: Option<u64>, error: CloudError) -> CloudError {
        let looked = self.get(id).await;
        let class = match &looked {
            Err(looked) if looked.class == ErrorClass::Credentials => ErrorClass::Credentials,
            Ok(None) => ErrorClass::Gone,
            _ => match self.usage("image_size_total").await {
                Ok(Some(usage))
                    if length.is_some_and(|length| usage.free().is_some_and(|free| free < length / MIB)) =>
                {
                    let quota = Quota {
                        resource: "image_size_total".to_owned(),
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
    let (mut sent, mut since) = (sums.sent(), Instant::now());
    loop {
        time::sleep(LOOK).await;
        let now = sums.sent();
        if now != sent {
            (sent, since) = (now, Instant::now());
        }
        if since.elapsed() >= STALL {
            let seconds = STALL.as_secs();
            return match sums.turn() {
                Turn::Source => {
                    let words = format!("the source of the image sent nothing for {seconds} seconds");
                    CloudError::new(ErrorClass::SourceBroken, OPERATION, words)
                }
                Turn::Cloud => {
                    let words = format!("the cloud took nothing for {seconds} seconds");
                    CloudError::new(ErrorClass::Unavailable, OPERATION, words)
                }
            };
        }
    }
}
