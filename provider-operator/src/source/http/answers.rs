//! What the answer of a web server says of a file, and what its refusals mean. Asks nobody.

use std::pin::Pin;
use std::task::{Poll, ready};

use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderName, StatusCode, header};
use http_body::Body as _;
use operator_kit::failure::chain;
use provider_plugin::{ByteStream, ErrorClass, Probe, SourceError};
use release::http::{Body, HttpError, Response};

/// What `Content-Range` says.
pub(in crate::source) struct Part {
    /// The first byte of the part.
    pub(in crate::source) from: u64,
    /// Bytes of the whole file.
    pub(in crate::source) total: Option<u64>,
}

/// What the headers say of the file.
pub(in crate::source) fn probe_of(headers: &HeaderMap) -> Probe {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    // A weak tag is the same for files that only mean the same.
    let strong = text(header::ETAG).filter(|tag| !tag.starts_with("W/"));
    Probe {
        size: text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        tag: strong.or_else(|| text(header::LAST_MODIFIED)).map(str::to_owned),
        ranges: text(header::ACCEPT_RANGES).is_some_and(|units| units.eq_ignore_ascii_case("bytes")),
        content_type: text(header::CONTENT_TYPE).map(str::to_owned),
    }
}

/// Which part of the file comes.
pub(in crate::source) fn part_of(headers: &HeaderMap) -> Option<Part> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some(Part {
        from: from.parse().ok()?,
        total: total.parse().ok(),
    })
}

/// Whether what is found is another file than the one that was probed, as far as both say.
pub(in crate::source) fn is_other(probe: &Probe, found: &Probe) -> bool {
    fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
        matches!((one, other), (Some(one), Some(other)) if one != other)
    }
    differ(probe.tag.as_ref(), found.tag.as_ref()) || differ(probe.size.as_ref(), found.size.as_ref())
}

/// The bytes of an answer as they come.
pub(in crate::source) fn bytes(body: Body) -> ByteStream {
    let mut body = Some(body);
    let pieces = stream::poll_fn(move |context| {
        while let Some(open) = &mut body {
            let frame = ready!(Pin::new(open).poll_frame(context));
            match frame {
                // What are no bytes are trailers, which say nothing here.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Some(Ok(data))),
                    _ => {}
                },
                Some(Err(error)) => {
                    body = None;
                    return Poll::Ready(Some(Err(error_of(&error))));
                }
                None => body = None,
            }
        }
        Poll::Ready(None)
    });
    pieces.boxed()
}

/// An answer that is no file.
pub(in crate::source) fn refusal_of(place: &str, answer: &Response) -> SourceError {
    let status = answer.status();
    let (class, why) = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => (ErrorClass::SourceGone, "has no such file"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (
            ErrorClass::SourceGone,
            "does not give the file to us; name a Secret with credentials for it",
        ),
        StatusCode::TOO_MANY_REQUESTS => (ErrorClass::Throttled, "wants to be left alone for now"),
        StatusCode::SERVICE_UNAVAILABLE if answer.retry_after().is_some() => {
            (ErrorClass::Throttled, "wants to be left alone for now")
        }
        StatusCode::REQUEST_TIMEOUT => (ErrorClass::Unavailable, "was not fast enough for itself"),
        status if status.is_server_error() => (ErrorClass::Unavailable, "has trouble of its own"),
        _ => (ErrorClass::SourceGone, "gives no file"),
    };
    SourceError {
        status: Some(status.as_u16()),
        retry_after: answer.retry_after(),
        ..SourceError::new(class, format!("{place} {why} (HTTP {})", status.as_u16()))
    }
}

/// No answer, or none that may be used.
pub(in crate::source) fn error_of(error: &HttpError) -> SourceError {
    let class = match error {
        HttpError::BackingOff { .. } | HttpError::Busy { .. } => ErrorClass::Throttled,
        HttpError::Exchange { .. } | HttpError::Body { .. } => ErrorClass::SourceBroken,
        error if error.is_silence() => ErrorClass::Unavailable,
        // It says nothing of the file: whoever runs the program has to give it authorities.
        HttpError::NoRoots => ErrorClass::Unavailable,
        // Somebody has to change a URL, a Secret or a flag.
        _ => ErrorClass::SourceGone,
    };
    SourceError {
        retry_after: error.retry_after(),
        // With what lies below, which is all that tells a name that is not known from a server that is away.
        ..SourceError::new(class, chain(error))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines.iter();
        lines
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_file_is_known_by_its_strong_tag_or_by_its_time() {
        let time = ("last-modified", "Thu, 26 Nov 2026 20:00:00 GMT");
        let tag_of = |lines: &[(&'static str, &'static str)]| probe_of(&headers(lines)).tag;
        assert_eq!(tag_of(&[("etag", "\"one\""), time]).as_deref(), Some("\"one\""));
        assert_eq!(tag_of(&[("etag", "W/\"one\""), time]).as_deref(), Some(time.1));
        assert_eq!(tag_of(&[("etag", "W/\"one\"")]), None);
    }

    #[test]
    fn a_part_says_where_it_begins_and_how_long_the_whole_is() {
        let part = |text| part_of(&headers(&[("content-range", text)])).map(|part| (part.from, part.total));
        assert_eq!(part("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(part("bytes 5-9/*"), Some((5, None)));
        for unusable in ["bytes */10", "lines 1-2/3", "bytes 5", ""] {
            assert_eq!(part(unusable), None, "{unusable}");
        }
    }

    #[test]
    fn a_program_without_authorities_says_nothing_of_the_file() {
        let error = error_of(&HttpError::NoRoots);
        assert_eq!(error.class, ErrorClass::Unavailable);
        assert!(error.message.contains("put them into its image"), "{}", error.message);
    }

    #[test]
    fn only_what_both_say_can_differ() {
        let probe = |tag: Option<&str>, size| Probe {
            tag: tag.map(str::to_owned),
            size,
            ..Probe::default()
        };
        assert!(is_other(&probe(Some("a"), None), &probe(Some("b"), None)));
        assert!(is_other(&probe(None, Some(1)), &probe(None, Some(2))));
        assert!(!is_other(&probe(Some("a"), None), &probe(None, Some(2))));
        assert!(!is_other(&probe(Some("a"), Some(1)), &probe(Some("a"), Some(1))));
    }
}
