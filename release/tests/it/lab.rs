//! The programs from outside this repository that tests here need: what `cargo xtask setup` describes.

use std::{env, fs, path::Path, path::PathBuf};

use serde_json::Value;

/// The real Helm.
pub(crate) fn helm() -> PathBuf {
    program(&["helm", "v3.19"])
}

/// The binary with the real registry, oras and cosign, by its first argument.
pub(crate) fn outside() -> PathBuf {
    program(&["outside"])
}

/// The lab is no option: what was not tested has to fail.
fn program(path: &[&str]) -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.lab/lab.json");
    let lab = env::var_os("STACKWRIGHT_LAB").map_or(default, PathBuf::from);
    let text = fs::read(&lab).expect("there is no lab: run `cargo xtask setup` first");
    let lab: Value = serde_json::from_slice(&text).expect("the description of the lab is JSON");
    let found = path
        .iter()
        .try_fold(&lab, |part, name| part.get(name))
        .and_then(Value::as_str);
    let program =
        PathBuf::from(found.unwrap_or_else(|| panic!("the lab has no {path:?}: run `cargo xtask setup` again")));
    assert!(
        program.is_file(),
        "{} is not there: run `cargo xtask setup` again",
        program.display()
    );
    program
}
