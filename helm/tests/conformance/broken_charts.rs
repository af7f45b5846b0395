//! Cluster classes that somebody broke: our errors are helm's, to the letter, with file, line and words. Mistakes are recorded in
//! `mistakes/*.txt`, damage is shown to the real helms.

use std::sync::atomic::{AtomicUsize, Ordering};

use helm::yaml::Node;
use helm::{Profile, json};

use crate::call::{Call, Files, Source, compare, files_below, files_in};
use crate::{lab, recorded};

fn own_class() -> Files {
    files_below(&lab::room().join("../e2e/stacks/docker-harbor/v1/cluster-class"))
}

fn call(name: String, chart: Files) -> Call {
    Call {
        release: "docker-harbor-1-34".to_owned(),
        namespace: "cluster".to_owned(),
        ..Call::new(name, Source::Files(chart))
    }
}

/// The chart after what somebody did: the file, the text that was there, the text that is there now, both as JSON.
fn mistake(question: &str) -> Call {
    let parts: Vec<&str> = question.lines().collect();
    let [file, texts @ ..] = &parts[..] else {
        panic!("no file: {question}");
    };
    let texts: Vec<Node> = texts
        .iter()
        .map(|text| json::decode(text.as_bytes()).unwrap())
        .collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.as_text().unwrap()).collect();
    let mut chart = own_class();
    let (_, data) = chart.iter_mut().find(|(path, _)| path == file).unwrap();
    let text = str::from_utf8(data).unwrap();
    assert!(text.contains(texts[0]), "{file} has no {:?}", texts[0]);
    *data = text.replacen(texts[0], texts[1], 1).into_bytes();
    call(question.to_owned(), chart)
}

#[test]
fn mistakes_in_a_cluster_class_are_told_as_helm_told_them() {
    let answer = |result: &str| match result.strip_prefix("Error: ") {
        Some(error) => format!("! {}", error.escape_debug()),
        None => "= rendered".to_owned(),
    };
    let ours = |question: &str, profile| answer(&mistake(question).of(profile).ours());
    let files = recorded::files(&lab::room().join("tests/mistakes"));
    recorded::compare(Profile::all(), &files, 80, ours, |question, binary| {
        answer(&mistake(question).theirs(binary))
    });
}

/// Damage that nobody thought about: a text that is there, and what takes its place.
const DAMAGES: &[(&str, &str)] = &[
    ("}}", "}"),
    ("{{", "{"),
    ("{{- end }}", ""),
    ("{{ ", "{{ end }}{{ "),
    (".Values.", ".Values.nosuch."),
    (".Release.", ".Relaese."),
    (" | ", " | nosuch | "),
    ("\"", ""),
    (": ", " "),
    (":\n", ": :\n"),
    ("\n  ", "\n\t"),
    ("\n    ", "\n   "),
    ("- ", "-"),
    ("include \"", "include \"no"),
    ("(", ""),
    (")", ""),
];

/// The chart with each damage once in every template, each time at another place.
fn damaged(name: &str, chart: &Files) -> Vec<Call> {
    let mut calls = Vec::new();
    let templates = chart
        .iter()
        .enumerate()
        .filter(|(_, (path, _))| path.starts_with("templates/"));
    for (position, (path, data)) in templates {
        let text = str::from_utf8(data).unwrap();
        for (number, (before, after)) in DAMAGES.iter().enumerate() {
            let places: Vec<usize> = text.match_indices(before).map(|(place, _)| place).collect();
            let Some(place) = places.get((position * 7 + number * 5) % places.len().max(1)) else {
                continue;
            };
            let (head, tail) = text.split_at(*place);
            let mut chart = chart.clone();
            chart[position].1 = [head, after, &tail[before.len()..]].concat().into_bytes();
            calls.push(call(format!("{name} {path}:{place} {before:?} -> {after:?}"), chart));
        }
    }
    calls
}

#[test]
fn damage_in_a_cluster_class_is_told_as_helm_tells_it() {
    let mut calls = damaged("docker-harbor", &own_class());
    if let Some(corpus) = lab::corpus("damaged cluster classes") {
        let chart = "openstack-scs-1-32-v4/openstack-scs-1-32-cluster-class-v4.tgz";
        calls.extend(damaged(chart, &files_in(&corpus.join("releases").join(chart))));
    }
    // The profiles take turns.
    let profiles = Profile::all().iter().cycle();
    let calls: Vec<Call> = calls
        .into_iter()
        .zip(profiles)
        .map(|(call, profile)| call.of(profile))
        .collect();
    let refused = AtomicUsize::new(0);
    compare(&calls, |call| {
        let theirs = call.theirs(&lab::helm(call.profile));
        refused.fetch_add(usize::from(theirs.starts_with("Error: ")), Ordering::Relaxed);
        theirs
    });
    let refused = refused.into_inner();
    lab::say(&format!(
        "{refused} of {} damaged cluster classes are refused in Helm's words\n",
        calls.len()
    ));
    assert!(refused > 40, "only {refused} of {} were refused", calls.len());
}
