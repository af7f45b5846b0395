//! From text to a tree of nodes as written: anchors, aliases, tags and styles are still there. Decides no types.

use std::collections::HashMap;

use libyaml_safer::{ErrorKind, Event, EventData, Mark, Parser, ScalarStyle};

use super::dialect;
use super::error::Error;
use super::resolve::TAG_PREFIX;
use super::text::{Text, decoded};
use crate::bounds::{BoundError, MAX_DEPTH, beyond, check_items, spend};

/// Index of a [`Written`] node in its [`Source`].
pub(super) type Id = usize;

/// One node as written.
pub(super) struct Written {
    /// The full tag, empty when there is none.
    pub(super) tag: String,
    /// The line, from 1, that it begins on.
    pub(super) line: usize,
    pub(super) content: Content,
}

/// What a node consists of.
pub(super) enum Content {
    Scalar {
        text: String,
        /// Plain style, so that the text decides the type.
        plain: bool,
    },
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
    /// Another node of the same document, possibly one that contains this alias.
    Alias {
        name: String,
        target: Id,
    },
}

/// The nodes of one document.
pub(super) struct Source {
    nodes: Vec<Written>,
    root: Option<Id>,
}

impl Source {
    /// Reads the first document of a text; what follows it is not looked at.
    pub(super) fn read(text: &[u8]) -> Result<Self, Error> {
        let text = decoded(text)?;
        // Each line break ends with one of these bytes.
        let directives = text
            .split(|byte| matches!(byte, b'\n' | b'\r' | 0x85 | 0xa8 | 0xa9))
            .filter(|line| line.starts_with(b"%TAG"));
        if directives.take(MAX_TAG_DIRECTIVES + 1).count() > MAX_TAG_DIRECTIVES {
            return Err(Error::Bound(beyond(BoundError::Items)));
        }
        let text = dialect::translated(&text);
        let mut text = Text::new(&text);
        loop {
            match Self::attempt(&text) {
                (_, Some(Stumble::Colon(position))) if text.hide_colon(position) => {}
                (Err(error), Some(Stumble::EmptyBrackets(position))) => {
                    text.close_bracket(position);
                    return Err(match Self::attempt(&text).0 {
                        Err(Error::Syntax { line, problem }) if is_of_block(&problem) => {
                            Error::Syntax { line, problem }
                        }
                        _ => error,
                    });
                }
                (source, _) => return source,
            }
        }
    }

    /// What the scanner makes of a text, and where it went wrong unlike Go's.
    fn attempt(text: &Text<'_>) -> (Result<Self, Error>, Option<Stumble>) {
        if let Err(bound) = spend((text.complete.len() / BYTES_PER_STEP) as u64) {
            return (Err(Error::Bound(bound)), None);
        }
        let mut input = &*text.complete;
        let mut parser = Parser::new();
        parser.set_input(&mut input);
        let mut reader = Reader {
            text,
            parser,
            nodes: Vec::new(),
            anchors: HashMap::new(),
            stumble: None,
        };
        let root = reader.document();
        let (nodes, stumble) = (reader.nodes, reader.stumble);
        (root.map(|root| Self { nodes, root }), stumble)
    }

    /// The root node; nothing for a text without a document.
    pub(super) fn root(&self) -> Option<Id> {
        self.root
    }

    /// The node behind an index of this document.
    pub(super) fn node(&self, id: Id) -> &Written {
        &self.nodes[id]
    }
}

/// How many lines may begin like a `%TAG` directive, which the scanner compares with all others.
const MAX_TAG_DIRECTIVES: usize = 1_000;

/// How many bytes of a text are scanned in about the time of a step.
const BYTES_PER_STEP: usize = 64;

/// How many nodes are read in about the time of a step.
const NODES_PER_STEP: usize = 4;

/// How many nodes are read before they are paid for.
const NODES_PER_PAYMENT: usize = 1 << 10;

struct Reader<'a, 'b> {
    text: &'a Text<'a>,
    parser: Parser<&'b mut &'a [u8]>,
    nodes: Vec<Written>,
    anchors: HashMap<String, Id>,
    stumble: Option<Stumble>,
}

/// Where our scanner goes wrong and Go's does not, or not yet.
enum Stumble {
    /// A colon that ends a plain scalar in brackets.
    Colon(usize),
    /// An empty list or map in brackets where only a key may be. Go's scanner does not look for the colon behind it, so that its parser
    /// sees it first.
    EmptyBrackets(usize),
}

impl Reader<'_, '_> {
    fn document(&mut self) -> Result<Option<Id>, Error> {
        loop {
            match self.event()?.data {
                EventData::StreamEnd => return Ok(None),
                EventData::DocumentStart { .. } => break,
                _ => {}
            }
        }
        let first = self.event()?;
        let root = self.node(first, 0)?;
        // The end of the document is read too: a text that goes wrong right behind it is refused.
        self.event()?;
        Ok(Some(root))
    }

    fn event(&mut self) -> Result<Event, Error> {
        self.parser.parse().map_err(|error| {
            self.stumble = stumble(&error, self.text);
            translate(&error, self.text)
        })
    }

    fn push(
        &mut self,
        start: Mark,
        anchor: Option<String>,
        tag: Option<String>,
        content: Content,
    ) -> Result<Id, Error> {
        let id = self.nodes.len();
        check_items(id).map_err(Error::Bound)?;
        if id.is_multiple_of(NODES_PER_PAYMENT) {
            spend((NODES_PER_PAYMENT / NODES_PER_STEP) as u64).map_err(Error::Bound)?;
        }
        self.nodes.push(Written {
            tag: tag.unwrap_or_default(),
            line: usize::try_from(start.line).unwrap_or(usize::MAX - 1) + 1,
            content,
        });
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        Ok(id)
    }

    fn node(&mut self, event: Event, depth: usize) -> Result<Id, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Bound(beyond(BoundError::Depth)));
        }
        let added_break = self.text.takes_added_break(&event);
        let start = event.start_mark;
        match event.data {
            EventData::Alias { anchor } => match self.anchors.get(&anchor) {
                Some(&target) => self.push(start, None, None, Content::Alias { name: anchor, target }),
                None => Err(Error::Content(format!("unknown anchor '{anchor}' referenced"))),
            },
            EventData::Scalar {
                anchor,
                tag,
                mut value,
                plain_implicit,
                style,
                ..
            } => {
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if block && added_break && value.ends_with('\n') && self.ends_in_added_break(&value) {
                    value.pop();
                }
                let content = Content::Scalar {
                    text: self.text.restored(value),
                    plain: plain_implicit,
                };
                self.push(start, anchor, tag, content)
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                let id = self.push(start, anchor, tag, Content::List(Vec::new()))?;
                self.nodes[id].content = Content::List(self.items(depth + 1)?);
                Ok(id)
            }
            EventData::MappingStart { anchor, tag, .. } => {
                let id = self.push(start, anchor, tag, Content::Map(Vec::new()))?;
                self.nodes[id].content = Content::Map(self.entries(depth + 1)?);
                Ok(id)
            }
            _ => Err(Error::syntax(None, "unknown problem parsing YAML content")),
        }
    }

    /// Whether the last line break of the block scalar that is read is the added one. Blanks at the end are a line of their own when they
    /// are deeper than the scalar; otherwise it is the same without them.
    fn ends_in_added_break(&self, value: &str) -> bool {
        let Some(before) = self.text.before_blanks else {
            return true;
        };
        let without = Source::read(before);
        let without = without
            .as_ref()
            .ok()
            .and_then(|source| source.nodes.get(self.nodes.len()));
        !without.is_some_and(|node| matches!(&node.content, Content::Scalar { text, .. } if text == value))
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Id>, Error> {
        let mut items = Vec::new();
        loop {
            let event = self.event()?;
            if matches!(event.data, EventData::SequenceEnd) {
                return Ok(items);
            }
            items.push(self.node(event, depth)?);
        }
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(Id, Id)>, Error> {
        let mut entries = Vec::new();
        loop {
            let event = self.event()?;
            if matches!(event.data, EventData::MappingEnd) {
                return Ok(entries);
            }
            let key = self.node(event, depth)?;
            let event = self.event()?;
            entries.push((key, self.node(event, depth)?));
        }
    }
}

fn stumble(error: &libyaml_safer::Error, text: &Text<'_>) -> Option<Stumble> {
    let position = |mark: Option<Mark>| mark.map(|mark| text.position(mark.index));
    match error.problem() {
        "found unexpected ':'" => position(error.problem_mark()).map(Stumble::Colon),
        "could not find expected ':'" => position(error.context_mark())
            .filter(|&position| text.has_empty_brackets(position))
            .map(Stumble::EmptyBrackets),
        _ => None,
    }
}

/// Whether a parser says so of what is no entry of a list or map that is written by indentation.
fn is_of_block(problem: &str) -> bool {
    ["did not find expected '-' indicator", "did not find expected key"].contains(&problem)
}

fn translate(error: &libyaml_safer::Error, text: &Text<'_>) -> Error {
    let line = |mark: Option<Mark>| mark.map_or(0, |mark| text.line(mark, error));
    let line = named_line(error.kind(), line(error.problem_mark()), line(error.context_mark()));
    let problem = match error.problem() {
        "invalid UTF-8" => text.invalid_character(),
        "found unexpected end of stream" => text.unclosed_quotes(error.context_mark()),
        problem => problem,
    };
    Error::syntax(line, problem)
}

/// Go names the line where the problem was noticed, else where its context began; it counts from zero, except for the scanner.
fn named_line(kind: ErrorKind, problem: u64, context: u64) -> Option<u64> {
    let line = match problem {
        0 => context,
        line if kind == ErrorKind::Scanner => line + 1,
        line => line,
    };
    (line > 0).then_some(line)
}

/// The tag as documents and messages write it.
pub(super) fn short_tag(tag: &str) -> String {
    tag.strip_prefix(TAG_PREFIX)
        .map_or_else(|| tag.to_owned(), |short| format!("!!{short}"))
}
