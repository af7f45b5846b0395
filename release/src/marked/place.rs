//! Lines and columns of a text.

use std::fmt;

use expressions::Position;

use super::Scalar;

/// A line of a text, and the column where it is known exactly. Both begin with one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(formatter, "{}:{column}", self.line),
            None => write!(formatter, "{}", self.line),
        }
    }
}

impl Place {
    /// The line with this byte.
    pub(crate) fn line_of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        Self {
            line: before.matches('\n').count() + 1,
            column: None,
        }
    }

    /// The line and column of this byte.
    fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            column: Some(line.chars().count() + 1),
            ..Self::line_of(text, byte)
        }
    }

    /// The place of a position in the value of a key: exactly where the value can be found letter by letter, apart from white space; else the line of the key.
    pub(crate) fn within(text: &str, key: &Scalar<'_>, value: &Scalar<'_>, position: Position) -> Option<Self> {
        let written = Written::find(text, key, value);
        let byte = written.and_then(|written| written.byte_of(&value.text, position));
        match byte {
            Some(byte) => Some(Self::of(text, byte)),
            None => key.start.map(|start| Self::line_of(text, start)),
        }
    }
}

/// Something to say about a file, and the place that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) place: Option<Place>,
    pub(crate) words: String,
}

impl Remark {
    /// With the file before it.
    pub(crate) fn told(&self, file: &dyn fmt::Display) -> String {
        let words = &self.words;
        match self.place {
            Some(place) => format!("{file}:{place}: {words}"),
            None => format!("{file}: {words}"),
        }
    }
}

/// How a value stands in a text.
struct Written<'t> {
    /// The text from the first letter of the value on.
    rest: &'t str,
    /// The byte at which that begins.
    start: usize,
    /// The quotes around it, if it has letters that are written otherwise than they are read.
    quote: Option<char>,
}

impl<'t> Written<'t> {
    fn find(text: &'t str, key: &Scalar<'_>, value: &Scalar<'_>) -> Option<Self> {
        let (rest, quote) = match value.start {
            Some(start) => (text.get(start..)?, None),
            None => Self::behind(text.get(key.start? + key.text.len()..)?)?,
        };
        Some(Self {
            rest,
            start: text.len() - rest.len(),
            quote,
        })
    }

    /// Passes over all that may stand between the key that ends here and its value.
    fn behind(rest: &'t str) -> Option<(&'t str, Option<char>)> {
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
        let mut rest = rest.trim_start().strip_prefix(':')?.trim_start();
        loop {
            rest = match rest.chars().next()? {
                // Comments, anchors and tags.
                '#' => rest.get(rest.find('\n')?..)?.trim_start(),
                '&' | '!' => rest.get(rest.find(char::is_whitespace)?..)?.trim_start(),
                '|' | '>' => return Some((rest.get(rest.find('\n')?..)?, None)),
                quote @ ('"' | '\'') => return Some((rest.get(1..)?, Some(quote))),
                _ => return Some((rest, None)),
            };
        }
    }

    /// The byte at which the letter of a value stands that is at this position; or the end, if none is.
    ///
    /// Lines are folded and indented by white space alone, so the other letters are the same, one by one.
    fn byte_of(&self, value: &str, position: Position) -> Option<usize> {
        let is_letter = |letter: &char| !letter.is_whitespace();
        let mut lines = value.split('\n');
        let above = lines.by_ref().take(position.line.saturating_sub(1));
        let above: usize = above.map(|line| line.chars().filter(is_letter).count()).sum();
        let before = lines.next()?.chars().take(position.column.saturating_sub(1));
        let before = above + before.filter(is_letter).count();

        let mut written = self.rest.char_indices().peekable();
        let mut end = self.start;
        for (index, letter) in value.chars().filter(is_letter).enumerate() {
            let (byte, found) = loop {
                let (byte, found) = written.next()?;
                let next = written.peek().map(|(_, next)| *next);
                if self.escapes(found, next) {
                    let (_, escaped) = written.next()?;
                    if is_letter(&escaped) {
                        break (byte, escaped);
                    }
                } else if is_letter(&found) {
                    break (byte, found);
                }
            };
            if found != letter {
                return None;
            }
            if index == before {
                return Some(self.start + byte);
            }
            end = self.start + byte + found.len_utf8();
        }
        Some(end)
    }

    /// Whether a sign stands there only for the sake of the next one.
    fn escapes(&self, sign: char, next: Option<char>) -> bool {
        match self.quote {
            Some('"') => sign == '\\' && next.is_some_and(|next| matches!(next, '"' | '\\') || next.is_whitespace()),
            Some(_) => sign == '\'' && next == Some('\''),
            None => false,
        }
    }
}
