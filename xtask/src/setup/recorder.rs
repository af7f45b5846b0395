//! The program that records what Go makes of templates of values, built from the Go module in `rendering/recorder`.

use std::path::PathBuf;

use super::{cache::Cache, go::Go, module::Module};
use crate::workspace::Workspace;

const MODULE: Module = Module {
    folder: "rendering/recorder",
    title: "the recorder of templates",
    kind: "recorder",
    programs: ".",
};

/// Without symbols: nobody debugs this here.
const LINKER_FLAGS: &str = "-s -w";

/// The path of the program; ten seconds the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    Ok(MODULE.build(workspace, cache, go, LINKER_FLAGS)?.join("recorder"))
}
