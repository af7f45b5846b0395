//! Files that end with `.tera`: Tera 2 templates with the root of Helm's templates as their context.
//!
//! A template names another one by its path below `templates/`. Nothing is escaped: the output is YAML. Tera counts no steps and asks for
//! as much memory as it likes, so it runs in a process of its own, which the system holds to its memory and we to its time
//! (`docs/adr/0008-tera-in-a-process.md`). What is bounded, and by how much, is in `docs/reference/tera.md`.

mod engine;
mod filters;
mod nesting;
mod problem;
mod protocol;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use helm::{OtherChart, OtherLanguage, OtherProblem};
use isolation::{AskError, Bounds, Limits, Program};

use crate::objects::to_plain_json;
use protocol::{ChartFiles, Failure, Request};

pub(crate) use problem::TeraError;

/// The name of the work, which is also that of its process.
const NAME: &str = "tera";

/// What the process may use up.
pub(crate) const LIMITS: Limits = Limits {
    memory: 64 << 20,
    // Beyond all deadlines: for a process that has lost the one that stops it.
    processor_seconds: 8,
};

/// How long the Tera templates of a chart may run, where nobody waits for them: less than a whole chart may take, because they count no steps.
pub(crate) const DEADLINE: Duration = Duration::from_secs(4);

/// What the Tera files of a chart may have together, in bytes.
pub(crate) const MAX_SOURCE: usize = 1 << 20;

/// What the templates may see of the chart, as JSON, in bytes.
pub(crate) const MAX_ROOT: usize = 8 << 20;

/// What the templates of a chart may write together, in bytes.
pub(crate) const MAX_OUTPUT: usize = 8 << 20;

/// What is said beside the output: the paths of templates, of which an archive has a limited number.
const MAX_ASIDE: usize = 8 << 20;

/// Renders the Tera templates of a chart and ends the process, if that is what it was started for; otherwise returns at once. Every
/// program that renders charts calls it first thing in its `main`.
pub fn serve_tera() {
    isolation::serve(NAME, LIMITS, |request, answer| engine::answer(&request, answer));
}

/// This program, which [`serve_tera`] makes one that renders.
pub(crate) fn itself() -> Program {
    Program::itself(NAME)
}

/// Another program that calls [`serve_tera`].
pub(crate) fn at(file: &std::path::Path) -> Program {
    Program::at(file, NAME)
}

/// The language of one rendering.
#[derive(Debug)]
pub(crate) struct TeraLanguage {
    pub(crate) program: Program,
    /// Raised when nobody waits any more.
    pub(crate) over: Arc<AtomicBool>,
}

impl OtherLanguage for TeraLanguage {
    fn suffix(&self) -> &'static str {
        ".tera"
    }

    fn render(&self, charts: &[OtherChart<'_>]) -> Result<Vec<Vec<u8>>, OtherProblem> {
        self.ask(charts, Wanted::Outputs)
    }

    /// Tera looks for the names of filters, functions and other templates as it reads.
    fn check(&self, charts: &[OtherChart<'_>]) -> Result<(), OtherProblem> {
        self.ask(charts, Wanted::Nothing).map(drop)
    }
}

/// What is wanted of templates beside that they are some.
#[derive(Clone, Copy)]
enum Wanted {
    Nothing,
    Outputs,
}

impl TeraLanguage {
    fn ask(&self, charts: &[OtherChart<'_>], wanted: Wanted) -> Result<Vec<Vec<u8>>, OtherProblem> {
        let first = charts
            .iter()
            .flat_map(|chart| &chart.files)
            .map(|(path, _)| *path)
            .next();
        let about = |template: Option<String>, problem: TeraError| OtherProblem {
            template: template.unwrap_or_else(|| first.unwrap_or_default().to_owned()),
            line: None,
            source: problem.into(),
        };
        let request = request(charts, wanted).map_err(|(template, problem)| about(template, problem))?;
        let bounds = Bounds {
            deadline: DEADLINE,
            answer: MAX_OUTPUT + MAX_ASIDE,
        };
        let answer = self.program.ask(&request, bounds, &self.over);
        let answer = answer.map_err(|error| about(last_begun(&error), error.into()))?;
        match protocol::hear(&answer) {
            Some(Ok(outputs)) => Ok(outputs),
            Some(Err(failure)) => {
                let Failure {
                    template,
                    line,
                    message,
                } = failure;
                let source = TeraError::Template { message }.into();
                Err(OtherProblem { template, line, source })
            }
            None => Err(about(None, TeraError::Misheard)),
        }
    }
}

/// The template that was being rendered when there was an end to it.
fn last_begun(error: &AskError) -> Option<String> {
    match error {
        AskError::Deadline { said, .. } | AskError::TooLong { said, .. } | AskError::Died { said, .. } => {
            protocol::last_begun(said)
        }
        AskError::NotServed { .. } | AskError::Start(_) | AskError::Talk(_) | AskError::Stopped => None,
    }
}

/// The request for these charts, or which file is wrong, where that is known.
fn request(charts: &[OtherChart<'_>], wanted: Wanted) -> Result<Vec<u8>, (Option<String>, TeraError)> {
    let files = || charts.iter().flat_map(|chart| &chart.files);
    let bytes: usize = files().map(|(_, text)| text.len()).sum();
    if bytes > MAX_SOURCE {
        let largest = files()
            .max_by_key(|(_, text)| text.len())
            .map(|(path, _)| (*path).to_owned());
        return Err((largest, TeraError::Source { bytes }));
    }
    let charts = charts.iter().map(|chart| chart_files(chart, wanted));
    let charts = charts.collect::<Result<_, _>>()?;
    let request = serde_json::to_vec(&Request { charts }).map_err(|source| (None, TeraError::Encode(source)))?;
    // Escaped sources are part of it; whatever else there is comes from the root.
    if request.len() > MAX_ROOT + MAX_SOURCE {
        let bytes = request.len();
        return Err((None, TeraError::Root { bytes }));
    }
    Ok(request)
}

fn chart_files<'a>(chart: &'a OtherChart<'_>, wanted: Wanted) -> Result<ChartFiles<'a>, (Option<String>, TeraError)> {
    let text = |(path, text): &(&'a str, &'a [u8])| match str::from_utf8(text) {
        Ok(text) => Ok((name_of(chart.folder, path).into(), text.into())),
        Err(source) => Err((Some((*path).to_owned()), TeraError::Encoding(source))),
    };
    Ok(ChartFiles {
        folder: chart.folder.into(),
        root: to_plain_json(&chart.root),
        files: chart.files.iter().map(text).collect::<Result<_, _>>()?,
        rendered: match wanted {
            Wanted::Nothing => Vec::new(),
            Wanted::Outputs => {
                let rendered = chart.rendered();
                rendered.map(|path| name_of(chart.folder, path).into()).collect()
            }
        },
    })
}

/// What templates call a file: its path below the folder.
fn name_of<'a>(folder: &str, path: &'a str) -> &'a str {
    let below = path.strip_prefix(folder).and_then(|below| below.strip_prefix('/'));
    below.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QUICK;

    const PAGE: &str = include_str!("../../docs/reference/tera.md");

    #[test]
    fn the_page_tells_the_limits_as_they_are() {
        let memory = format!("{} MiB", LIMITS.memory >> 20);
        let depth = nesting::MAX_DEPTH;
        for row in [
            format!(
                "| {QUICK:?} in turn with other charts, then {DEADLINE:?} beside them | `{}` |",
                TeraError::Deadline
            ),
            format!("| {memory} (Linux) | `{}` |", TeraError::Memory),
            format!("| {MAX_OUTPUT} bytes | `{}` |", TeraError::Output),
            format!("| {MAX_SOURCE} bytes | `the Tera files of a chart may have {MAX_SOURCE} bytes together, "),
            format!("| {MAX_ROOT} bytes | `Tera templates may see {MAX_ROOT} bytes of values and files, "),
            format!("| {depth} | `templates include or extend each other more than {depth} deep` |"),
            format!("if it loses the operator | {}s |", LIMITS.processor_seconds),
        ] {
            assert!(PAGE.contains(&row), "{row}");
        }
    }
}
