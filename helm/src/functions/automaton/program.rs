//! The programs of patterns, which automata are made from. Programs never change, so all threads share the ones that are small.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;

use super::Searched;

/// The largest program, in bytes. Room for some two hundred and fifty letters of any script, read backward, or a thousand times any character.
const MAX_PROGRAM: usize = 12 << 20;

/// How many programs are shared. A chart has a few patterns, each of which every render compiles.
const MAX_SHARED: usize = 64;

/// The largest program that is shared, in bytes.
const MAX_SHARED_PROGRAM: usize = 64 << 10;

/// How deep what a pattern becomes may nest. Go takes a thousand groups in each other, which may need a group more each here.
const MAX_NESTING: u32 = 4_000;

/// Those that were made last, by pattern and direction.
static SHARED: LazyLock<Mutex<HashMap<(String, bool), NFA>>> = LazyLock::new(Mutex::default);

/// A program that reads in one direction and knows no groups.
pub(super) fn for_direction(pattern: &str, is_backward: bool) -> Searched<NFA> {
    let key = (pattern.to_owned(), is_backward);
    if let Some(program) = SHARED.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(program.clone());
    }
    let config = thompson::Config::new()
        .reverse(is_backward)
        .which_captures(WhichCaptures::None);
    let program = program(pattern, config)?;
    if program.memory_usage() <= MAX_SHARED_PROGRAM {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() == MAX_SHARED {
            shared.clear();
        }
        shared.insert(key, program.clone());
    }
    Ok(program)
}

/// A program that knows where groups are.
pub(super) fn with_groups(pattern: &str) -> Searched<NFA> {
    let config = thompson::Config::new()
        .reverse(false)
        .which_captures(WhichCaptures::All);
    program(pattern, config)
}

thread_local! {
    /// One for all patterns of a render, which runs on a thread of its own: the first class of characters makes tables of some hundred
    /// kilobytes, which are as good for the others.
    static COMPILER: RefCell<thompson::Compiler> = RefCell::new(compiler());
}

fn compiler() -> thompson::Compiler {
    let mut compiler = thompson::Compiler::new();
    // The bounds of ASCII words lie within characters too; `find` passes over such places.
    compiler.syntax(syntax::Config::new().utf8(false).nest_limit(MAX_NESTING));
    compiler
}

fn program(pattern: &str, config: thompson::Config) -> Searched<NFA> {
    let config = config.nfa_size_limit(Some(MAX_PROGRAM));
    COMPILER.with_borrow_mut(|compiler| {
        let built = compiler.configure(config).build(pattern);
        built.map_err(|error| match error.size_limit() {
            Some(limit) => format!("its program takes more than {limit} bytes"),
            // What it says shows the translated pattern.
            None => "it is beyond what automata can read".to_owned(),
        })
    })
}
