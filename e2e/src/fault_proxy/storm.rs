//! What a seed does to the requests of a program: for each kind of request the first few, by their number, each with a fault or none.
//!
//! The forecast is a pure function of seed, kind of request and number. What a program asks first when several of its tasks ask at the same
//! time is not in the seed's hands, nor is the clock: so a run with the same seed meets the same faults at the same numbers, and nearly the same
//! interleaving, but not the same one for sure. Who hunts a failure runs its seed several times.
//!
//! No fault is one that the API server, what stands before it, or the network could not produce:
//! - an answer that is late, a connection that breaks before or after the write: the network;
//! - 429 with Retry-After (priority and fairness), 500 and 503 before the write (an API server without its storage, or on its way down),
//!   500 after it (`etcdserver: request timed out` leaves the outcome open);
//! - 409: somebody else really writes the object just before, so that the API server itself refuses. A write whose precondition was not
//!   violated never gets one;
//! - a watch that stalls, breaks within a line, ends, or tells that its history is gone (410) after some events were lost with it: what happened
//!   in between is seen only as its result;
//! - a list from the past: the API server's own answer at an earlier resource version, which was told to the same client before, and a watch
//!   that goes on from there. Kubernetes has this where several API servers have caches (kubernetes/kubernetes#59848, #97294,
//!   elastic/cloud-on-k8s#4956), for lists at resource version 0. What asks for no version is promised the newest (Kubernetes, "Resource
//!   versions"): for lists the proxy is worse than that on purpose; for single objects it is not, because whoever frees a finalizer must be able
//!   to believe that an object is gone.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;

use super::asked::{Asked, Verb};

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It arrives late.
    Delay(Duration),
    /// Its answer arrives late: what was read is of the past by then.
    Late(Duration),
    /// Everything waits, running watches too: requests, answers and events.
    Pause(Duration),
    /// It is refused and reaches nobody.
    Refuse(StatusCode),
    /// The connection is closed before the API server learns of it.
    ResetBefore,
    /// It is done, whatever its outcome, and the connection is closed instead of an answer.
    ResetAfter,
    /// The write is done and answered with 500.
    FailAfter,
    /// Somebody writes an annotation to the object just before.
    Conflict,
    /// It is answered with what was so at the last resource version that was told to the client this long ago.
    Past(Duration),
    /// A watch begins again further back than it asks for: events that it knows come once more, in their order.
    Replay(Duration),
    /// The watch begins well and is interrupted later.
    Interrupt(Interruption),
}

/// How a running watch is interrupted, when it has an event to tell beyond `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// Events that come through before.
    pub after: u32,
    /// What happens then.
    pub kind: InterruptionKind,
}

/// See [`Interruption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    /// Events wait this long, then all come.
    Stall(Duration),
    /// The connection breaks in the middle of the event.
    Cut,
    /// The watch ends as it does after some minutes.
    End,
    /// The event and those that follow are lost for this long; then the client is told (410) to list anew.
    Blind(Duration),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The weather that belongs to a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    seed: u64,
    phase: u64,
    strikes_leases: bool,
}

/// How many requests of one kind may be struck; those after them pass.
const READS: u32 = 4;
const WRITES: u32 = 8;
/// A client that begins a watch again and again waits ever longer.
const WATCHES: u32 = 3;
/// Of a hundred requests so many are struck; which, is the seed's choice.
const CHANCES: [u64; 4] = [10, 20, 35, 50];
/// The kinds of faults between which a seed chooses.
const KINDS: u64 = 16;

impl Forecast {
    /// The weather of a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            phase: 0,
            strikes_leases: false,
        }
    }

    /// The weather of a later part of the same journey, with numbers that begin anew.
    #[must_use]
    pub fn phase(self, phase: u64) -> Self {
        Self { phase, ..self }
    }

    /// The same for programs that are started again when they have lost their Lease: requests for Leases are struck like others.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self {
            strikes_leases: true,
            ..self
        }
    }

    /// Whether the program is to be killed and started again between the parts of the journey: what it knows at its start, it has from the storm.
    pub fn restarts(&self) -> bool {
        Dice::of(self.seed, "restarts").below(2) == 1
    }

    /// What happens to the request of this kind with this number, counted from 0. The same answer to the same question, always.
    pub fn fault(&self, asked: &Asked, number: u32) -> Option<Fault> {
        let limit = match asked.verb {
            Verb::Watch => WATCHES,
            Verb::Discover | Verb::Get | Verb::List => READS,
            _ => WRITES,
        };
        let is_spared = asked.is_spared() && !(self.strikes_leases && asked.resource == "leases");
        if number >= limit || is_spared {
            return None;
        }
        let mut season = Dice::of(self.seed, "");
        let chance = CHANCES[usize::try_from(season.below(CHANCES.len() as u64)).unwrap_or_default()];
        // Few kinds of faults at a time go deeper than all of them at once (swarm testing, Groce et al. 2012).
        let allowed = season.next() | season.next();
        let mut dice = Dice::of(self.seed ^ (self.phase << 48), &format!("{asked} {number}"));
        if dice.below(100) >= chance {
            return None;
        }
        let kind = dice.below(KINDS);
        if allowed >> kind & 1 == 0 {
            return None;
        }
        drawn(kind, asked.verb, &mut dice)
    }
}

/// The fault of this kind, where it fits the verb.
fn drawn(kind: u64, verb: Verb, dice: &mut Dice) -> Option<Fault> {
    let is_write = verb >= Verb::Create;
    let is_watch = verb == Verb::Watch;
    let interrupt = |dice: &mut Dice, kind| {
        let after = u32::try_from(dice.below(4)).unwrap_or_default();
        Fault::Interrupt(Interruption { after, kind })
    };
    Some(match kind {
        0 => Fault::Delay(dice.millis(10, 400)),
        1 if !is_watch => Fault::Late(dice.millis(50, 700)),
        2 => Fault::Pause(dice.millis(200, 1200)),
        3 => Fault::Refuse(StatusCode::TOO_MANY_REQUESTS),
        4 => Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
        5 => Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE),
        6 => Fault::ResetBefore,
        7 | 8 if is_write => Fault::ResetAfter,
        9 if is_write => Fault::FailAfter,
        10 | 11 if matches!(verb, Verb::Update | Verb::Patch) => Fault::Conflict,
        7..=9 if verb == Verb::List => Fault::Past(dice.millis(200, 3_000)),
        7 if is_watch => interrupt(dice, InterruptionKind::Cut),
        8 if is_watch => interrupt(dice, InterruptionKind::End),
        9 | 10 if is_watch => Fault::Replay(dice.millis(500, 5_000)),
        11 | 12 if is_watch => {
            let lasting = dice.millis(300, 2_000);
            interrupt(dice, InterruptionKind::Stall(lasting))
        }
        13..=15 if is_watch => {
            let lasting = dice.millis(100, 2_000);
            interrupt(dice, InterruptionKind::Blind(lasting))
        }
        _ => return None,
    })
}

/// Numbers that follow from a seed and a text (`SplitMix64`, Steele et al. 2014, after FNV-1a over the text).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64, text: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let mut dice = Self(text.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, step));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// A fault that was dealt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blow {
    /// To which kind of request.
    pub asked: Asked,
    /// To which of them, counted from 0.
    pub number: u32,
    /// What happened to it.
    pub fault: Fault,
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, number, fault } = self;
        write!(f, "{asked} #{number}: {fault}")
    }
}

/// The storm that blows now, and what it has done so far.
#[derive(Debug, Default)]
pub(super) struct Storm(Mutex<Blowing>);

#[derive(Debug, Default)]
struct Blowing {
    forecast: Option<Forecast>,
    /// What the next request of a kind meets, whatever the forecast is.
    dealt: HashMap<Asked, Fault>,
    /// What one request of whatever kind meets, and how many are still to come until it is there, itself included.
    chosen: Option<(usize, Fault)>,
    numbers: HashMap<Asked, u32>,
    blows: Vec<Blow>,
}

impl Storm {
    pub(super) fn begin(&self, forecast: Option<Forecast>) {
        let mut blowing = self.blowing();
        blowing.forecast = forecast;
        blowing.numbers.clear();
    }

    pub(super) fn deal(&self, asked: Asked, fault: Fault) {
        self.blowing().dealt.insert(asked, fault);
    }

    pub(super) fn choose(&self, n: usize, fault: Fault) {
        self.blowing().chosen = Some((n, fault));
    }

    /// Counts the request and says what happens to it.
    pub(super) fn fault(&self, asked: &Asked) -> Option<Fault> {
        let mut blowing = self.blowing();
        let chosen = blowing.due();
        let dealt = blowing.dealt.remove(asked).or(chosen);
        let forecast = blowing.forecast;
        if dealt.is_none() && forecast.is_none() {
            return None;
        }
        let next = blowing.numbers.entry(asked.clone()).or_default();
        let number = *next;
        *next += 1;
        let fault = dealt.or_else(|| forecast?.fault(asked, number))?;
        let asked = asked.clone();
        blowing.blows.push(Blow { asked, number, fault });
        Some(fault)
    }

    pub(super) fn blows(&self) -> Vec<Blow> {
        self.blowing().blows.clone()
    }

    fn blowing(&self) -> MutexGuard<'_, Blowing> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blowing {
    /// What the request that is there meets, if it is the chosen one.
    fn due(&mut self) -> Option<Fault> {
        let (left, fault) = self.chosen.as_mut()?;
        *left = left.saturating_sub(1);
        let due = (*left == 0).then_some(*fault);
        self.chosen.take_if(|(left, _)| *left == 0);
        due
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn asked(verb: Verb) -> Asked {
        let resource = "clusterstackreleases".to_owned();
        Asked { verb, resource }
    }

    const VERBS: [Verb; 9] = {
        use Verb::*;
        [Discover, Get, List, Watch, Create, Update, Patch, Apply, Delete]
    };

    /// Every fault of these seeds, with the verb it strikes.
    fn faults(seeds: u64) -> Vec<(Verb, u32, Fault)> {
        let mut found = Vec::new();
        for seed in 0..seeds {
            for verb in VERBS {
                let forecast = Forecast::of(seed);
                let struck = (0..20).filter_map(|number| Some((verb, number, forecast.fault(&asked(verb), number)?)));
                found.extend(struck);
            }
        }
        found
    }

    #[test]
    fn the_same_seed_has_the_same_weather_and_another_seed_or_phase_another() {
        assert_eq!(faults(20), faults(20));
        // One kind of request alone passes unharmed in about every second storm; all of them together do not.
        let of = |forecast: Forecast| {
            let struck = VERBS.map(|verb| {
                (0..WRITES)
                    .map(move |n| forecast.fault(&asked(verb), n))
                    .collect::<Vec<_>>()
            });
            format!("{struck:?}")
        };
        let all: BTreeSet<String> = (0..40).map(|seed| of(Forecast::of(seed))).collect();
        assert!(all.len() > 35, "{} different ones of 40", all.len());
        let phases: BTreeSet<String> = (0..40).map(|phase| of(Forecast::of(7).phase(phase))).collect();
        assert!(phases.len() > 35, "{} different ones of 40", phases.len());
    }

    #[test]
    fn the_program_is_restarted_under_about_every_second_seed() {
        let restarted = (0..20).filter(|seed| Forecast::of(*seed).restarts()).count();
        assert!((6..=14).contains(&restarted), "{restarted} of 20");
    }

    #[test]
    fn every_storm_ends_by_itself() {
        let last = faults(200).into_iter().map(|(.., number, _)| number).max();
        assert!(last.is_some_and(|last| last < WRITES), "{last:?}");
    }

    #[test]
    fn every_kind_of_fault_occurs_within_the_seeds_of_one_test() {
        let name = |fault: &Fault| match fault {
            Fault::Interrupt(interruption) => format!("{:?}", interruption.kind),
            Fault::Refuse(status) => status.to_string(),
            fault => format!("{fault:?}"),
        };
        let names: BTreeSet<String> = faults(20)
            .iter()
            .map(|(.., fault)| name(fault).split('(').next().unwrap_or_default().to_owned())
            .collect();
        let all = "429 Too Many Requests, 500 Internal Server Error, 503 Service Unavailable, Blind, Conflict, Cut, Delay, End, FailAfter, Late, \
                   Past, Pause, Replay, ResetAfter, ResetBefore, Stall";
        assert_eq!(names.into_iter().collect::<Vec<_>>().join(", "), all);
    }

    #[test]
    fn faults_after_the_write_strike_writes_only_and_conflicts_only_what_has_a_precondition() {
        for (verb, _, fault) in faults(200) {
            match fault {
                Fault::ResetAfter | Fault::FailAfter => assert!(verb >= Verb::Create, "{verb:?} {fault}"),
                Fault::Conflict => assert!(matches!(verb, Verb::Update | Verb::Patch), "{verb:?} {fault}"),
                Fault::Past(_) => assert_eq!(verb, Verb::List, "{fault}"),
                Fault::Replay(_) | Fault::Interrupt(_) => assert_eq!(verb, Verb::Watch, "{fault}"),
                _ => {}
            }
        }
    }

    #[test]
    fn leases_are_struck_where_that_is_asked_for() {
        let asked = Asked {
            verb: Verb::Update,
            resource: "leases".to_owned(),
        };
        let faults = |seed| {
            let forecast = Forecast::of(seed).with_leases();
            (0..WRITES).filter_map(|number| forecast.fault(&asked, number)).count()
        };
        assert!((0..100).map(faults).sum::<usize>() > 100);
    }

    #[test]
    fn leases_and_news_are_spared() {
        let spared = ["leases", "events", "subjectaccessreviews"];
        for seed in 0..100 {
            for resource in spared {
                let asked = Asked {
                    verb: Verb::Update,
                    resource: resource.to_owned(),
                };
                assert!((0..WRITES).all(|number| Forecast::of(seed).fault(&asked, number).is_none()));
            }
        }
    }
}
