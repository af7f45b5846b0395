//! Reads the documents that charts nearly always write: block mappings and lists, scalars in a few lines, literal blocks.
//!
//! It knows no errors: at anything unusual, and so at everything wrong, it gives up, and the whole reader (`scan`, `decode`) decides. Where
//! it does not give up, both agree.

mod literal;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::scalar::{Marks, without_blanks};
use super::decode::Decoded;
use super::node::Node;
use crate::bounds::MAX_ITEMS;

/// Deeper documents are left to the whole reader, which has a bound for them.
const MAX_DEPTH: usize = 100;

/// Reads the first document of a text, if it is simple.
pub(super) fn read(text: &[u8]) -> Option<Decoded> {
    let mut reader = Reader::new(text, |_| true)?;
    let node = reader.document()?;
    Some(Decoded {
        node,
        duplicate_keys: reader.duplicate_keys,
    })
}

/// A document of which only some entries of the root were kept.
pub(crate) struct Skimmed {
    pub(crate) node: Node,
    /// No less than what the whole document takes.
    pub(crate) memory: usize,
}

/// Checks the whole of a simple document, but keeps only some entries of the root.
pub(super) fn skim(text: &[u8], wanted: fn(&str) -> bool) -> Option<Skimmed> {
    let mut reader = Reader::new(text, wanted)?;
    let node = reader.document()?;
    Some(Skimmed {
        node,
        memory: (1 + reader.parts) * size_of::<Node>() + reader.maps + text.len(),
    })
}

/// A line that has more than a comment, or the part of it behind the dashes of list items.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// How many characters stand before the content.
    column: usize,
    /// Without a line break; empty at the end of the text.
    content: &'a str,
    /// Where the next line begins.
    next: usize,
}

impl Line<'_> {
    /// Whether the line belongs to what stands at a column or deeper.
    fn is_within(&self, column: usize) -> bool {
        !self.content.is_empty() && self.column >= column
    }

    fn is_item(&self) -> bool {
        self.content == "-" || self.content.starts_with("- ")
    }
}

/// What every part of a document gives: nothing when it is not simple.
type Simple<T> = Option<T>;

struct Reader<'a> {
    text: &'a str,
    marks: Marks,
    /// Where the first line begins that was not looked at.
    position: usize,
    line: Option<Line<'a>>,
    wanted: fn(&str) -> bool,
    /// Whether what is read is part of the result, or only checked.
    keeps: bool,
    parts: usize,
    /// About what the entries of all maps take besides.
    maps: usize,
    duplicate_keys: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8], wanted: fn(&str) -> bool) -> Simple<Self> {
        if !has_simple_bytes(text) {
            return None;
        }
        let text = str::from_utf8(text).ok().filter(|text| has_simple_characters(text))?;
        let last = text.rsplit('\n').next().unwrap_or_default();
        let ends_in_blanks = !last.is_empty() && last.bytes().all(|byte| byte == b' ');
        (!ends_in_blanks).then_some(Self {
            text,
            marks: Marks::of(text),
            position: 0,
            line: None,
            wanted,
            keeps: true,
            parts: 0,
            maps: 0,
            duplicate_keys: Vec::new(),
        })
    }

    fn document(&mut self) -> Simple<Node> {
        self.skip_start();
        let line = self.line()?;
        let node = if line.content.is_empty() {
            Node::Null
        } else {
            self.block(None, 0)?
        };
        // What stands further left than the root is no part of it.
        self.line()?.content.is_empty().then_some(node)
    }

    /// Passes the line that says that the document starts, if it is the first one.
    fn skip_start(&mut self) {
        let mut start = self.position;
        for line in self.text.split_inclusive('\n') {
            start += line.len();
            match without_blanks(line).trim_end_matches('\n') {
                "---" if line.starts_with('-') => self.position = start,
                "" => continue,
                content if content.starts_with('#') => continue,
                _ => {}
            }
            return;
        }
    }

    /// The current line, comments and empty ones left out.
    fn line(&mut self) -> Simple<Line<'a>> {
        if let Some(line) = self.line {
            return Some(line);
        }
        loop {
            let (line, next) = self.raw_line();
            let content = without_blanks(line);
            let column = line.len() - content.len();
            let is_end = line.is_empty() && next == self.position;
            if is_end || !content.is_empty() && !content.starts_with('#') {
                let is_marker = column == 0 && ["---", "...", "%"].iter().any(|marker| content.starts_with(marker));
                if is_marker || content.starts_with('\t') {
                    return None;
                }
                self.line = Some(Line { column, content, next });
                return self.line;
            }
            self.position = next;
        }
    }

    /// The line at the position, whatever it is, and where the next one begins.
    fn raw_line(&self) -> (&'a str, usize) {
        let rest = &self.text[self.position..];
        match memchr::memchr(b'\n', rest.as_bytes()) {
            Some(end) => (&rest[..end], self.position + end + 1),
            None => (rest, self.text.len()),
        }
    }

    fn leave(&mut self, line: Line<'_>) {
        self.position = line.next;
        self.line = None;
    }

    /// Goes on with a part of the current line.
    fn enter(&mut self, line: Line<'a>, content: &'a str) {
        self.line = Some(Line {
            column: line.column + line.content.len() - content.len(),
            content,
            ..line
        });
    }

    fn count(&mut self) -> Simple<()> {
        self.parts += 1;
        (self.parts <= MAX_ITEMS).then_some(())
    }

    /// What begins in the current line: a collection, or a scalar that belongs to one at a column.
    fn block(&mut self, column: Option<usize>, depth: usize) -> Simple<Node> {
        let line = self.line()?;
        if line.is_item() {
            self.list(line.column, false, depth)
        } else if let Some(first) = self.marks.key(line.content) {
            self.map(line.column, first, depth)
        } else {
            self.inline(line, column?)
        }
    }

    /// `first`: the key that the current line begins with, and what follows it.
    fn map(&mut self, column: usize, first: (&'a str, &'a str), depth: usize) -> Simple<Node> {
        self.count()?;
        let mut map = BTreeMap::new();
        let mut entries = 0;
        let (mut key, mut rest) = first;
        loop {
            let line = self.line()?;
            entries += 1;
            self.count()?;
            if depth == 0 {
                self.keeps = (self.wanted)(key);
            }
            self.enter(line, rest);
            let node = self.value(column, true, depth)?;
            if self.keeps && map.insert(key.to_owned(), node).is_some() {
                self.duplicate_keys.push(key.to_owned());
            }
            let line = self.line()?;
            if !line.is_within(column) {
                self.maps += Node::memory_of_entries(entries);
                return Some(Node::Map(map));
            }
            (key, rest) = self.marks.key(line.content).filter(|_| line.column == column)?;
        }
    }

    /// `in_map`: the list is the value of a key at the same column, which may follow it.
    fn list(&mut self, column: usize, in_map: bool, depth: usize) -> Simple<Node> {
        self.count()?;
        let mut items = Vec::new();
        loop {
            let line = self.line()?;
            if !line.is_within(column) || in_map && line.column == column && !line.is_item() {
                return Some(Node::List(items));
            }
            if line.column > column || !line.is_item() {
                return None;
            }
            let rest = without_blanks(&line.content[1..]);
            self.enter(line, rest);
            let node = if let Some(first) = self.marks.key(rest) {
                (depth < MAX_DEPTH).then_some(())?;
                self.map(line.column + line.content.len() - rest.len(), first, depth + 1)?
            } else {
                self.value(column, false, depth)?
            };
            if self.keeps {
                items.push(node);
            }
        }
    }

    /// What stands behind a colon or a dash: the rest of the line, or the lines below that stand deeper than the column.
    fn value(&mut self, column: usize, in_map: bool, depth: usize) -> Simple<Node> {
        let line = self.line?;
        if !line.content.is_empty() && !line.content.starts_with('#') {
            return self.inline(line, column);
        }
        self.leave(line);
        let below = self.line()?;
        if below.is_within(column + 1) {
            (depth < MAX_DEPTH).then_some(())?;
            return self.block(Some(column), depth + 1);
        }
        if in_map && below.is_within(column) && below.is_item() {
            (depth < MAX_DEPTH).then_some(())?;
            return self.list(column, true, depth + 1);
        }
        self.count()?;
        Some(Node::Null)
    }

    /// A scalar or a flow collection. One in double quotes or brackets that goes on in the next line is not simple.
    fn inline(&mut self, line: Line<'a>, column: usize) -> Simple<Node> {
        self.leave(line);
        match line.content.as_bytes().first()? {
            b'|' => {
                self.count()?;
                self.literal(line.content, column)
            }
            b'[' | b'{' => {
                let (node, rest) = self.flow(line.content, 0)?;
                is_comment(rest).then_some(node)
            }
            b'"' | b'\'' => {
                self.count()?;
                let (text, rest) = match self.marks.quoted(line.content) {
                    Some(quoted) => quoted,
                    None => self.folded(line.content, column)?,
                };
                is_comment(rest).then(|| self.text(text))
            }
            _ => {
                self.count()?;
                let text = self.plain(line.content, column)?;
                scalar::resolved(&text, self.keeps)
            }
        }
    }

    fn text(&self, text: std::borrow::Cow<'_, str>) -> Node {
        if self.keeps {
            Node::Text(text.into_owned())
        } else {
            Node::Null
        }
    }
}

/// Whether nothing but blanks and a comment is left of a line.
fn is_comment(rest: &str) -> bool {
    let comment = without_blanks(rest);
    comment.is_empty() || comment.starts_with('#') && comment.len() < rest.len()
}

/// No control characters but line breaks and tabs. Nothing here ends early, so that the processor can look at many bytes at once.
fn has_simple_bytes(text: &[u8]) -> bool {
    let control = text.iter().fold(0, |found, byte| {
        found | u8::from(matches!(byte, 0..=8 | 11..=31 | 0x7f))
    });
    control == 0
}

/// Whether JSON and YAML show the characters of a text as they are, or as escapes that both know.
pub(super) fn is_simple_text(text: &str) -> bool {
    has_simple_characters(text) && memchr::memchr(0x7f, text.as_bytes()).is_none()
}

/// No further control characters, line breaks and byte order marks, and nothing beyond the basic plane.
fn has_simple_characters(text: &str) -> bool {
    text.is_ascii()
        || !text.chars().any(|character| {
            matches!(
                character,
                '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..
            )
        })
}
