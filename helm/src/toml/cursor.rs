//! Where the reader stands in a text, rune by rune, and which line an error names. Knows nothing of TOML but which runes a text must
//! not have.

use crate::bounds::BoundError;
use crate::text::first_rune;

/// What stands behind the last rune.
pub(super) const END: char = '\0';

/// Why a text is not read.
#[derive(Debug)]
pub(super) enum Problem {
    /// The text is no TOML.
    Wrong { line: i64, message: String },
    /// The library finds itself broken, which a template sees as an error of the function.
    Broken(String),
    /// We refuse the text.
    Bound(BoundError),
}

impl From<BoundError> for Problem {
    fn from(bound: BoundError) -> Self {
        Self::Bound(bound)
    }
}

pub(super) type Read<T> = Result<T, Problem>;

pub(super) struct Cursor<'t> {
    text: &'t [u8],
    position: usize,
    line: i64,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            position: 0,
            line: 1,
        }
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    pub(super) const fn line(&self) -> i64 {
        self.line
    }

    /// The text from a position up to here.
    pub(super) fn since(&self, start: usize) -> &'t [u8] {
        &self.text[start..self.position]
    }

    /// The next rune, which stays.
    pub(super) fn peek(&self) -> Read<char> {
        let rest = &self.text[self.position..];
        let Some(rune) = first_rune(rest) else {
            return Ok(END);
        };
        let Some(character) = rune.character else {
            return Err(self.wrong(format!("invalid UTF-8 byte: 0x{:02x}", rest[0])));
        };
        let is_control = match character {
            '\t' | '\n' => false,
            '\r' => rest.get(1) != Some(&b'\n'),
            other => other.is_ascii_control(),
        };
        if is_control {
            let message = format!(
                "TOML files cannot contain control characters: '0x{:02x}'",
                u32::from(character)
            );
            return Err(self.wrong(message));
        }
        Ok(character)
    }

    /// The next rune, which is passed.
    pub(super) fn next(&mut self) -> Read<char> {
        let character = self.peek()?;
        if character != END {
            self.line += i64::from(character == '\n');
            self.position += character.len_utf8();
        }
        Ok(character)
    }

    /// Passes the next rune if it is this one.
    pub(super) fn accept(&mut self, wanted: char) -> Read<bool> {
        let is_there = self.peek()? == wanted;
        if is_there {
            self.next()?;
        }
        Ok(is_there)
    }

    /// Passes runes as long as they are wanted; gives the one that is not.
    pub(super) fn skip(&mut self, is_wanted: impl Fn(char) -> bool) -> Read<char> {
        loop {
            let character = self.peek()?;
            if character == END || !is_wanted(character) {
                return Ok(character);
            }
            self.next()?;
        }
    }

    pub(super) fn skip_blanks(&mut self) -> Read<char> {
        self.skip(is_blank)
    }

    /// Goes back by so many bytes, which end no line.
    pub(super) const fn go_back(&mut self, bytes: usize) {
        self.position -= bytes;
    }

    /// An error in the line of the next rune.
    pub(super) fn wrong(&self, message: impl Into<String>) -> Problem {
        Problem::Wrong {
            line: self.line,
            message: message.into(),
        }
    }

    /// An error about a rune that was passed. At the end of a text the line is the last one that is not empty.
    pub(super) fn wrong_about(&self, character: char, message: impl Into<String>) -> Problem {
        let behind_line = character == END && self.position > 0 && self.text[self.position - 1] == b'\n';
        Problem::Wrong {
            line: self.line - i64::from(behind_line),
            message: message.into(),
        }
    }

    /// An error that names the line before.
    pub(super) fn wrong_before(&self, message: impl Into<String>) -> Problem {
        Problem::Wrong {
            line: self.line - 1,
            message: message.into(),
        }
    }
}

pub(super) const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

pub(super) const fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r')
}
