//! The files of facts: how they are read and written.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// What a program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) error: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.code)?;
        for (mark, text) in [('1', &self.output), ('2', &self.error)] {
            for line in text.split_inclusive('\n') {
                match line.strip_suffix('\n') {
                    Some(line) => writeln!(formatter, "{mark} {line}")?,
                    None => writeln!(formatter, "{mark}\\{line}")?,
                }
            }
        }
        Ok(())
    }
}

/// One call of the program with its answers.
#[derive(Debug, Default)]
pub(crate) struct Fact {
    /// Comments and empty lines before it.
    before: String,
    /// Its place among the facts.
    number: usize,
    pub(crate) words: String,
    pub(crate) input: String,
    /// Whether the answers have the warnings.
    pub(crate) is_warned: bool,
    pub(crate) answers: Vec<(Vec<String>, Answer)>,
}

impl Fact {
    /// Each answer with one of the profiles that gave it, which take turns.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&str, &Answer)> {
        let turn = |profiles: &[String]| self.number % profiles.len();
        self.answers
            .iter()
            .map(move |(profiles, answer)| (profiles[turn(profiles)].as_str(), answer))
    }
}

pub(crate) struct Facts {
    pub(crate) facts: Vec<Fact>,
    after: String,
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/command/facts")
        .join(name)
}

pub(crate) fn read(name: &str) -> Facts {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let mut facts: Vec<Fact> = Vec::new();
    let mut before = String::new();
    for line in text.split_inclusive('\n') {
        let rest = line.get(2..).unwrap_or_default();
        if let Some(words) = line.strip_prefix("$ ") {
            facts.push(Fact {
                before: std::mem::take(&mut before),
                number: facts.len(),
                is_warned: name == "warnings.txt",
                words: words.trim_end().to_owned(),
                ..Fact::default()
            });
            continue;
        }
        let fact = facts.last_mut();
        let answer = |fact: Option<&mut Fact>, to: fn(&mut Answer) -> &mut String, text: &str| {
            to(&mut fact.unwrap().answers.last_mut().unwrap().1).push_str(text);
        };
        match line.get(..2) {
            Some("< ") => fact.unwrap().input.push_str(rest),
            Some("@ ") => {
                let (profiles, code) = rest.trim_end().split_once(": ").unwrap();
                let answer = Answer {
                    code: code.parse().unwrap(),
                    ..Answer::default()
                };
                let profiles = profiles.split(' ').map(str::to_owned).collect();
                fact.unwrap().answers.push((profiles, answer));
            }
            Some("1 ") => answer(fact, |answer| &mut answer.output, rest),
            Some("1\\") => answer(fact, |answer| &mut answer.output, rest.trim_end_matches('\n')),
            Some("2 ") => answer(fact, |answer| &mut answer.error, rest),
            _ => before.push_str(line),
        }
    }
    Facts { facts, after: before }
}

impl Facts {
    pub(crate) fn write(&self, name: &str) {
        let mut text = String::new();
        for fact in &self.facts {
            let Fact {
                before,
                number: _,
                is_warned: _,
                words,
                input,
                answers,
            } = fact;
            writeln!(text, "{before}$ {words}").unwrap();
            for line in input.lines() {
                writeln!(text, "< {line}").unwrap();
            }
            for (profiles, answer) in answers {
                write!(text, "@ {}: {answer}", profiles.join(" ")).unwrap();
            }
        }
        std::fs::write(path(name), text + &self.after).unwrap();
    }
}
