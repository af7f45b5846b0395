//! The program `helm-template` against what the real Helm of each profile wrote for the same arguments, recorded in `facts/*.txt`.
//!
//! A fact is its arguments on a line that begins with `$ `, with what it reads from standard input on lines that begin with `< `. Then
//! come the answers, each once with the profiles that gave it and the exit code (`@ v3.19 v4.1: 0`): lines of standard output begin with
//! `1 `, the error with `2 `: all from `Error: ` on; in `warnings.txt` everything, its lines sorted, because Helm goes through maps in
//! random order. `STACKWRIGHT_REGENERATE=1` asks the real binaries again, which `cargo xtask setup` fetches.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod facts;
mod folder;
mod ours;
mod run;

use std::fmt::Write as _;

use helm::Profile;

use facts::{Answer, Fact};
use folder::Folder;

/// Answers every question of a file and compares; returns how many questions there were.
fn hold(name: &str) {
    let folder = Folder::new();
    let mut facts = facts::read(name);
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|wanted| wanted == "1" || wanted == *name) {
        run::for_each(&mut facts.facts, |fact| fact.answers = recorded(fact, &folder));
        facts.write(name);
    }
    let found = std::sync::Mutex::new(String::new());
    run::for_each(&mut facts.facts, |fact| {
        for (profile, helm) in fact.samples() {
            let ours = run::ours(fact, profile, &folder);
            if ours != *helm {
                let words = &fact.words;
                writeln!(found.lock().unwrap(), "{profile} $ {words}\nhelm: {helm}ours: {ours}").unwrap();
            }
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{found}");
}

/// What the real binaries answer, equal answers once.
fn recorded(fact: &Fact, folder: &Folder) -> Vec<(Vec<String>, Answer)> {
    let mut answers: Vec<(Vec<String>, Answer)> = Vec::new();
    for profile in Profile::all() {
        let answer = run::theirs(fact, profile.name, folder);
        match answers.iter_mut().find(|(_, known)| *known == answer) {
            Some((profiles, _)) => profiles.push(profile.name.to_owned()),
            None => answers.push((vec![profile.name.to_owned()], answer)),
        }
    }
    answers
}

#[test]
fn arguments_are_read_as_helm_reads_them() {
    hold("arguments.txt");
}

#[test]
fn flags_change_what_is_printed_as_in_helm() {
    hold("output.txt");
}

#[test]
fn folders_and_archives_are_loaded_as_helm_loads_them() {
    hold("loading.txt");
}

#[test]
fn charts_and_flags_are_warned_of_in_the_words_of_helm() {
    hold("warnings.txt");
}

#[test]
fn dependencies_and_values_come_together_as_in_helm() {
    hold("dependencies.txt");
}
