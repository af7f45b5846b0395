//! Values of add-on charts against what Go makes of the same templates, and what no template of values gets or does.
//!
//! `*.txt` beside this file hold questions and answers. A question is a template, its first line behind `> ` and the others behind `| `,
//! or `@` and a file of a real release. Its answer is a text in JSON, behind `= ` what came out, behind `! ` the error: in
//! `functions.txt` the output, in `values*.txt` the values as JSON. All templates see `roots.json`. `names.txt` lists the functions.
//!
//! The answers are those of `rendering/recorder`, Go's own template package with slim-sprig. `STACKWRIGHT_REGENERATE=1` asks the recorder of
//! the lab again and rewrites them; so does the recorder alone, in this folder:
//! `TZ=UTC STACKWRIGHT_CORPUS=... recorder roots.json *.txt`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod bounds;
mod hermetic;
mod meaning;
mod over;
mod questions;
mod recorded;

use std::path::{Path, PathBuf};

use rendering::{ChartValues, HelmProfile, Renderer, Roots, ValuesError, ValuesTemplate};
use serde_json::Value;

/// The folder with this file.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/values")
}

/// What templates see.
fn roots() -> Value {
    serde_json::from_str(include_str!("roots.json")).unwrap()
}

fn renderer() -> Renderer {
    Renderer::new(0).with_tera_of(Path::new(env!("CARGO_BIN_EXE_rendering-tera")))
}

fn values_of(path: &str, text: &str) -> Result<ChartValues, ValuesError> {
    values_over(&roots(), path, text)
}

fn check(path: &str, text: &str) -> Result<(), ValuesError> {
    let text = text.as_bytes();
    renderer().check_values(ValuesTemplate { path, text })
}

fn values_over(roots: &Value, path: &str, text: &str) -> Result<ChartValues, ValuesError> {
    let template = ValuesTemplate {
        path,
        text: text.as_bytes(),
    };
    renderer().values(Some(template), &[], roots_of(roots), HelmProfile::V3_19)
}

fn roots_of(roots: &Value) -> Roots<'_> {
    Roots {
        cluster: &roots["Cluster"],
        control_plane: roots.get("ControlPlane"),
        infra_cluster: roots.get("InfraCluster"),
    }
}

/// An error with all that is behind it.
fn chain(error: &ValuesError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
