//! What tests say for the summary of a run, which `cargo xtask test` gathers at its end.

use std::io::Write;
use std::{env, thread};

/// Set by `cargo xtask test` alone.
const GATHERED_VARIABLE: &str = "STACKWRIGHT_SUMMARY";

/// Tests show less than they could, and why: `Pods run under a stand-in of the kubelet alone`. The summary has it once.
pub fn reduced(what: &str) {
    say(&format!("REDUCED: {what}\n"));
}

/// This test shows less than it could, or nothing, and why: `does not run with real releases, because there are none`.
pub fn test_is_reduced(how: &str) {
    reduced(&format!("{} {how}", thread::current().name().unwrap_or("a test")));
}

/// Something was run on this release of others. Said only where it is gathered: whoever runs one test, or the demo, knows.
pub fn ran_on(release: &str) {
    if env::var_os(GATHERED_VARIABLE).is_some() {
        say(&format!("RAN ON: {release}\n"));
    }
}

/// Not by a macro: the harness of tests keeps what those write to itself when a test passes. A test does not fail because nobody hears what it says.
fn say(words: &str) {
    let _ = std::io::stderr().write_all(words.as_bytes());
}
