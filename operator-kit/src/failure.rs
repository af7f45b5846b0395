//! What a failed call to the API server means for the caller: try again, wait for the world, or ask for an edit.

mod guarded;

use std::error::Error;

use crds::conditions::one_line;
use http::StatusCode;
use kube::core::Status;
use kube::core::response::StatusCause;
use kube::runtime::watcher;

use crate::client::OutOfBounds;

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

/// Whether a right is missing.
pub fn is_forbidden(error: &watcher::Error) -> bool {
    code_of(error) == Some(StatusCode::FORBIDDEN)
}

/// Whether there was no answer at all, which the client tells once for all requests.
pub(crate) fn is_unanswered(error: &(dyn Error + 'static)) -> bool {
    if OutOfBounds::of(error).is_some_and(|bounds| !matches!(bounds, OutOfBounds::Silent { .. })) {
        return false;
    }
    let mut next = Some(error);
    while let Some(link) = next {
        if matches!(
            guarded::downcast(link),
            Some(kube::Error::Service(_) | kube::Error::HyperError(_))
        ) {
            return true;
        }
        next = link.source();
    }
    false
}

/// The API server's answer to a watch, if that is what interrupted it.
pub(crate) fn code_of(error: &watcher::Error) -> Option<StatusCode> {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return None,
    };
    StatusCode::from_u16(code).ok()
}

/// What is told of a failure for as long as it lasts. An API server that finds other words each time it refuses with the same code tells nothing new by them, and
/// whoever repeated them would write a status for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lasting {
    pub(crate) words: String,
    code: Option<StatusCode>,
}

impl Lasting {
    /// What nobody answered, in words of ours.
    pub(crate) fn saying(words: String) -> Self {
        Self { words, code: None }
    }

    /// What interrupted a watch, after what was told of it before.
    pub(crate) fn of_watch(error: &watcher::Error, before: Option<Self>) -> Self {
        Self::after(before, code_of(error), || words_of_watch(error))
    }

    /// The same of any failed call.
    pub(crate) fn of(error: &(dyn Error + 'static), before: Option<Self>) -> Self {
        let (mut next, mut code) = (Some(error), None);
        while let Some(link) = next {
            if let Some(status) = answer_of(link) {
                code = StatusCode::from_u16(status.code).ok();
                break;
            }
            next = link.source();
        }
        Self::after(before, code, || chain(error))
    }

    fn after(before: Option<Self>, code: Option<StatusCode>, words: impl FnOnce() -> String) -> Self {
        match before {
            Some(before) if code.is_some() && before.code == code => before,
            _ => Self { words: words(), code },
        }
    }
}

/// What interrupted a watch, in the API server's words where there are some: the error's own text ends in a dump of the answer. No longer
/// than [`chain`].
pub fn words_of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => words_of(source),
        watcher::Error::WatchError(status) => shortened(&message_of(status), LONGEST),
        watcher::Error::NoResourceVersion => chain(error),
    }
}

/// The API server's own words when it answered, else the chain of causes. No longer than [`chain`].
pub fn words_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => shortened(&message_of(status), LONGEST),
        other => chain(other),
    }
}

/// For an answer that nobody can make anything of: what answers is hardly an API server.
fn wordless(status: &Status) -> String {
    match status.code {
        0 => "it answered with an error that has neither words nor a code; look whether it is an API server".to_owned(),
        code => format!("the API server answered with the code {code} and without words"),
    }
}

/// The API server's words in an order that is always the same. It lists the faults of an object as its maps fall out, and whoever repeated that
/// would say something new after every attempt.
pub(crate) fn message_of(status: &Status) -> String {
    let message = status.message.as_str();
    if message.is_empty() {
        return wordless(status);
    }
    if let Some((what, fields)) = message.split_once(WRONG_TYPES) {
        let mut fields: Vec<&str> = fields.lines().collect();
        fields.sort_unstable();
        return format!("{what}{WRONG_TYPES}{}", fields.join("\n"));
    }
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    let mut faults: Vec<String> = Vec::new();
    for StatusCause { field, message, .. } in causes {
        let fault = format!("{field}: {message}");
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let as_told = faults.join(", ");
    faults.sort_unstable();
    message.replace(&format!("[{as_told}]"), &format!("[{}]", faults.join(", ")))
}

/// What precedes the lines of fields whose values are of another type than the schema says
/// (`sigs.k8s.io/structured-merge-diff`, seen with 1.36).
const WRONG_TYPES: &str = "errors:\n";

/// Most bytes that are told of one link of a chain that speaks for itself. With the links around it, it fits into the message of a condition.
const LONGEST_LINK: usize = 700;
/// Most bytes that are told of a whole failure.
const LONGEST: usize = 4_000;

/// The text on one line, or its beginning and its end when it has more bytes than `most`, with the number of those between the two.
///
/// Parsers quote what they read, and of bytes from outside that may be all of it. They say at the end where it stands.
fn shortened(text: &str, most: usize) -> String {
    let text = one_line(text, usize::MAX);
    if text.len() <= most {
        return text;
    }
    let end = most / 4;
    let before = &text[..text.floor_char_boundary(most - end)];
    let after = &text[text.ceil_char_boundary(text.len() - end)..];
    let between = text.len() - before.len() - after.len();
    format!("{before} [... {between} bytes ...] {after}")
}

/// The outermost error of this type in a chain of causes.
pub(crate) fn link_of<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(link) = next {
        if let Some(found) = link.downcast_ref() {
            return Some(found);
        }
        next = link.source();
    }
    None
}

/// The chain of causes in one line, outermost first, in about 4,000 bytes at most: the middle of longer texts is left out.
///
/// A link whose text its parent already contains is left out: kube's errors display their source. Of an answer of the API server only its
/// words are told: kube's text for it ends in a dump. What may quote a credential is told in words of ours.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    chain_without(error, str::to_owned)
}

/// The same, of an error whose links may hold what nobody may read: `hide` takes it out of their words, before anything is left out of them.
pub fn chain_without(error: &(dyn Error + 'static), hide: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut parent = String::new();
    let mut next = Some(error);
    while let Some(link) = next {
        let ours = answer_of(link).map(message_of).or_else(|| guarded::told(link));
        let last = ours.is_some();
        let words = hide(&ours.unwrap_or_else(|| link.to_string()));
        let is_said = !text.is_empty() && parent.contains(&words);
        parent.clone_from(&words);
        if !is_said {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&shortened(&words, if last { LONGEST } else { LONGEST_LINK }));
        }
        next = link.source().filter(|_| !last);
    }
    shortened(&text, LONGEST)
}

/// The API server's answer, if that is what a link of a chain is, boxed or not.
fn answer_of<'a>(link: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    match guarded::downcast::<kube::Error>(link)? {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::response::StatusDetails;

    #[test]
    fn an_answer_without_words_is_told_in_ours() {
        let answered = |code| {
            let status = Status {
                code,
                ..Status::default()
            };
            kube::Error::Api(Box::new(status))
        };
        assert_eq!(
            chain(&answered(502)),
            "the API server answered with the code 502 and without words"
        );
        assert_eq!(
            words_of(&answered(0)),
            "it answered with an error that has neither words nor a code; look whether it is an API server"
        );
    }

    fn cause(field: &str) -> StatusCause {
        StatusCause {
            field: field.to_owned(),
            message: "Required value".to_owned(),
            reason: "FieldValueRequired".to_owned(),
        }
    }

    #[test]
    fn words_of_a_refusal_do_not_depend_on_the_order_of_its_faults() {
        let refusal = |fields: [&str; 3]| {
            let listed = fields.map(|field| format!("{field}: Required value")).join(", ");
            let details = StatusDetails {
                name: "x".to_owned(),
                group: "rules.example.com".to_owned(),
                kind: "Strict".to_owned(),
                uid: String::new(),
                causes: fields.map(cause).to_vec(),
                retry_after_seconds: 0,
            };
            Status::failure(&format!("Strict \"x\" is invalid: [{listed}]"), "Invalid").with_details(details)
        };
        let sorted =
            "Strict \"x\" is invalid: [spec.a: Required value, spec.b: Required value, spec.c: Required value]";
        assert_eq!(message_of(&refusal(["spec.b", "spec.c", "spec.a"])), sorted);
        assert_eq!(message_of(&refusal(["spec.a", "spec.b", "spec.c"])), sorted);
    }

    #[test]
    fn words_about_wrong_types_do_not_depend_on_the_order_of_the_fields() {
        let refusal = |fields: &str| Status::failure(&format!("no typed object: errors:\n{fields}"), "Invalid");
        let sorted = "no typed object: errors:\n  .a: expected string\n  .b: expected map";
        assert_eq!(
            message_of(&refusal("  .b: expected map\n  .a: expected string")),
            sorted
        );
        assert_eq!(
            message_of(&refusal("  .a: expected string\n  .b: expected map")),
            sorted
        );
    }

    #[test]
    fn words_without_a_list_stay_as_they_are() {
        let status = Status::failure("pods \"x\" not found", "NotFound");
        assert_eq!(message_of(&status), "pods \"x\" not found");
    }

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
    fn of_a_link_that_quotes_too_much_beginning_and_end_are_told_between_whole_characters() {
        let parsed = |quoted: &str| {
            let text = format!("unknown field `{quoted}` at line 1 column 5");
            chain(&Inner(std::io::Error::other(text)))
        };
        let whole = parsed(&"ü".repeat(300));
        assert!(whole.contains(&"ü".repeat(300)) && !whole.contains("..."), "{whole}");
        for padding in ["", "u"] {
            let cut = parsed(&format!("{padding}{}", "ü".repeat(1 << 20)));
            assert!(
                cut.starts_with("inner: unknown field `") && cut.ends_with("` at line 1 column 5"),
                "{cut}"
            );
            assert!(cut.contains("ü [... 20964") && cut.contains(" bytes ...] ü"), "{cut}");
            assert!(cut.len() < LONGEST_LINK + 50, "{cut}");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("link {number}{}", "x".repeat(500))]
    struct Deep {
        number: u32,
        #[source]
        cause: Option<Box<Self>>,
    }

    #[test]
    fn a_long_chain_keeps_what_failed_and_its_innermost_cause() {
        let deep = (0..100).fold(None, |cause, number| Some(Box::new(Deep { number, cause })));
        let text = chain(&*deep.expect("links"));
        assert!(text.starts_with("link 99x") && text.contains("link 0x"), "{text}");
        assert!(text.len() < LONGEST + 50, "{text}");
    }

    #[test]
    fn words_of_the_api_server_are_bounded_too() {
        let refusal = Status::failure(&"ä".repeat(1 << 20), "Invalid").with_code(422);
        let words = [
            words_of(&kube::Error::Api(refusal.clone().boxed())),
            words_of_watch(&watcher::Error::WatchError(refusal.boxed())),
        ];
        for words in words {
            assert!(words.len() < LONGEST + 50 && words.ends_with('ä'), "{words}");
        }
    }

    #[test]
    fn words_of_others_steer_no_terminal() {
        let words = "\u{1b}]0;owned\u{7}\u{1b}[2Jall\nwell";
        let told = "]0;owned [2Jall well";
        let refusal = || Status::failure(words, "Invalid").with_code(422).boxed();
        assert_eq!(
            chain(&Inner(std::io::Error::other(words))),
            format!("inner: {told}"),
            "a chart, a source"
        );
        assert_eq!(words_of(&kube::Error::Api(refusal())), told);
        assert_eq!(words_of_watch(&watcher::Error::WatchError(refusal())), told);
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed to write the status")]
    struct Refused(#[source] Box<kube::Error>);

    #[test]
    fn chain_tells_the_words_of_the_api_server_and_no_dump() {
        let refusal = || {
            kube::Error::Api(
                Status::failure("pods \"x\" not found", "NotFound")
                    .with_code(404)
                    .boxed(),
            )
        };
        assert_eq!(chain(&refusal()), "pods \"x\" not found");
        assert_eq!(
            chain(&Refused(Box::new(refusal()))),
            "failed to write the status: pods \"x\" not found"
        );
    }

    #[test]
    fn other_words_for_the_same_code_are_no_news_and_another_code_is() {
        let refused = |code, words: &str| {
            watcher::Error::InitialListFailed(kube::Error::Api(Status::failure(words, "No").with_code(code).boxed()))
        };
        let first = Lasting::of_watch(&refused(429, "try in 17 ms"), None);
        let second = Lasting::of_watch(&refused(429, "try in 3 ms"), Some(first.clone()));
        assert_eq!(second, first);
        assert_eq!(Lasting::of_watch(&refused(503, "away"), Some(second)).words, "away");
        let read = |words: &str| {
            Refused(Box::new(kube::Error::Api(
                Status::failure(words, "No").with_code(500).boxed(),
            )))
        };
        let first = Lasting::of(&read("request 1"), None);
        assert_eq!(first.words, "failed to write the status: request 1");
        assert_eq!(Lasting::of(&read("request 2"), Some(first.clone())), first);
        let silent = Lasting::of(&std::io::Error::other("silence"), Some(first));
        assert_eq!(silent.words, "silence");
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
