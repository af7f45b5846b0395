//! What must hold of what servers say in headers.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use url::Url;

use super::{
    Redirects,
    redirect::{is_same_origin, target},
    retry_after::{LONGEST_WAIT, retry_after, until},
};
use crate::{
    fuzzing::{Outcome, refused},
    source,
};

/// The head of an answer, one header in a line, as each of those reads it who ask: when to come again, where to go instead, whether there is
/// more, who wants to know what.
pub fn headers(input: &[u8]) -> Outcome {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            continue;
        };
        let parsed = (
            HeaderName::from_bytes(name),
            HeaderValue::from_bytes(value.trim_ascii()),
        );
        if let (Ok(name), Ok(value)) = parsed {
            headers.append(name, value);
        }
    }
    let all = [
        waits(&headers),
        redirects(&headers),
        source::fuzzing::headers_of_github(&headers),
        source::fuzzing::headers_of_registry(&headers),
    ];
    if all.contains(&Outcome::Accepted) {
        return Outcome::Accepted;
    }
    Outcome::Refused
}

fn waits(headers: &HeaderMap) -> Outcome {
    let now = Timestamp::UNIX_EPOCH;
    for time in [Timestamp::MIN, now, Timestamp::MAX] {
        assert!(until(time, headers, now).is_none_or(|wait| wait <= LONGEST_WAIT));
    }
    match retry_after(headers, now) {
        Some(wait) => {
            assert!(wait <= LONGEST_WAIT);
            Outcome::Accepted
        }
        None => Outcome::Refused,
    }
}

fn redirects(headers: &HeaderMap) -> Outcome {
    let mut outcome = Outcome::Refused;
    let Ok(from) = Url::parse("https://api.example.com/files/1") else {
        return outcome;
    };
    let named = Redirects::To([".cdn.example.com".to_owned()].into());
    for allowed in [Redirects::SameHost, named, Redirects::Anywhere] {
        match target(StatusCode::FOUND, headers, &from, &from, &allowed) {
            Ok(to) => {
                assert!(to.is_some(), "302 is no redirect");
                let Some(to) = to else { continue };
                assert_eq!((to.scheme(), to.fragment()), ("https", None));
                assert!(to.username().is_empty() && to.password().is_none());
                let host = to.host_str().unwrap_or_default();
                let is_allowed = match allowed {
                    Redirects::SameHost => host == "api.example.com",
                    Redirects::To(_) => host == "api.example.com" || host.ends_with(".cdn.example.com"),
                    Redirects::Anywhere => !host.is_empty(),
                };
                assert!(is_allowed, "{allowed:?} leads to {to}");
                assert!(host != "api.example.com" || to.port().is_some() || is_same_origin(&from, &to));
                outcome = Outcome::Accepted;
            }
            Err(error) => {
                refused(&error, error.class(), error.reason());
            }
        }
    }
    outcome
}
