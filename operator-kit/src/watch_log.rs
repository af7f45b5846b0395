//! What the log says of a watch: its first failure aloud, those that follow quietly, and that it goes on. What the API server does in its
//! normal course is no failure. Where the process cannot work without a watch, a missing right shows in its readiness too.

use std::fmt::Display;

use http::StatusCode;
use kube::runtime::watcher::{self, Event};

use crate::failure::{chain, code_of, is_unanswered, words_of_watch};
use crate::pages::Unreadable;
use crate::telemetry::{Gate, Readiness};

/// The tale of one watch.
#[derive(Debug)]
pub struct WatchLog {
    kind: String,
    /// Something was said aloud, and that it is over was not.
    troubled: bool,
    /// Closed while the right to watch is missing.
    right: Option<Gate>,
}

impl WatchLog {
    /// Of the watch of this kind.
    pub fn new(kind: impl Display) -> Self {
        Self {
            kind: kind.to_string(),
            troubled: false,
            right: None,
        }
    }

    /// Of the watch of a kind that the process cannot do without.
    pub fn essential(kind: impl Display, readiness: &Readiness) -> Self {
        Self {
            right: Some(readiness.open_gate(&format!("the right to watch {kind}"))),
            ..Self::new(kind)
        }
    }

    /// Takes what the watch tells, also its errors, which it mends by itself.
    pub fn heard<K>(&mut self, event: &watcher::Result<Event<K>>) {
        match event {
            // Told before the API server is asked.
            Ok(Event::Init) => {}
            Ok(_) => self.goes_on(),
            Err(error) => match Unreadable::of(error) {
                Some(passed) => tracing::warn!(kind = self.kind, error = chain(passed), "unable to read an object"),
                None => self.interrupted(error),
            },
        }
    }

    /// The API server does not know the kind.
    pub fn not_served(&mut self) {
        if !std::mem::replace(&mut self.troubled, true) {
            tracing::info!(
                kind = self.kind,
                "the API server does not serve the kind yet; it is watched when it does"
            );
        }
    }

    fn interrupted(&mut self, error: &watcher::Error) {
        let (kind, words) = (&self.kind, words_of_watch(error));
        let code = code_of(error);
        if let (Some(StatusCode::FORBIDDEN), Some(right)) = (code, &self.right) {
            right.close_for(&words);
        }
        if self.troubled || code.is_some_and(is_usual) || is_unanswered(error) {
            tracing::debug!(kind, error = words, "watch interrupted; it starts again by itself");
            return;
        }
        self.troubled = true;
        match code {
            Some(StatusCode::NOT_FOUND) => {
                tracing::warn!(kind, error = words, "unable to watch; install the CRD of the kind");
            }
            Some(StatusCode::FORBIDDEN) => {
                tracing::warn!(kind, error = words, "not allowed to watch; give the operator the right");
            }
            _ => tracing::warn!(kind, error = words, "watch interrupted; it is tried again by itself"),
        }
    }

    fn goes_on(&mut self) {
        if let Some(right) = &self.right {
            right.open();
        }
        if std::mem::take(&mut self.troubled) {
            tracing::info!(kind = self.kind, "watching");
        }
    }
}

/// A history that was cut short, and a storage that is made for a CRD that has just come or changed.
fn is_usual(code: StatusCode) -> bool {
    matches!(code, StatusCode::GONE | StatusCode::TOO_MANY_REQUESTS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::core::Status;

    use super::*;
    use crate::client::OutOfBounds;
    use crate::told::Told;

    /// The levels and messages of the lines that a tale makes.
    fn lines(tale: impl FnOnce(&mut WatchLog)) -> Vec<String> {
        let told = Told::begin();
        tale(&mut WatchLog::new("Lathe.example.org"));
        told.lines()
    }

    fn refused(code: u16, words: &str) -> watcher::Result<Event<()>> {
        let status = Status::failure(words, "").with_code(code).boxed();
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
    }

    #[test]
    fn a_kind_that_is_missing_is_told_once_and_once_more_when_it_is_there() {
        let told = lines(|log| {
            for _ in 0..3 {
                log.heard(&Ok(Event::<()>::Init));
                log.heard(&refused(404, "could not find the requested resource"));
            }
            log.heard(&Ok(Event::<()>::Init));
            log.heard(&Ok(Event::<()>::InitDone));
            log.heard(&Ok(Event::Apply(())));
        });
        assert_eq!(
            told,
            [
                "WARN unable to watch; install the CRD of the kind kind=\"Lathe.example.org\" error=\"could not find the requested resource\"",
                "INFO watching kind=\"Lathe.example.org\"",
            ]
        );
    }

    #[test]
    fn a_right_that_is_missing_is_told_once_and_shows_where_the_process_needs_it() {
        let readiness = Readiness::default();
        let told = Told::begin();
        let mut log = WatchLog::essential("Lathe", &readiness);
        assert_eq!(readiness.missing(), [""; 0]);
        let words = "lathes.example.org is forbidden: cannot list resource \"lathes\" in API group \"example.org\"";
        for _ in 0..3 {
            log.heard(&Ok(Event::<()>::Init));
            log.heard(&refused(403, words));
        }
        assert_eq!(readiness.missing(), [format!("the right to watch Lathe: {words}")]);
        log.heard(&Ok(Event::<()>::InitDone));
        assert_eq!(readiness.missing(), [""; 0]);
        let lines = told.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("WARN not allowed to watch; give the operator the right kind=\"Lathe\""),
            "{lines:?}"
        );
    }

    #[test]
    fn an_api_server_that_is_away_is_not_told_per_kind() {
        let told = lines(|log| {
            let away = kube::Error::Service("connection refused".into());
            log.heard(&Err::<Event<()>, _>(watcher::Error::InitialListFailed(away)));
        });
        assert_eq!(told, [""; 0]);
    }

    #[test]
    fn a_storage_in_the_making_and_a_history_that_was_cut_are_no_news() {
        let told = lines(|log| {
            log.heard(&refused(429, "storage is (re)initializing"));
            log.heard(&refused(410, "too old resource version"));
            log.heard(&Ok(Event::<()>::InitDone));
        });
        assert_eq!(told, [""; 0]);
    }

    #[test]
    fn an_object_that_is_too_large_is_told_with_its_name_each_time() {
        let told = lines(|log| {
            for _ in 0..2 {
                log.heard(&Ok(Event::<()>::Init));
                let passed_over = Unreadable {
                    namespace: "fleet".to_owned(),
                    name: "one".to_owned(),
                    source: "8 bytes".into(),
                };
                let error = kube::Error::Service(Box::new(passed_over));
                log.heard(&Err::<Event<()>, _>(watcher::Error::InitialListFailed(error)));
                log.heard(&Ok(Event::<()>::InitDone));
            }
        });
        let line = "WARN unable to read an object kind=\"Lathe.example.org\" error=\"fleet/one cannot be read and is passed over: 8 bytes\"";
        assert_eq!(told, [line; 2]);
    }

    #[test]
    fn an_answer_that_is_too_large_or_has_no_end_is_told_with_call_and_limit() {
        let call = || "list /apis/example.org/v1/lathes".to_owned();
        let patience = Duration::from_secs(8);
        for (bounds, words) in [
            (
                OutOfBounds::TooLarge { call: call(), limit: 8 },
                "has more than 8 bytes",
            ),
            (
                OutOfBounds::TooManyParts { call: call(), most: 8 },
                "has more lists, maps and fields than the 8 ",
            ),
            (
                OutOfBounds::Endless { call: call(), patience },
                "did not end within 8 s",
            ),
        ] {
            let told = lines(|log| {
                let error = kube::Error::Service(Box::new(bounds));
                log.heard(&Err::<Event<()>, _>(watcher::Error::InitialListFailed(error)));
            });
            let words = format!("the API server's answer to list /apis/example.org/v1/lathes {words}");
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].starts_with("WARN watch interrupted") && told[0].contains(&words),
                "{told:?}"
            );
        }
    }
}
