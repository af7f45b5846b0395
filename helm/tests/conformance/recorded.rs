//! Files of questions with the answers that the Helm versions gave.
//!
//! A case is its question on a line that begins with `> ` and more lines that begin with `| `, then the answer of the oldest profile: after
//! `= ` what was written, or after `! ` the error, both as Rust would escape them. An answer holds for the later profiles too, until a line
//! with the name of a profile before it says another one. `STACKWRIGHT_REGENERATE=1` asks the real helms again and rewrites the answers; the
//! name of a file instead of `1` rewrites those of that file alone.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use helm::Profile;

use crate::lab;

enum Line {
    /// A comment or an empty line, kept as it is.
    Other(String),
    Case(Case),
}

/// Parts of questions that take long to answer.
const SLOW: &[&str] = &["gen", "htpasswd", "bcrypt", "derivePassword"];

/// What we say otherwise, as `docs/reference/helm-differences.md` tells: the profile and a part of the question.
const KNOWN: &[(&str, &str)] = &[("v4.2", "MHcCAQEEIP//////")];

#[derive(Default)]
struct Case {
    question: String,
    /// By the place of the profile in [`Profile::all`]; nothing where the one before answers alike.
    answers: [Option<String>; 4],
}

impl Case {
    fn answer(&self, profile: usize) -> &str {
        let answers = self.answers[..=profile].iter().rev();
        answers.flatten().next().map_or("", String::as_str)
    }

    /// Whether a profile and the one before it, or the one behind the first, answer otherwise.
    fn is_told_apart(&self, profile: usize) -> bool {
        self.answers[profile.max(1)].is_some()
    }

    /// Takes the answer of a profile, when those before it are known.
    fn learn(&mut self, profile: usize, answer: String) {
        let is_new = profile == 0 || self.answer(profile - 1) != answer;
        self.answers[profile] = is_new.then_some(answer);
    }
}

/// The place of the profile that a line of an answer is for, and the answer.
fn answer(line: &str) -> Option<(usize, &str)> {
    let is_answer = |text: &str| text.starts_with("= ") || text.starts_with("! ");
    if is_answer(line) {
        return Some((0, line));
    }
    let (name, answer) = line.split_once(' ')?;
    let profile = Profile::all().iter().position(|profile| profile.name == name)?;
    is_answer(answer).then_some((profile, answer))
}

fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    for line in text.lines() {
        let case = match lines.last_mut() {
            Some(Line::Case(case)) => Some(case),
            _ => None,
        };
        if let Some(question) = line.strip_prefix("> ") {
            lines.push(Line::Case(Case {
                question: question.to_owned(),
                ..Case::default()
            }));
        } else if let (Some(case), Some(more)) = (case, line.strip_prefix("| ")) {
            case.question = format!("{}\n{more}", case.question);
        } else if let (Some(Line::Case(case)), Some((profile, answer))) = (lines.last_mut(), answer(line)) {
            case.answers[profile] = Some(answer.to_owned());
        } else {
            lines.push(Line::Other(line.to_owned()));
        }
    }
    lines
}

fn write(path: &Path, lines: &[Line]) {
    let mut text = String::new();
    for line in lines {
        match line {
            Line::Other(line) => writeln!(text, "{line}").unwrap(),
            Line::Case(case) => {
                writeln!(text, "> {}", case.question.replace('\n', "\n| ")).unwrap();
                for (profile, answer) in Profile::all().iter().zip(&case.answers) {
                    let name = if profile.name == Profile::V3_19.name {
                        ""
                    } else {
                        profile.name
                    };
                    if let Some(answer) = answer {
                        writeln!(text, "{}", format!("{name} {answer}").trim_start()).unwrap();
                    }
                }
            }
        }
    }
    std::fs::write(path, text).unwrap();
}

/// The files of a folder that hold cases.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "txt");
    lab::entries(folder).into_iter().filter(is_text).collect()
}

/// Compares our answers in some profiles with the recorded ones; fails when there are fewer cases than expected.
pub(crate) fn compare(
    profiles: &[&'static Profile],
    files: &[PathBuf],
    at_least: usize,
    ours: impl Fn(&str, &'static Profile) -> String + Sync,
    theirs: impl Fn(&str, &Path) -> String + Sync,
) {
    let recording = std::env::var_os("STACKWRIGHT_REGENERATE");
    let (mut differences, mut count) = (Vec::new(), 0);
    for path in files {
        let mut lines = read(path);
        let is_named = |file: &OsString| file == "1" || path.file_name() == Some(file);
        if recording.as_ref().is_some_and(is_named) {
            let helms: Vec<PathBuf> = Profile::all().iter().map(|profile| lab::helm(profile)).collect();
            for_cases(&mut lines, |case| record(case, &helms, &theirs));
            write(path, &lines);
        }
        let file = path.file_name().unwrap().display();
        let found = for_cases(&mut lines, |case| differing(case, profiles, &ours));
        count += found.len();
        differences.extend(
            found
                .into_iter()
                .flatten()
                .map(|difference| format!("{file}: {difference}")),
        );
    }
    let found = differences.len();
    let differences = differences.join("");
    assert!(
        differences.is_empty(),
        "of {count} cases {found} answers differ:\n{differences}"
    );
    assert!(count >= at_least, "only {count} cases were found");
}

/// Does something for each case, several at once.
fn for_cases<T: Send>(lines: &mut [Line], work: impl Fn(&mut Case) -> T + Sync) -> Vec<T> {
    let mut cases: Vec<&mut Case> = lines
        .iter_mut()
        .filter_map(|line| match line {
            Line::Case(case) => Some(case),
            Line::Other(_) => None,
        })
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = cases.len().div_ceil(threads).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = cases
            .chunks_mut(part)
            .map(|part| scope.spawn(move || part.iter_mut().map(|case| work(case)).collect::<Vec<T>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn differing(
    case: &Case,
    profiles: &[&'static Profile],
    ours: &impl Fn(&str, &'static Profile) -> String,
) -> Vec<String> {
    let mut differences = Vec::new();
    let is_known = |profile: &Profile| {
        let mut known = KNOWN.iter();
        known.any(|(name, part)| *name == profile.name && case.question.contains(part))
    };
    let is_asked = |profile: &Profile| !is_known(profile) && profiles.iter().any(|asked| asked.name == profile.name);
    let profiles = Profile::all().iter().copied().enumerate();
    let profiles = profiles.filter(|(_, profile)| is_asked(profile));
    // What makes keys is slow and alike in all profiles.
    let all = !SLOW.iter().any(|word| case.question.contains(word));
    for (place, profile) in profiles.filter(|(place, _)| all || case.answers[*place].is_some()) {
        let (theirs, ours) = (case.answer(place), ours(&case.question, profile));
        if ours != theirs {
            let question = &case.question;
            differences.push(format!(
                "{} {question}\n  helm: {theirs}\n  ours: {ours}\n",
                profile.name
            ));
        }
    }
    differences
}

fn record(case: &mut Case, helms: &[PathBuf], theirs: &impl Fn(&str, &Path) -> String) {
    for (profile, helm) in helms.iter().enumerate() {
        let answer = theirs(&case.question, helm);
        case.learn(profile, answer);
    }
}

/// As [`compare`], with all questions of a file at once, each beside its recorded answer.
pub(crate) fn compare_together(
    files: &[PathBuf],
    at_least: usize,
    answers: impl Fn(&[(&str, &str)], &'static Profile, Option<&Path>) -> Vec<String>,
) {
    let recording = std::env::var_os("STACKWRIGHT_REGENERATE");
    let (mut differences, mut count) = (String::new(), 0);
    for path in files {
        let mut lines = read(path);
        let is_named = |file: &OsString| file == "1" || path.file_name() == Some(file);
        if recording.as_ref().is_some_and(is_named) {
            for (place, profile) in Profile::all().iter().enumerate() {
                let theirs = answers(&cases(&lines, place, |_, _| true), profile, Some(&lab::helm(profile)));
                let slots = lines.iter_mut().filter_map(|line| match line {
                    Line::Case(case) => Some(case),
                    Line::Other(_) => None,
                });
                slots.zip(theirs).for_each(|(case, answer)| case.learn(place, answer));
            }
            write(path, &lines);
        }
        count += cases(&lines, 0, |_, _| true).len();
        for (place, profile) in Profile::all().iter().enumerate() {
            // Profiles that answer alike take turns.
            let is_turn =
                |number: usize, case: &Case| number % Profile::all().len() == place || case.is_told_apart(place);
            let cases = cases(&lines, place, is_turn);
            for ((question, answer), found) in cases.iter().zip(answers(&cases, profile, None)) {
                if found != *answer {
                    let (file, name) = (path.file_name().unwrap().display(), profile.name);
                    writeln!(
                        differences,
                        "{file}: {name} {question}\n  helm: {answer}\n  ours: {found}"
                    )
                    .unwrap();
                }
            }
        }
    }
    assert!(differences.is_empty(), "of {count} cases these differ:\n{differences}");
    assert!(count >= at_least, "only {count} cases were found");
}

/// Some of the questions with the answers of a profile.
fn cases(lines: &[Line], profile: usize, is_asked: impl Fn(usize, &Case) -> bool) -> Vec<(&str, &str)> {
    let cases = lines.iter().filter_map(|line| match line {
        Line::Case(case) => Some(case),
        Line::Other(_) => None,
    });
    let asked = cases.enumerate().filter(|(number, case)| is_asked(*number, case));
    asked
        .map(|(_, case)| (case.question.as_str(), case.answer(profile)))
        .collect()
}
