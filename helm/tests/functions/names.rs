//! Which names each profile has a function for: those that the real helm has, and no others.
//!
//! `names.txt` lists every name in the function maps of Helm, sprig and text/template of all four versions, and some that other
//! programs have, each with the profiles in which a text that calls it can be parsed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use helm::Profile;

use crate::helms;

const FILE: &str = "names.txt";

fn read() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(helms::folder().join(FILE)).unwrap();
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.collect())
    });
    lines.collect()
}

/// A template that names a function without calling it.
fn uncalled(name: &str) -> String {
    format!("{{{{ if false }}}}{{{{ {name} }}}}{{{{ end }}}}")
}

/// The names that a real helm can parse. A parse error names one that it cannot.
fn parsed<'n>(mut names: Vec<&'n str>, binary: &Path) -> BTreeSet<&'n str> {
    loop {
        let calls: Vec<String> = names.iter().map(|name| uncalled(name)).collect();
        let answer = helms::theirs(&calls.concat(), binary);
        if answer == "= " {
            return names.into_iter().collect();
        }
        let before = names.len();
        names.retain(|name| !answer.contains(&format!("function \\\"{name}\\\" not defined")));
        assert_eq!(names.len(), before - 1, "{answer}");
    }
}

fn record() {
    let names: Vec<String> = read().into_iter().map(|(name, _)| name).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let sets = helms::profiles().map(|profile| (profile.name, parsed(all.clone(), &helms::binary(profile))));
    let mut text = String::new();
    for name in all {
        let known = sets.iter().filter(|(_, set)| set.contains(name));
        let words: Vec<&str> = std::iter::once(name)
            .chain(known.map(|(profile, _)| *profile))
            .collect();
        writeln!(text, "{}", words.join(" ")).unwrap();
    }
    std::fs::write(helms::folder().join(FILE), text).unwrap();
}

#[test]
fn each_profile_has_exactly_the_functions_of_its_helm() {
    if helms::is_recording(FILE) {
        record();
    }
    let recorded = read();
    for profile in helms::profiles() {
        let theirs: BTreeSet<&str> = recorded
            .iter()
            .filter(|(_, profiles)| profiles.iter().any(|name| name == profile.name))
            .map(|(name, _)| name.as_str())
            .collect();
        let ours: BTreeSet<&str> = profile.functions().names().collect();
        let missing: Vec<&&str> = theirs.difference(&ours).collect();
        let invented: Vec<&&str> = ours.difference(&theirs).collect();
        assert!(
            missing.is_empty() && invented.is_empty(),
            "{}: missing {missing:?}, invented {invented:?}",
            profile.name
        );
        assert!(theirs.len() > 230, "{}: only {} names", profile.name, theirs.len());
    }
}

#[test]
fn a_name_that_the_profile_does_not_have_is_no_template() {
    let recorded = read();
    let has = |profile: &Profile, profiles: &[String]| profiles.iter().any(|name| name == profile.name);
    for profile in helms::profiles() {
        let unknown = recorded.iter().filter(|(_, profiles)| !has(profile, profiles));
        let names: Vec<&str> = unknown.map(|(name, _)| name.as_str()).collect();
        let templates: Vec<String> = names.iter().map(|name| uncalled(name)).collect();
        let templates: Vec<&str> = templates.iter().map(String::as_str).collect();
        for (name, answer) in names.iter().zip(helms::ours(&templates, profile)) {
            let error = format!("parse error at (c/templates/_case.tpl:1): function \\\"{name}\\\" not defined");
            assert_eq!(answer, format!("! Error: {error}"), "{}", profile.name);
        }
    }
}
