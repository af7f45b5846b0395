//! A template that failed: where it did, along which calls, and how Go and Helm say so.
//!
//! While an execution comes to its end, a [`Failure`] gathers only which nodes it passes, because a hostile chart may nest them by the
//! thousand; positions and texts are made once, when the [`ExecError`] is, and no more of them than anybody reads.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use super::exec::quoted;
use super::syntax::{NodeId, Source};
use crate::profile::ErrorForm;
use crate::text::{self, Lines};
use crate::value::Bytes;

/// What Go calls a text that is given to `tpl`: it is in no file.
pub(super) const EXPANDED: &str = "gotpl";

/// How many bytes the places of an error may take in its text. A thousand nested includes take a tenth of it.
const MAX_TEXT: usize = 1 << 20;

/// What stands where there would be too much text.
const OMITTED: &str = "...";

const ERROR_START: &str = "HELM_ERR_START";
const ERROR_END: &str = "HELM_ERR_END";

/// Marks the message of `fail` or `required`, so that it can be told from the places it passes on its way up.
pub(crate) fn marked_error(message: &[u8]) -> String {
    format!("{ERROR_START}{}{ERROR_END}", text::lossy(message))
}

/// The text between the first start mark and the last end mark.
fn between_marks(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(ERROR_START)?;
    rest.rsplit_once(ERROR_END).map(|(message, _)| message)
}

/// Why an execution stopped, on its way up through the calls.
#[derive(Debug)]
pub(crate) struct Failure(Box<Raised>);

#[derive(Debug, Default)]
struct Raised {
    message: String,
    value: Option<String>,
    /// Innermost first.
    levels: Vec<Level>,
    /// The text given to `tpl`, while that function is being left.
    expanding: Option<Bytes>,
}

/// A place that a failure passed, unresolved.
#[derive(Debug)]
struct Level {
    template: Arc<str>,
    source: Arc<Source>,
    node: NodeId,
    function: Option<String>,
    expanding: Option<Bytes>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(Box::new(Raised {
            message,
            ..Raised::default()
        }))
    }
}

impl Failure {
    /// The failure as seen from a node of a template; of a function called there, if one is named.
    pub(super) fn at(
        mut self,
        template: &Arc<str>,
        source: &Arc<Source>,
        node: NodeId,
        function: Option<&str>,
    ) -> Self {
        let level = Level {
            template: Arc::clone(template),
            source: Arc::clone(source),
            node,
            function: function.map(str::to_owned),
            expanding: self.0.expanding.take(),
        };
        self.0.levels.push(level);
        self
    }

    /// Says which value could not be read.
    pub(super) fn of_value(mut self, path: String) -> Self {
        self.0.value = Some(path);
        self
    }

    /// The failure as `tpl` passes it on.
    pub(super) fn expanding(mut self, template: &Bytes) -> Self {
        self.0.expanding = Some(Bytes::clone(template));
        self
    }
}

/// A place in a template that a failure passed on its way up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The name of the template that ran: that of its file, or of a `define` in it.
    pub template: Arc<str>,
    /// The file, as `chart/templates/name.yaml`; `gotpl` for a text given to `tpl`, which is in no file.
    pub file: Arc<str>,
    /// The line in it, from 1.
    pub line: usize,
    /// The byte in the line, from 0.
    pub column: usize,
    /// The part of the template that could not be evaluated, written out: `.Values.a.b`.
    pub node: Arc<str>,
    /// The function called there, when it was the function that failed.
    pub function: Option<String>,
    /// What the function says before what it passes on.
    preface: String,
}

impl Place {
    /// That of a call which was read and not executed.
    pub(super) fn of_call(template: &Arc<str>, source: &Arc<Source>, node: NodeId, function: &str) -> Self {
        Resolver::default().place(Level {
            template: Arc::clone(template),
            source: Arc::clone(source),
            node,
            function: Some(function.to_owned()),
            expanding: None,
        })
    }

    /// Whether it is in a file of a chart, and not in a text given to `tpl`.
    pub fn is_in_file(&self) -> bool {
        &*self.file != EXPANDED
    }
}

/// A template that failed while it ran. Displays as Go says it.
#[derive(Debug)]
pub struct ExecError {
    /// Outermost first.
    places: Vec<Place>,
    message: String,
    value: Option<String>,
    lacks: Option<&'static str>,
    is_cancelled: bool,
}

impl std::error::Error for ExecError {}

impl fmt::Display for ExecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&Chain::new(self).text)
    }
}

impl ExecError {
    pub(super) fn new(Failure(raised): Failure, lacks: Option<&'static str>, is_cancelled: bool) -> Self {
        let mut resolver = Resolver::default();
        let mut places: Vec<Place> = raised.levels.into_iter().map(|level| resolver.place(level)).collect();
        places.reverse();
        Self {
            places,
            message: raised.message,
            value: raised.value,
            lacks,
            is_cancelled,
        }
    }

    /// The places that it passed, outermost first: each but the last one includes, or gives to `tpl`, the template of the next.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The innermost place that is in a file: in the helper, when a helper failed.
    pub fn place(&self) -> Option<&Place> {
        self.places.iter().rev().find(|place| place.is_in_file())
    }

    /// What went wrong, without the places: Go's words, or those given to `fail` or `required`.
    pub fn message(&self) -> &str {
        between_marks(&self.message).unwrap_or(&self.message)
    }

    /// The value that could not be read, as the template writes it: `.Values.a.b`. What is before its last field is null or has no fields.
    pub fn value_path(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The function that nothing answered.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        self.lacks
    }

    /// Whether it did nothing wrong, but had to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// The error as Helm prints it: of `fail` and `required` only the outermost place and the message remain.
    pub(crate) fn helm_text(&self, form: ErrorForm) -> String {
        let chain = Chain::new(self);
        let mut parts = chain.text.splitn(3, ": ").skip(1);
        if let (Some(location), Some(rest)) = (parts.next(), parts.next())
            && let Some(message) = between_marks(rest)
        {
            return format!("execution error at ({location}): {message}");
        }
        match form {
            ErrorForm::OneLine => chain.text,
            ErrorForm::Blocks => chain.in_blocks().unwrap_or(chain.text),
        }
    }
}

/// Finds out where nodes are and what they say, each one once.
#[derive(Default)]
struct Resolver {
    lines: HashMap<*const Source, Lines>,
    nodes: HashMap<(*const Source, NodeId), Arc<str>>,
    written: usize,
}

impl Resolver {
    fn place(&mut self, level: Level) -> Place {
        let source = &level.source;
        let key = Arc::as_ptr(source);
        let lines = self.lines.entry(key).or_insert_with(|| Lines::of(&source.text));
        let (line, column) = lines.position(source.offset(level.node));
        let is_enough = self.written > MAX_TEXT;
        let node = self.nodes.entry((key, level.node)).or_insert_with(|| {
            if is_enough {
                return Arc::from(OMITTED);
            }
            let node = source.describe(level.node);
            self.written += node.len();
            Arc::from(node)
        });
        let preface = match level.expanding {
            Some(_) if is_enough => OMITTED.to_owned(),
            Some(text) => format!("error during tpl function execution for {}: ", quoted(&text)),
            None => String::new(),
        };
        self.written += preface.len();
        Place {
            template: level.template,
            file: Arc::clone(&source.name),
            line,
            column,
            node: Arc::clone(node),
            function: level.function,
            preface,
        }
    }
}

/// The text of Go's error, and where the errors begin that it wraps.
struct Chain {
    text: String,
    starts: Vec<usize>,
}

impl Chain {
    fn new(error: &ExecError) -> Self {
        let mut text = String::new();
        let mut starts = vec![0];
        for place in &error.places {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "template: {}:{}:{}: executing {} at <{}>: ",
                place.file,
                place.line,
                place.column,
                quoted(place.template.as_bytes()),
                place.node
            );
            if let Some(function) = &place.function {
                let _ = write!(text, "error calling {function}: ");
                starts.push(text.len());
            }
            text.push_str(&place.preface);
            if text.len() > MAX_TEXT {
                text.push_str(OMITTED);
                break;
            }
        }
        text.push_str(&error.message);
        Self { text, starts }
    }

    /// A block of lines for each error; nothing if one of them is not from a template.
    fn in_blocks(&self) -> Option<String> {
        let mut lines = String::new();
        let mut last = None;
        for start in &self.starts {
            let block = Block::read(&self.text[*start..])?;
            if last.as_ref() != Some(&block) && lines.len() < MAX_TEXT {
                block.write(&mut lines);
            }
            last = Some(block);
        }
        Some(text::lossy(text::trim_space(lines.as_bytes())))
    }
}

/// What Helm 4 reads out of the text of an error, by looking for words: names and values that contain them mislead it.
#[derive(PartialEq, Eq)]
struct Block<'t> {
    location: &'t str,
    /// The name of the template and the node.
    executing: Option<(&'t str, &'t str)>,
    message: &'t str,
}

impl<'t> Block<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let rest = text.strip_prefix("template: ")?;
        if rest.starts_with("no template ") {
            return Some(Self {
                location: "",
                executing: None,
                message: text,
            });
        }
        Self::executing(rest).or_else(|| Self::simple(rest))
    }

    fn executing(rest: &'t str) -> Option<Self> {
        let (location, rest) = rest.split_once(": executing ")?;
        let (name, rest) = rest.strip_prefix('"')?.split_once('"')?;
        let (node, message) = rest.strip_prefix(" at <")?.split_once(">: ")?;
        Some(Self {
            location,
            executing: Some((name, node)),
            message: without_next(message),
        })
    }

    fn simple(rest: &'t str) -> Option<Self> {
        let (location, message) = rest.rsplit_once(": ")?;
        Some(Self {
            location,
            executing: None,
            message: without_next(message),
        })
    }

    fn write(&self, out: &mut String) {
        if !self.location.is_empty() {
            out.push_str(self.location);
            out.push_str("\n  ");
        }
        if let Some((name, node)) = self.executing {
            let _ = write!(out, "executing \"{name}\" at <{node}>:\n    ");
        }
        if !self.message.is_empty() {
            out.push_str(self.message);
            out.push('\n');
        }
    }
}

/// A message without the error that follows in it.
fn without_next(message: &str) -> &str {
    message.split_once(" template:").map_or(message, |(message, _)| message)
}
