//! Values files: how one is read, and how several become one. Chart defaults are not known here.

use memchr::memchr2;

use crate::bounds::{self, spend};
use crate::json;
use crate::profile::ValuesFiles;
use crate::text::{lossy, trim_space};
use crate::yaml::{self, Node};

/// Lays `over` over `base`, as Helm does with several values files: mappings merge, everything else is replaced, a null stays a null.
pub fn merge_values(base: &mut Node, over: Node) {
    match (base, over) {
        (Node::Map(base), Node::Map(over)) => {
            for (key, node) in over {
                match base.get_mut(&key) {
                    Some(existing) => merge_values(existing, node),
                    None => {
                        base.insert(key, node);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// What a file of values says, or Helm's words about what is wrong with it.
pub(crate) type Reading = Result<Node, String>;

/// The default values of a chart as each Helm version reads them.
#[derive(Debug)]
pub(crate) struct Defaults {
    readings: Vec<Reading>,
    /// Whether a reading went wrong at a bound of ours.
    is_beyond: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            readings: vec![Ok(Node::Null)],
            is_beyond: false,
        }
    }
}

impl Defaults {
    pub(super) fn new(text: &[u8]) -> Self {
        let first = read(text, ValuesFiles::FirstDocument);
        let is_plain = first.is_ok() && !has_separator(text) && !loses_last_line(text) && !ends_in_block(text);
        let others = ValuesFiles::ALL[1..].iter().filter(|_| !is_plain);
        let others: Vec<Reading> = others.map(|files| read(text, *files)).collect();
        Self {
            readings: std::iter::once(first).chain(others).collect(),
            is_beyond: bounds::is_met(),
        }
    }

    /// About the bytes that it takes.
    pub(super) fn memory(&self) -> usize {
        self.readings.iter().flatten().map(Node::memory).sum()
    }

    /// A file of one sound document reads alike everywhere and is kept once.
    pub(crate) fn read_as(&self, files: ValuesFiles) -> Result<&Node, &str> {
        let reading = self.readings.get(files as usize).unwrap_or(&self.readings[0]);
        reading.as_ref().map_err(|problem| {
            if self.is_beyond {
                bounds::beyond(problem)
            } else {
                problem.as_str()
            }
        })
    }
}

/// Reads a file of values.
pub(crate) fn read(text: &[u8], files: ValuesFiles) -> Reading {
    let documents = match files {
        ValuesFiles::FirstDocument => return read_document(text),
        ValuesFiles::AllDocumentsWithoutFullLastLine if loses_last_line(text) => documents(without_last_line(text)),
        ValuesFiles::AllDocuments if text.ends_with(b"\r") => documents(&[text, b"\n"].concat()),
        ValuesFiles::AllDocuments | ValuesFiles::AllDocumentsWithoutFullLastLine => documents(text),
    };
    let mut values = Node::empty_map();
    for document in documents.map_err(|problem| format!("error reading yaml document: {problem}"))? {
        let over = read_document(&document).map_err(|problem| format!("cannot unmarshal yaml document: {problem}"))?;
        merge_values(&mut values, over);
    }
    Ok(values)
}

fn read_document(text: &[u8]) -> Reading {
    spend(1)?;
    match yaml::parse(text).map_err(yaml::convert_error)? {
        Node::Null => Ok(Node::empty_map()),
        values @ Node::Map(_) => Ok(values),
        other => Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json::kind(&other)
        )),
    }
}

const SEPARATOR: &[u8] = b"---";

/// The size of the buffer that Helm reads lines with.
const LINE_BUFFER: usize = 4096;

/// Takes a file apart at its separators, which a comment may follow. A separator before all content stays.
fn documents(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut documents = vec![Vec::new()];
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        };
        let document = documents.last_mut().filter(|document| !document.is_empty());
        if let Some(rest) = line.strip_prefix(SEPARATOR) {
            let rest = trim_space(rest);
            if !rest.is_empty() && rest[0] != b'#' {
                return Err(format!("invalid Yaml document separator: {}", lossy(rest)));
            }
            if document.is_some() {
                documents.push(Vec::new());
                continue;
            }
        }
        if let Some(document) = documents.last_mut() {
            document.extend_from_slice(line);
            document.push(b'\n');
        }
    }
    documents.retain(|document| !document.is_empty());
    Ok(documents)
}

fn has_separator(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(SEPARATOR))
}

/// Whether the last line has no end and fills the buffer, which makes Helm forget it.
fn loses_last_line(text: &[u8]) -> bool {
    let last = text.len() - without_last_line(text).len();
    last > 0 && last.is_multiple_of(LINE_BUFFER)
}

/// Whether a block scalar may end with the text without a line break, which Helm 4 adds.
fn ends_in_block(text: &[u8]) -> bool {
    let last = &text[without_last_line(text).len()..];
    let is_within = last.starts_with(b" ") || last.ends_with(b"\r");
    is_within && memchr2(b'|', b'>', text).is_some()
}

/// Everything up to the last line break.
fn without_last_line(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |position| position + 1);
    &text[..end]
}
