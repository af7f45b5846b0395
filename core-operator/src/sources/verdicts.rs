//! Verdicts on signatures that were made before: on the same release with the same evidence and the same trust the verdict is the same, and of
//! hostile signatures with many keys it takes a good part of a second. Only a signature whose time is to come is good later: its release is told of
//! again then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use jiff::Timestamp;
use operator_kit::turns::Turns;
use release::{Digest, Evidence, Release, Trust, Unverified, Verdict, verify};
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::{self, Instant};

use super::{SourceChange, lock};

/// How many are remembered; an operator of a thousand releases has room for each under four policies.
const MOST: usize = 4096;
/// How many are made at once: threads that compute are taken from the disk.
const AT_ONCE: usize = 2;
/// How long a bad one counts at most. What lies in the future of the machine's clock is refused, and clocks are set right.
const BAD_FOR: Duration = Duration::from_mins(10);
/// What is told of a verdict that nobody can make.
const FAULT: &str = "the operator has a fault that these signatures show; please report it";
/// Two clocks of one machine are not the same.
const A_LITTLE: Duration = Duration::from_secs(1);

/// What a verdict follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    release: Digest,
    evidence: Digest,
    trust: Digest,
}

/// The verdicts of the process.
pub(super) struct Verdicts {
    /// Each with when it counts no more, if it ever does.
    made: Mutex<HashMap<Question, (Verdict, Option<Instant>)>>,
    /// In a line for each namespace.
    work: Turns,
    changes: mpsc::UnboundedSender<SourceChange>,
}

impl Verdicts {
    pub(super) fn new(changes: mpsc::UnboundedSender<SourceChange>) -> Self {
        Self {
            made: Mutex::default(),
            work: Turns::new(AT_ONCE),
            changes,
        }
    }

    /// Whether somebody who is trusted signed the release, for somebody in this namespace.
    pub(super) async fn on(
        &self,
        namespace: &str,
        release: &Arc<Release>,
        trust: Trust,
        evidence: &Arc<Evidence>,
    ) -> Verdict {
        let question = Question {
            release: release.digest,
            evidence: evidence.digest(),
            trust: trust.digest(),
        };
        let (release, evidence) = (Arc::clone(release), Arc::clone(evidence));
        let span = tracing::info_span!("verify", release = %release.tag);
        let tag = release.tag.clone();
        let make = move || span.in_scope(|| verify(&release, &trust, &evidence));
        self.answered(namespace, &tag, question, make).await
    }

    async fn answered(
        &self,
        namespace: &str,
        tag: &ReleaseTag,
        question: Question,
        make: impl FnOnce() -> Verdict + Send + 'static,
    ) -> Verdict {
        if let Some(verdict) = self.known(question) {
            return verdict;
        }
        let _turn = self.work.take(namespace).await;
        // Whoever had the turn before may have asked the same.
        if let Some(verdict) = self.known(question) {
            return verdict;
        }
        let verdict = match task::spawn_blocking(make).await {
            Ok(verdict) => verdict,
            Err(error) => {
                let why = if error.is_panic() { FAULT } else { "the operator ends" };
                return Err(Unverified::NotChecked { why: why.to_owned() });
            }
        };
        let mut known = lock(&self.made);
        if known.len() >= MOST {
            known.clear();
        }
        let until = verdict.as_ref().err().map(|bad| self.bad_until(tag, bad));
        known.insert(question, (verdict.clone(), until));
        verdict
    }

    /// Until when a bad verdict counts. The release of one that may be good after that is told of.
    fn bad_until(&self, tag: &ReleaseTag, bad: &Unverified) -> Instant {
        let latest = Instant::now() + BAD_FOR;
        let Some(good_from) = bad.good_from() else {
            return latest;
        };
        let wait = good_from.duration_since(Timestamp::now()).unsigned_abs() + A_LITTLE;
        let until = latest.min(Instant::now() + wait);
        let (changes, change) = (self.changes.clone(), SourceChange::of_tag(tag));
        tokio::spawn(async move {
            time::sleep_until(until).await;
            // A closed channel means that the process is about to end.
            let _ = changes.send(change);
        });
        until
    }

    fn known(&self, question: Question) -> Option<Verdict> {
        let made = lock(&self.made);
        let (verdict, until) = made.get(&question)?;
        let counts = until.is_none_or(|until| Instant::now() < until);
        counts.then(|| verdict.clone())
    }
}

#[cfg(test)]
mod tests {
    use release::bundle::BundleError;

    use super::*;
    use crate::sources::tests::tag;

    impl Default for Verdicts {
        fn default() -> Self {
            Self::new(mpsc::unbounded_channel().0)
        }
    }

    fn question(name: &str) -> Question {
        let digest = Digest::of(name.as_bytes());
        Question {
            release: digest,
            evidence: digest,
            trust: digest,
        }
    }

    async fn answer(verdicts: &Verdicts, question: Question, made: Unverified) -> Unverified {
        verdicts
            .answered("fleet", &tag(), question, move || Err(made))
            .await
            .unwrap_err()
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
        time::sleep(BAD_FOR).await;
        assert_eq!(
            answer(&verdicts, first, Unverified::NoBundle).await,
            Unverified::NoBundle
        );
    }

    #[tokio::test(start_paused = true)]
    async fn signature_whose_time_is_to_come_is_looked_at_again_when_it_has_come() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let verdicts = Verdicts::new(sender);
        let begun = Instant::now();
        let at = Timestamp::now() + Duration::from_secs(20);
        let early = || Unverified::Bundle(BundleError::InTheFuture { at });
        assert_eq!(answer(&verdicts, question("early"), early()).await, early());
        assert_eq!(
            answer(&verdicts, question("early"), Unverified::NotSigned).await,
            early()
        );
        let told = time::timeout(BAD_FOR / 2, changes.recv()).await;
        let told = told.expect("it is told of when its time has come").unwrap();
        assert_eq!(told.tags.into_iter().collect::<Vec<_>>(), [tag()]);
        let waited = begun.elapsed();
        assert!(
            waited > Duration::from_secs(18) && waited < Duration::from_secs(30),
            "{waited:?}"
        );
        let now = answer(&verdicts, question("early"), Unverified::NotSigned).await;
        assert_eq!(now, Unverified::NotSigned, "the clock is asked again");
    }

    #[tokio::test]
    async fn fault_of_the_operator_is_not_called_its_end() {
        let verdicts = Verdicts::default();
        let fault = || panic!("planned for this test");
        let answered = verdicts.answered("fleet", &tag(), question("bad"), fault).await;
        let told = answered.unwrap_err().to_string();
        assert!(told.contains("the operator has a fault"), "{told}");
        let again = answer(&verdicts, question("bad"), Unverified::NotSigned).await;
        assert_eq!(again, Unverified::NotSigned, "it is no verdict");
    }

    #[tokio::test]
    async fn no_more_verdicts_are_remembered_than_there_is_room_for() {
        let verdicts = Verdicts::default();
        for number in 0..=MOST {
            answer(&verdicts, question(&number.to_string()), Unverified::NotSigned).await;
        }
        assert_eq!(lock(&verdicts.made).len(), 1);
    }

    #[tokio::test]
    async fn verdicts_of_one_namespace_do_not_hold_up_those_of_another() {
        const MANY: usize = 20;
        let verdicts = Arc::new(Verdicts::default());
        let (made, mut order) = mpsc::unbounded_channel();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let ask = |namespace: &'static str, number: usize| {
            let (verdicts, made, gate) = (Arc::clone(&verdicts), made.clone(), Arc::clone(&gate));
            async move {
                let judge = move || {
                    let _ = lock(&gate).recv();
                    made.send(namespace).unwrap();
                    Err(Unverified::NotSigned)
                };
                verdicts
                    .answered(namespace, &tag(), question(&format!("{namespace} {number}")), judge)
                    .await
            }
        };
        let crowd: Vec<_> = (0..MANY).map(|number| task::spawn(ask("crowd", number))).collect();
        while verdicts.work.free() == AT_ONCE {
            task::yield_now().await;
        }
        for _ in 0..MANY {
            task::yield_now().await;
        }
        let alone = task::spawn(ask("alone", 0));
        while verdicts.work.free() > 0 {
            task::yield_now().await;
        }
        drop(open);
        alone.await.unwrap().unwrap_err();
        for asked in crowd {
            asked.await.unwrap().unwrap_err();
        }
        let mut told = Vec::new();
        while let Ok(namespace) = order.try_recv() {
            told.push(namespace);
        }
        let place = told.iter().position(|namespace| *namespace == "alone");
        assert!(place.is_some_and(|place| place < MANY / 2), "{told:?}");
    }
}
