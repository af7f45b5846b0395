//! What go-yaml makes of a document before Helm turns it to JSON: mappings with scalar keys of any type. Only asked for when a key has no form
//! in JSON, because Helm says then what stands there.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::decode::{KeyError, is_merge, key_text, scalar};
use super::error::Error;
use super::node::Node;
use super::scan::{Content, Id, Source};
use crate::format::quoted;
use crate::number;

/// What Helm says of the first key of a document that is none in JSON. The document is one that could be decoded.
pub(super) fn refused_key(source: &Source) -> Option<Error> {
    refused(&tree(source, source.root()?)?)
}

/// What Go says of a key that is a list or a map.
pub(super) fn compound_key(source: &Source, key: Id) -> Error {
    let text = tree(source, key).map(|key| go_syntax(&key, false));
    Error::Content(format!("invalid map key: {}", text.unwrap_or_default()))
}

enum Tree {
    Scalar(Node),
    List(Vec<Self>),
    Map(BTreeMap<Key, Self>),
}

/// A scalar as a key of one of Go's maps: the number `1` is not the text `1`.
struct Key(Node);

/// In the order in which Go prints keys of several types: by the place of the type in the program, which was the same in each binary of
/// Helm that was asked.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        const fn rank(node: &Node) -> u8 {
            match node {
                Node::Null => 0,
                Node::Text(_) => 1,
                Node::Uint(_) => 2,
                Node::Int(_) => 3,
                Node::Float(_) => 4,
                Node::Bool(_) => 5,
                Node::Bytes(_) | Node::List(_) | Node::Map(_) => 6,
            }
        }
        match (&self.0, &other.0) {
            (Node::Text(left), Node::Text(right)) => left.cmp(right),
            (Node::Uint(left), Node::Uint(right)) => left.cmp(right),
            (Node::Int(left), Node::Int(right)) => left.cmp(right),
            (Node::Float(left), Node::Float(right)) => left.total_cmp(right),
            (Node::Bool(left), Node::Bool(right)) => left.cmp(right),
            (left, right) => rank(left).cmp(&rank(right)),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn tree(source: &Source, id: Id) -> Option<Tree> {
    let written = source.node(id);
    Some(match &written.content {
        Content::Scalar { text, plain } => Tree::Scalar(scalar(&written.tag, text, *plain).ok()?),
        Content::List(items) => Tree::List(items.iter().map(|&item| tree(source, item)).collect::<Option<_>>()?),
        Content::Map(entries) => {
            let mut map = BTreeMap::new();
            add(source, entries, &mut map)?;
            Tree::Map(map)
        }
        Content::Alias { target, .. } => tree(source, *target)?,
    })
}

/// As they are written: what comes later counts.
fn add(source: &Source, entries: &[(Id, Id)], map: &mut BTreeMap<Key, Tree>) -> Option<()> {
    for &(key, value) in entries {
        if is_merge(source, key) {
            merge(source, value, map)?;
        } else if let Tree::Scalar(key) = tree(source, key)? {
            map.insert(Key(key), tree(source, value)?);
        }
    }
    Some(())
}

fn merge(source: &Source, id: Id, map: &mut BTreeMap<Key, Tree>) -> Option<()> {
    match &source.node(id).content {
        Content::Map(entries) => add(source, entries, map),
        Content::List(items) => items.iter().rev().try_for_each(|&item| merge(source, item, map)),
        Content::Alias { target, .. } => merge(source, *target, map),
        Content::Scalar { .. } => None,
    }
}

/// In the order of printing; Go looks at the keys of a map in another order each time.
fn refused(tree: &Tree) -> Option<Error> {
    match tree {
        Tree::Scalar(_) => None,
        Tree::List(items) => items.iter().find_map(refused),
        Tree::Map(entries) => entries.iter().find_map(|(Key(key), value)| match key_text(key) {
            Err(KeyError::Unsupported(go_type)) => Some(Error::NotJson(format!(
                "unsupported map key of type: {go_type}, key: {}, value: {}",
                scalar_syntax(key, false),
                go_syntax(value, false),
            ))),
            _ => refused(value),
        }),
    }
}

/// As Go's `%#v` prints it.
fn go_syntax(tree: &Tree, nested: bool) -> String {
    match tree {
        Tree::Scalar(node) => scalar_syntax(node, nested),
        Tree::List(items) => {
            let items: Vec<_> = items.iter().map(|item| go_syntax(item, true)).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Tree::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(Key(key), value)| format!("{}:{}", scalar_syntax(key, true), go_syntax(value, true)));
            format!(
                "map[interface {{}}]interface {{}}{{{}}}",
                entries.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn scalar_syntax(node: &Node, nested: bool) -> String {
    match node {
        Node::Null if nested => "interface {}(nil)".to_owned(),
        Node::Null => "<nil>".to_owned(),
        Node::Bool(value) => value.to_string(),
        Node::Int(number) => number.to_string(),
        Node::Uint(number) => format!("{number:#x}"),
        Node::Float(number) => number::format_float(*number),
        Node::Text(text) => quoted(text),
        Node::Bytes(_) | Node::List(_) | Node::Map(_) => String::new(),
    }
}
