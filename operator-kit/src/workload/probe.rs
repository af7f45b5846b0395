//! One cheap question, to find out whether a cluster answers us, and what it means when it does not.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use crds::conditions::one_line;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::client::{Body, Client};
use serde_json::Value;
use tokio::time::timeout;

use super::state::Reason;
use crate::failure::{chain, words_of};

/// Until the whole answer is here.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// What everybody may ask who is known, and what API servers answer from memory (`system:public-info-viewer`).
const VERSION: &str = "/version";

/// The same of what is asked where there is no version, as of the API server that the docker provider of Cluster API plays.
const SERVED: &str = "/api";

/// What the answer to [`SERVED`] lists of every API server. That one does not say of which kind its answer is.
const CORE: &str = "v1";

/// Most bytes of the answer; real ones have some hundred.
const ANSWER_LIMIT: usize = 64 << 10;

/// Most bytes of words of others.
const WORDS_LIMIT: usize = 1 << 10;

/// Asks once.
pub(super) async fn probe(client: &Client) -> Result<(), Reason> {
    let silent = Reason::Wait {
        seconds: DEADLINE.as_secs(),
    };
    timeout(DEADLINE, ask(client)).await.unwrap_or(Err(silent))
}

async fn ask(client: &Client) -> Result<(), Reason> {
    let asked = answer(client, VERSION).await;
    if asked != Err(Reason::Answer { code: 404 }) {
        return asked.map(drop);
    }
    // Nothing that serves the API of Kubernetes must pass for a cluster: what it does not have would pass for what is gone.
    let served = answer(client, SERVED).await?;
    let list = served.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let versions = list.as_ref().and_then(|list| list["versions"].as_array());
    if versions.is_some_and(|versions| versions.iter().any(|version| version == CORE)) {
        Ok(())
    } else {
        asked.map(drop)
    }
}

/// The answer; none when that may not be asked, or not so often: whoever hears that may ask for other things.
async fn answer(client: &Client, question: &str) -> Result<Option<Bytes>, Reason> {
    let request = Request::get(question).body(Body::empty());
    let request = request.map_err(|error| Reason::Reach {
        words: bounded(&chain(&error)),
    })?;
    let answer = client.send(request).await.map_err(|error| reason_of(&error))?;
    let (head, body) = answer.into_parts();
    let is_told = match head.status {
        StatusCode::UNAUTHORIZED => return Err(Reason::Authenticate),
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => false,
        status if status.is_success() => true,
        status => return Err(Reason::Answer { code: status.as_u16() }),
    };
    // A connection whose answer was read is used again.
    match Limited::new(body, ANSWER_LIMIT).collect().await {
        Ok(body) => Ok(is_told.then(|| body.to_bytes())),
        Err(error) => Err(reason_of(error.as_ref())),
    }
}

/// Why there was no answer.
fn reason_of(error: &(dyn Error + 'static)) -> Reason {
    let words = bounded(&chain(error));
    if is_of_tls(error) {
        Reason::Secure { words }
    } else {
        Reason::Reach { words }
    }
}

/// The words of an answer of the management cluster.
pub(super) fn unread(error: &kube::Error) -> Reason {
    Reason::ReadSecret {
        words: bounded(&words_of(error)),
    }
}

pub(super) fn bounded(words: &str) -> String {
    one_line(words, WORDS_LIMIT)
}

/// Whether an error stems from TLS: a certificate that one side does not trust. What is told to have gone wrong by an I/O error is not among its
/// sources, but in it.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(link) = next {
        if link.is::<rustls::Error>() {
            return true;
        }
        let inner = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => link.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;
    use serde_json::json;

    use super::*;
    use crate::stub;

    #[tokio::test]
    async fn what_answers_as_no_api_server_does_is_no_cluster() {
        for (code, expected) in [
            (200, Ok(())),
            (403, Ok(())),
            (429, Ok(())),
            (401, Err(Reason::Authenticate)),
            (302, Err(Reason::Answer { code: 302 })),
            (404, Err(Reason::Answer { code: 404 })),
            (500, Err(Reason::Answer { code: 500 })),
        ] {
            let client = stub::client(move |_| (code, json!({})));
            assert_eq!(probe(&client).await, expected, "{code}");
        }
    }

    #[tokio::test]
    async fn what_says_no_version_and_which_api_it_serves_is_a_cluster() {
        let unversioned = Err(Reason::Answer { code: 404 });
        for (code, versions, expected) in [
            (200, json!(["v1"]), Ok(())),
            (200, json!(["v2"]), unversioned.clone()),
            (200, json!("v1"), unversioned.clone()),
            (403, json!(["v1"]), unversioned.clone()),
            (404, json!(["v1"]), unversioned),
            (401, json!(["v1"]), Err(Reason::Authenticate)),
        ] {
            let served = json!({ "versions": versions });
            let client = stub::client(move |asked| match asked.path.as_str() {
                VERSION => (404, json!({})),
                _ => (code, served.clone()),
            });
            assert_eq!(probe(&client).await, expected, "{code} {versions}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told_apart_from_a_cluster_that_is_away() {
        let untrusted = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let within = io::Error::new(io::ErrorKind::InvalidData, untrusted);
        let error = kube::Error::Service(io::Error::other(within).into());
        assert!(matches!(reason_of(&error), Reason::Secure { .. }));
        let refused = kube::Error::Service(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        assert!(matches!(reason_of(&refused), Reason::Reach { .. }));
    }

    #[test]
    fn words_of_others_are_one_short_line() {
        let words = format!("first\nsecond\u{1b}[2J {}", "x".repeat(1 << 16));
        let Reason::Reach { words } = reason_of(&io::Error::other(words)) else {
            panic!("a reason")
        };
        assert!(
            words.len() <= WORDS_LIMIT && words.starts_with("first second"),
            "{words}"
        );
    }
}
