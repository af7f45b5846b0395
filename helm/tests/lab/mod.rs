//! Where the tests find the real helm, and how they call it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The real Helm 3.19, when the lab was set up.
pub(crate) fn helm() -> Option<PathBuf> {
    let description = std::env::var_os("STACKWRIGHT_LAB").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.lab/lab.json"),
        PathBuf::from,
    );
    let text = std::fs::read(description).ok()?;
    let lab = helm::json::decode(&text).expect("the lab description is JSON");
    let path = lab
        .get("helm")
        .and_then(|helm| helm.get("v3.19"))
        .and_then(|path| path.as_text().map(PathBuf::from));
    path.filter(|path| path.is_file())
}

/// The real Helm 3.19 for a test that is nothing without it.
pub(crate) fn required_helm() -> PathBuf {
    helm().expect("the lab has no helm: run `cargo xtask setup` first")
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
    if output.status.success() {
        return String::from_utf8(output.stdout).unwrap();
    }
    let errors = String::from_utf8(output.stderr).unwrap();
    match errors.find("Error: ") {
        Some(start) => errors[start..].to_owned(),
        None => errors,
    }
}
