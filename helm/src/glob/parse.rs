//! Reads a pattern: which characters stand for what. A NUL ends what is being read, as the library takes it for the end of the pattern.

use std::str::Chars;

use super::MAX_DEPTH;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Characters that stand for themselves.
    Text(String),
    /// `*`
    Any,
    /// `**`
    Super,
    /// `?`
    Single,
    /// `[abc]`, `[!abc]`
    List { characters: Vec<char>, is_not: bool },
    /// `[a-c]`, `[!a-c]`
    Range { low: char, high: char, is_not: bool },
    /// `{a,b}`
    AnyOf(Vec<Vec<Self>>),
    /// What alternatives have alike.
    Sequence(Vec<Self>),
}

/// Why there are no parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// The library refuses the pattern.
    Syntax,
    /// The braces nest too deeply for us.
    Depth,
}

/// What ends a text outside of braces, inside of them, and in brackets.
const OUTSIDE: &[char] = &['?', '*', '[', '{'];
const INSIDE: &[char] = &['?', '*', '[', '{', '}', ','];
const BRACKETS: &[char] = &[']'];

/// The parts of a pattern. Braces that nobody closes end with the pattern.
pub(super) fn parse(pattern: &str) -> Result<Vec<Node>, ParseError> {
    let mut reader = Reader(pattern.chars());
    let mut braces = Vec::new();
    let mut nodes = Vec::new();
    loop {
        let before = reader.clone();
        let Some(character) = reader.read()? else { break };
        match character {
            '{' if braces.len() == MAX_DEPTH => return Err(ParseError::Depth),
            '{' => braces.push(Braces {
                before: std::mem::take(&mut nodes),
                alternatives: Vec::new(),
            }),
            ',' | '}' if let Some(open) = braces.last_mut() => {
                open.alternatives.push(std::mem::take(&mut nodes));
                if character == '}' {
                    nodes = close(&mut braces);
                }
            }
            '[' => nodes.push(reader.class()?),
            '?' => nodes.push(Node::Single),
            '*' if reader.next_is('*')? => nodes.push(Node::Super),
            '*' => nodes.push(Node::Any),
            _ => {
                reader = before;
                let text = reader.text(if braces.is_empty() { OUTSIDE } else { INSIDE })?;
                if !text.is_empty() {
                    nodes.push(Node::Text(text));
                }
            }
        }
    }
    while let Some(open) = braces.last_mut() {
        open.alternatives.push(nodes);
        nodes = close(&mut braces);
    }
    Ok(nodes)
}

/// Braces whose end is not read yet.
struct Braces {
    /// What stands before them.
    before: Vec<Node>,
    alternatives: Vec<Vec<Node>>,
}

/// What stands before the innermost braces, and they.
fn close(braces: &mut Vec<Braces>) -> Vec<Node> {
    let Some(closed) = braces.pop() else { return Vec::new() };
    let mut nodes = closed.before;
    nodes.push(Node::AnyOf(closed.alternatives));
    nodes
}

#[derive(Clone)]
struct Reader<'a>(Chars<'a>);

impl Reader<'_> {
    /// The next character, unless it is the end or a NUL. The library cannot tell U+FFFD from bytes that are no text.
    fn read(&mut self) -> Result<Option<char>, ParseError> {
        match self.0.next() {
            Some(char::REPLACEMENT_CHARACTER) => Err(ParseError::Syntax),
            next => Ok(next.filter(|character| *character != '\0')),
        }
    }

    /// Steps over the next character if it is that.
    fn next_is(&mut self, wanted: char) -> Result<bool, ParseError> {
        let mut after = self.clone();
        let is_wanted = after.read()? == Some(wanted);
        if is_wanted {
            *self = after;
        }
        Ok(is_wanted)
    }

    /// What stands for itself, up to one of `ends`.
    fn text(&mut self, ends: &[char]) -> Result<String, ParseError> {
        let mut text = String::new();
        let mut is_escaped = false;
        loop {
            let before = self.clone();
            let Some(character) = self.read()? else { break };
            if !is_escaped && character == '\\' {
                is_escaped = true;
                continue;
            }
            if !is_escaped && ends.contains(&character) {
                *self = before;
                break;
            }
            is_escaped = false;
            text.push(character);
        }
        Ok(text)
    }

    /// What stands behind `[`. A range is one pair of characters and nothing else; a hyphen elsewhere is one of a list.
    fn class(&mut self) -> Result<Node, ParseError> {
        let is_not = self.next_is('!')?;
        let before = self.clone();
        let low = self.read()?.ok_or(ParseError::Syntax)?;
        let class = if self.next_is('-')? {
            let high = self.read()?.filter(|high| *high >= low).ok_or(ParseError::Syntax)?;
            Node::Range { low, high, is_not }
        } else {
            *self = before;
            let characters: Vec<char> = self.text(BRACKETS)?.chars().collect();
            if characters.is_empty() {
                return Err(ParseError::Syntax);
            }
            Node::List { characters, is_not }
        };
        if self.next_is(']')? {
            Ok(class)
        } else {
            Err(ParseError::Syntax)
        }
    }
}
