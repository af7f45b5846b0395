//! The text of an expression and the tree of what it says.

mod literals;
mod parser;
#[cfg(test)]
pub(crate) mod tests;
mod tokens;
mod tree;

use std::fmt;

use thiserror::Error;

pub(crate) use self::tree::{Kind, Literal, Macro, Node, Operator};

/// Bytes that an expression may have. The longest that is known has some sixty.
pub const LONGEST_TEXT: usize = 16 * 1024;

/// How deep the tree of an expression may be: brackets in brackets, calls in calls, selections in a row, terms of a sum. Neither `&&` nor `||` in a
/// row makes it deeper. A walk of a tree takes some kilobytes of stack for each level when it is not optimised.
pub const DEEPEST: usize = 100;

/// Lists, maps and macros that an expression may have. Each can make a value one level deeper, also in a row where the tree is flat; who compares or drops a value
/// goes as deep as it is.
pub const MOST_LISTS: usize = 256;

/// An expression that was understood.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) text: String,
    pub(crate) root: Node,
}

impl Expression {
    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what it gives may depend on this field of a variable: it selects it, or uses the variable as a whole. A variable of a macro that has the same name
    /// counts as well.
    pub fn reads(&self, variable: &str, field: &str) -> bool {
        let is_variable = |node: &Node| matches!(&node.kind, Kind::Name(name) if name == variable);
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            let selected = match &node.kind {
                Kind::Select { operand, field } | Kind::Has { operand, field } if is_variable(operand) => Some(field),
                Kind::Index { operand, index } if is_variable(operand) => match &index.kind {
                    Kind::Literal(Literal::Text(field)) => Some(field),
                    _ => return true,
                },
                _ => None,
            };
            match selected {
                Some(selected) if selected == field => return true,
                Some(_) => {}
                None if is_variable(node) => return true,
                None => open.extend(node.kind.children()),
            }
        }
        false
    }

    /// What was written for a part of it.
    pub(crate) fn written(&self, node: &Node) -> &str {
        self.text.get(node.start..node.end).unwrap_or_default().trim()
    }

    pub(crate) fn position(&self, node: &Node) -> Position {
        Position::of(&self.text, node.start)
    }
}

/// A place in a text. Both begin with one; columns count characters, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Position {
    fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// More bytes than [`LONGEST_TEXT`].
    #[error("the expression has {length} bytes and may have {LONGEST_TEXT}: split it into several stages")]
    TooLong {
        /// Its bytes.
        length: usize,
    },
    /// Deeper than [`DEEPEST`].
    #[error("{position}: brackets, calls or terms are nested more than {DEEPEST} deep")]
    TooDeep {
        /// Where that begins.
        position: Position,
    },
    /// More lists, maps and macros than [`MOST_LISTS`].
    #[error("{position}: there are more than {MOST_LISTS} lists, maps and macros: split it into several stages")]
    TooManyLists {
        /// Where the first begins that is too much.
        position: Position,
    },
    /// A character or literal that does not exist in the language.
    #[error("{position}: {problem}")]
    Token {
        /// Where it begins.
        position: Position,
        /// What is wrong with it.
        problem: String,
    },
    /// Something else than can stand in this place.
    #[error("{position}: expected {expected}, found {found}")]
    Unexpected {
        /// Where it stands.
        position: Position,
        /// What can stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
}

impl ParseError {
    /// Where in the text it is, unless it is about the whole.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::TooLong { .. } => None,
            Self::TooDeep { position }
            | Self::TooManyLists { position }
            | Self::Token { position, .. }
            | Self::Unexpected { position, .. } => Some(*position),
        }
    }

    /// What is wrong, without where: for whoever knows the place in a larger text.
    pub fn problem(&self) -> String {
        let told = self.to_string();
        let place = self.position().map(|position| format!("{position}: "));
        let problem = place.and_then(|place| told.strip_prefix(&place).map(str::to_owned));
        problem.unwrap_or(told)
    }
}

/// Whether a text can be the name of a variable: letters, digits and `_`, not beginning with a digit, and none of the words that the language keeps for itself.
pub fn is_variable(text: &str) -> bool {
    parse(text).is_ok_and(|expression| matches!(expression.root.kind, Kind::Name(name) if name == text))
}

/// Understands a text as an expression. Takes time linear in its length and a bounded stack, whatever the text is.
pub fn parse(text: &str) -> Result<Expression, ParseError> {
    if text.len() > LONGEST_TEXT {
        return Err(ParseError::TooLong { length: text.len() });
    }
    let tokens = tokens::read(text)?;
    let root = parser::Parser::new(text, &tokens).whole()?;
    Ok(Expression {
        text: text.to_owned(),
        root,
    })
}
