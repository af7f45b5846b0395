//! Calls of the built program and of the real Helm.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::facts::{Answer, Fact};
use crate::folder::Folder;

/// Does something with each of them, several at once.
pub(crate) fn for_each<T: Send>(all: &mut [T], work: impl Fn(&mut T) + Sync) {
    let left = Mutex::new(all.iter_mut());
    let worker = || {
        while let Some(one) = { left.lock().unwrap().next() } {
            work(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
}

/// Words separated by spaces; single quotes keep spaces together.
fn split(words: &str) -> Vec<String> {
    let mut found = vec![];
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in words.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => found.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    found.extend(word);
    found
}

pub(crate) fn ours(fact: &Fact, profile: &str, folder: &Folder) -> Answer {
    let program = Path::new(env!("CARGO_BIN_EXE_helm-template"));
    call(program, &["--profile", profile], fact, folder)
}

pub(crate) fn theirs(fact: &Fact, profile: &str, folder: &Folder) -> Answer {
    call(&helm(profile), &["template"], fact, folder)
}

/// The real Helm of a profile.
fn helm(profile: &str) -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let description = std::env::var_os("STACKWRIGHT_LAB").map_or_else(|| room.join("../.lab/lab.json"), PathBuf::from);
    let text = std::fs::read(&description)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask setup` first", description.display()));
    let lab = helm::json::decode(&text).expect("the lab description is JSON");
    let path = lab.get("helm").and_then(|helm| helm.get(profile));
    path.and_then(|path| path.as_text().map(PathBuf::from))
        .expect("the lab has no helm of that profile: run `cargo xtask setup` first")
}

/// Runs a program in a folder of charts with nothing in its environment but what the fact says before the arguments.
fn call(program: &Path, first: &[&str], fact: &Fact, folder: &Folder) -> Answer {
    let words = split(&fact.words);
    let is_variable = |word: &&String| word.split_once('=').is_some_and(|(name, _)| name.starts_with("HELM_"));
    let variables = words.iter().take_while(is_variable);
    let arguments = words.iter().skip_while(is_variable);
    let own = fact.words.contains("--output-dir").then(|| folder.own());
    let here = own.as_ref().map_or(folder.shared(), TempDir::path);
    let mut child = Command::new(program)
        .args(first)
        .args(arguments)
        .current_dir(here)
        .env_clear()
        .env("HOME", folder.home())
        .envs(variables.filter_map(|word| word.split_once('=')))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that has no use for it may have ended.
    let _ = child.stdin.take().unwrap().write_all(fact.input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let name = here.display().to_string();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&name, "HERE");
    let errors = text(&output.stderr);
    let mut error = errors.find("Error: ").map_or("", |start| &errors[start..]);
    let mut lines: Vec<&str> = errors.split_inclusive('\n').collect();
    lines.sort_unstable();
    let all = lines.concat();
    if fact.is_warned {
        error = &all;
    }
    if fact.words.contains("--debug") {
        // A stack of Go follows.
        error = error.split_inclusive('\n').next().unwrap_or_default();
    }
    Answer {
        code: output.status.code().unwrap(),
        output: text(&output.stdout) + &written(here),
        error: error.to_owned(),
    }
}

/// The files that were written, as if they had been printed.
fn written(work: &Path) -> String {
    let mut text = String::new();
    let mut pending = vec![work.join("out")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let mut inner: Vec<_> = std::fs::read_dir(&path)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            inner.sort();
            pending.extend(inner.into_iter().rev());
        } else if let Ok(file) = std::fs::read_to_string(&path) {
            let name = path.strip_prefix(work).unwrap().display();
            write!(text, "== {name}\n{file}").unwrap();
        }
    }
    text
}
