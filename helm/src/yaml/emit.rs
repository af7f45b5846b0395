//! From plain data to text: the block style of go-yaml, with keys in natural order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::node::Node;
use super::order;
use super::style::{self, Style, is_break, is_printable, is_space};
use crate::number;

const INDENT: usize = 2;
/// Longer keys are written with `? `.
const MAX_SIMPLE_KEY: usize = 128;
/// So many characters of Base64 stand on a line.
const BINARY_LINE: usize = 70;

/// What the two versions of go-yaml write differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Scalars are folded, and lists stand at the column of their key.
    V2,
    /// Lists stand deeper than their key, and only tabs in scalars of several lines are no reason for quotes.
    V3,
}

impl Version {
    /// Scalars are folded at a space beyond this column.
    const fn width(self) -> usize {
        match self {
            Self::V2 => 80,
            Self::V3 => usize::MAX,
        }
    }
}

/// Writes one document; it ends with a line break.
pub fn emit(node: &Node) -> String {
    emit_as(Version::V2, node)
}

/// Writes one document as a version does.
pub(super) fn emit_as(version: Version, node: &Node) -> String {
    let mut emitter = Emitter {
        version,
        text: String::new(),
        column: 0,
        whitespace: true,
        indention: true,
    };
    emitter.node(
        node,
        Place {
            indent: None,
            role: Role::Root,
        },
    );
    emitter.break_line_to(0);
    emitter.text
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Place {
    /// Columns of the surrounding collection, nothing at the root.
    indent: Option<usize>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Item,
    Key,
    Value,
}

impl Place {
    fn columns(self) -> usize {
        self.indent.unwrap_or(0)
    }

    fn inner(self, role: Role) -> Self {
        let indent = Some(self.indent.map_or(0, |indent| indent + INDENT));
        Self { indent, role }
    }

    fn with(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

struct Emitter {
    version: Version,
    text: String,
    /// Characters since the last line break.
    column: usize,
    /// The last thing written was white space.
    whitespace: bool,
    /// Only indentation and indicators were written on this line.
    indention: bool,
}

impl Emitter {
    fn node(&mut self, node: &Node, place: Place) {
        match node {
            Node::Null => self.plain("null", place),
            Node::Bool(value) => self.plain(if *value { "true" } else { "false" }, place),
            Node::Int(number) => self.plain(&number.to_string(), place),
            Node::Uint(number) => self.plain(&number.to_string(), place),
            Node::Float(number) => self.plain(&float_text(*number), place),
            Node::Text(text) => self.string(text, place),
            Node::Bytes(bytes) if self.version == Version::V3 => self.binary(bytes, place),
            Node::Bytes(bytes) => self.string(&String::from_utf8_lossy(bytes), place),
            Node::List(items) if items.is_empty() => self.indicator("[]", true, false),
            Node::Map(entries) if entries.is_empty() => self.indicator("{}", true, false),
            Node::List(items) => {
                let item = if self.version == Version::V2 && place.role == Role::Value && !self.indention {
                    place.with(Role::Item)
                } else {
                    place.inner(Role::Item)
                };
                for node in items {
                    self.break_line_to(item.columns());
                    self.indicator("-", true, true);
                    self.node(node, item);
                }
            }
            Node::Map(entries) => {
                let entry = place.inner(Role::Key);
                let keys = entries.iter().map(|(key, node)| (key.as_str(), node)).collect();
                for (key, node) in order::sorted(keys, self.version) {
                    self.break_line_to(entry.columns());
                    self.entry(key, node, entry);
                }
            }
        }
    }

    fn entry(&mut self, key: &str, node: &Node, place: Place) {
        if key.len() <= MAX_SIMPLE_KEY && !style::is_multiline(key) {
            self.string(key, place);
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.string(key, place.with(Role::Value));
            self.break_line_to(place.columns());
            self.indicator(":", true, true);
        }
        self.node(node, place.with(Role::Value));
    }

    fn string(&mut self, text: &str, place: Place) {
        match style::of_string(text, place.role == Role::Key, self.version) {
            Style::Plain => self.plain(text, place),
            Style::SingleQuoted => self.single_quoted(text, place),
            Style::DoubleQuoted => self.double_quoted(text, place),
            Style::Literal => self.literal(text, place),
        }
    }

    /// Bytes in Base64; what does not fit on one line is a block of lines.
    fn binary(&mut self, bytes: &[u8], place: Place) {
        self.indicator("!!binary", true, false);
        let text = STANDARD.encode(bytes);
        if text.len() < BINARY_LINE {
            self.plain(&text, place);
            return;
        }
        let mut rest = text.as_str();
        let mut lines = String::with_capacity(text.len() + text.len() / BINARY_LINE + 1);
        while !rest.is_empty() {
            let (line, following) = rest.split_at(BINARY_LINE.min(rest.len()));
            lines.push_str(line);
            lines.push('\n');
            rest = following;
        }
        self.literal(&lines, place);
    }

    fn plain(&mut self, text: &str, place: Place) {
        if !self.whitespace {
            self.put(' ');
        }
        let place = continuation(place);
        let mut spaces = false;
        for (position, character) in text.char_indices() {
            let next = text[position + character.len_utf8()..].chars().next();
            if is_space(character) {
                if self.may_fold(place, spaces) && next != Some(' ') {
                    self.break_line_to(place.columns());
                } else {
                    self.put(character);
                }
            } else {
                self.put(character);
                self.indention = false;
            }
            spaces = is_space(character);
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, place: Place) {
        self.indicator("'", true, false);
        let place = continuation(place);
        let (mut spaces, mut breaks) = (false, false);
        for (position, character) in text.char_indices() {
            let next = text[position + character.len_utf8()..].chars().next();
            if is_space(character) {
                let inside = position > 0 && next.is_some();
                if self.may_fold(place, spaces) && inside && next != Some(' ') {
                    self.break_line_to(place.columns());
                } else {
                    self.put(character);
                }
                spaces = true;
            } else if is_break(character) {
                if !breaks && character == '\n' {
                    self.put_break('\n');
                }
                self.put_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.break_line_to(place.columns());
                }
                if character == '\'' {
                    self.put('\'');
                }
                self.put(character);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        self.indicator("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, place: Place) {
        self.indicator("\"", true, false);
        let place = continuation(place);
        // A leading byte order mark makes Go escape everything behind it as well.
        let escape_all = text.starts_with('\u{feff}');
        let mut spaces = false;
        for (position, character) in text.char_indices() {
            let next = text[position + character.len_utf8()..].chars().next();
            if escape_all || matches!(character, '"' | '\\') || is_break(character) || !is_printable(character) {
                self.put_all(&escape(character));
                spaces = false;
            } else if is_space(character) {
                if self.may_fold(place, spaces) && position > 0 && next.is_some() {
                    self.break_line_to(place.columns());
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(character);
                }
                spaces = true;
            } else {
                self.put(character);
                spaces = false;
            }
        }
        self.indicator("\"", false, false);
    }

    fn literal(&mut self, text: &str, place: Place) {
        self.indicator("|", true, false);
        if text.starts_with(|first| is_space(first) || is_break(first)) {
            self.indicator(&INDENT.to_string(), false, false);
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().map(is_break), from_end.next().map(is_break)) {
            (None | Some(false), _) => self.indicator("-", false, false),
            (Some(true), None | Some(true)) => self.indicator("+", false, false),
            (Some(true), Some(false)) => {}
        }
        self.put_break('\n');
        self.indention = true;
        self.whitespace = true;
        let place = continuation(place);
        let mut breaks = true;
        for character in text.chars() {
            if is_break(character) {
                self.put_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.break_line_to(place.columns());
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn may_fold(&self, place: Place, after_space: bool) -> bool {
        place.role != Role::Key && !after_space && self.column > self.version.width()
    }

    /// Starts a new line unless this one holds nothing but the wanted indentation.
    fn break_line_to(&mut self, columns: usize) {
        if !self.indention || self.column > columns || (self.column == columns && !self.whitespace) {
            self.put_break('\n');
        }
        while self.column < columns {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    /// Punctuation; `opens` says that a nested block may follow on the same line.
    fn indicator(&mut self, text: &str, after_space: bool, opens: bool) {
        if after_space && !self.whitespace {
            self.put(' ');
        }
        self.put_all(text);
        self.whitespace = false;
        self.indention = self.indention && opens;
    }

    fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    fn put_all(&mut self, text: &str) {
        for character in text.chars() {
            self.put(character);
        }
    }

    fn put_break(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
    }
}

/// Further lines of a scalar stand one level deeper than the collection that holds it.
fn continuation(place: Place) -> Place {
    let indent = Some(place.columns() + INDENT);
    Place { indent, ..place }
}

fn float_text(number: f64) -> String {
    match number::format_float(number).as_str() {
        "+Inf" => ".inf".to_owned(),
        "-Inf" => "-.inf".to_owned(),
        "NaN" => ".nan".to_owned(),
        text => text.to_owned(),
    }
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(character) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
