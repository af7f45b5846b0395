//! The files of questions, how they are answered anew, and real releases.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;

use crate::folder;

const CORPUS: &str = "STACKWRIGHT_CORPUS";

/// A template, and what Go made of it: an output, or the words of an error.
pub(crate) struct Question {
    pub(crate) template: String,
    pub(crate) answer: Result<String, String>,
}

/// The questions of a file. With `STACKWRIGHT_REGENERATE` they are answered anew first.
pub(crate) fn read(file: &str) -> Vec<Question> {
    regenerate(file);
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let (mut questions, mut template) = (Vec::new(), String::new());
    let said = |text: &str| serde_json::from_str::<String>(text).unwrap();
    for line in text.lines() {
        if let Some(first) = line.strip_prefix("> ") {
            first.clone_into(&mut template);
        } else if let Some(more) = line.strip_prefix("| ") {
            template = format!("{template}\n{more}");
        } else if let Some(output) = line.strip_prefix("= ") {
            let (template, answer) = (std::mem::take(&mut template), Ok(said(output)));
            questions.push(Question { template, answer });
        } else if let Some(error) = line.strip_prefix("! ") {
            let (template, answer) = (std::mem::take(&mut template), Err(said(error)));
            questions.push(Question { template, answer });
        }
    }
    questions
}

/// Lets the recorder of the lab rewrite a file, if that is asked for.
pub(crate) fn regenerate(file: &str) {
    let wanted = std::env::var_os("STACKWRIGHT_REGENERATE");
    if wanted.is_none_or(|wanted| wanted != "1" && wanted != file) {
        return;
    }
    let lab = std::env::var_os("STACKWRIGHT_LAB").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.lab/lab.json"),
        PathBuf::from,
    );
    let lab: serde_json::Value = serde_json::from_slice(&std::fs::read(lab).unwrap()).unwrap();
    let recorder = lab["recorder"]
        .as_str()
        .expect("the lab has no recorder: run `cargo xtask setup` first");
    let ended = Command::new(recorder)
        .args(["roots.json", file])
        .current_dir(folder())
        .env("TZ", "UTC")
        .status();
    assert!(ended.unwrap().success(), "{file} was not recorded");
}

/// Real releases. Without them the test goes on with less, and says so.
pub(crate) fn releases(test: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os(CORPUS).map(PathBuf::from);
    if corpus.is_none() {
        let said = format!("REDUCED: {test}: {CORPUS} is not set, so no real release is looked at\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    Some(corpus?.join("releases"))
}

/// A file of a release, by `RELEASE/FILE`, or by `RELEASE/CHART/FILE` one of the archive of its add-ons.
pub(crate) fn file_of_release(releases: &Path, reference: &str) -> Option<String> {
    let (release, file) = reference.split_once('/').unwrap();
    let folder = releases.join(release);
    if !file.contains('/') {
        return std::fs::read_to_string(folder.join(file)).ok();
    }
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_archive = |path: &PathBuf| path.to_string_lossy().contains("-cluster-addon-");
    let archive = std::fs::File::open(files.into_iter().find(is_archive).unwrap()).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap() == Path::new(file) {
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            return Some(text);
        }
    }
    None
}
