//! Renders Tera templates, in a process that may be ended at any time.

use std::error::Error as _;
use std::io::{self, Write};

use crds::conditions::one_line;
use serde::Serialize;
use tera::{Context, Error, ErrorKind, Tera};

use super::protocol::{self, ChartFiles, Failure, Outcome, Request};
use super::{TeraError, filters, nesting};

/// How many bytes of a message are told.
const MAX_MESSAGE: usize = 1_000;

/// What templates find in `Template`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct About<'a> {
    name: &'a str,
    base_path: &'a str,
}

/// Answers a request. The only error is that the answer cannot be written.
pub(super) fn answer(request: &[u8], answer: &mut dyn Write) -> io::Result<()> {
    let request: Request<'_> = serde_json::from_slice(request)?;
    let mut left = super::MAX_OUTPUT;
    let mut outputs = Vec::new();
    for chart in &request.charts {
        match render(chart, &mut left, answer)? {
            Ok(of_chart) => outputs.extend(of_chart),
            Err(failure) => return protocol::say_outcome(answer, Err(failure)),
        }
    }
    protocol::say_outcome(answer, Ok(outputs))
}

/// What the templates of one chart write.
fn render(chart: &ChartFiles<'_>, left: &mut usize, answer: &mut dyn Write) -> io::Result<Outcome> {
    let (tera, mut context) = match prepare(chart) {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut outputs = Vec::new();
    for name in &chart.rendered {
        let path = path_of(chart, name);
        protocol::say_begun(answer, &path)?;
        let about = About {
            name: &path,
            base_path: &chart.folder,
        };
        context.insert("Template", &about);
        let mut output = Bounded {
            bytes: Vec::new(),
            left: *left,
        };
        if let Err(error) = tera.render_to(name, &context, &mut output) {
            return Ok(Err(failure(chart, name, &error)));
        }
        *left = output.left;
        outputs.push(output.bytes);
    }
    Ok(Ok(outputs))
}

/// The engine with the templates of a chart, and what they see.
fn prepare(chart: &ChartFiles<'_>) -> Result<(Tera, Context), Failure> {
    let files = || chart.files.iter().map(|(name, text)| (name.as_ref(), text.as_ref()));
    nesting::check(files()).map_err(|nesting::TooDeep { name, message }| Failure {
        template: path_of(chart, &name),
        line: None,
        message,
    })?;
    let first = chart.files.first().map_or("", |(name, _)| name);
    let mut tera = Tera::new();
    tera.autoescape_on(Vec::<String>::new());
    filters::register(&mut tera);
    tera.add_raw_templates(files())
        .map_err(|error| failure(chart, first, &error))?;
    let context = Context::from_serialize(&chart.root).map_err(|error| failure(chart, first, &error))?;
    Ok((tera, context))
}

fn path_of(chart: &ChartFiles<'_>, name: &str) -> String {
    format!("{}/{name}", chart.folder)
}

/// Where and why it failed; `name` is the template where the error does not know one.
fn failure(chart: &ChartFiles<'_>, name: &str, error: &Error) -> Failure {
    let (name, line, message) = match error.kind() {
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => (
            report.filename(),
            Some(report.span().start_line),
            report.message().to_owned(),
        ),
        ErrorKind::CircularExtend { tpl, .. } | ErrorKind::CircularInclude { tpl, .. } => {
            (tpl.as_str(), None, error.to_string())
        }
        ErrorKind::MissingParent { current, .. } => (current.as_str(), None, error.to_string()),
        ErrorKind::Msg(text) => first_report(text).unwrap_or_else(|| (name, None, text.clone())),
        _ => {
            let cause = error.source().map(ToString::to_string);
            (name, None, cause.unwrap_or_else(|| error.to_string()))
        }
    };
    Failure {
        template: path_of(chart, name),
        line,
        message: one_line(&message, MAX_MESSAGE),
    }
}

/// What Tera says of names that nothing has: reports for readers, one after the other. The first one has the place in its second line,
/// as `--> NAME:LINE:COLUMN`.
fn first_report(text: &str) -> Option<(&str, Option<usize>, String)> {
    let mut lines = text.lines();
    let message = lines.next()?.strip_prefix("error: ")?;
    let place = lines.next()?.trim_start().strip_prefix("--> ")?;
    let (place, _) = place.rsplit_once(':')?;
    let (name, line) = place.rsplit_once(':')?;
    Some((name, line.parse().ok(), message.to_owned()))
}

/// Refuses to grow beyond what is left.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(TeraError::Output)),
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
