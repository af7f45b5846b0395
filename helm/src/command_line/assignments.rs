//! The little language of `--set` and its like, with Helm's errors and oddities.

use std::collections::BTreeMap;

use super::ReadFile;
use crate::bounds::{BoundError, MAX_DEPTH, beyond};
use crate::format::{quote_char, quoted};
use crate::json;
use crate::number;
use crate::profile::OpenIndex;
use crate::text::is_space;
use crate::yaml::Node;

/// What stands behind the equals sign.
pub(super) enum Assignment<'a, 'f> {
    /// JSON.
    Json,
    /// An integer, a boolean, null or a string.
    Typed,
    /// A string.
    Text,
    /// The name of a file.
    File(&'a mut ReadFile<'f>),
    /// A string to the end of the text.
    Literal,
}

/// Why a text is no assignment, in Helm's words.
pub(super) struct Fault(pub(super) String);

/// Why reading came to an end.
enum Stop {
    /// Nothing follows. Helm takes what there is.
    End,
    Fault(String),
}

type Read<T> = Result<T, Stop>;
type Entries = BTreeMap<String, Node>;

/// How many keys with dots may follow each other.
const MAX_LEVELS: usize = 30;
/// The largest place in a list.
const MAX_INDEX: i64 = 65_536;

/// Lays the assignments of a text over a mapping.
pub(super) fn assign(
    text: &str,
    assignment: Assignment<'_, '_>,
    open_index: OpenIndex,
    values: &mut Node,
) -> Result<(), Fault> {
    let Some(entries) = values.as_map_mut() else {
        return Ok(());
    };
    let mut parser = Parser {
        rest: text,
        assignment,
        open_index,
    };
    loop {
        match parser.key(entries, 0, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Fault(problem)) => return Err(Fault(problem)),
        }
    }
}

fn fault<T>(problem: impl Into<String>) -> Read<T> {
    Err(Stop::Fault(problem.into()))
}

/// The fault of a value that is no list or mapping where one is needed.
fn mismatch<T>(node: &Node, wanted: &str) -> Read<T> {
    let found = match node {
        Node::Null => "nil",
        Node::Bool(_) => "bool",
        Node::Int(_) | Node::Uint(_) => "int64",
        Node::Float(_) => "float64",
        Node::Text(_) | Node::Bytes(_) => "string",
        Node::List(_) => "[]interface {}",
        Node::Map(_) => "map[string]interface {}",
    };
    fault(format!(
        "unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"
    ))
}

/// Sets an entry. An empty key sets nothing.
fn set(entries: &mut Entries, key: String, node: Node) {
    if !key.is_empty() {
        entries.insert(key, node);
    }
}

struct Parser<'a, 'f, 't> {
    rest: &'t str,
    assignment: Assignment<'a, 'f>,
    open_index: OpenIndex,
}

impl Parser<'_, '_, '_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Reads up to one of some characters; gives what came before and which one it was, none at the end. A backslash makes the next
    /// character plain, but not for literals.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let has_escapes = !matches!(self.assignment, Assignment::Literal);
        let mut text = String::new();
        while let Some(character) = self.next() {
            if stops.contains(&character) {
                return (text, Some(character));
            }
            if character == '\\' && has_escapes {
                text.extend(self.next());
            } else {
                text.push(character);
            }
        }
        (text, None)
    }

    fn key(&mut self, entries: &mut Entries, level: usize, depth: usize) -> Read<()> {
        let stops: &[char] = match self.assignment {
            Assignment::Literal => &['=', '[', '.'],
            _ => &['=', '[', '.', ','],
        };
        match self.until(stops) {
            (key, None) if key.is_empty() => Err(Stop::End),
            (key, None) => fault(format!("key {} has no value", quoted(&key))),
            (key, Some('[')) => self.list(entries, key, level, depth),
            (key, Some('.')) => self.map(entries, key, level + 1, depth),
            (key, Some(',')) => fault(format!("key {} has no value (cannot end with ,)", quoted(&key))),
            (key, Some(_)) => match self.value() {
                Ok(node) => {
                    set(entries, key, node);
                    Ok(())
                }
                Err(Stop::End) => {
                    set(entries, key, Node::from(""));
                    Err(Stop::End)
                }
                Err(fault) => Err(fault),
            },
        }
    }

    fn list(&mut self, entries: &mut Entries, key: String, level: usize, depth: usize) -> Read<()> {
        let index = self.index()?;
        let mut items = match entries.get_mut(&key) {
            None => Vec::new(),
            Some(Node::List(items)) => std::mem::take(items),
            Some(other) => return mismatch(other, "[]interface {}"),
        };
        let outcome = self.item(&mut items, index, level, depth + 1);
        set(entries, key, Node::List(items));
        outcome
    }

    fn map(&mut self, entries: &mut Entries, key: String, level: usize, depth: usize) -> Read<()> {
        if level > MAX_LEVELS {
            return fault(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_LEVELS}"
            ));
        }
        let mut inner = match entries.get_mut(&key) {
            None => Entries::new(),
            Some(Node::Map(inner)) => std::mem::take(inner),
            Some(other) => return mismatch(other, "map[string]interface {}"),
        };
        let outcome = self.key(&mut inner, level, depth + 1);
        if outcome.is_ok() && inner.is_empty() {
            return fault(format!("key map {} has no value", quoted(&key)));
        }
        if !inner.is_empty() {
            set(entries, key, Node::Map(inner));
        }
        outcome
    }

    fn index(&mut self) -> Read<i64> {
        let problem = match self.until(&[']']) {
            (_, None) if self.open_index == OpenIndex::Ends => return Err(Stop::End),
            (_, None) => "EOF".to_owned(),
            (digits, Some(_)) => match number::parse_decimal(&digits) {
                Ok(index) => return Ok(index),
                Err(problem) => problem,
            },
        };
        fault(format!("error parsing index: {problem}"))
    }

    /// What follows the index of a list.
    fn item(&mut self, items: &mut Vec<Node>, index: i64, level: usize, depth: usize) -> Read<()> {
        let Ok(place) = usize::try_from(index) else {
            return fault(format!("negative {index} index not allowed"));
        };
        if depth > MAX_DEPTH {
            return fault(beyond(BoundError::Depth));
        }
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            let text: Vec<String> = text.chars().map(quote_char).collect();
            return fault(format!("unexpected data at end of array index: [{}]", text.join(" ")));
        }
        match stop {
            None => Err(Stop::End),
            Some('=') => {
                let node = match self.value() {
                    Err(Stop::End) => Node::from(""),
                    read => read?,
                };
                set_item(items, place, node)
            }
            Some('[') => {
                let index = self.index()?;
                let mut inner = match items.get_mut(place) {
                    None | Some(Node::Null) => Vec::new(),
                    Some(Node::List(inner)) => std::mem::take(inner),
                    Some(other) => return mismatch(other, "[]interface {}"),
                };
                let outcome = self.item(&mut inner, index, level, depth + 1);
                put_back(items, place, Node::List(inner), outcome)
            }
            Some(_) => {
                let mut inner = match items.get_mut(place) {
                    Some(Node::Map(inner)) => std::mem::take(inner),
                    Some(other) => {
                        *other = Node::empty_map();
                        Entries::new()
                    }
                    None => Entries::new(),
                };
                let outcome = self.key(&mut inner, level, depth + 1);
                put_back(items, place, Node::Map(inner), outcome)
            }
        }
    }

    /// What follows the equals sign, up to and with the comma.
    fn value(&mut self) -> Read<Node> {
        match self.assignment {
            Assignment::Literal => Ok(Node::Text(std::mem::take(&mut self.rest).to_owned())),
            Assignment::Json => self.json(),
            _ if self.rest.is_empty() => Err(Stop::End),
            _ => {
                if let Some(rest) = self.rest.strip_prefix('{') {
                    self.rest = rest;
                    return self.items();
                }
                let (text, _) = self.until(&[',']);
                self.scalar(text)
            }
        }
    }

    fn items(&mut self) -> Read<Node> {
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            if stop.is_none() {
                return fault("list must terminate with '}'");
            }
            items.push(self.scalar(text)?);
            if stop == Some('}') {
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                return Ok(Node::List(items));
            }
        }
    }

    fn scalar(&mut self, text: String) -> Read<Node> {
        match &mut self.assignment {
            Assignment::Typed => Ok(typed(text)),
            Assignment::File(read) => match read(&text) {
                Ok(content) => {
                    Ok(String::from_utf8(content).map_or_else(|error| Node::Bytes(error.into_bytes()), Node::Text))
                }
                Err(problem) => fault(problem),
            },
            _ => Ok(Node::Text(text)),
        }
    }

    fn json(&mut self) -> Read<Node> {
        if self.skip_to_value() {
            return Ok(Node::Null);
        }
        let (node, length) = match json::decode_first(self.rest.as_bytes()) {
            Ok(read) => read,
            Err(error) => return fault(error.to_string()),
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        self.skip_to_value();
        Ok(node)
    }

    /// Skips white space and a comma; gives whether there was a comma or nothing at all.
    fn skip_to_value(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(is_space);
        match self.rest.strip_prefix(',') {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => self.rest.is_empty(),
        }
    }
}

/// Puts a changed container into its place. When the text ended within it, only a place that was there keeps it.
fn put_back(items: &mut Vec<Node>, place: usize, node: Node, outcome: Read<()>) -> Read<()> {
    if outcome.is_ok() || place < items.len() {
        set_item(items, place, node)?;
    }
    outcome
}

fn set_item(items: &mut Vec<Node>, place: usize, node: Node) -> Read<()> {
    if i64::try_from(place).is_ok_and(|place| place <= MAX_INDEX) {
        if items.len() <= place {
            items.resize(place + 1, Node::Null);
        }
        items[place] = node;
        return Ok(());
    }
    fault(format!(
        "index of {place} is greater than maximum supported index of {MAX_INDEX}"
    ))
}

/// A value as Helm guesses it.
fn typed(text: String) -> Node {
    // Go folds the long s too.
    let folded = text.replace('ſ', "s").to_ascii_lowercase();
    match folded.as_str() {
        "true" => Node::Bool(true),
        "false" => Node::Bool(false),
        "null" => Node::Null,
        "0" => Node::Int(0),
        _ if text.starts_with('0') => Node::Text(text),
        _ => match number::parse_decimal(&text) {
            Ok(number) => Node::Int(number),
            Err(_) => Node::Text(text),
        },
    }
}
