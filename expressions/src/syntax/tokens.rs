//! The words of the language: where each begins and ends, and what it is.

use super::{ParseError, Position, literals, tree::Literal};

/// One word and where it is, in bytes from `start` to before `end`.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) word: Word,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name; also those that may only stand after a dot.
    Name(String),
    Literal(Literal),
    /// A whole number without its sign, which only the parser knows: the smallest one has no positive counterpart.
    Whole(u64),
    /// Brackets, operators, and the word `in`.
    Symbol(&'static str),
    End,
}

/// Longer ones before those that they begin with.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ",", ".", "(", ")", "[", "]",
    "{", "}",
];

/// All words of a text, without spaces and comments; the last is the end.
pub(super) fn read(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    let mut start = 0;
    loop {
        start += blank(&text[start..]);
        let rest = &text[start..];
        let (length, word) = next(rest).map_err(|problem| ParseError::Token {
            position: Position::of(text, start),
            problem,
        })?;
        let is_end = word == Word::End;
        tokens.push(Token {
            start,
            end: start + length,
            word,
        });
        if is_end {
            return Ok(tokens);
        }
        start += length;
    }
}

/// How many bytes of spaces and comments a text begins with.
fn blank(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        if !rest.starts_with("//") {
            return text.len() - rest.len();
        }
        rest = rest.find('\n').map_or("", |newline| &rest[newline..]);
    }
}

/// The first word of a text that begins with one, and its length.
fn next(text: &str) -> Result<(usize, Word), String> {
    let Some(first) = text.chars().next() else {
        return Ok((0, Word::End));
    };
    if let Some((length, literal)) = literals::quoted(text)? {
        return Ok((length, Word::Literal(literal)));
    }
    if let Some(number) = literals::number(text)? {
        return Ok(number);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = text
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(text.len());
        return Ok((length, named(&text[..length])));
    }
    match SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)) {
        Some(symbol) => Ok((symbol.len(), Word::Symbol(symbol))),
        None => Err(stray(first)),
    }
}

fn named(name: &str) -> Word {
    match name {
        "true" => Word::Literal(Literal::Bool(true)),
        "false" => Word::Literal(Literal::Bool(false)),
        "null" => Word::Literal(Literal::Null),
        "in" => Word::Symbol("in"),
        _ => Word::Name(name.to_owned()),
    }
}

fn stray(character: char) -> String {
    match character {
        '=' => "a single = compares nothing: write ==".to_owned(),
        '&' | '|' => format!("a single {character} means nothing: write {character}{character}"),
        '`' => "a name in backticks is not part of the language: write object[\"name\"]".to_owned(),
        _ => format!("the character {character:?} means nothing here"),
    }
}
