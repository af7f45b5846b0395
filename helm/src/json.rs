//! JSON as Go's `encoding/json` writes and reads it. Knows values, not charts.

mod decode;
mod encode;

pub use decode::decode;
pub(crate) use decode::{Build, decode_first, decode_partly};
pub use encode::{Escape, encode, encode_pretty};

use crate::bounds::BoundError;
use crate::yaml::Node;

/// Why a value has no JSON, or a text no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Go refuses it too, in these words.
    #[error("{0}")]
    Refused(String),
    /// Go might go on.
    #[error(transparent)]
    Bound(BoundError),
}

/// What `encoding/json` calls a JSON value when it does not fit where it should go.
pub(crate) fn kind(node: &Node) -> &'static str {
    match node {
        Node::Null => "null",
        Node::Bool(_) => "bool",
        Node::Int(_) | Node::Uint(_) | Node::Float(_) => "number",
        Node::Text(_) | Node::Bytes(_) => "string",
        Node::List(_) => "array",
        Node::Map(_) => "object",
    }
}
