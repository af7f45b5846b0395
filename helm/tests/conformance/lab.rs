//! What lies outside of this room: the real helm, the folder of real charts, the stacks of the repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use helm::Profile;

const CORPUS: &str = "STACKWRIGHT_CORPUS";

/// The real Helm of a profile.
pub(crate) fn helm(profile: &Profile) -> PathBuf {
    let description =
        std::env::var_os("STACKWRIGHT_LAB").map_or_else(|| room().join("../.lab/lab.json"), PathBuf::from);
    let text = std::fs::read(&description)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask setup` first", description.display()));
    let lab = helm::json::decode(&text).expect("the lab description is JSON");
    let path = lab.get("helm").and_then(|helm| helm.get(profile.name));
    path.and_then(|path| path.as_text().map(PathBuf::from))
        .filter(|path| path.is_file())
        .expect("the lab has no helm: run `cargo xtask setup` first")
}

/// Real releases and charts. Without them the test goes on with less, and says so.
pub(crate) fn corpus(test: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os(CORPUS).map(PathBuf::from);
    if corpus.is_none() {
        say(&format!(
            "REDUCED: {test}: {CORPUS} is not set, so no real chart is rendered\n"
        ));
    }
    corpus
}

/// The folder of this crate.
pub(crate) fn room() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a folder has, sorted.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Speaks also when the test passes: unlike the macros, this is not captured.
pub(crate) fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Calls helm with an empty home; gives its standard output, or its error without log lines.
pub(crate) fn run(binary: &Path, arguments: &[String], stdin: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut child = Command::new(binary)
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return text(&output.stdout);
    }
    let errors = text(&output.stderr);
    match errors.find("Error: ") {
        Some(start) => errors[start..].to_owned(),
        None => errors,
    }
}
