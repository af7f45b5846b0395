//! Cuts the text of a template into items. Decides trim markers, comments and what a word is; knows no grammar.

use memchr::memmem::Finder;

use super::item::{Item, ItemKind, Keyword};
use crate::text::{self, first_rune};

const LEFT_DELIMITER: &[u8] = b"{{";
const DELIMITER_LENGTH: usize = 2;
/// The minus and the space beside it.
const TRIM_MARKER_LENGTH: usize = 2;

pub(super) struct Lexer<'a> {
    input: &'a [u8],
    /// Finds where the next action begins.
    actions: Finder<'static>,
    position: usize,
    start: usize,
    open_parentheses: usize,
    is_inside_action: bool,
    problem: String,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            actions: Finder::new(LEFT_DELIMITER),
            position: 0,
            start: 0,
            open_parentheses: 0,
            is_inside_action: false,
            problem: String::new(),
        }
    }

    pub(super) fn next_item(&mut self) -> Item<'a> {
        if self.is_inside_action {
            self.inside_action()
        } else {
            self.text()
        }
    }

    /// What is wrong at the item that is an error.
    pub(super) fn problem(&self) -> &str {
        &self.problem
    }

    fn rest(&self) -> &'a [u8] {
        &self.input[self.position..]
    }

    /// Consumes one rune. An invalid byte reads as U+FFFD.
    fn advance(&mut self) -> Option<char> {
        let rune = first_rune(self.rest())?;
        self.position += rune.bytes.len();
        Some(rune.or_replacement())
    }

    fn peek(&self) -> Option<char> {
        first_rune(self.rest()).map(text::Rune::or_replacement)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let is_accepted = self.peek().is_some_and(|character| valid.contains(character));
        if is_accepted {
            self.advance();
        }
        is_accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    /// Consumes the letters, digits and underscores that stand here.
    fn accept_word(&mut self) {
        loop {
            self.position += run(self.rest(), is_word_byte);
            match self.rest().first() {
                Some(byte) if !byte.is_ascii() && self.peek().is_some_and(is_alphanumeric) => self.advance(),
                _ => return,
            };
        }
    }

    fn take(&mut self, kind: ItemKind) -> Item<'a> {
        let item = Item {
            kind,
            position: self.start,
            text: &self.input[self.start..self.position],
        };
        self.ignore();
        item
    }

    fn ignore(&mut self) {
        self.start = self.position;
    }

    /// Ends the input, so that nothing follows an error.
    fn error(&mut self, problem: impl Into<String>) -> Item<'a> {
        self.problem = problem.into();
        self.position = self.start;
        self.input = &self.input[..self.start];
        self.is_inside_action = false;
        self.take(ItemKind::Error)
    }

    fn text(&mut self) -> Item<'a> {
        loop {
            let Some(delimiter) = self.actions.find(self.rest()).map(|at| self.position + at) else {
                if self.rest().is_empty() {
                    return self.take(ItemKind::End);
                }
                self.position = self.input.len();
                return self.take(ItemKind::Text);
            };
            if delimiter > self.position {
                let mut end = delimiter;
                if has_left_trim_marker(&self.input[delimiter + DELIMITER_LENGTH..]) {
                    end = self.start + trim_right(&self.input[self.start..delimiter]).len();
                }
                self.position = end;
                let item = self.take(ItemKind::Text);
                self.position = delimiter;
                self.ignore();
                if !item.text.is_empty() {
                    return item;
                }
            }
            if let Some(item) = self.left_delimiter() {
                return item;
            }
        }
    }

    /// The delimiter that opens an action, or an error; nothing when it was a comment.
    fn left_delimiter(&mut self) -> Option<Item<'a>> {
        self.position += DELIMITER_LENGTH;
        let after_marker = if has_left_trim_marker(self.rest()) {
            TRIM_MARKER_LENGTH
        } else {
            0
        };
        if self.rest()[after_marker..].starts_with(b"/*") {
            self.position += after_marker;
            self.ignore();
            return self.comment();
        }
        let item = self.take(ItemKind::LeftDelimiter);
        self.is_inside_action = true;
        self.position += after_marker;
        self.ignore();
        self.open_parentheses = 0;
        Some(item)
    }

    fn comment(&mut self) -> Option<Item<'a>> {
        self.position += 2;
        let Some(end) = text::find(self.rest(), b"*/") else {
            return Some(self.error("unclosed comment"));
        };
        let end = self.position + end + 2;
        let Some(is_trimmed) = right_delimiter_at(&self.input[end..]) else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.position = end;
        self.close(is_trimmed);
        None
    }

    fn close(&mut self, is_trimmed: bool) {
        let mut end = self.position + DELIMITER_LENGTH;
        if is_trimmed {
            end += TRIM_MARKER_LENGTH;
            end = self.input.len() - trim_left(&self.input[end..]).len();
        }
        self.position = end;
        self.ignore();
    }

    fn right_delimiter(&mut self, is_trimmed: bool) -> Item<'a> {
        if is_trimmed {
            self.position += TRIM_MARKER_LENGTH;
            self.ignore();
        }
        self.position += DELIMITER_LENGTH;
        let item = self.take(ItemKind::RightDelimiter);
        if is_trimmed {
            self.position = self.input.len() - trim_left(self.rest()).len();
            self.ignore();
        }
        self.is_inside_action = false;
        item
    }

    fn inside_action(&mut self) -> Item<'a> {
        if let Some(is_trimmed) = right_delimiter_at(self.rest()) {
            if self.open_parentheses == 0 {
                return self.right_delimiter(is_trimmed);
            }
            return self.error("unclosed left paren");
        }
        let Some(next) = self.peek() else {
            return self.error("unclosed action");
        };
        if self.rest().first().copied().is_some_and(is_space) {
            return self.space();
        }
        let before = self.position;
        self.advance();
        match next {
            '=' => self.take(ItemKind::Assign),
            ':' if self.advance() == Some('=') => self.take(ItemKind::Declare),
            ':' => self.error("expected :="),
            '|' => self.take(ItemKind::Pipe),
            '"' => self.delimited(b'"', ItemKind::String, "unterminated quoted string"),
            '`' => self.raw_quote(),
            '$' => self.field_or_variable(ItemKind::Variable),
            '\'' => self.delimited(b'\'', ItemKind::CharConstant, "unterminated character constant"),
            '.' if self.rest().first().is_some_and(|byte| !byte.is_ascii_digit()) => {
                self.field_or_variable(ItemKind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.position = before;
                self.number()
            }
            _ if is_alphanumeric(next) => self.identifier(),
            '(' => {
                self.open_parentheses += 1;
                self.take(ItemKind::LeftParenthesis)
            }
            ')' if self.open_parentheses == 0 => self.error("unexpected right paren"),
            ')' => {
                self.open_parentheses -= 1;
                self.take(ItemKind::RightParenthesis)
            }
            ' '..='~' => self.take(ItemKind::Char),
            _ => self.error(format!(
                "unrecognized character in action: {}",
                unicode_name(Some(next))
            )),
        }
    }

    /// A run of spaces. The last one may belong to a closing trim marker.
    fn space(&mut self) -> Item<'a> {
        let count = run(self.rest(), is_space);
        self.position += count;
        let last = self.position - 1;
        if right_delimiter_at(&self.input[last..]) == Some(true) {
            self.position = last;
            if count == 1 {
                return self.right_delimiter(true);
            }
        }
        self.take(ItemKind::Space)
    }

    fn identifier(&mut self) -> Item<'a> {
        self.accept_word();
        if !self.is_at_terminator() {
            return self.error(format!("bad character {}", unicode_name(self.peek())));
        }
        let word = &self.input[self.start..self.position];
        let kind = match (Keyword::of(word), word) {
            (Some(keyword), _) => ItemKind::Keyword(keyword),
            (None, b"true" | b"false") => ItemKind::Bool,
            (None, _) => ItemKind::Identifier,
        };
        self.take(kind)
    }

    fn field_or_variable(&mut self, kind: ItemKind) -> Item<'a> {
        if self.is_at_terminator() {
            let is_variable = kind == ItemKind::Variable;
            return self.take(if is_variable {
                kind
            } else {
                ItemKind::Keyword(Keyword::Dot)
            });
        }
        self.accept_word();
        if !self.is_at_terminator() {
            return self.error(format!("bad character {}", unicode_name(self.peek())));
        }
        self.take(kind)
    }

    fn is_at_terminator(&self) -> bool {
        match self.rest() {
            [] | [b'.' | b',' | b'|' | b':' | b')' | b'(', ..] | [b'}', b'}', ..] => true,
            [byte, ..] => is_space(*byte),
        }
    }

    /// A quoted string or character constant; its content is checked by the parser.
    fn delimited(&mut self, quote: u8, kind: ItemKind, unterminated: &str) -> Item<'a> {
        loop {
            let Some(at) = memchr::memchr3(quote, b'\\', b'\n', self.rest()) else {
                return self.error(unterminated);
            };
            self.position += at + 1;
            match self.input[self.position - 1] {
                b'\\' if !matches!(self.rest(), [] | [b'\n', ..]) => self.position += 1,
                byte if byte == quote => return self.take(kind),
                _ => return self.error(unterminated),
            }
        }
    }

    fn raw_quote(&mut self) -> Item<'a> {
        match memchr::memchr(b'`', self.rest()) {
            Some(end) => {
                self.position += end + 1;
                self.take(ItemKind::RawString)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    fn number(&mut self) -> Item<'a> {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || self.input[self.position - 1] != b'i' {
                return self.bad_number();
            }
            return self.take(ItemKind::Complex);
        }
        self.take(ItemKind::Number)
    }

    fn bad_number(&mut self) -> Item<'a> {
        let text = crate::format::quote(&self.input[self.start..self.position]);
        self.error(format!("bad number syntax: {}", text::lossy(&text)))
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEXADECIMAL: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEXADECIMAL;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if (digits == DECIMAL && self.accept("eE")) || (digits == HEXADECIMAL && self.accept("pP")) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.advance();
            return false;
        }
        true
    }
}

/// The form of Go's `%#U`; the end of input prints as the rune -1.
fn unicode_name(character: Option<char>) -> String {
    match character {
        Some(character) if text::is_print(character) => format!("U+{:04X} '{character}'", character as u32),
        Some(character) => format!("U+{:04X}", character as u32),
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
    }
}

/// How many bytes of a kind a text begins with.
fn run(text: &[u8], is_kind: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_kind(**byte)).count()
}

fn is_word_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || text::is_letter(character) || text::is_digit(character)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn trim_right(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|byte| !is_space(*byte))
        .map_or(0, |last| last + 1);
    &bytes[..end]
}

fn trim_left(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    &bytes[start..]
}

fn has_left_trim_marker(bytes: &[u8]) -> bool {
    matches!(bytes, [b'-', space, ..] if is_space(*space))
}

/// Whether a right delimiter stands here, and whether it has a trim marker.
fn right_delimiter_at(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [b'}', b'}', ..] => Some(false),
        [space, b'-', b'}', b'}', ..] if is_space(*space) => Some(true),
        _ => None,
    }
}
