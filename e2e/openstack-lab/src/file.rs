//! What a good web server says of a file: how long it is, by which tag it is known, and the part of it that was asked for. Where the bytes come from and how
//! fast they are given is decided elsewhere.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::client::{Body, whole};

/// A file that is given to whoever asks.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its media type.
    pub kind: &'static str,
    /// Its entity tag, in quotes.
    pub tag: &'a str,
    /// Bytes.
    pub length: usize,
    /// Whether parts of it can be had. Else whoever wants one gets everything.
    pub ranges: bool,
}

impl File<'_> {
    /// The answer to a question with these headers, with a body of the bytes that were asked for.
    pub fn answer(&self, asked: &HeaderMap, body: impl FnOnce(Range<usize>) -> Body) -> Response<Body> {
        let text = |name| asked.get(name).and_then(|value| value.to_str().ok());
        let is_same = text(header::IF_RANGE).is_none_or(|tag| tag == self.tag);
        let range = text(header::RANGE).filter(|_| self.ranges && is_same);
        let part = range.and_then(part);
        let whole = 0..self.length;
        if part.as_ref().is_some_and(|part| part.start >= self.length) {
            return unsatisfiable(self.length);
        }
        let bytes = part.clone().map_or(whole, |part| part.start..part.end.min(self.length));
        let mut headers = vec![
            (header::CONTENT_TYPE, self.kind.to_owned()),
            (header::CONTENT_LENGTH, bytes.len().to_string()),
            (header::ETAG, self.tag.to_owned()),
        ];
        if self.ranges {
            headers.push((header::ACCEPT_RANGES, "bytes".to_owned()));
        }
        if part.is_some() {
            let (first, last) = (bytes.start, bytes.end.saturating_sub(1));
            headers.push((header::CONTENT_RANGE, format!("bytes {first}-{last}/{}", self.length)));
        }
        let mut answer = Response::new(body(bytes));
        if part.is_some() {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        answer.headers_mut().extend(headers.into_iter().filter_map(header_of));
        answer
    }
}

/// The bytes that a range means, as far as it says; behind the last of a file is nothing. What is not understood is answered as if nobody had asked.
pub(crate) fn part(range: &str) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.parse().ok()?;
    let end = match last {
        "" => usize::MAX,
        last => last.parse::<usize>().ok()?.checked_add(1)?,
    };
    (first < end).then_some(first..end)
}

fn header_of((name, value): (HeaderName, String)) -> Option<(HeaderName, HeaderValue)> {
    Some((name, value.parse().ok()?))
}

fn unsatisfiable(length: usize) -> Response<Body> {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let range = header_of((header::CONTENT_RANGE, format!("bytes */{length}")));
    answer.headers_mut().extend(range);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_not_understood_is_as_none() {
        assert_eq!(part("bytes=3-"), Some(3..usize::MAX));
        assert_eq!(part("bytes=0-0"), Some(0..1));
        for unusable in ["bytes=-3", "bytes=5-4", "bytes=1-2,4-5", "lines=1-2"] {
            assert_eq!(part(unusable), None, "{unusable}");
        }
    }

    fn answer(asked: &[(HeaderName, &'static str)], ranges: bool) -> (StatusCode, Option<Range<usize>>) {
        let file = File {
            kind: "text/plain",
            tag: "\"a\"",
            length: 10,
            ranges,
        };
        let asked = asked
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let mut given = None;
        let answer = file.answer(&asked.collect(), |bytes| {
            given = Some(bytes);
            whole("")
        });
        (answer.status(), given)
    }

    #[test]
    fn a_part_ends_with_the_file_or_before() {
        let part = |range| answer(&[(header::RANGE, range)], true);
        assert_eq!(part("bytes=3-"), (StatusCode::PARTIAL_CONTENT, Some(3..10)));
        assert_eq!(part("bytes=3-4"), (StatusCode::PARTIAL_CONTENT, Some(3..5)));
        assert_eq!(part("bytes=3-99"), (StatusCode::PARTIAL_CONTENT, Some(3..10)));
        assert_eq!(part("bytes=10-"), (StatusCode::RANGE_NOT_SATISFIABLE, None));
    }

    #[test]
    fn everything_is_given_of_another_file_and_where_there_are_no_parts() {
        let range = (header::RANGE, "bytes=3-");
        let all = (StatusCode::OK, Some(0..10));
        assert_eq!(answer(&[range.clone(), (header::IF_RANGE, "\"b\"")], true), all);
        assert_eq!(answer(std::slice::from_ref(&range), false), all);
        let same = answer(&[range, (header::IF_RANGE, "\"a\"")], true);
        assert_eq!(same.0, StatusCode::PARTIAL_CONTENT);
    }
}
