//! The items that the text of a template is cut into: their kinds, the keywords, and how errors quote them.

use std::fmt;

use super::syntax::Span;
use crate::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    String,
    Text,
    Variable,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Dot,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Nil,
    Template,
    With,
}

impl Keyword {
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"range" => Self::Range,
            b"nil" => Self::Nil,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }
}

/// One item: what it is, where it stands (a byte of the text), and its own text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) kind: ItemKind,
    pub(super) position: usize,
    pub(super) text: &'a [u8],
}

impl Item<'_> {
    /// Where it stands.
    pub(super) fn span(&self) -> Span {
        Span::new(self.position..self.position + self.text.len())
    }
}

impl fmt::Display for Item<'_> {
    /// The form that parse errors quote.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ItemKind::End => formatter.write_str("EOF"),
            ItemKind::Keyword(_) => write!(formatter, "<{}>", text::lossy(self.text)),
            _ if self.text.len() > 10 => {
                let length = text::runes(self.text).take(10).map(|rune| rune.bytes.len()).sum();
                write!(
                    formatter,
                    "{}...",
                    text::lossy(&crate::format::quote(&self.text[..length]))
                )
            }
            _ => write!(formatter, "{}", text::lossy(&crate::format::quote(self.text))),
        }
    }
}
