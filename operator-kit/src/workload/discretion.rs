//! What a cluster says when it refuses something, without the token that it was told: gateways repeat in their errors what they were sent, and errors are
//! shown to more people than may have the token.

use crds::redaction::without;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use kube::client::DynBody;
use secrecy::{ExposeSecret, SecretString};
use tower::{BoxError, ServiceExt};

use super::transport::{Transport, transport};

/// Most bytes of an answer that refuses something; those of API servers have a few hundred. Of a longer one only the code is known.
const MOST: usize = 64 << 10;

/// A wire whose refusals do not repeat the token.
pub(super) fn discreet(wire: Transport, token: SecretString) -> Transport {
    transport(wire.and_then(move |answer| told(answer, token)))
}

async fn told(answer: Response<Box<DynBody>>, token: SecretString) -> Result<Response<Box<DynBody>>, BoxError> {
    if answer.status().is_success() || answer.status().is_informational() {
        return Ok(answer);
    }
    let (mut head, mut body) = answer.into_parts();
    let mut words = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => words.extend_from_slice(&data),
            Ok(Err(_)) => {}
            Err(error) => return Err(error),
        }
        if words.len() > MOST {
            words.clear();
            break;
        }
    }
    let words = String::from_utf8_lossy(&words);
    let words = without(&words, [token.expose_secret()]).unwrap_or_default();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.remove(CONTENT_ENCODING);
    let body = Full::from(words).map_err(|never| -> BoxError { match never {} });
    Ok(Response::from_parts(head, Box::new(body)))
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    const TOKEN: &str = "salamis-480-before-plataea";

    /// What is heard of a cluster that answers so.
    async fn heard(code: u16, said: String) -> (StatusCode, String) {
        let answering = service_fn(move |_: Request<Body>| {
            let said = said.clone();
            async move {
                let answer = Response::builder().status(code).body(Full::from(said));
                Ok::<_, BoxError>(answer.expect("an answer"))
            }
        });
        let wire = discreet(transport(answering), TOKEN.into());
        let answer = wire.oneshot(Request::new(Body::empty())).await.expect("an answer");
        let code = answer.status();
        let words = answer.into_body().collect().await.expect("words").to_bytes();
        (code, String::from_utf8_lossy(&words).into_owned())
    }

    #[tokio::test]
    async fn a_cluster_that_repeats_the_token_it_was_told_is_told_without_it() {
        let (code, words) = heard(403, format!("{{\"message\":\"Authorization: Bearer {TOKEN}, no\"}}")).await;
        assert_eq!(code, 403);
        assert_eq!(words, "{\"message\":\"Authorization: Bearer (not shown), no\"}");
        let (code, words) = heard(500, "x".repeat(MOST + 1)).await;
        assert_eq!((code.as_u16(), words.as_str()), (500, ""));
        let (code, words) = heard(200, "an object".to_owned()).await;
        assert_eq!((code.as_u16(), words.as_str()), (200, "an object"));
    }
}
