//! The chart that a template is rendered in, and what either side answers.
//!
//! It is the chart of the recorded one-line templates, so that a difference found here is one of them at once.

use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, Profile, RenderOptions};

use super::Oracle;
use super::grammar::NESTED;
use crate::process::{self, Ending, Limits};

const CHART: &str = "apiVersion: v2\nname: micro\nversion: 1.2.3\nappVersion: \"4.5\"\n";
const VALUES: &str = include_str!("../../../tests/micro/values.yaml");
const NOTE: &str = "l1\nl2\n";
const HEAD: &str = "{{ $values := deepCopy .Values }}\n";

/// For the real Helm, with a batch.
const LIMITS: Limits = Limits {
    time: Duration::from_mins(1),
    memory: 2 << 30,
    output: 64 << 20,
};

/// What one side makes of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Wrote(Vec<u8>),
    /// The error without log lines.
    Failed(String),
}

impl Answer {
    /// Of the outputs of one template.
    fn written(mut outputs: Vec<Vec<u8>>) -> Self {
        outputs
            .pop()
            .map_or_else(|| Self::Failed("no output".to_owned()), Self::Wrote)
    }

    /// What errors of one kind have in common: the words without places, quoted parts and numbers.
    pub(super) fn shape(&self) -> String {
        let Self::Failed(error) = self else {
            return String::new();
        };
        let mut shape = String::new();
        let mut rest = error.as_str();
        while let Some(character) = rest.chars().next() {
            let end = match character {
                '<' => rest.find(">:"),
                '"' => end_of_quoted(rest),
                '`' => rest[1..].find('`').map(|end| end + 1),
                _ => None,
            };
            let hidden = end.is_some() || character.is_ascii_digit() || character.is_whitespace();
            if !hidden {
                shape.push(character);
            }
            rest = &rest[end.map_or(character.len_utf8(), |end| end + 1)..];
        }
        shape
    }
}

/// Where the quoted string that a text begins with ends.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text[1..].find(|character| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    });
    end.map(|end| end + 1)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrote(bytes) => write!(f, "= {}", bytes.escape_ascii()),
            Self::Failed(error) => write!(f, "! {}", error.trim_end().escape_debug()),
        }
    }
}

/// What we make of a template.
pub(super) enum Ours {
    Answer(Answer),
    /// It is refused by a limit that the real Helm does not have.
    Beyond,
}

impl Ours {
    pub(super) fn render(template: &str, profile: &'static Profile) -> Self {
        // A panic is an answer that no Helm gives.
        let panics = |_| Self::Answer(Answer::Failed("the renderer panics".to_owned()));
        catch_unwind(AssertUnwindSafe(|| render(template, profile))).unwrap_or_else(panics)
    }
}

fn render(template: &str, profile: &'static Profile) -> Ours {
    let chart = Chart::from_files(files(&[template]), &ArchiveLimits::default());
    let options = RenderOptions {
        profile,
        ..RenderOptions::new("rel", "ns")
    };
    let rendering = match chart {
        Ok(chart) => chart.render(&Node::Null, &options),
        Err(error) => return Ours::Answer(Answer::Failed(format!("Error: {error}\n"))),
    };
    match rendering {
        Ok(rendering) => Ours::Answer(Answer::written(outputs(&rendering.stdout()))),
        Err(error) if error.is_limit() => Ours::Beyond,
        Err(error) => Ours::Answer(Answer::Failed(error.stderr())),
    }
}

impl Oracle {
    /// What the real Helm makes of one template.
    pub(super) fn render(&self, template: &str) -> anyhow::Result<Answer> {
        Ok(match self.run(&[template])? {
            Ok(outputs) => Answer::written(outputs),
            Err(error) => Answer::Failed(error),
        })
    }

    /// What it makes of many; otherwise the number of the one that it refuses, where its error names one.
    pub(super) fn render_all(&self, templates: &[&str]) -> anyhow::Result<Result<Vec<Vec<u8>>, Option<usize>>> {
        Ok(match self.run(templates)? {
            Ok(outputs) if outputs.len() == templates.len() => Ok(outputs),
            Ok(_) => Err(None),
            Err(error) => Err(refused(&error)),
        })
    }

    fn run(&self, templates: &[&str]) -> anyhow::Result<Result<Vec<Vec<u8>>, String>> {
        let folder = tempfile::tempdir().context("unable to make a folder for a chart")?;
        for (name, content) in files(templates) {
            let path = folder.path().join(name);
            let parent = path.parent().context("a file lies in a folder")?;
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&path, content))
                .with_context(|| format!("unable to write {}", path.display()))?;
        }
        let mut command = Command::new(&self.binary);
        command
            .args(["template", "rel", ".", "--namespace", "ns"])
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path());
        let ending =
            process::run(&mut command, &LIMITS).with_context(|| format!("unable to run {}", self.binary.display()))?;
        let Ending::Exited { status, stdout, stderr } = ending else {
            return Ok(Err(format!("{ending:?}")));
        };
        if status.success() {
            return Ok(Ok(outputs(&stdout)));
        }
        let errors = String::from_utf8_lossy(&stderr);
        let start = errors.find("Error: ").unwrap_or_default();
        Ok(Err(errors[start..].to_owned()))
    }
}

/// The number in the first `_case0017.tpl` of an error.
fn refused(error: &str) -> Option<usize> {
    let (_, rest) = error.split_once("/_case")?;
    rest.get(..4)?.parse().ok()
}

/// A chart of templates that cannot change each other's values.
fn files(templates: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut output = HEAD.to_owned();
    let mut files = vec![
        ("Chart.yaml".to_owned(), CHART.into()),
        ("values.yaml".to_owned(), VALUES.into()),
        ("note.txt".to_owned(), NOTE.into()),
    ];
    for (number, template) in templates.iter().enumerate() {
        let name = format!("templates/_case{number:04}.tpl");
        // Writing to a String does not fail.
        let _ = writeln!(
            output,
            "case{number:04}: {{{{ $_ := set . \"Values\" (deepCopy $values) }}}}{{{{ include \"micro/{name}\" . | b64enc | quote }}}}"
        );
        let nested = format!("{}{number:04}", &NESTED[..NESTED.len() - 4]);
        files.push((name, template.replace(NESTED, &nested).into_bytes()));
    }
    files.push(("templates/out.yaml".to_owned(), output.into_bytes()));
    files
}

/// What stands after `caseNNNN:`, decoded.
fn outputs(manifest: &[u8]) -> Vec<Vec<u8>> {
    manifest
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"case"))
        .filter_map(|line| {
            let encoded = line.splitn(2, |byte| *byte == b'"').nth(1)?.strip_suffix(b"\"")?;
            STANDARD.decode(encoded).ok()
        })
        .collect()
}
