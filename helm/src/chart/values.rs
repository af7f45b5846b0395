//! Values files: how one is read, and how several become one. Chart defaults are not known here.

use crate::json;
use crate::yaml::{self, Node};

/// Lays `over` over `base`, as Helm does with several values files: mappings merge, everything else is replaced, a null stays a null.
pub fn merge_values(base: &mut Node, over: Node) {
    match (base, over) {
        (Node::Map(base), Node::Map(over)) => {
            for (key, node) in over {
                match base.get_mut(&key) {
                    Some(existing) => merge_values(existing, node),
                    None => {
                        base.insert(key, node);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// Reads a file of values. Only its first document counts: later versions than 3.19 lay them over each other. The error is Helm's text.
pub(crate) fn read(text: &[u8]) -> Result<Node, String> {
    match yaml::parse(text).map_err(yaml::convert_error)? {
        Node::Null => Ok(Node::empty_map()),
        values @ Node::Map(_) => Ok(values),
        other => Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json::kind(&other)
        )),
    }
}
