//! A text of Go's dialect in that of our scanner, where they differ: in Go's, brackets and commas are part of a tag, `\'` is an escape in double
//! quotes and `\/` is none, a question mark in brackets begins a key wherever it stands, and no version but 1.1 is known. Our scanner panics
//! at `[!a, b]` and at `[!<a>, b]`.
//!
//! What is a tag and what is the inside of a scalar or a comment, only the structure of the text tells, which is followed here up to the
//! first mistake in it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::directives::{VERSION, refused_version};
use super::text::{BOM, line_break};
use crate::text::find;

/// What stands for a bracket or a comma: another character of a tag. No tag with one means anything.
const SUBSTITUTE: &[u8] = b";";

/// What goes where in a text, and what goes there instead.
pub(super) type Edit = (Range<usize>, &'static [u8]);

/// The text as our scanner takes it.
pub(super) fn translated(text: &[u8]) -> Cow<'_, [u8]> {
    let has = |part: &[u8]| find(text, part).is_some();
    if !(has_unusual_tag(text) || has(ESCAPED_QUOTE) || has(ESCAPED_SLASH) || has(b"?") || has(VERSION)) {
        return Cow::Borrowed(text);
    }
    let mut walk = Walk::new(text);
    while walk.token().is_some() {}
    walk.translated.extend_from_slice(&text[walk.done..]);
    Cow::Owned(walk.translated)
}

const ESCAPED_QUOTE: &[u8] = b"\\'";

const ESCAPED_SLASH: &[u8] = b"\\/";

/// Whether something looks like a tag with a character that the scanner does not take, or takes amiss behind it.
fn has_unusual_tag(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(mark) = memchr(b'!', rest) {
        rest = &rest[mark + 1..];
        let is_verbatim = rest.starts_with(b"<");
        rest = &rest[usize::from(is_verbatim)..];
        let (tag, behind) = rest.split_at(tag_length(rest));
        if is_verbatim && behind.starts_with(b">,") || !is_verbatim && tag.iter().any(|byte| is_unusual(*byte)) {
            return true;
        }
        rest = behind;
    }
    false
}

const fn is_unusual(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']')
}

/// How many bytes of a text may stand in a tag.
fn tag_length(text: &[u8]) -> usize {
    let is_tag = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_;/?:@&=+$,.!~*'()[]%".contains(*byte);
    text.iter().take_while(is_tag).count()
}

/// Where something stands that is a key if a colon follows.
#[derive(Clone, Copy)]
struct Key {
    line_start: usize,
    column: usize,
}

/// A way through a text, token by token.
struct Walk<'a> {
    text: &'a [u8],
    translated: Vec<u8>,
    /// How much of the text is translated.
    done: usize,
    position: usize,
    line_start: usize,
    /// How many brackets are open.
    brackets: usize,
    /// The columns of the lists and maps around the position that are written by indentation.
    indents: Vec<usize>,
    /// What the next colon outside brackets may end.
    key: Option<Key>,
    /// Outside brackets, a key may begin here.
    key_allowed: bool,
}

impl<'a> Walk<'a> {
    fn new(text: &'a [u8]) -> Self {
        let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
        Self {
            text,
            translated: Vec::with_capacity(text.len()),
            done: 0,
            position: start,
            line_start: start,
            brackets: 0,
            indents: Vec::new(),
            key: None,
            key_allowed: true,
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.position..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    /// In bytes: nothing but ASCII stands before what begins a list or map.
    const fn column(&self) -> usize {
        self.position - self.line_start
    }

    /// Puts something for a part of the text, behind all others.
    fn edit(&mut self, (part, with): Edit) {
        self.translated.extend_from_slice(&self.text[self.done..part.start]);
        self.translated.extend_from_slice(with);
        self.done = part.end;
    }

    fn replace_byte(&mut self, position: usize, with: &'static [u8]) {
        self.edit((position..position + 1, with));
    }

    const fn is_in_brackets(&self) -> bool {
        self.brackets > 0
    }

    fn is_blank(&self) -> bool {
        matches!(self.byte(0), Some(b' ' | b'\t'))
    }

    fn is_break(&self) -> bool {
        line_break(self.rest()) > 0
    }

    fn is_blank_or_end(&self, ahead: usize) -> bool {
        let rest = self.rest().get(ahead..).unwrap_or_default();
        matches!(rest.first(), None | Some(b' ' | b'\t')) || line_break(rest) > 0
    }

    /// The column from which on something belongs to the list or map around it.
    fn inside(&self) -> usize {
        self.indents.last().map_or(0, |indent| indent + 1)
    }

    /// Passes a byte or a line break; says whether it was one.
    fn step(&mut self) -> bool {
        let line_break = line_break(self.rest());
        self.position += line_break.max(1);
        if line_break > 0 {
            self.line_start = self.position;
        }
        line_break > 0
    }

    fn skip_line(&mut self) {
        while self.position < self.text.len() && !self.is_break() {
            self.position += 1;
        }
    }

    fn skip_to_token(&mut self) {
        loop {
            while self.is_blank() {
                self.position += 1;
            }
            if self.byte(0) == Some(b'#') {
                self.skip_line();
            }
            if !self.is_break() {
                return;
            }
            self.step();
            self.key_allowed |= !self.is_in_brackets();
        }
    }

    /// Passes one token; nothing at the end of the text, or where no token is.
    fn token(&mut self) -> Option<()> {
        self.skip_to_token();
        let byte = self.byte(0)?;
        if !self.is_in_brackets() {
            let column = self.column();
            self.indents
                .truncate(self.indents.partition_point(|indent| *indent <= column));
        }
        match byte {
            b'%' if self.column() == 0 => {
                self.end_document();
                if let Some(version) = refused_version(self.text, self.position) {
                    self.edit(version);
                }
                self.skip_line();
            }
            b'-' | b'.' if self.is_document_marker() => {
                self.end_document();
                self.position += 3;
            }
            b'[' | b'{' => {
                self.save_key();
                self.brackets += 1;
                self.position += 1;
            }
            b']' | b'}' => {
                self.brackets = self.brackets.saturating_sub(1);
                self.key_allowed = false;
                self.position += 1;
            }
            b',' => self.indicator(true),
            b'-' if self.is_blank_or_end(1) => self.entry(),
            b'?' if self.is_in_brackets() || self.is_blank_or_end(1) => self.entry(),
            b':' if self.is_in_brackets() || self.is_blank_or_end(1) => self.value(),
            b'*' | b'&' => self.anchor(),
            b'!' => self.tag(),
            b'|' | b'>' if !self.is_in_brackets() => self.block_scalar()?,
            b'"' | b'\'' => self.quoted(byte),
            b'|' | b'>' | b'%' | b'@' | b'`' => return None,
            _ => self.plain(),
        }
        Some(())
    }

    fn is_document_marker(&self) -> bool {
        let rest = self.rest();
        self.column() == 0 && (rest.starts_with(b"---") || rest.starts_with(b"...")) && self.is_blank_or_end(3)
    }

    fn end_document(&mut self) {
        self.indents.clear();
        self.key = None;
        self.key_allowed = false;
    }

    /// Remembers what begins here as a possible key.
    fn save_key(&mut self) {
        if !self.is_in_brackets() && self.key_allowed {
            self.key = Some(Key {
                line_start: self.line_start,
                column: self.column(),
            });
            self.key_allowed = false;
        }
    }

    fn indicator(&mut self, key_allowed: bool) {
        if !self.is_in_brackets() {
            self.key = None;
            self.key_allowed = key_allowed;
        }
        self.position += 1;
    }

    /// A dash, or the question mark before a key.
    fn entry(&mut self) {
        self.indent(self.column());
        self.indicator(true);
    }

    fn value(&mut self) {
        let key = self.key.filter(|key| key.line_start == self.line_start);
        self.indent(key.map_or(self.column(), |key| key.column));
        self.indicator(key.is_none());
    }

    fn indent(&mut self, column: usize) {
        if !self.is_in_brackets() && column >= self.inside() {
            self.indents.push(column);
        }
    }

    fn anchor(&mut self) {
        self.save_key();
        self.position += 1;
        while self
            .byte(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        {
            self.position += 1;
        }
    }

    fn tag(&mut self) {
        self.save_key();
        self.position += 1;
        if self.byte(0) == Some(b'<') {
            return self.verbatim_tag();
        }
        let end = self.position + tag_length(self.rest());
        for position in self.position..end {
            if is_unusual(self.text[position]) {
                self.replace_byte(position, SUBSTITUTE);
            }
        }
        self.position = end;
    }

    /// Only a blank may follow one.
    fn verbatim_tag(&mut self) {
        self.position += 1;
        self.position += tag_length(self.rest());
        if self.rest().starts_with(b">,") {
            self.replace_byte(self.position + 1, SUBSTITUTE);
        }
        self.position += usize::from(self.byte(0) == Some(b'>'));
    }

    /// Nothing when the line goes on as it may not.
    fn block_scalar(&mut self) -> Option<()> {
        self.indicator(true);
        let mut indent = None;
        while let Some(byte @ (b'+' | b'-' | b'1'..=b'9')) = self.byte(0) {
            if byte.is_ascii_digit() {
                let around = self.indents.last().copied().unwrap_or_default();
                indent = Some(around + usize::from(byte - b'0'));
            }
            self.position += 1;
        }
        while self.is_blank() {
            self.position += 1;
        }
        if self.byte(0) == Some(b'#') {
            self.skip_line();
        }
        if !self.is_break() {
            return None;
        }
        self.step();
        let indent = self.skip_empty_lines(indent);
        while self.column() == indent && self.position < self.text.len() {
            self.skip_line();
            if self.is_break() {
                self.step();
            }
            self.skip_empty_lines(Some(indent));
        }
        Some(())
    }

    /// Passes lines without content and the indentation of the next one. What is not known of the indentation, they tell.
    fn skip_empty_lines(&mut self, indent: Option<usize>) -> usize {
        let mut deepest = 0;
        loop {
            while self.byte(0) == Some(b' ') && indent.is_none_or(|indent| self.column() < indent) {
                self.position += 1;
            }
            deepest = deepest.max(self.column());
            if !self.is_break() {
                return indent.unwrap_or_else(|| deepest.max(self.inside()).max(1));
            }
            self.step();
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.save_key();
        self.position += 1;
        while let Some(byte) = self.byte(0) {
            if quote == b'"' && self.rest().starts_with(ESCAPED_QUOTE) {
                self.replace_byte(self.position, b"");
            } else if quote == b'"' && self.rest().starts_with(ESCAPED_SLASH) {
                self.replace_byte(self.position, ESCAPED_QUOTE);
            }
            self.step();
            match byte {
                b'\\' if quote == b'"' && self.position < self.text.len() => {
                    self.step();
                }
                b'\'' if quote == b'\'' && self.byte(0) == Some(quote) => self.position += 1,
                _ if byte == quote => return,
                _ => {}
            }
        }
    }

    fn plain(&mut self) {
        self.save_key();
        let inside = self.inside();
        loop {
            if self.is_document_marker() || self.byte(0) == Some(b'#') {
                return;
            }
            while !self.is_blank_or_end(0) && !self.ends_plain() {
                self.position += 1;
            }
            if !self.is_blank() && !self.is_break() {
                return self.refuse_question_mark();
            }
            while self.is_blank() || self.is_break() {
                self.key_allowed |= self.step() && !self.is_in_brackets();
            }
            if !self.is_in_brackets() && self.column() < inside {
                return;
            }
        }
    }

    /// Puts a list where neither it nor a key may be, which parsers refuse in the same words.
    fn refuse_question_mark(&mut self) {
        if self.byte(0) == Some(b'?') {
            self.edit((self.position..self.position, b"[]"));
        }
    }

    /// Whether a plain scalar ends here without a blank.
    fn ends_plain(&self) -> bool {
        match self.byte(0) {
            Some(b':') => self.is_blank_or_end(1),
            Some(b',' | b'?' | b'[' | b']' | b'{' | b'}') => self.is_in_brackets(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn only_what_go_reads_otherwise_changes() {
        for (text, changed) in [
            ("a: [!x, b]", "a: [!x; b]"),
            ("a: [1, !x]\n", "a: [1, !x;\n"),
            ("a: !x,y [b]\n", "a: !x;y [b]\n"),
            ("[ # c, !d, e\n !x, b]", "[ # c, !d, e\n !x; b]"),
            (
                "[&a !x, 'it''s !y, z', \"\\\" !z, z\"]",
                "[&a !x; 'it''s !y, z', \"\\\" !z, z\"]",
            ),
            ("[a !x, b, {c: !y, d: 1}]", "[a !x, b, {c: !y; d: 1}]"),
            (
                "a: b !x, c\nd: |\n  !x, y\n\n  !z, z\ne: [!x, 1]\n",
                "a: b !x, c\nd: |\n  !x, y\n\n  !z, z\ne: [!x; 1]\n",
            ),
            (
                "- a: >-\n    [!x, y\n  b: [!x, 1]\n",
                "- a: >-\n    [!x, y\n  b: [!x; 1]\n",
            ),
            ("a: b\n  [!x, c]\nd: [!x, y]\n", "a: b\n  [!x, c]\nd: [!x; y]\n"),
            ("- b\n  !x, c\n- !x, y\n", "- b\n  !x, c\n- !x; y\n"),
            ("a: |\nb: [!x, y]\n", "a: |\nb: [!x; y]\n"),
            ("\"k, !x\": [!x, y]\n", "\"k, !x\": [!x; y]\n"),
            ("{\"a\": ?!1, 2}", "{\"a\": ?!1; 2}"),
            ("[&a?!x, y]", "[&a?!x; y]"),
            ("--- !x, [y]\n...\n", "--- !x; [y]\n...\n"),
            ("[!<a,b>, !<c> d, !e]", "[!<a,b>; !<c> d, !e;"),
            ("a: |\r !x,\u{85} !x,\rb: !x,", "a: |\r !x,\u{85} !x,\rb: !x;"),
            (
                "# !x,\u{2028}!x, a: [b\r!x, # !x,\u{2029}!x,]",
                "# !x,\u{2028}!x; a: [b\r!x, # !x,\u{2029}!x;;",
            ),
            ("a:\n  b: |\n    !x,\n  !x, c: 1", "a:\n  b: |\n    !x,\n  !x; c: 1"),
            ("- |2-\n    !x,\n  !x,\n !x,", "- |2-\n    !x,\n  !x,\n !x;"),
            ("a: >\n\n   !x,\n  !x, b", "a: >\n\n   !x,\n  !x; b"),
            ("\"it\\'s\": 'it\\'", "\"it's\": 'it\\'"),
            ("[\"\\/\", '\\/', \\/]", "[\"\\'/\", '\\/', \\/]"),
            ("[a?b, !c?d e, {f: g?}]\nh?", "[a[]?b, !c?d e, {f: g[]?}]\nh?"),
            ("%YAML 1.2\n---\na: %YAML 1.2", "%YAML 1.3\n---\na: %YAML 1.2"),
            ("# a\r%YAML\t 123.1", "# a\r%YAML\t 000000000123.1"),
            ("%YAML 1.234", "%YAML 1.000000000234"),
        ] {
            assert_eq!(&*translated(text.as_bytes()), changed.as_bytes(), "{text}");
        }
    }
}
