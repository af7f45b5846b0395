//! What the log says of a watch: its first failure aloud, those that follow quietly, and that it goes on. What the API server does in its
//! normal course is no failure.

use std::fmt::Display;

use http::StatusCode;
use kube::runtime::watcher::{self, Event};

use crate::failure::words_of_watch;

/// The tale of one watch.
#[derive(Debug)]
pub struct WatchLog {
    kind: String,
    /// Something was said aloud, and that it is over was not.
    troubled: bool,
}

impl WatchLog {
    /// Of the watch of this kind.
    pub fn new(kind: impl Display) -> Self {
        Self {
            kind: kind.to_string(),
            troubled: false,
        }
    }

    /// Takes what the watch tells, also its errors, which it mends by itself.
    pub fn heard<K>(&mut self, event: &watcher::Result<Event<K>>) {
        match event {
            // Told before the API server is asked.
            Ok(Event::Init) => {}
            Ok(_) => self.goes_on(),
            Err(error) => self.interrupted(error),
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
        if self.troubled || code.is_some_and(is_usual) {
            tracing::debug!(kind, error = words, "watch interrupted; it starts again by itself");
            return;
        }
        self.troubled = true;
        if code == Some(StatusCode::NOT_FOUND) {
            tracing::warn!(kind, error = words, "unable to watch; install the CRD of the kind");
        } else {
            tracing::warn!(kind, error = words, "watch interrupted; it is tried again by itself");
        }
    }

    fn goes_on(&mut self) {
        if std::mem::take(&mut self.troubled) {
            tracing::info!(kind = self.kind, "watching");
        }
    }
}

/// A history that was cut short, and a storage that is made for a CRD that has just come or changed.
fn is_usual(code: StatusCode) -> bool {
    matches!(code, StatusCode::GONE | StatusCode::TOO_MANY_REQUESTS)
}

fn code_of(error: &watcher::Error) -> Option<StatusCode> {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return None,
    };
    StatusCode::from_u16(code).ok()
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
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
    fn a_storage_in_the_making_and_a_history_that_was_cut_are_no_news() {
        let told = lines(|log| {
            log.heard(&refused(429, "storage is (re)initializing"));
            log.heard(&refused(410, "too old resource version"));
            log.heard(&Ok(Event::<()>::InitDone));
        });
        assert_eq!(told, [""; 0]);
    }
}
