//! How a Job's program ended, in the few bytes that a container may leave behind. A hint: it says in which words a failure is told, and never that an
//! image is there. Reads and writes it; believes nothing.

use std::time::Duration;

use planning::image::{Deed, Done, Failure, FailureClass, Quota};
use serde::{Deserialize, Serialize};

use super::WorkPlan;
use super::document::Document;

/// Most bytes that a kubelet takes.
pub(crate) const LARGEST: usize = 4096;

/// Most bytes of words, which leaves room for the rest in whatever way they are written.
const LONGEST: usize = 1500;

const VERSION: u32 = 1;

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Report {
    version: u32,
    uid: String,
    attempt: u32,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<FailureOfReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Done,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FailureOfReport {
    class: FailureClass,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota: Option<Quota>,
}

impl Report {
    /// Of what was told to be done.
    pub(crate) fn of(document: &Document, outcome: &Result<Done, Failure>) -> Self {
        let failure = outcome.as_ref().err().map(|failure| FailureOfReport {
            class: failure.class,
            message: cut(&failure.message, LONGEST),
            request_id: failure.request_id.as_deref().map(|id| cut(id, 200)),
            retry_after_seconds: failure.retry_after.map(|time| time.as_secs()),
            quota: failure.quota.as_deref().map(|quota| Quota {
                resource: cut(&quota.resource, 200),
                ..quota.clone()
            }),
        });
        Self {
            version: VERSION,
            uid: document.plan().object.uid,
            attempt: document.attempt(),
            outcome: if failure.is_none() {
                Outcome::Done
            } else {
                Outcome::Failed
            },
            failure,
        }
    }

    /// At most [`LARGEST`] bytes.
    pub(crate) fn text(&self) -> String {
        let text = |report: &Self| serde_json::to_string(report).unwrap_or_default();
        let whole = text(self);
        if whole.len() <= LARGEST {
            return whole;
        }
        // Each byte of it may take six of JSON.
        let mut short = self.clone();
        if let Some(failure) = &mut short.failure {
            failure.message = cut(&failure.message, LONGEST / 6);
            failure.quota = None;
        }
        text(&short)
    }

    /// What such a text says of this deed; `None` where it is of another one, or says nothing.
    pub(crate) fn read(text: &str, plan: &WorkPlan) -> Option<Result<Done, Failure>> {
        let report: Self = serde_json::from_str(text).ok()?;
        let (Deed::Transfer { attempt, .. } | Deed::Build { attempt, .. }) = plan.deed else {
            return None;
        };
        if report.version != VERSION || report.uid != plan.object.uid || report.attempt != attempt {
            return None;
        }
        match (report.outcome, report.failure) {
            (Outcome::Done, None) => Some(Ok(Done::Sent)),
            (Outcome::Failed, Some(failure)) => Some(Err(Failure {
                class: failure.class,
                message: cut(&failure.message, LONGEST),
                request_id: failure.request_id,
                retry_after: failure.retry_after_seconds.map(Duration::from_secs),
                quota: failure.quota.map(Box::new),
            })),
            _ => None,
        }
    }
}

/// The beginning, in at most so many bytes.
fn cut(text: &str, bytes: usize) -> String {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::{object, plan};
    use crate::worker::document::Surroundings;

    fn told() -> (Document, WorkPlan) {
        let deed = Deed::Transfer {
            id: "one".to_owned(),
            attempt: 3,
            staged: false,
        };
        let plan = plan(&object("fleet", "ubuntu"), deed);
        (Document::of(&plan, Surroundings::default()).expect("a document"), plan)
    }

    fn failure(message: &str) -> Failure {
        Failure {
            class: FailureClass::Quota,
            message: message.to_owned(),
            request_id: Some("req-1".to_owned()),
            retry_after: Some(Duration::from_mins(5)),
            quota: Some(Box::new(Quota {
                resource: "image_size_total".to_owned(),
                limit: Some(8),
                used: Some(7),
                requested: Some(2),
            })),
        }
    }

    #[test]
    fn an_end_is_read_as_it_was_written() {
        let (document, plan) = told();
        for outcome in [Ok(Done::Sent), Err(failure("no room"))] {
            let text = Report::of(&document, &outcome).text();
            assert_eq!(Report::read(&text, &plan), Some(outcome), "{text}");
        }
    }

    #[test]
    fn the_report_of_another_object_or_attempt_says_nothing() {
        let (document, plan) = told();
        let text = Report::of(&document, &Ok(Done::Sent)).text();
        let mut other = plan.clone();
        other.object.uid = "another".to_owned();
        assert_eq!(Report::read(&text, &other), None);
        let mut other = plan.clone();
        other.deed = Deed::Transfer {
            id: "one".to_owned(),
            attempt: 4,
            staged: false,
        };
        assert_eq!(Report::read(&text, &other), None);
        for text in [
            "",
            "done",
            "{}",
            &text.replace("\"done\"", "\"failed\""),
            &text.replace("1,", "2,"),
        ] {
            assert_eq!(Report::read(text, &plan), None, "{text}");
        }
    }

    #[test]
    fn whatever_went_wrong_fits_into_what_a_container_may_leave() {
        let (document, plan) = told();
        for word in ["x", "ä", "\u{1}", "\"", "𐍈"] {
            let outcome = Err(failure(&word.repeat(9000)));
            let text = Report::of(&document, &outcome).text();
            assert!(text.len() <= LARGEST, "{word:?} makes {}", text.len());
            let read = Report::read(&text, &plan).expect("a report").expect_err("a failure");
            assert!(read.message.starts_with(word), "{read:?}");
        }
    }
}
