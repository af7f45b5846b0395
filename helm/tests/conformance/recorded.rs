//! Files of questions with the answers that Helm 3.19.0 gave.
//!
//! A case is its question on a line that begins with `> ` and more lines that begin with `| `, then the answer: after `= ` what was
//! written, or after `! ` the error, both as Rust would escape them. `STACKWRIGHT_REGENERATE=1` asks the real helm again and rewrites
//! the answers; the name of a file instead of `1` rewrites those of that file alone.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::lab;

enum Line {
    /// A comment or an empty line, kept as it is.
    Other(String),
    Case {
        question: String,
        answer: String,
    },
}

fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    let mut question: Vec<&str> = Vec::new();
    let finish = |question: &mut Vec<&str>, answer: &str, lines: &mut Vec<Line>| {
        if !question.is_empty() {
            lines.push(Line::Case {
                question: question.join("\n"),
                answer: answer.to_owned(),
            });
            question.clear();
        }
    };
    for line in text.lines() {
        if let Some(part) = line.strip_prefix("> ") {
            finish(&mut question, "", &mut lines);
            question.push(part);
        } else if let Some(part) = line.strip_prefix("| ") {
            question.push(part);
        } else if line.starts_with("= ") || line.starts_with("! ") {
            finish(&mut question, line, &mut lines);
        } else {
            finish(&mut question, "", &mut lines);
            lines.push(Line::Other(line.to_owned()));
        }
    }
    finish(&mut question, "", &mut lines);
    lines
}

fn write(path: &Path, lines: &[Line]) {
    let mut text = String::new();
    for line in lines {
        match line {
            Line::Other(line) => writeln!(text, "{line}").unwrap(),
            Line::Case { question, answer } => {
                writeln!(text, "> {}\n{answer}", question.replace('\n', "\n| ")).unwrap();
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

/// Compares our answers with the recorded ones; fails when there are fewer cases than expected.
pub(crate) fn compare(
    files: &[PathBuf],
    at_least: usize,
    ours: impl Fn(&str) -> String,
    theirs: impl Fn(&str, &Path) -> String + Sync,
) {
    let recording = std::env::var_os("STACKWRIGHT_REGENERATE");
    let (mut differences, mut count) = (String::new(), 0);
    for path in files {
        let mut lines = read(path);
        let is_named = |file: &OsString| file == "1" || path.file_name() == Some(file);
        if recording.as_ref().is_some_and(is_named) {
            record(&mut lines, &theirs);
            write(path, &lines);
        }
        for line in &lines {
            let Line::Case { question, answer } = line else {
                continue;
            };
            count += 1;
            let found = ours(question);
            if found != *answer {
                let file = path.file_name().unwrap().display();
                writeln!(differences, "{file}: {question}\n  helm: {answer}\n  ours: {found}").unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "of {count} cases these differ:\n{differences}");
    assert!(count >= at_least, "only {count} cases were found");
}

fn record(lines: &mut [Line], theirs: &(impl Fn(&str, &Path) -> String + Sync)) {
    let binary = lab::helm();
    std::thread::scope(|scope| {
        for part in lines.chunks_mut(64) {
            let binary = &binary;
            scope.spawn(move || {
                for line in part {
                    if let Line::Case { question, answer } = line {
                        *answer = theirs(question, binary);
                    }
                }
            });
        }
    });
}

/// As [`compare`], with all questions of a file at once, each beside its recorded answer.
pub(crate) fn compare_together(
    files: &[PathBuf],
    at_least: usize,
    answers: impl Fn(&[(&str, &str)], Option<&Path>) -> Vec<String>,
) {
    let recording = std::env::var_os("STACKWRIGHT_REGENERATE");
    let (mut differences, mut count) = (String::new(), 0);
    for path in files {
        let mut lines = read(path);
        let is_named = |file: &OsString| file == "1" || path.file_name() == Some(file);
        if recording.as_ref().is_some_and(is_named) {
            let theirs = answers(&cases(&lines), Some(&lab::helm()));
            let slots = lines.iter_mut().filter_map(|line| match line {
                Line::Case { answer, .. } => Some(answer),
                Line::Other(_) => None,
            });
            slots.zip(theirs).for_each(|(slot, answer)| *slot = answer);
            write(path, &lines);
        }
        let cases = cases(&lines);
        count += cases.len();
        for ((question, answer), found) in cases.iter().zip(answers(&cases, None)) {
            if found != *answer {
                let file = path.file_name().unwrap().display();
                writeln!(differences, "{file}: {question}\n  helm: {answer}\n  ours: {found}").unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "of {count} cases these differ:\n{differences}");
    assert!(count >= at_least, "only {count} cases were found");
}

fn cases(lines: &[Line]) -> Vec<(&str, &str)> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Case { question, answer } => Some((question.as_str(), answer.as_str())),
            Line::Other(_) => None,
        })
        .collect()
}
