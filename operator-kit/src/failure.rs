//! What a failed call to the API server means for the caller: try again, wait for the world, or ask for an edit.

use std::error::Error;

use http::StatusCode;

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Class {
    /// The same call may succeed later without anybody doing anything that we would see. Try again with growing delays.
    Transient,
    /// Something must come into being first, and its coming wakes us. Not an error to shout about.
    Waiting,
    /// The same call will fail until somebody edits something. Say so and stop.
    Terminal,
}

/// The class of a failed call.
///
/// *Forbidden* and *unauthorized* are transient: a repaired role binding or a rotated token sends no event, so only
/// another attempt notices.
pub fn class_of(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) => class_of_code(status.code),
        kube::Error::SerdeError(_)
        | kube::Error::BuildRequest(_)
        | kube::Error::HttpError(_)
        | kube::Error::FromUtf8(_) => Class::Terminal,
        _ => Class::Transient,
    }
}

fn class_of_code(code: u16) -> Class {
    match StatusCode::from_u16(code) {
        Ok(StatusCode::NOT_FOUND) => Class::Waiting,
        Ok(
            StatusCode::BAD_REQUEST
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY,
        ) => Class::Terminal,
        _ => Class::Transient,
    }
}

/// The API server's own words when it answered, else the chain of causes.
pub fn words_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => chain(other),
    }
}

/// The chain of causes in one line, outermost first.
///
/// A link whose text its parent already contains is left out: kube's errors display their source.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut parent = text.clone();
    let mut next = error.source();
    while let Some(link) = next {
        let words = link.to_string();
        if !parent.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        parent = words;
        next = link.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[derive(Debug, thiserror::Error)]
    #[error("outer: inner")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner(#[source] std::io::Error);

    #[test]
    fn chain_says_each_thing_once() {
        let error = Outer(Inner(std::io::Error::other("disk")));
        assert_eq!(chain(&error), "outer: inner: disk");
    }

    #[test]
    fn classes_follow_the_status_code() {
        let of = |code| class_of(&kube::Error::Api(Status::failure("m", "r").with_code(code).boxed()));
        for code in [401, 403, 408, 409, 410, 429, 500, 502, 503, 504] {
            assert_eq!(of(code), Class::Transient, "{code}");
        }
        for code in [400, 405, 406, 413, 415, 422] {
            assert_eq!(of(code), Class::Terminal, "{code}");
        }
        assert_eq!(of(404), Class::Waiting);
    }
}
