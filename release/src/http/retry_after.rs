//! When a server wants to be asked again: RFC 9110, section 10.2.3.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};

/// Longest wait that a server can impose. A mistaken or hostile one must not silence a source for ever; real limits end within an hour.
pub(super) const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// What `Retry-After` asks for, as seconds or as a date. A date counts from the date of the answer itself, so that clocks that differ do
/// no harm; from `now` where the answer has none.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => until(date(text)?, headers, now)?,
    };
    Some(wait.min(LONGEST_WAIT))
}

/// From the date of an answer to a time that it names; none if that is over.
pub(super) fn until(time: Timestamp, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let said = headers.get(header::DATE).and_then(|value| date(value.to_str().ok()?));
    let wait = time.duration_since(said.unwrap_or(now));
    Some(Duration::try_from(wait).ok()?.min(LONGEST_WAIT))
}

/// [`retry_after`] by the clock of this machine.
pub(crate) fn retry_after_now(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers, Timestamp::now())
}

/// [`until`] by the clock of this machine.
pub(crate) fn until_now(time: Timestamp, headers: &HeaderMap) -> Option<Duration> {
    until(time, headers, Timestamp::now())
}

fn date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wait(retry: &'static str, date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(retry));
        if let Some(date) = date {
            headers.insert(header::DATE, HeaderValue::from_static(date));
        }
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        retry_after(&headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date_of_the_servers_clock() {
        assert_eq!(wait("120", None), Some(120));
        assert_eq!(wait(" 0 ", None), Some(0));
        assert_eq!(wait("Sun, 01 Mar 2026 12:02:00 GMT", None), Some(120));
        let slow_clock = Some("Sun, 01 Mar 2026 10:00:00 GMT");
        assert_eq!(wait("Sun, 01 Mar 2026 10:00:30 GMT", slow_clock), Some(30));
    }

    #[test]
    fn retry_after_that_is_over_or_nonsense_is_no_wait_and_an_endless_one_ends() {
        for text in ["Sun, 01 Mar 2026 11:00:00 GMT", "soon", "-5", "", "1.5"] {
            assert_eq!(wait(text, None), None, "{text}");
        }
        assert_eq!(wait("18446744073709551615", None), Some(3600));
        assert_eq!(wait("Tue, 31 Dec 2999 23:59:59 GMT", None), Some(3600));
    }
}
