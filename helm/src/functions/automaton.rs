//! Searches for a compiled pattern that end when they cost more than the render has left.
//!
//! A pattern of some kilobytes can keep a simulation of its states busy for minutes and needs memory by the product of states and groups.
//! So texts are read by automata whose states are made as they are needed, each of which is paid for, and groups are looked at only within
//! what was found. The size of the pattern's program and of all tables is limited.

mod program;

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, MatchKind};

use super::patterns::Pattern;
use crate::bounds::{BoundError, spend};

/// How much the states of one automaton may take before they are forgotten.
const MAX_STATES: usize = 256 << 10;
/// The most memory for the places of groups.
const MAX_GROUPS: usize = 16 << 20;

/// How many bytes of a program are made in about the time of a step.
const PROGRAM_PER_STEP: usize = 64;
/// How many bytes of a text are read for a step. To find all matches may take reading to the end for each.
const BYTES_PER_STEP: usize = 64;
/// How many states of a program are followed in about the time of a step.
const FOLLOWED_PER_STEP: usize = 8;

/// A pattern that can be searched for.
pub(super) struct Automaton {
    pattern: String,
    is_empty: bool,
    names: Vec<(String, usize)>,
    forward: RefCell<Reader>,
    backward: RefCell<Reader>,
    groups: RefCell<Option<Groups>>,
}

/// A search that did not end: the pattern has too many groups, or the render has nothing left to spend.
pub(super) type Searched<T> = Result<T, String>;

impl Automaton {
    /// Compiles a pattern.
    pub(super) fn compile(pattern: Pattern) -> Searched<Self> {
        let Pattern {
            rust: pattern,
            is_empty,
            names,
        } = pattern;
        let automaton = Self {
            forward: RefCell::new(Reader::new(&pattern, false)?),
            backward: RefCell::new(Reader::new(&pattern, true)?),
            pattern,
            is_empty,
            names,
            groups: RefCell::default(),
        };
        spend(to_steps(automaton.memory(), PROGRAM_PER_STEP))?;
        Ok(automaton)
    }

    /// The bytes that it takes now.
    pub(super) fn memory(&self) -> usize {
        let groups = self.groups.borrow().as_ref().map_or(0, Groups::memory);
        self.forward.borrow().memory() + self.backward.borrow().memory() + groups
    }

    /// Whether the pattern has no text.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(super) fn is_match(&self, text: &str) -> Searched<bool> {
        Ok(self
            .forward
            .borrow_mut()
            .last_match(text, 0..text.len(), true)?
            .is_some())
    }

    /// The leftmost match that starts at `from` or later.
    pub(super) fn find(&self, text: &str, mut from: usize) -> Searched<Option<Range<usize>>> {
        while from <= text.len() {
            let Some(end) = self.forward.borrow_mut().last_match(text, from..text.len(), false)? else {
                return Ok(None);
            };
            let start = self.backward.borrow_mut().last_match(text, from..end, false)?;
            let start = start.ok_or("a match has an end and no start")?;
            // Nothing can be found within a character, but only nothing.
            if text.is_char_boundary(end) {
                return Ok(Some(start..end));
            }
            from = end + 1;
        }
        Ok(None)
    }

    /// All matches from left to right. What is empty and stands at the end of the match before is none.
    pub(super) fn find_all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Searched<Range<usize>>> + 't {
        let mut last_end = None;
        std::iter::from_fn(move || {
            let from = last_end.unwrap_or(0);
            let mut found = self.find(text, from);
            if let Ok(Some(empty)) = &found
                && empty.is_empty()
                && last_end == Some(empty.end)
            {
                found = self.find(text, from + 1);
            }
            let found = found.transpose()?;
            last_end = Some(found.as_ref().map_or(text.len() + 1, |found| found.end));
            Some(found)
        })
    }

    /// Where the groups of a match are, the match itself first; nothing for a group that took no part.
    pub(super) fn groups(&self, text: &str, found: &Range<usize>) -> Searched<Vec<Option<Range<usize>>>> {
        let mut groups = self.groups.borrow_mut();
        let groups = match &mut *groups {
            Some(groups) => groups,
            none => none.insert(Groups::new(&self.pattern)?),
        };
        groups.within(text, found)
    }

    /// The numbers of the groups that have a name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.names.iter().filter(move |(of_group, _)| of_group == name);
        named.map(|(_, number)| *number)
    }
}

fn to_steps(amount: usize, per_step: usize) -> u64 {
    (amount / per_step) as u64
}

/// An automaton for one direction, and the states that it has made so far.
struct Reader {
    automaton: DFA,
    states: Cache,
    is_backward: bool,
    /// The transitions that were paid for and cannot be looked up: from states that match, and at the end of a text.
    paid: HashSet<(LazyStateID, Option<u8>)>,
    /// How often the states had been forgotten when `paid` was begun.
    forgotten: usize,
    /// What making a transition costs.
    transition: u64,
}

impl Reader {
    fn new(pattern: &str, is_backward: bool) -> Searched<Self> {
        let program = program::for_direction(pattern, is_backward)?;
        let transition = 1 + to_steps(program.states().len(), FOLLOWED_PER_STEP);
        let kind = if is_backward {
            MatchKind::All
        } else {
            MatchKind::LeftmostFirst
        };
        let config = Config::new()
            .match_kind(kind)
            .cache_capacity(MAX_STATES)
            .skip_cache_capacity_check(true);
        let automaton = DFA::builder()
            .configure(config)
            .build_from_nfa(program)
            .map_err(|error| error.to_string())?;
        let states = automaton.create_cache();
        Ok(Self {
            automaton,
            states,
            is_backward,
            paid: HashSet::new(),
            forgotten: 0,
            transition,
        })
    }

    fn memory(&self) -> usize {
        self.automaton.get_nfa().memory_usage()
            + self.automaton.memory_usage()
            + self.states.memory_usage()
            + self.paid.capacity() * size_of::<(LazyStateID, Option<u8>)>()
    }

    /// Reads the range in its direction, and gives the last place at which the preferred match ends; any when that is enough.
    fn last_match(&mut self, text: &str, range: Range<usize>, is_enough: bool) -> Searched<Option<usize>> {
        let input = Input::new(text).range(range.clone());
        let mut state = if self.is_backward {
            let input = input.anchored(Anchored::Yes);
            self.automaton.start_state_reverse(&mut self.states, &input)
        } else {
            self.automaton.start_state_forward(&mut self.states, &input)
        }
        .map_err(|error| error.to_string())?;
        let mut last = None;
        for read in 0..range.len() {
            if read % BYTES_PER_STEP == 0 {
                spend(1)?;
            }
            let (at, byte) = if self.is_backward {
                (range.end - read, range.end - read - 1)
            } else {
                (range.start + read, range.start + read)
            };
            state = self.next(state, text.as_bytes()[byte])?;
            // States know that they match one byte late.
            if state.is_match() {
                last = Some(at);
                if is_enough {
                    return Ok(last);
                }
            } else if state.is_dead() {
                return Ok(last);
            } else if state.is_quit() {
                return Err(format!("matching byte {at} of the text is not supported"));
            }
        }
        let (at, beyond) = if self.is_backward {
            (range.start, range.start.checked_sub(1))
        } else {
            (range.end, None)
        };
        let state = if let Some(before) = beyond {
            self.next(state, text.as_bytes()[before])?
        } else {
            self.pay_once(state, None)?;
            self.automaton
                .next_eoi_state(&mut self.states, state)
                .map_err(|error| error.to_string())?
        };
        Ok(if state.is_match() { Some(at) } else { last })
    }

    /// The state after one more byte. Pays for what had to be made.
    fn next(&mut self, state: LazyStateID, byte: u8) -> Searched<LazyStateID> {
        if state.is_tagged() {
            self.pay_once(state, Some(byte))?;
        } else {
            let next = self.automaton.next_state_untagged(&self.states, state, byte);
            if !next.is_unknown() {
                return Ok(next);
            }
            spend(self.transition)?;
        }
        self.automaton
            .next_state(&mut self.states, state, byte)
            .map_err(|error| error.to_string())
    }

    /// Pays for a transition that cannot be looked up, unless it was paid for since the states were last forgotten.
    fn pay_once(&mut self, state: LazyStateID, byte: Option<u8>) -> Result<(), BoundError> {
        if self.forgotten != self.states.clear_count() {
            self.forgotten = self.states.clear_count();
            self.paid.clear();
        }
        if self.paid.insert((state, byte)) {
            spend(self.transition)?;
        }
        Ok(())
    }
}

/// A simulation of the program, which knows where groups are.
struct Groups {
    machine: PikeVM,
    threads: pikevm::Cache,
    slots: Vec<Option<NonMaxUsize>>,
}

impl Groups {
    fn new(pattern: &str) -> Searched<Self> {
        let program = program::with_groups(pattern)?;
        let slots = program.group_info().slot_len();
        let table = program
            .states()
            .len()
            .saturating_mul(slots)
            .saturating_mul(2 * size_of::<usize>());
        if table > MAX_GROUPS {
            return Err(format!("regular expression has too many groups ({})", slots / 2 - 1));
        }
        let machine = PikeVM::builder()
            .build_from_nfa(program)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            threads: machine.create_cache(),
            machine,
            slots: vec![None; slots],
        })
    }

    fn memory(&self) -> usize {
        self.machine.get_nfa().memory_usage() + self.threads.memory_usage() + size_of_val(&*self.slots)
    }

    fn within(&mut self, text: &str, found: &Range<usize>) -> Searched<Vec<Option<Range<usize>>>> {
        let states = self.machine.get_nfa().states().len();
        let followed = states
            .saturating_mul(found.len() + 1)
            .saturating_mul(1 + self.slots.len() / FOLLOWED_PER_STEP);
        spend(to_steps(followed, FOLLOWED_PER_STEP))?;
        let input = Input::new(text).range(found.clone()).anchored(Anchored::Yes);
        self.machine.search_slots(&mut self.threads, &input, &mut self.slots);
        Ok(self
            .slots
            .chunks(2)
            .map(|ends| match ends {
                [Some(start), Some(end)] => Some(start.get()..end.get()),
                _ => None,
            })
            .collect())
    }
}
