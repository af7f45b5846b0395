//! What goes between the process that wants Tera templates rendered and the one that renders them: a request in JSON; lines of JSON as
//! answer, with the outputs as they are behind the last one.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All Tera files of a chart and those below it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<'a> {
    /// Charts with such files.
    #[serde(borrow)]
    pub(super) charts: Vec<ChartFiles<'a>>,
}

/// The Tera files of one chart.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChartFiles<'a> {
    /// The folder of its templates, from the root chart on.
    #[serde(borrow)]
    pub(super) folder: Cow<'a, str>,
    /// What its templates see, keys in order.
    pub(super) root: Value,
    /// Texts by name, which is the path below the folder.
    pub(super) files: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The names of those that are to be rendered, in this order.
    pub(super) rendered: Vec<Cow<'a, str>>,
}

/// Why a template has no output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    /// The path of the template from the root chart on.
    pub(super) template: String,
    /// The line in it, from 1.
    pub(super) line: Option<usize>,
    /// What is wrong, in one line.
    pub(super) message: String,
}

/// A line of an answer.
#[derive(Debug, Serialize, Deserialize)]
enum Line {
    /// A template, by its path, is rendered from now on.
    Begun(String),
    /// The end: a template failed.
    Failed(Failure),
    /// The last line: all templates are rendered, and their outputs with these lengths follow.
    Rendered(Vec<usize>),
}

/// What came of a request: the outputs in its order, or why there are none.
pub(super) type Outcome = Result<Vec<Vec<u8>>, Failure>;

/// Says which template comes next, at once: an end without words has a place then.
pub(super) fn say_begun(answer: &mut dyn Write, template: &str) -> io::Result<()> {
    say(answer, &Line::Begun(template.to_owned()))?;
    answer.flush()
}

/// Says how it ended.
pub(super) fn say_outcome(answer: &mut dyn Write, outcome: Outcome) -> io::Result<()> {
    match outcome {
        Ok(outputs) => {
            say(answer, &Line::Rendered(outputs.iter().map(Vec::len).collect()))?;
            outputs.iter().try_for_each(|output| answer.write_all(output))
        }
        Err(failure) => say(answer, &Line::Failed(failure)),
    }
}

fn say(answer: &mut dyn Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    answer.write_all(&text)
}

/// What a whole answer says; nothing if it is none.
pub(super) fn hear(answer: &[u8]) -> Option<Outcome> {
    let mut rest = answer;
    loop {
        let (line, behind) = next(rest)?;
        rest = behind;
        match line {
            Line::Begun(_) => {}
            Line::Failed(failure) => return Some(Err(failure)),
            Line::Rendered(lengths) => {
                let mut outputs = Vec::with_capacity(lengths.len());
                for length in lengths {
                    let (output, behind) = rest.split_at_checked(length)?;
                    outputs.push(output.to_vec());
                    rest = behind;
                }
                return rest.is_empty().then_some(Ok(outputs));
            }
        }
    }
}

/// The template that an answer without end was at.
pub(super) fn last_begun(answer: &[u8]) -> Option<String> {
    let mut last = None;
    let mut rest = answer;
    while let Some((Line::Begun(template), behind)) = next(rest) {
        last = Some(template);
        rest = behind;
    }
    last
}

fn next(answer: &[u8]) -> Option<(Line, &[u8])> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let line = serde_json::from_slice(&answer[..end]).ok()?;
    Some((line, &answer[end + 1..]))
}
