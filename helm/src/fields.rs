//! Go structs filled from documents: loose keys, scalars taken for strings, and Go's words for what does not fit.

use std::collections::BTreeMap;

use crate::json;
use crate::number;
use crate::yaml::Node;

/// The fields of one Go struct in a document.
pub(crate) struct Fields<'a> {
    /// The name of the struct type, empty when it has none.
    struct_name: &'static str,
    /// Where the struct is in the outermost one, with a dot at the end.
    path: String,
    entries: Option<&'a BTreeMap<String, Node>>,
}

impl<'a> Fields<'a> {
    /// The fields of a whole document; a null has none.
    pub(crate) fn of_document(struct_name: &'static str, go_type: &str, node: &'a Node) -> Result<Self, String> {
        Ok(Self {
            struct_name,
            path: String::new(),
            entries: entries(node).map_err(|node| mismatch(node, &format!("value of type {go_type}")))?,
        })
    }

    /// The value of a field that is not null; its key may be written in any case, and the exact one wins.
    fn find(&self, field: &str) -> Option<&'a Node> {
        let entries = self.entries?;
        let any_case = || entries.iter().find(|(key, _)| key.eq_ignore_ascii_case(field));
        let node = entries.get(field).or_else(|| any_case().map(|(_, node)| node));
        node.filter(|node| **node != Node::Null)
    }

    fn mismatch(&self, node: &Node, field: &str, go_type: &str) -> String {
        let Self { struct_name, path, .. } = self;
        mismatch(
            node,
            &format!("struct field {struct_name}.{path}{field} of type {go_type}"),
        )
    }

    /// The fields of a struct within this one.
    pub(crate) fn inner(&self, field: &str, struct_name: &'static str, go_type: &str) -> Result<Self, String> {
        self.struct_at(self.find(field).unwrap_or(&Node::Null), field, struct_name, go_type)
    }

    fn struct_at(&self, node: &'a Node, field: &str, name: &'static str, go_type: &str) -> Result<Self, String> {
        Ok(Self {
            struct_name: name,
            path: format!("{}{field}.", self.path),
            entries: entries(node).map_err(|node| self.mismatch(node, field, go_type))?,
        })
    }

    /// Fills a string from any scalar.
    pub(crate) fn text(&self, field: &str, target: &mut String) -> Result<(), String> {
        if let Some(node) = self.find(field) {
            *target = self.scalar(node, field)?;
        }
        Ok(())
    }

    fn scalar(&self, node: &Node, field: &str) -> Result<String, String> {
        match node {
            Node::Null => Ok(String::new()),
            node => scalar_text(node).ok_or_else(|| self.mismatch(node, field, "string")),
        }
    }

    /// Fills a boolean.
    pub(crate) fn flag(&self, field: &str, target: &mut bool) -> Result<(), String> {
        match self.find(field) {
            None => {}
            Some(Node::Bool(value)) => *target = *value,
            Some(node) => return Err(self.mismatch(node, field, "bool")),
        }
        Ok(())
    }

    /// Fills a list of strings.
    pub(crate) fn texts(&self, field: &str, target: &mut Vec<String>) -> Result<(), String> {
        if let Some(items) = self.items(field, "[]string")? {
            *target = items
                .iter()
                .map(|item| self.scalar(item, field))
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Fills a list of structs of a type of the Go package `chart`. Nulls are left out.
    pub(crate) fn structs<T>(
        &self,
        field: &str,
        struct_name: &'static str,
        target: &mut Vec<T>,
        read: impl Fn(&Self) -> Result<T, String>,
    ) -> Result<(), String> {
        let Some(items) = self.items(field, &format!("[]*chart.{struct_name}"))? else {
            return Ok(());
        };
        let go_type = format!("chart.{struct_name}");
        let items = items.iter().filter(|item| **item != Node::Null);
        let items = items.map(|item| read(&self.struct_at(item, field, struct_name, &go_type)?));
        *target = items.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The items of a field that must be a list.
    pub(crate) fn items(&self, field: &str, go_type: &str) -> Result<Option<&'a [Node]>, String> {
        match self.find(field) {
            None => Ok(None),
            Some(Node::List(items)) => Ok(Some(items)),
            Some(node) => Err(self.mismatch(node, field, go_type)),
        }
    }

    /// Fills a map of strings.
    pub(crate) fn pairs(&self, field: &str, target: &mut BTreeMap<String, String>) -> Result<(), String> {
        match self.find(field) {
            None => {}
            Some(Node::Map(entries)) => {
                for (key, node) in entries {
                    target.insert(key.clone(), self.scalar(node, field)?);
                }
            }
            Some(node) => return Err(self.mismatch(node, field, "map[string]string")),
        }
        Ok(())
    }
}

/// The entries of a mapping, nothing for a null; any other node comes back.
fn entries(node: &Node) -> Result<Option<&BTreeMap<String, Node>>, &Node> {
    match node {
        Node::Null => Ok(None),
        Node::Map(entries) => Ok(Some(entries)),
        other => Err(other),
    }
}

fn mismatch(node: &Node, target: &str) -> String {
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go {target}",
        json::kind(node)
    )
}

/// A scalar where a string is wanted: `appVersion: 1.20` is "1.2".
pub(crate) fn scalar_text(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Bool(value) => Some(value.to_string()),
        Node::Int(number) => Some(number.to_string()),
        Node::Uint(number) => Some(number.to_string()),
        Node::Float(number) => Some(number::format_float32(*number)),
        Node::Null | Node::List(_) | Node::Map(_) => None,
    }
}
