//! Verdicts on signatures that were made before: on the same release with the same evidence and the same trust the verdict is the same, and of
//! hostile signatures with many keys it takes a good part of a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use release::{Digest, Evidence, Release, Trust, Unverified, Verdict, verify};
use tokio::sync::Semaphore;
use tokio::task;
use tokio::time::Instant;

use super::lock;

/// How many are remembered; an operator of a thousand releases has room for each under four policies.
const MOST: usize = 4096;
/// How many are made at once: threads that compute are taken from the disk.
const AT_ONCE: usize = 2;
/// How long a bad one counts. What lies in the future of the machine's clock is refused, and clocks are set right.
const BAD_FOR: Duration = Duration::from_mins(10);

/// What a verdict follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    release: Digest,
    evidence: Digest,
    trust: Digest,
}

/// The verdicts of the process.
pub(super) struct Verdicts {
    made: Mutex<HashMap<Question, (Verdict, Instant)>>,
    work: Semaphore,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
            work: Semaphore::new(AT_ONCE),
        }
    }
}

impl Verdicts {
    /// Whether somebody who is trusted signed the release.
    pub(super) async fn on(&self, release: &Arc<Release>, trust: Trust, evidence: &Arc<Evidence>) -> Verdict {
        let question = Question {
            release: release.digest,
            evidence: evidence.digest(),
            trust: trust.digest(),
        };
        let (release, evidence) = (Arc::clone(release), Arc::clone(evidence));
        let span = tracing::info_span!("verify", release = %release.tag);
        let make = move || span.in_scope(|| verify(&release, &trust, &evidence));
        self.answered(question, make).await
    }

    async fn answered(&self, question: Question, make: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
        if let Some(verdict) = self.known(question) {
            return verdict;
        }
        // Never closed.
        let _turn = self.work.acquire().await;
        // Whoever had the turn before may have asked the same.
        if let Some(verdict) = self.known(question) {
            return verdict;
        }
        let Ok(verdict) = task::spawn_blocking(make).await else {
            return Err(Unverified::NotChecked {
                why: "the operator ends".to_owned(),
            });
        };
        let mut known = lock(&self.made);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(question, (verdict.clone(), Instant::now()));
        verdict
    }

    fn known(&self, question: Question) -> Option<Verdict> {
        let made = lock(&self.made);
        let (verdict, at) = made.get(&question)?;
        (verdict.is_ok() || at.elapsed() < BAD_FOR).then(|| verdict.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str) -> Question {
        let digest = Digest::of(name.as_bytes());
        Question {
            release: digest,
            evidence: digest,
            trust: digest,
        }
    }

    async fn answer(verdicts: &Verdicts, question: Question, made: Unverified) -> Unverified {
        verdicts.answered(question, move || Err(made)).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn verdict_is_made_once_and_anew_when_anything_that_it_follows_from_is_another() {
        let (verdicts, first) = (Verdicts::default(), question("first"));
        assert_eq!(
            answer(&verdicts, first, Unverified::NotSigned).await,
            Unverified::NotSigned
        );
        assert_eq!(
            answer(&verdicts, first, Unverified::NoBundle).await,
            Unverified::NotSigned
        );
        let other = Digest::of(b"other");
        for question in [
            Question {
                release: other,
                ..first
            },
            Question {
                evidence: other,
                ..first
            },
            Question { trust: other, ..first },
        ] {
            assert_eq!(
                answer(&verdicts, question, Unverified::NoBundle).await,
                Unverified::NoBundle
            );
        }
        // A clock that was wrong may be right by now.
        tokio::time::sleep(BAD_FOR).await;
        assert_eq!(
            answer(&verdicts, first, Unverified::NoBundle).await,
            Unverified::NoBundle
        );
    }

    #[tokio::test]
    async fn no_more_verdicts_are_remembered_than_there_is_room_for() {
        let verdicts = Verdicts::default();
        for number in 0..=MOST {
            answer(&verdicts, question(&number.to_string()), Unverified::NotSigned).await;
        }
        assert_eq!(lock(&verdicts.made).len(), 1);
    }
}
