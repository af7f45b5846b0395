//! What an answer means that is not the one hoped for: status, headers and words become an error that decisions can be made by. Pure.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use jiff::{Timestamp, fmt::rfc2822};
use provider_plugin::{CloudError, ErrorClass, Quota};
use serde_json::Value;

/// Longest wait that a cloud can impose, as a mistaken one must not silence us for ever.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// By which the cloud's operators find the request.
const REQUEST_ID: [&str; 2] = ["x-openstack-request-id", "x-compute-request-id"];
/// Behind the words of a bound that is not named.
const WITHOUT_A_NAME: &str = "; ask its operator which bound it is, as the answer names none of the project's";
/// Behind the words of a cloud that looked into the bytes: what somebody does about it who is sure of them as well. With the words of Glance before it, it has to stay
/// below what a message may be long.
const LOOKED_INTO: &str = "; correct createOpts.disk_format, or the cloud's require_image_format_match, \
                           gpt_safety_checks_nonfatal";
/// Longest id of a request that is told.
const LONGEST_ID: usize = 80;

/// What is wrong, by the answer to a call. `operation` reads after "unable to".
pub fn error_of(operation: &'static str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CloudError {
    of_words(operation, status, headers, &words(headers, body))
}

/// The same by the words of the answer.
pub(crate) fn of_words(operation: &'static str, status: StatusCode, headers: &HeaderMap, words: &str) -> CloudError {
    let retry_after = retry_after(headers);
    let quota = quota(words);
    let class = class(status, words, retry_after.is_some(), quota.as_ref());
    let told = if words.is_empty() {
        status.canonical_reason().unwrap_or("no reason is given")
    } else {
        words
    };
    // Something before the cloud may take no long bodies, and that is no bound of the project.
    let is_nameless = class == ErrorClass::Quota && quota.is_none() && !words.contains("quota");
    let advice = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => LOOKED_INTO,
        _ if is_nameless => WITHOUT_A_NAME,
        _ => "",
    };
    CloudError {
        request_id: request_id(headers),
        retry_after,
        quota: quota.filter(|_| class == ErrorClass::Quota).map(Box::new),
        ..CloudError::new(
            class,
            operation,
            format!("the cloud answered {}: {told}{advice}", status.as_u16()),
        )
    }
}

fn class(status: StatusCode, words: &str, is_told_to_wait: bool, quota: Option<&Quota>) -> ErrorClass {
    match status.as_u16() {
        401 => ErrorClass::Credentials,
        403 => ErrorClass::Permission,
        404 | 410 => ErrorClass::Gone,
        405 | 501 => ErrorClass::Unsupported,
        409 => ErrorClass::State,
        413 if quota.is_some_and(|quota| quota.resource == "image_count_uploading") => ErrorClass::Busy,
        413 if quota.is_some() => ErrorClass::Quota,
        413 if is_told_to_wait => ErrorClass::Throttled,
        // Of an image's own tags, properties and members: that is how it was asked for.
        413 if words.contains("number of allowed image") || words.contains("larger than") => ErrorClass::Invalid,
        413 => ErrorClass::Quota,
        429 => ErrorClass::Throttled,
        400 | 411 | 415 | 422 => ErrorClass::Invalid,
        // Of others no cloud says that it understood what was asked: something before it may answer so, and not for ever.
        _ => ErrorClass::Unavailable,
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let mut found = REQUEST_ID.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let id = found.next()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    Some(id.chars().filter(|c| is_word(*c)).take(LONGEST_ID).collect())
}

/// What `Retry-After` asks for, as seconds or as a date. A date counts from that of the answer, so that clocks that differ do no harm.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if let Ok(seconds) = text.parse() {
        Duration::from_secs(seconds)
    } else {
        let until = date_of(text)?.duration_since(date(headers)?);
        Duration::try_from(until).ok()?
    };
    Some(wait.min(LONGEST_WAIT))
}

/// When the cloud gave its answer, by its own clock.
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    date_of(headers.get(header::DATE)?.to_str().ok()?)
}

fn date_of(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// The bound that is named, as the library of OpenStack's services words it.
fn quota(words: &str) -> Option<Quota> {
    let (_, named) = words.split_once("[Resource ")?;
    let resource = named.split_whitespace().next()?;
    let number = |before: &str| {
        let (_, after) = named.split_once(before)?;
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    Some(Quota {
        resource: resource.to_owned(),
        limit: number("over limit of "),
        used: number("current usage "),
        requested: number("delta "),
    })
}

/// What the service says for people, out of JSON, of a page or of plain text.
pub(crate) fn words(headers: &HeaderMap, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let Ok(json) = serde_json::from_str::<Value>(text) {
        let message = [&json["error"]["message"], &json["message"], &json["error"]];
        let message = message.into_iter().find_map(Value::as_str);
        return message.unwrap_or_default().trim().to_owned();
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_page = text.starts_with('<') || kind.is_some_and(|kind| kind.contains("html"));
    if is_page { of_page(text) } else { text.to_owned() }
}

/// The text of a page behind its heading, which only repeats the status.
fn of_page(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let begin = lower.find("</h1>").map(|at| at + "</h1>".len());
    // A page without one may begin with words that only its browser reads.
    let begin = begin.or_else(|| lower.find("<body")).unwrap_or(0);
    let mut text = String::new();
    let mut is_in_tag = false;
    for c in page[begin..].chars() {
        match c {
            '<' => is_in_tag = true,
            '>' if is_in_tag => {
                is_in_tag = false;
                text.push(' ');
            }
            _ if is_in_tag => {}
            _ => text.push(c),
        }
    }
    unescaped(&text).trim().to_owned()
}

fn unescaped(text: &str) -> String {
    let marks = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        // Last, so that what was escaped twice is unescaped once.
        ("&amp;", "&"),
    ];
    marks
        .into_iter()
        .fold(text.to_owned(), |text, (mark, character)| text.replace(mark, character))
}
