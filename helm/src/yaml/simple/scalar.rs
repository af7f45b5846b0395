//! Scalars in one line or folded from several, keys among them, and flow collections of one line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{MAX_DEPTH, Reader, Simple};
use crate::yaml::node::Node;
use crate::yaml::resolve::{Resolved, resolve};

/// Longer keys are wrong in some places.
const MAX_KEY: usize = 1_000;

/// The key that a line begins with, and what follows its colon and the blanks behind it.
pub(super) fn key(content: &str) -> Simple<(&str, &str)> {
    let (key, rest) = match content.as_bytes().first()? {
        b'"' | b'\'' => match quoted(content)? {
            (Cow::Borrowed(key), rest) => (key, rest.strip_prefix(':')?),
            (Cow::Owned(_), _) => return None,
        },
        _ => {
            let colon = colon(content)?;
            let key = &content[..colon];
            let is_text = is_plain(key) && key != "<<" && resolves_to_text(key);
            is_text.then_some((key, &content[colon + 1..]))?
        }
    };
    let value = rest.trim_start_matches(' ');
    let is_separated = rest.is_empty() || value.len() < rest.len();
    (is_separated && key.len() <= MAX_KEY).then_some((key, value))
}

/// The first colon that ends a key.
fn colon(content: &str) -> Option<usize> {
    let bytes = content.as_bytes();
    memchr::memchr_iter(b':', bytes).find(|&at| matches!(bytes.get(at + 1), None | Some(b' ')))
}

/// Whether the text is a plain scalar as it stands, without blanks at its ends, comments and tabs.
fn is_plain(text: &str) -> bool {
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
    begins && !text.ends_with(' ') && has_no_tab(text) && comment(text).is_none()
}

/// Whether a line is the continuation of a plain scalar and nothing else.
fn goes_on(line: &str) -> bool {
    colon(line).is_none() && comment(line).is_none() && has_no_tab(line)
}

fn has_no_tab(text: &str) -> bool {
    memchr::memchr(b'\t', text.as_bytes()).is_none()
}

/// Where a comment begins, with a blank before it.
fn comment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'#', bytes)
        .find(|&at| at > 0 && bytes[at - 1] == b' ')
        .map(|at| at - 1)
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

/// A quoted scalar, and what follows its closing quote.
pub(super) fn quoted(content: &str) -> Simple<(Cow<'_, str>, &str)> {
    let (text, rest) = match content.as_bytes().first()? {
        b'"' => double_quoted(&content[1..])?,
        b'\'' => single_quoted(&content[1..])?,
        _ => return None,
    };
    has_no_tab(&text).then_some((text, rest))
}

fn single_quoted(content: &str) -> Simple<(Cow<'_, str>, &str)> {
    let mut end = 0;
    let mut has_quotes = false;
    loop {
        end += content[end..].find('\'')?;
        if !content[end + 1..].starts_with('\'') {
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
            let content = line.trim_start_matches(' ');
            if content.is_empty() {
                breaks += 1;
                continue;
            }
            (line.len() - content.len() > column).then_some(())?;
            fold(&mut text, breaks);
            breaks = 0;
            if let Some((last, rest)) = single_quoted(content) {
                text.push_str(&last);
                return has_no_tab(&text).then_some((Cow::Owned(text), rest));
            }
            text.push_str(&unescaped(content));
        }
    }

    /// A plain scalar that begins with the rest of a line and goes on in the lines that stand deeper than the column.
    pub(super) fn plain(&mut self, content: &'a str, column: usize) -> Simple<Cow<'a, str>> {
        let comment = comment(content);
        let first = content[..comment.unwrap_or(content.len())].trim_end_matches(' ');
        if !is_plain(first) || colon(first).is_some() {
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
            let indent = line.len() - line.trim_start_matches(' ').len();
            if content.is_empty() || indent <= column || content.starts_with('#') {
                break;
            }
            if !goes_on(content) {
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
                let (text, rest) = quoted(content)?;
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
        let mut rest = content.trim_start_matches(' ');
        if let Some(rest) = rest.strip_prefix(']') {
            return Some((Node::List(items), rest));
        }
        loop {
            let (item, behind) = self.flow(rest, depth + 1)?;
            if self.keeps {
                items.push(item);
            }
            let behind = behind.trim_start_matches(' ');
            if let Some(rest) = behind.strip_prefix(']') {
                return Some((Node::List(items), rest));
            }
            rest = behind.strip_prefix(',')?.trim_start_matches(' ');
        }
    }

    fn flow_map<'t>(&mut self, content: &'t str, depth: usize) -> Simple<(Node, &'t str)> {
        let mut entries = BTreeMap::new();
        let mut count = 0;
        let mut rest = content.trim_start_matches(' ');
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((Node::Map(entries), rest));
        }
        loop {
            self.count()?;
            count += 1;
            let (key, behind) = match quoted(rest) {
                Some((text, behind)) => (text, behind),
                None => flow_plain(rest)
                    .filter(|(text, _)| resolves_to_text(text))
                    .map(|(text, behind)| (Cow::Borrowed(text), behind))?,
            };
            let value = behind.strip_prefix(": ").filter(|_| key.len() <= MAX_KEY)?;
            let (node, behind) = self.flow(value.trim_start_matches(' '), depth + 1)?;
            if self.keeps && entries.insert(key.clone().into_owned(), node).is_some() {
                self.duplicate_keys.push(key.into_owned());
            }
            let behind = behind.trim_start_matches(' ');
            if let Some(rest) = behind.strip_prefix('}') {
                self.maps += Node::memory_of_entries(count);
                return Some((Node::Map(entries), rest));
            }
            rest = behind.strip_prefix(',')?.trim_start_matches(' ');
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
