//! From nodes as written to plain data: types, merge keys, aliases and the JSON form that Helm asks for.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::Error;
use super::go_tree;
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
        has_refused_key: false,
    };
    let node = match source.root() {
        Some(root) => decoder.node(root)?,
        None => Node::Null,
    };
    if decoder.has_refused_key
        && let Some(error) = go_tree::refused_key(source)
    {
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
    /// There is a key that JSON cannot have. Helm turns to JSON when all is read, so any other error comes first.
    has_refused_key: bool,
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
            if is_merge(self.source, key) {
                self.merge(value, map)?;
                continue;
            }
            let name = key_text(&self.node(key)?);
            let node = self.node(value)?;
            let name = match name {
                Ok(name) => name,
                Err(KeyError::Unsupported(_)) => {
                    self.has_refused_key = true;
                    continue;
                }
                Err(KeyError::Compound) => return Err(go_tree::compound_key(self.source, key)),
            };
            if own && !seen.insert(name.clone()) {
                self.duplicate_keys.push(name.clone());
            }
            map.insert(name, node);
        }
        Ok(())
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
pub(super) enum KeyError {
    /// In YAML, as Go reads it.
    Compound,
    /// In JSON: of this Go type.
    Unsupported(&'static str),
}

/// Whether a key asks for the entries of its value.
pub(super) fn is_merge(source: &Source, key: Id) -> bool {
    match &source.node(key) {
        Written {
            tag,
            content: Content::Scalar { text, plain },
            ..
        } => text == "<<" && (*plain || tag.strip_prefix(TAG_PREFIX) == Some("merge")),
        _ => false,
    }
}

/// JSON has string keys only; other scalars give their text.
pub(super) fn key_text(key: &Node) -> Result<String, KeyError> {
    match key {
        Node::Text(text) => Ok(text.clone()),
        Node::Bool(value) => Ok(value.to_string()),
        Node::Int(number) => Ok(number.to_string()),
        Node::Float(number) if number.is_nan() => Ok(".nan".to_owned()),
        Node::Float(number) if number.is_infinite() => Ok(if *number > 0.0 { ".inf" } else { "-.inf" }.to_owned()),
        Node::Float(number) => Ok(number::format_float32(*number)),
        Node::Uint(_) => Err(KeyError::Unsupported("uint64")),
        Node::Null => Err(KeyError::Unsupported("%!s(<nil>)")),
        Node::Bytes(_) | Node::List(_) | Node::Map(_) => Err(KeyError::Compound),
    }
}

fn merge_without_map() -> Error {
    Error::Content("map merge requires map or sequence of maps as the value".to_owned())
}

pub(super) fn scalar(tag: &str, text: &str, plain: bool) -> Result<Node, Error> {
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
            (_, resolved) => {
                let found = match resolved {
                    // Go looks for times only where none or one is asked for.
                    Resolved::Timestamp => Resolved::Text.tag(),
                    _ => resolved.tag(),
                };
                let wanted = short_tag(tag);
                Err(Error::Content(format!(
                    "cannot decode !!{found} `{text}` as a {wanted}"
                )))
            }
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
