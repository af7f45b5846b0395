//! From nodes as written to plain data: types, merge keys, aliases and the JSON form that Helm asks for.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::Error;
use super::node::Node;
use super::resolve::{Resolved, TAG_PREFIX, resolve};
use super::scan::{Content, Id, Source, Written, short_tag};
use crate::bounds::{check_document, check_items};
use crate::number;

/// What reading gave besides the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The document.
    pub node: Node,
    /// Keys that a mapping has more than once, in order of appearance; the last value won.
    pub duplicate_keys: Vec<String>,
}

/// The share of nodes that may come from aliases falls from 99 % to 10 % between these counts.
const ALIAS_RATIO_RANGE: (usize, usize) = (400_000, 4_000_000);

pub(super) fn decode(source: &Source) -> Result<Decoded, Error> {
    let mut decoder = Decoder {
        source,
        open_aliases: Vec::new(),
        decoded: 0,
        from_aliases: 0,
        bytes: 0,
        duplicate_keys: Vec::new(),
        not_json: None,
    };
    let node = match source.root() {
        Some(root) => decoder.node(root)?,
        None => Node::Null,
    };
    if let Some(error) = decoder.not_json {
        return Err(error);
    }
    Ok(Decoded {
        node,
        duplicate_keys: decoder.duplicate_keys,
    })
}

struct Decoder<'a> {
    source: &'a Source,
    open_aliases: Vec<Id>,
    decoded: usize,
    from_aliases: usize,
    /// About what the nodes take.
    bytes: usize,
    duplicate_keys: Vec<String>,
    /// The first key that JSON cannot have. Helm turns to JSON when all is read, so any other error comes first.
    not_json: Option<Error>,
}

impl Decoder<'_> {
    fn node(&mut self, id: Id) -> Result<Node, Error> {
        self.count()?;
        let written = self.source.node(id);
        match &written.content {
            Content::Scalar { text, plain } => {
                self.take(text.len())?;
                scalar(&written.tag, text, *plain)
            }
            Content::List(items) => items
                .iter()
                .map(|&item| self.node(item))
                .collect::<Result<_, _>>()
                .map(Node::List),
            Content::Map(entries) => {
                let mut map = BTreeMap::new();
                self.entries(entries, &mut map, true)?;
                self.take(Node::memory_of_entries(map.len()))?;
                Ok(Node::Map(map))
            }
            Content::Alias { name, target } => self.inside_alias(name, *target, |decoder| decoder.node(*target)),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        check_document(self.bytes).map_err(Error::Bound)
    }

    fn count(&mut self) -> Result<(), Error> {
        self.take(size_of::<Node>())?;
        self.decoded += 1;
        if !self.open_aliases.is_empty() {
            self.from_aliases += 1;
        }
        // Go's ratio rule below alone lets an alias bomb grow to four million nodes.
        check_items(self.decoded).map_err(Error::Bound)?;
        if self.from_aliases > 100 && self.decoded > 1_000 && self.too_many_aliases() {
            return Err(Error::Content("document contains excessive aliasing".to_owned()));
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn too_many_aliases(&self) -> bool {
        let (low, high) = ALIAS_RATIO_RANGE;
        let beyond = self.decoded.clamp(low, high) - low;
        let allowed = 0.99 - 0.89 * (beyond as f64 / (high - low) as f64);
        self.from_aliases as f64 / self.decoded as f64 > allowed
    }

    fn inside_alias<T>(
        &mut self,
        name: &str,
        target: Id,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.open_aliases.contains(&target) {
            return Err(Error::Content(format!("anchor '{name}' value contains itself")));
        }
        self.open_aliases.push(target);
        let result = read(self);
        self.open_aliases.pop();
        result
    }

    /// Adds entries in the order they are written. A merge key adds where it stands, so it wins over what is before it.
    fn entries(&mut self, entries: &[(Id, Id)], map: &mut BTreeMap<String, Node>, own: bool) -> Result<(), Error> {
        let mut seen = std::collections::HashSet::new();
        for &(key, value) in entries {
            if self.is_merge(key) {
                self.merge(value, map)?;
                continue;
            }
            let key = self.node(key)?;
            let node = self.node(value)?;
            let name = match key_text(&key) {
                Ok(name) => name,
                Err(KeyError::Unsupported(_)) if self.not_json.is_some() => continue,
                Err(error) => {
                    let error = error.about(&key, || self.go_syntax(value, &node, false))?;
                    self.not_json.get_or_insert(error);
                    continue;
                }
            };
            if own && !seen.insert(name.clone()) {
                self.duplicate_keys.push(name.clone());
            }
            map.insert(name, node);
        }
        Ok(())
    }

    /// The node as Go's `%#v` prints it, with the keys that it has before they become JSON's. What aliases and merge keys bring is taken
    /// from the node as read.
    fn go_syntax(&self, id: Id, node: &Node, nested: bool) -> String {
        match (&self.source.node(id).content, node) {
            (Content::List(ids), Node::List(items)) if ids.len() == items.len() => {
                let pairs = ids.iter().zip(items);
                go_list(pairs.map(|(&id, item)| self.go_syntax(id, item, true)))
            }
            (Content::Map(ids), Node::Map(entries)) if ids.len() == entries.len() => {
                let keys = ids.iter().filter_map(|&(key, value)| match &self.source.node(key) {
                    Written {
                        tag,
                        content: Content::Scalar { text, plain },
                    } => Some((scalar(tag, text, *plain).ok()?, value)),
                    _ => None,
                });
                let mut keys: Vec<_> = keys
                    .filter_map(|(key, value)| Some((key_text(&key).ok()?, key, value)))
                    .collect();
                keys.sort_by(|left, right| left.0.cmp(&right.0));
                go_map(keys.iter().filter_map(|(name, key, value)| {
                    let node = entries.get(name)?;
                    Some((go_syntax(key, true), self.go_syntax(*value, node, true)))
                }))
            }
            _ => go_syntax(node, nested),
        }
    }

    fn is_merge(&self, key: Id) -> bool {
        match &self.source.node(key) {
            Written {
                tag,
                content: Content::Scalar { text, plain },
            } => text == "<<" && (*plain || tag.strip_prefix(TAG_PREFIX) == Some("merge")),
            _ => false,
        }
    }

    fn merge(&mut self, id: Id, map: &mut BTreeMap<String, Node>) -> Result<(), Error> {
        match &self.source.node(id).content {
            Content::List(items) => {
                for &item in items.iter().rev() {
                    self.merge_map(item, map)?;
                }
                Ok(())
            }
            _ => self.merge_map(id, map),
        }
    }

    fn merge_map(&mut self, id: Id, map: &mut BTreeMap<String, Node>) -> Result<(), Error> {
        self.count()?;
        match &self.source.node(id).content {
            Content::Map(entries) => self.entries(entries, map, false),
            Content::Alias { name, target } => match &self.source.node(*target).content {
                Content::Map(entries) => {
                    self.inside_alias(name, *target, |decoder| decoder.entries(entries, map, false))
                }
                _ => Err(merge_without_map()),
            },
            _ => Err(merge_without_map()),
        }
    }
}

/// Why a key is none.
enum KeyError {
    /// In YAML, as Go reads it.
    Compound,
    /// In JSON: of this Go type.
    Unsupported(&'static str),
}

impl KeyError {
    /// What Helm says, and whether it says so at once or when all is read.
    fn about(self, key: &Node, value: impl FnOnce() -> String) -> Result<Error, Error> {
        let text = go_syntax(key, false);
        match self {
            Self::Compound => Err(Error::Content(format!("invalid map key: {text}"))),
            Self::Unsupported(go_type) => Ok(Error::NotJson(format!(
                "unsupported map key of type: {go_type}, key: {text}, value: {}",
                value()
            ))),
        }
    }
}

/// JSON has string keys only; other scalars give their text.
fn key_text(key: &Node) -> Result<String, KeyError> {
    match key {
        Node::Text(text) => Ok(text.clone()),
        Node::Bool(value) => Ok(value.to_string()),
        Node::Int(number) => Ok(number.to_string()),
        Node::Float(number) if number.is_nan() => Ok(".nan".to_owned()),
        Node::Float(number) if number.is_infinite() => Ok(if *number > 0.0 { ".inf" } else { "-.inf" }.to_owned()),
        Node::Float(number) => Ok(number::format_float32(*number)),
        Node::Uint(_) => Err(KeyError::Unsupported("uint64")),
        Node::Null => Err(KeyError::Unsupported("%!s(<nil>)")),
        Node::List(_) | Node::Map(_) => Err(KeyError::Compound),
    }
}

/// A node as Go's `%#v` prints it, for error texts. The keys of maps are taken for strings.
fn go_syntax(node: &Node, nested: bool) -> String {
    match node {
        Node::Null if nested => "interface {}(nil)".to_owned(),
        Node::Null => "<nil>".to_owned(),
        Node::Bool(value) => value.to_string(),
        Node::Int(number) => number.to_string(),
        Node::Uint(number) => format!("{number:#x}"),
        Node::Float(number) => number::format_float(*number),
        Node::Text(text) => format!("{text:?}"),
        Node::List(items) => go_list(items.iter().map(|item| go_syntax(item, true))),
        Node::Map(entries) => go_map(
            entries
                .iter()
                .map(|(key, node)| (format!("{key:?}"), go_syntax(node, true))),
        ),
    }
}

fn go_list(items: impl Iterator<Item = String>) -> String {
    format!("[]interface {{}}{{{}}}", items.collect::<Vec<_>>().join(", "))
}

fn go_map(entries: impl Iterator<Item = (String, String)>) -> String {
    let entries = entries.map(|(key, value)| format!("{key}:{value}"));
    format!(
        "map[interface {{}}]interface {{}}{{{}}}",
        entries.collect::<Vec<_>>().join(", ")
    )
}

fn merge_without_map() -> Error {
    Error::Content("map merge requires map or sequence of maps as the value".to_owned())
}

fn scalar(tag: &str, text: &str, plain: bool) -> Result<Node, Error> {
    let plain_text = || Ok(Node::Text(text.to_owned()));
    let standard = match tag.strip_prefix(TAG_PREFIX) {
        None if tag.is_empty() && plain => return Ok(untagged(text)),
        // Tags of applications mean nothing here.
        None => return plain_text(),
        Some(standard) => standard,
    };
    match standard {
        "binary" => {
            let decoded = STANDARD
                .decode(text.replace(['\n', '\r'], ""))
                .map_err(|_| Error::Content("!!binary value contains invalid base64 data".to_owned()))?;
            Ok(Node::Text(String::from_utf8_lossy(&decoded).into_owned()))
        }
        "bool" | "int" | "float" | "null" | "timestamp" => match (standard, resolve(text)) {
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for it")]
            ("float", Resolved::Node(Node::Int(number))) => Ok(Node::Float(number as f64)),
            (wanted, resolved) if resolved.tag() == wanted => Ok(match resolved {
                Resolved::Node(node) => node,
                _ => Node::Text(text.to_owned()),
            }),
            (_, resolved) => Err(Error::Content(format!(
                "cannot decode !!{} `{text}` as a {}",
                resolved.tag(),
                short_tag(tag)
            ))),
        },
        _ => plain_text(),
    }
}

fn untagged(text: &str) -> Node {
    match resolve(text) {
        Resolved::Node(node) => node,
        Resolved::Timestamp | Resolved::Text => Node::Text(text.to_owned()),
    }
}

/// JSON has no infinities. `encoding/json` names the first one it meets.
pub(super) fn refuse_infinite(node: &Node) -> Result<(), Error> {
    match node {
        Node::Float(number) if !number.is_finite() => Err(Error::NotJson(format!(
            "json: unsupported value: {}",
            number::format_float(*number)
        ))),
        Node::List(items) => items.iter().try_for_each(refuse_infinite),
        Node::Map(entries) => entries.values().try_for_each(refuse_infinite),
        _ => Ok(()),
    }
}
