//! What a seed does to the questions to a server of releases: of each target the first few, by their number, each with a fault or none.
//!
//! As with the faults before the API server ([`crate::fault_proxy`]), none is one that servers or the network could not produce: an answer that is
//! late, a refusal, a connection that breaks before the answer or in the middle of it, a file that is not there yet, and bytes that are not those
//! that the index tells, as from a cache on the way.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{Answer, lock, stop::Sent};
use crate::fault_proxy::Dice;

/// How many questions for one target may be struck; those after them pass.
const QUESTIONS: u32 = 3;
/// How many questions may go unanswered before the storm is calm: each costs the follower of the source ten seconds and more.
const FAILURES: u32 = 2;
/// Of a hundred questions so many are struck; which, is the seed's choice.
const CHANCES: [u64; 3] = [20, 40, 60];

/// What happens to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Its answer arrives late.
    Late(Duration),
    /// It is refused; with 503 and 429, to be asked again after a second.
    Refused(StatusCode),
    /// The connection is closed before the answer.
    Reset,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// The last byte is another one.
    OtherBytes,
}

impl Trouble {
    /// Whether the question goes without an answer that is of use.
    fn is_failure(self) -> bool {
        !matches!(self, Self::Late(_))
    }
}

/// A question that was struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struck {
    /// Path and query.
    pub target: String,
    /// Which question for it, counted from 0.
    pub number: u32,
    /// What happened to it.
    pub trouble: Trouble,
}

impl fmt::Display for Struck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            number,
            trouble,
        } = self;
        write!(f, "source {target} #{number}: {trouble:?}")
    }
}

/// The storm that blows now, and what it has done so far.
#[derive(Debug, Default)]
pub(super) struct Storm(Mutex<Blowing>);

#[derive(Debug, Default)]
struct Blowing {
    /// The seed, and the part of the journey.
    forecast: Option<(u64, u64)>,
    numbers: HashMap<String, u32>,
    failures: u32,
    struck: Vec<Struck>,
}

impl Storm {
    /// Counts anew; without a forecast it is over.
    pub(super) fn begin(&self, forecast: Option<(u64, u64)>) {
        let mut blowing = self.blowing();
        blowing.forecast = forecast;
        blowing.numbers.clear();
        blowing.failures = 0;
    }

    /// Counts the question and says what happens to it.
    pub(super) fn trouble(&self, target: &str) -> Option<Trouble> {
        let mut blowing = self.blowing();
        let (seed, phase) = blowing.forecast?;
        let next = blowing.numbers.entry(target.to_owned()).or_default();
        let number = *next;
        *next += 1;
        let trouble = drawn(seed, phase, target, number)?;
        if trouble.is_failure() {
            if blowing.failures >= FAILURES {
                return None;
            }
            blowing.failures += 1;
        }
        blowing.struck.push(Struck {
            target: target.to_owned(),
            number,
            trouble,
        });
        Some(trouble)
    }

    pub(super) fn struck(&self) -> Vec<Struck> {
        self.blowing().struck.clone()
    }

    fn blowing(&self) -> MutexGuard<'_, Blowing> {
        lock(&self.0)
    }
}

fn drawn(seed: u64, phase: u64, target: &str, number: u32) -> Option<Trouble> {
    let mut season = Dice::of(seed, "source");
    let chance = CHANCES[usize::try_from(season.below(CHANCES.len() as u64)).unwrap_or_default()];
    let mut dice = Dice::of(seed ^ (phase << 48), &format!("source {target} {number}"));
    if number >= QUESTIONS || dice.below(100) >= chance {
        return None;
    }
    Some(match dice.below(9) {
        0 => Trouble::Refused(StatusCode::INTERNAL_SERVER_ERROR),
        1 => Trouble::Refused(StatusCode::SERVICE_UNAVAILABLE),
        2 => Trouble::Refused(StatusCode::TOO_MANY_REQUESTS),
        3 => Trouble::Refused(StatusCode::NOT_FOUND),
        4 => Trouble::Reset,
        5 => Trouble::Cut,
        6 => Trouble::OtherBytes,
        _ => Trouble::Late(dice.millis(50, 1_500)),
    })
}

impl Trouble {
    /// What comes instead of this answer, or after a while; an error closes the connection.
    pub(super) async fn instead_of(self, answer: Answer) -> io::Result<Response<Sent>> {
        let whole = |answer: Answer| answer.map(openstack_lab::client::whole);
        match self {
            Self::Late(wait) => {
                tokio::time::sleep(wait).await;
                Ok(whole(answer))
            }
            Self::Refused(status) => {
                let headers = [("retry-after", "1".to_owned())];
                let is_told = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
                let headers = if is_told { &headers[..] } else { &[] };
                Ok(whole(super::answer(status, headers, "a storm")))
            }
            Self::Reset => Err(io::ErrorKind::ConnectionAborted.into()),
            Self::Cut => Ok(cut(answer)),
            Self::OtherBytes => Ok(whole(answer.map(|bytes| changed(&bytes)))),
        }
    }
}

fn changed(bytes: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes.into()
}

/// Tells the length of the whole and gives half of it.
fn cut(answer: Answer) -> Response<Sent> {
    let (mut head, bytes) = answer.into_parts();
    head.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    let half = bytes.slice(..bytes.len() / 2);
    let frames = [Ok(Frame::data(half)), Err(io::ErrorKind::ConnectionAborted.into())];
    Response::from_parts(head, StreamBody::new(stream::iter(frames)).boxed_unsync())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TARGETS: [&str; 4] = ["/index.json", "/a/metadata.yaml", "/a/csctl.yaml", "/a/class.tgz"];

    fn struck(seed: u64, phase: u64) -> Vec<Struck> {
        let storm = Storm::default();
        storm.begin(Some((seed, phase)));
        for target in TARGETS.iter().cycle().take(40) {
            storm.trouble(target);
        }
        storm.struck()
    }

    #[test]
    fn the_same_seed_strikes_the_same_questions_and_all_kinds_of_trouble_come_within_the_seeds_of_one_test() {
        let all = || (0..20).flat_map(|seed| struck(seed, 0)).collect::<Vec<_>>();
        assert_eq!(all(), all());
        assert_ne!(struck(7, 0), struck(7, 1));
        let names = all().into_iter().map(|struck| match struck.trouble {
            Trouble::Late(_) => "Late".to_owned(),
            trouble => format!("{trouble:?}"),
        });
        assert_eq!(names.collect::<BTreeSet<_>>().len(), 8);
    }

    #[test]
    fn every_storm_ends_by_itself() {
        for seed in 0..200 {
            let failures = struck(seed, 0).into_iter().filter(|struck| struck.trouble.is_failure());
            assert!(failures.count() <= FAILURES as usize);
            assert!((QUESTIONS..10).all(|number| drawn(seed, 0, TARGETS[0], number).is_none()));
        }
    }
}
