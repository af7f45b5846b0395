//! A file of templates with the answers of all profiles.
//!
//! A fact is its template on a line that begins with `> ` and more lines that begin with `| `, then its answers: after `= ` what was written,
//! or after `! ` the words of the error, both as Rust would escape them. Before it stand the profiles that answer so, unless all do.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use helm::Profile;

use crate::helms;

pub(crate) struct Facts {
    file: String,
    lines: Vec<Line>,
}

enum Line {
    /// A comment or an empty line, kept as it is.
    Other(String),
    Fact(Fact),
}

#[derive(Default)]
struct Fact {
    template: String,
    /// One for each profile; empty where there is none yet.
    answers: [String; 4],
}

impl Facts {
    pub(crate) fn read(file: &str) -> Self {
        let text = std::fs::read_to_string(helms::folder().join(file)).unwrap();
        let mut lines = Vec::new();
        for line in text.lines() {
            if let Some(template) = line.strip_prefix("> ") {
                lines.push(Line::Fact(Fact {
                    template: template.to_owned(),
                    ..Fact::default()
                }));
                continue;
            }
            match lines.last_mut() {
                Some(Line::Fact(fact)) if !line.is_empty() && !line.starts_with('#') => fact.add(line),
                _ => lines.push(Line::Other(line.to_owned())),
            }
        }
        let file = file.to_owned();
        Self { file, lines }
    }

    fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.lines.iter().filter_map(|line| match line {
            Line::Fact(fact) => Some(fact),
            Line::Other(_) => None,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.facts().count()
    }

    /// Asks the real helms, several at once, and writes what they say.
    pub(crate) fn record(&mut self) {
        let binaries = helms::profiles().map(helms::binary);
        let next = AtomicUsize::new(0);
        let facts: Vec<&mut Fact> = self
            .lines
            .iter_mut()
            .filter_map(|line| match line {
                Line::Fact(fact) => Some(fact),
                Line::Other(_) => None,
            })
            .collect();
        let facts: Vec<_> = facts.into_iter().map(std::sync::Mutex::new).collect();
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some(fact) = facts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut fact = fact.lock().unwrap();
                        let template = fact.template.clone();
                        fact.answers = binaries.each_ref().map(|binary| helms::theirs(&template, binary));
                    }
                });
            }
        });
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Other(line) => writeln!(text, "{line}").unwrap(),
                Line::Fact(fact) => text.push_str(&fact.text()),
            }
        }
        std::fs::write(helms::folder().join(&self.file), text).unwrap();
    }

    /// What we answer otherwise.
    pub(crate) fn differences(&self) -> Vec<String> {
        let facts: Vec<&Fact> = self.facts().collect();
        let templates: Vec<&str> = facts.iter().map(|fact| &*fact.template).collect();
        let asked = |(position, profile): (usize, &'static Profile)| {
            let ours = helms::ours(&templates, profile);
            let pairs = facts.iter().zip(ours);
            pairs
                .filter(|(fact, found)| fact.answers[position] != *found)
                .map(|(fact, found)| {
                    let (template, answer) = (&fact.template, &fact.answers[position]);
                    format!("{}: {template}\n  helm: {answer}\n  ours: {found}", profile.name)
                })
                .collect::<Vec<_>>()
        };
        let asked = &asked;
        std::thread::scope(|scope| {
            let profiles = helms::profiles().into_iter().enumerate();
            let workers: Vec<_> = profiles.map(|profile| scope.spawn(move || asked(profile))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        })
    }
}

impl Fact {
    /// Takes one more line.
    fn add(&mut self, line: &str) {
        if let Some(more) = line.strip_prefix("| ") {
            self.template.push('\n');
            self.template.push_str(more);
            return;
        }
        let start = line.find(['=', '!']).unwrap_or_else(|| panic!("no answer: {line}"));
        let (names, answer) = line.split_at(start);
        for (profile, kept) in helms::profiles().iter().zip(&mut self.answers) {
            if names.is_empty() || names.split(' ').any(|name| name == profile.name) {
                answer.clone_into(kept);
            }
        }
    }

    fn text(&self) -> String {
        let mut text = format!("> {}\n", self.template.replace('\n', "\n| "));
        let mut told: Vec<&String> = Vec::new();
        for answer in &self.answers {
            if told.contains(&answer) {
                continue;
            }
            told.push(answer);
            let alike = helms::profiles().into_iter().zip(&self.answers);
            let alike = alike.filter(|(_, other)| *other == answer);
            let mut names: Vec<&str> = alike.map(|(profile, _)| profile.name).collect();
            if names.len() == self.answers.len() {
                names.clear();
            }
            names.push(answer);
            writeln!(text, "{}", names.join(" ")).unwrap();
        }
        text
    }
}
