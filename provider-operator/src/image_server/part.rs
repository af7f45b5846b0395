//! Which bytes of an image a request is answered with, by what it says of the bytes that its sender has. Pure; as RFC 9110 has it, 13 and 14.

use axum::http::HeaderMap;
use axum::http::header::{self, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

/// By what an image is known again.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    tag: String,
    changed: Option<(Timestamp, String)>,
}

/// What is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All bytes.
    Whole,
    /// Those from `from` on, up to the one before `until`.
    Range { from: u64, until: u64 },
    /// None: the sender has this image.
    Unchanged,
    /// None: it is another image than the sender insists on.
    Changed,
    /// None: the image has no such bytes.
    Beyond,
}

impl Validators {
    /// Of the image with this digest, whose last byte was written then.
    pub(super) fn new(sha256: &str, changed: Timestamp) -> Self {
        let whole_second = Timestamp::from_second(changed.as_second()).ok();
        let text = |time: Timestamp| Some((time, DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()?));
        Self {
            tag: format!("\"sha256:{sha256}\""),
            changed: whole_second.and_then(text),
        }
    }

    /// As headers of an answer.
    pub(super) fn headers(&self) -> HeaderMap {
        let changed = self.changed.iter().map(|(_, text)| (header::LAST_MODIFIED, text));
        let all = [(header::ETAG, &self.tag)].into_iter().chain(changed);
        let all = all.filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)));
        all.collect()
    }

    fn is_among(&self, tags: &str) -> bool {
        let mut tags = tags.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || tag == self.tag)
    }

    /// Whether it was changed after this time; `None` when one of the two is unknown.
    fn is_after(&self, time: &str) -> Option<bool> {
        let time = DateTimeParser::new().parse_timestamp(time).ok()?;
        let (changed, _) = self.changed.as_ref()?;
        Some(*changed > time)
    }

    /// Whether a part would fit to what somebody has of this.
    fn fits(&self, condition: &str) -> bool {
        let is_changed = self.changed.as_ref().is_some_and(|(_, text)| text == condition);
        condition == self.tag || is_changed
    }
}

/// What is given of an image with so many bytes; where no part is wanted, all of it.
pub(super) fn part(headers: &HeaderMap, validators: &Validators, bytes: u64, is_whole_wanted: bool) -> Part {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let is_other = match text(header::IF_MATCH) {
        Some(tags) => !validators.is_among(tags),
        None => text(header::IF_UNMODIFIED_SINCE).and_then(|time| validators.is_after(time)) == Some(true),
    };
    if is_other {
        return Part::Changed;
    }
    let is_same = match text(header::IF_NONE_MATCH) {
        // A weak tag is as good here: nobody gets bytes for it.
        Some(tags) => validators.is_among(&tags.replace("W/", "")),
        None => text(header::IF_MODIFIED_SINCE).and_then(|time| validators.is_after(time)) == Some(false),
    };
    if is_same {
        return Part::Unchanged;
    }
    let fits = text(header::IF_RANGE).is_none_or(|condition| validators.fits(condition));
    match text(header::RANGE).filter(|_| fits && !is_whole_wanted) {
        Some(range) => range_of(range, bytes),
        None => Part::Whole,
    }
}

/// The bytes of one range. Several at once, and what cannot be read, are answered with the whole, as everybody may.
fn range_of(text: &str, bytes: u64) -> Part {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Part::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (from, until) = match (number(first), number(last)) {
        (Some(first), Some(last)) if last >= first => (first, last.saturating_add(1).min(bytes)),
        (Some(first), None) if last.trim().is_empty() => (first, bytes),
        (None, Some(count)) if first.trim().is_empty() => {
            (if count == 0 { bytes } else { bytes.saturating_sub(count) }, bytes)
        }
        _ => return Part::Whole,
    };
    if from < until {
        Part::Range { from, until }
    } else {
        Part::Beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "Thu, 01 Jan 2026 12:00:00 GMT";

    fn given(headers: &[(HeaderName, &str)]) -> Part {
        let changed: Timestamp = "2026-01-01T12:00:00.5Z".parse().expect("a time");
        let headers = headers.iter();
        let headers: HeaderMap = headers
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a value")))
            .collect();
        part(&headers, &Validators::new("ab", changed), 100, false)
    }

    #[test]
    fn one_range_is_given_and_what_is_not_understood_is_the_whole() {
        let range = |from, until| Part::Range { from, until };
        for (text, expected) in [
            ("bytes=0-", range(0, 100)),
            ("bytes=99-", range(99, 100)),
            ("bytes=10-19", range(10, 20)),
            ("bytes=10-1000", range(10, 100)),
            ("bytes=-10", range(90, 100)),
            ("bytes=-1000", range(0, 100)),
            ("bytes=100-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=20-10", Part::Whole),
            ("bytes=0-1,5-6", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes=99999999999999999999-", Part::Whole),
        ] {
            assert_eq!(given(&[(header::RANGE, text)]), expected, "{text}");
        }
    }

    #[test]
    fn a_part_is_given_to_those_alone_who_have_the_rest_of_the_same_image() {
        for (condition, expected) in [
            ("\"sha256:ab\"", Part::Range { from: 5, until: 100 }),
            (TIME, Part::Range { from: 5, until: 100 }),
            ("\"sha256:cd\"", Part::Whole),
            ("W/\"sha256:ab\"", Part::Whole),
            ("Thu, 01 Jan 2026 12:00:01 GMT", Part::Whole),
        ] {
            let headers = [(header::RANGE, "bytes=5-"), (header::IF_RANGE, condition)];
            assert_eq!(given(&headers), expected, "{condition}");
        }
    }

    #[test]
    fn conditions_are_held_against_the_digest_before_the_time() {
        let later = "Thu, 01 Jan 2026 13:00:00 GMT";
        let earlier = "Thu, 01 Jan 2026 11:00:00 GMT";
        for (name, value, expected) in [
            (header::IF_NONE_MATCH, "\"sha256:ab\"", Part::Unchanged),
            (header::IF_NONE_MATCH, "\"x\", W/\"sha256:ab\"", Part::Unchanged),
            (header::IF_NONE_MATCH, "*", Part::Unchanged),
            (header::IF_NONE_MATCH, "\"sha256:cd\"", Part::Whole),
            (header::IF_MODIFIED_SINCE, TIME, Part::Unchanged),
            (header::IF_MODIFIED_SINCE, earlier, Part::Whole),
            (header::IF_MODIFIED_SINCE, "yesterday", Part::Whole),
            (header::IF_MATCH, "\"sha256:ab\"", Part::Whole),
            (header::IF_MATCH, "\"sha256:cd\"", Part::Changed),
            (header::IF_MATCH, "W/\"sha256:ab\"", Part::Changed),
            (header::IF_UNMODIFIED_SINCE, TIME, Part::Whole),
            (header::IF_UNMODIFIED_SINCE, earlier, Part::Changed),
        ] {
            assert_eq!(given(&[(name.clone(), value)]), expected, "{name}: {value}");
        }
        let both = [
            (header::IF_NONE_MATCH, "\"sha256:cd\""),
            (header::IF_MODIFIED_SINCE, later),
        ];
        assert_eq!(given(&both), Part::Whole);
    }
}
