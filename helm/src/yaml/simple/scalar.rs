//! Scalars in one line or folded from several, keys among them, and flow collections of one line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{MAX_DEPTH, Reader, Simple};
use crate::yaml::node::Node;
use crate::yaml::resolve::{Resolved, resolve};

/// Longer keys are wrong in some places.
const MAX_KEY: usize = 1_000;

/// Which characters a text has somewhere that are told apart in scalars. Most texts have neither, and no line of them is searched.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    tabs: bool,
    hashes: bool,
}

impl Marks {
    pub(super) fn of(text: &str) -> Self {
        let has = |byte| memchr::memchr(byte, text.as_bytes()).is_some();
        Self {
            tabs: has(b'\t'),
            hashes: has(b'#'),
        }
    }

    /// The key that a line begins with, and what follows its colon and the blanks behind it.
    pub(super) fn key(self, content: &str) -> Simple<(&str, &str)> {
        let (key, rest) = match content.as_bytes().first()? {
            b'"' | b'\'' => match self.quoted(content)? {
                (Cow::Borrowed(key), rest) => (key, rest.strip_prefix(':')?),
                (Cow::Owned(_), _) => return None,
            },
            _ => {
                let colon = colon(content)?;
                let key = &content[..colon];
                let is_text = self.is_plain(key) && key != "<<" && resolves_to_text(key);
                is_text.then_some((key, &content[colon + 1..]))?
            }
        };
        let value = without_blanks(rest);
        let is_separated = rest.is_empty() || value.len() < rest.len();
        (is_separated && key.len() <= MAX_KEY).then_some((key, value))
    }

    /// Whether the text is a plain scalar as it stands, without blanks at its ends, comments and tabs.
    fn is_plain(self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let begins = match bytes.first() {
            Some(b'-') => !matches!(bytes.get(1), None | Some(b' ')),
            Some(
                b' ' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
                | b'"' | b'%' | b'@' | b'`',
            )
            | None => false,
            Some(_) => true,
        };
        begins && !text.ends_with(' ') && self.has_no_tab(text) && self.comment(text).is_none()
    }

    /// Whether a line is the continuation of a plain scalar and nothing else.
    fn goes_on(self, line: &str) -> bool {
        colon(line).is_none() && self.comment(line).is_none() && self.has_no_tab(line)
    }

    fn has_no_tab(self, text: &str) -> bool {
        !self.tabs || memchr::memchr(b'\t', text.as_bytes()).is_none()
    }

    /// Where a comment begins, with a blank before it.
    fn comment(self, text: &str) -> Option<usize> {
        let bytes = self.hashes.then_some(text.as_bytes())?;
        memchr::memchr_iter(b'#', bytes)
            .find(|&at| at > 0 && bytes[at - 1] == b' ')
            .map(|at| at - 1)
    }

    /// A quoted scalar, and what follows its closing quote.
    pub(super) fn quoted(self, content: &str) -> Simple<(Cow<'_, str>, &str)> {
        let (text, rest) = match content.as_bytes().first()? {
            b'"' => double_quoted(&content[1..])?,
            b'\'' => single_quoted(&content[1..])?,
            _ => return None,
        };
        self.has_no_tab(&text).then_some((text, rest))
    }
}

/// What stands behind the blanks that a text begins with.
pub(super) fn without_blanks(text: &str) -> &str {
    let blanks = text.bytes().take_while(|byte| *byte == b' ').count();
    &text[blanks..]
}

/// The first colon that ends a key.
fn colon(content: &str) -> Option<usize> {
    let bytes = content.as_bytes();
    memchr::memchr_iter(b':', bytes).find(|&at| matches!(bytes.get(at + 1), None | Some(b' ')))
}

/// The type of a plain scalar decides; infinities are wrong.
pub(super) fn resolved(text: &str, keeps: bool) -> Simple<Node> {
    if !keeps && !text.starts_with(['.', '+', '-']) {
        return Some(Node::Null);
    }
    match resolve(text) {
        Resolved::Node(Node::Float(number)) if !number.is_finite() => None,
        Resolved::Node(node) => Some(node),
        Resolved::Timestamp | Resolved::Text => Some(Node::Text(text.to_owned())),
    }
}

fn resolves_to_text(text: &str) -> bool {
    matches!(resolve(text), Resolved::Text | Resolved::Timestamp)
}

fn single_quoted(content: &str) -> Simple<(Cow<'_, str>, &str)> {
    let mut end = 0;
    let mut has_quotes = false;
    loop {
        end += memchr::memchr(b'\'', &content.as_bytes()[end..])?;
        if content.as_bytes().get(end + 1) != Some(&b'\'') {
            break;
        }
        has_quotes = true;
        end += 2;
    }
    let text = &content[..end];
    let text = if has_quotes {
        Cow::Owned(text.replace("''", "'"))
    } else {
        Cow::Borrowed(text)
    };
    Some((text, &content[end + 1..]))
}

fn double_quoted(content: &str) -> Simple<(Cow<'_, str>, &str)> {
    let bytes = content.as_bytes();
    let mut end = memchr::memchr2(b'"', b'\\', bytes)?;
    if bytes[end] == b'"' {
        return Some((Cow::Borrowed(&content[..end]), &content[end + 1..]));
    }
    let mut text = content[..end].to_owned();
    loop {
        text.push(match bytes.get(end + 1)? {
            b'"' => '"',
            b'\\' => '\\',
            b'n' => '\n',
            _ => return None,
        });
        let start = end + 2;
        end = start + memchr::memchr2(b'"', b'\\', &bytes[start..])?;
        text.push_str(&content[start..end]);
        if bytes[end] == b'"' {
            return Some((Cow::Owned(text), &content[end + 1..]));
        }
    }
}

/// A line break in a scalar is a blank, empty lines behind it are line breaks.
fn fold(text: &mut String, empty_lines: usize) {
    match empty_lines {
        0 => text.push(' '),
        breaks => text.extend(std::iter::repeat_n('\n', breaks)),
    }
}

impl<'a> Reader<'a> {
    /// A text in single quotes that ends in one of the lines below, all of which stand deeper than the column; and what follows it.
    pub(super) fn folded(&mut self, content: &str, column: usize) -> Simple<(Cow<'a, str>, &'a str)> {
        let unescaped = |line: &str| line.trim_end_matches(' ').replace("''", "'");
        let mut text = unescaped(content.strip_prefix('\'')?);
        let mut breaks = 0;
        loop {
            let (line, next) = self.raw_line();
            if next == self.position {
                return None;
            }
            self.position = next;
            let content = without_blanks(line);
            if content.is_empty() {
                breaks += 1;
                continue;
            }
            (line.len() - content.len() > column).then_some(())?;
            fold(&mut text, breaks);
            breaks = 0;
            if let Some((last, rest)) = single_quoted(content) {
                text.push_str(&last);
                return self.marks.has_no_tab(&text).then_some((Cow::Owned(text), rest));
            }
            text.push_str(&unescaped(content));
        }
    }

    /// A plain scalar that begins with the rest of a line and goes on in the lines that stand deeper than the column.
    pub(super) fn plain(&mut self, content: &'a str, column: usize) -> Simple<Cow<'a, str>> {
        let comment = self.marks.comment(content);
        let first = content[..comment.unwrap_or(content.len())].trim_end_matches(' ');
        if !self.marks.is_plain(first) || colon(first).is_some() {
            return None;
        }
        let mut text = Cow::Borrowed(first);
        let mut breaks = 0;
        while comment.is_none() {
            let (line, next) = self.raw_line();
            let content = line.trim_matches(' ');
            if content.is_empty() && next > self.position {
                breaks += 1;
                self.position = next;
                continue;
            }
            let indent = line.len() - without_blanks(line).len();
            if content.is_empty() || indent <= column || content.starts_with('#') {
                break;
            }
            if !self.marks.goes_on(content) {
                return None;
            }
            let text = text.to_mut();
            fold(text, breaks);
            text.push_str(content);
            breaks = 0;
            self.position = next;
        }
        Some(text)
    }

    /// A flow collection or a scalar in one, and what follows it.
    pub(super) fn flow<'t>(&mut self, content: &'t str, depth: usize) -> Simple<(Node, &'t str)> {
        self.count()?;
        match content.as_bytes().first()? {
            _ if depth > MAX_DEPTH => None,
            b'[' => self.flow_list(&content[1..], depth),
            b'{' => self.flow_map(&content[1..], depth),
            b'"' | b'\'' => {
                let (text, rest) = self.marks.quoted(content)?;
                Some((self.text(text), rest))
            }
            _ => {
                let (text, rest) = flow_plain(content)?;
                Some((resolved(text, self.keeps)?, rest))
            }
        }
    }

    fn flow_list<'t>(&mut self, content: &'t str, depth: usize) -> Simple<(Node, &'t str)> {
        let mut items = Vec::new();
        let mut rest = without_blanks(content);
        if let Some(rest) = rest.strip_prefix(']') {
            return Some((Node::List(items), rest));
        }
        loop {
            let (item, behind) = self.flow(rest, depth + 1)?;
            if self.keeps {
                items.push(item);
            }
            let behind = without_blanks(behind);
            if let Some(rest) = behind.strip_prefix(']') {
                return Some((Node::List(items), rest));
            }
            rest = without_blanks(behind.strip_prefix(',')?);
        }
    }

    fn flow_map<'t>(&mut self, content: &'t str, depth: usize) -> Simple<(Node, &'t str)> {
        let mut entries = BTreeMap::new();
        let mut count = 0;
        let mut rest = without_blanks(content);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((Node::Map(entries), rest));
        }
        loop {
            self.count()?;
            count += 1;
            let (key, behind) = match self.marks.quoted(rest) {
                Some((text, behind)) => (text, behind),
                None => flow_plain(rest)
                    .filter(|(text, _)| resolves_to_text(text))
                    .map(|(text, behind)| (Cow::Borrowed(text), behind))?,
            };
            let value = behind.strip_prefix(": ").filter(|_| key.len() <= MAX_KEY)?;
            let (node, behind) = self.flow(without_blanks(value), depth + 1)?;
            if self.keeps && entries.insert(key.clone().into_owned(), node).is_some() {
                self.duplicate_keys.push(key.into_owned());
            }
            let behind = without_blanks(behind);
            if let Some(rest) = behind.strip_prefix('}') {
                self.maps += Node::memory_of_entries(count);
                return Some((Node::Map(entries), rest));
            }
            rest = without_blanks(behind.strip_prefix(',')?);
        }
    }
}

/// A plain scalar without blanks and signs that could mean something in a flow collection.
fn flow_plain(content: &str) -> Simple<(&str, &str)> {
    let is_simple = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./-+=@".contains(byte);
    let length = content.bytes().take_while(is_simple).count();
    let (text, rest) = content.split_at(length);
    let begins = !text.starts_with(['@', '=']) && text != "-";
    let ends = matches!(rest.as_bytes().first()?, b',' | b']' | b'}' | b' ' | b':');
    (begins && ends && !text.is_empty()).then_some((text, rest))
}
