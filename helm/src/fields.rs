//! Documents decoded into Go structs as `encoding/json` does it: loose keys, in the order of the document, over what is there already,
//! and with Go's words for what does not fit.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::json;
use crate::number;
use crate::time::{Location, RFC_3339, parse};
use crate::yaml::Node;

/// A Go struct that documents are decoded into.
pub(crate) trait Struct: Default + 'static {
    /// The name of the struct type, empty when it has none.
    const NAME: &'static str;
    /// The type with its package, as errors name it.
    const TYPE: &'static str;
    /// What each field takes.
    const FIELDS: &'static [(&'static str, Setter<Self>)];
}

/// Sets a field from what a document has for it.
pub(crate) type Setter<T> = fn(&mut T, &Field<'_>);

/// Decodes a document over what is there. The error is Go's text: what ended the decoding, or else the first value that did not fit.
pub(crate) fn decode<T: Struct>(document: &Node, target: &mut T) -> Result<(), String> {
    let problems = Problems::default();
    let whole = Field {
        node: document,
        problems: &problems,
        struct_name: T::NAME,
        path: String::new(),
    };
    match document {
        Node::Null => {}
        Node::Map(entries) => whole.fill(entries, target),
        other => whole.refuse(other, &format!("value of type {}", T::TYPE)),
    }
    let Problems { end, misfit } = problems;
    match end.into_inner().or(misfit.into_inner()) {
        Some(problem) => Err(format!("error unmarshaling JSON: while decoding JSON: {problem}")),
        None => Ok(()),
    }
}

/// Whether Go takes a key for a field: in any case, of which two ASCII letters have one beyond ASCII.
pub(crate) fn is_field(name: &str, key: &str) -> bool {
    let folded = |character| match character {
        'ſ' => 's',
        '\u{212a}' => 'k',
        character => character.to_ascii_lowercase(),
    };
    name.eq_ignore_ascii_case(key) || !key.is_ascii() && name.chars().map(folded).eq(key.chars().map(folded))
}

#[derive(Default)]
struct Problems {
    /// What ended the decoding.
    end: OnceCell<String>,
    /// The first value that did not fit; Go decodes on behind it.
    misfit: OnceCell<String>,
}

/// One field of a Go struct and its value in a document.
pub(crate) struct Field<'a> {
    node: &'a Node,
    problems: &'a Problems,
    struct_name: &'static str,
    /// Where the field is in the outermost struct.
    path: String,
}

impl Field<'_> {
    fn fill<T: Struct>(&self, entries: &BTreeMap<String, Node>, target: &mut T) {
        for (key, node) in entries {
            let named = T::FIELDS.iter().find(|(name, _)| name == key);
            let alike = || T::FIELDS.iter().find(|(name, _)| is_field(name, key));
            if let Some((name, set)) = named.or_else(alike)
                && self.problems.end.get().is_none()
            {
                let path = match self.path.as_str() {
                    "" => (*name).to_owned(),
                    path => format!("{path}.{name}"),
                };
                let field = Field {
                    node,
                    problems: self.problems,
                    struct_name: T::NAME,
                    path,
                };
                set(target, &field);
            }
        }
    }

    fn refuse(&self, node: &Node, target: &str) {
        let kind = json::kind(node);
        self.problems
            .misfit
            .get_or_init(|| format!("json: cannot unmarshal {kind} into Go {target}"));
    }

    fn misfit(&self, node: &Node, go_type: &str) {
        let Self { struct_name, path, .. } = self;
        self.refuse(node, &format!("struct field {struct_name}.{path} of type {go_type}"));
    }

    fn set_text(&self, node: &Node, target: &mut String) {
        match scalar_text(node) {
            Some(text) => *target = text,
            None if *node == Node::Null => {}
            None => self.misfit(node, "string"),
        }
    }

    /// A string takes any scalar.
    pub(crate) fn text(&self, target: &mut String) {
        self.set_text(self.node, target);
    }

    /// A boolean.
    pub(crate) fn flag(&self, target: &mut bool) {
        match self.node {
            Node::Null => {}
            Node::Bool(value) => *target = *value,
            node => self.misfit(node, "bool"),
        }
    }

    /// A list of strings, decoded over those that are there.
    pub(crate) fn texts(&self, target: &mut Option<Vec<String>>) {
        let known = target.take();
        *target = self.items("[]string").map(|items| {
            let mut texts = known.unwrap_or_default();
            texts.resize(items.len(), String::new());
            for (item, text) in items.iter().zip(&mut texts) {
                self.set_text(item, text);
            }
            texts
        });
    }

    /// A map of strings, over what is there.
    pub(crate) fn pairs(&self, target: &mut Option<BTreeMap<String, String>>) {
        match self.node {
            Node::Null => *target = None,
            Node::Map(entries) => {
                let target = target.get_or_insert_default();
                for (key, node) in entries {
                    let mut text = String::new();
                    self.set_text(node, &mut text);
                    target.insert(key.clone(), text);
                }
            }
            node => self.misfit(node, "map[string]string"),
        }
    }

    /// A struct.
    pub(crate) fn inner<T: Struct>(&self, target: &mut T) {
        match self.node {
            Node::Null => {}
            Node::Map(entries) => self.fill(entries, target),
            node => self.misfit(node, T::TYPE),
        }
    }

    /// A list of pointers to structs, decoded over those that are there. Nulls are left out; gives how many structs stand before the first.
    pub(crate) fn structs<T: Struct>(&self, target: &mut Option<Vec<T>>) -> Option<usize> {
        let mut known = target.take().unwrap_or_default().into_iter();
        let structs = |items: &[Node]| {
            let items = items.iter().filter(|item| **item != Node::Null);
            let decoded = items.map(|item| {
                let mut one = known.next().unwrap_or_default();
                match item {
                    Node::Map(entries) => self.fill(entries, &mut one),
                    node => self.misfit(node, T::TYPE),
                }
                one
            });
            decoded.collect()
        };
        let items = self.items(&format!("[]*{}", T::TYPE));
        *target = items.map(structs);
        items?.iter().position(|item| *item == Node::Null)
    }

    /// The items of what must be a list of some type; a null has none.
    pub(crate) fn items(&self, go_type: &str) -> Option<&[Node]> {
        match self.node {
            Node::Null => {}
            Node::List(items) => return Some(items),
            node => self.misfit(node, go_type),
        }
        None
    }

    /// A time nobody asks for; it must be one all the same.
    pub(crate) fn time(&self) {
        let parsed = match self.node {
            Node::Null => return,
            Node::Text(text) => parse(RFC_3339, text.as_bytes(), &Location::Utc).map(drop),
            _ => Err("Time.UnmarshalJSON: input is not a JSON string".to_owned()),
        };
        if let Err(problem) = parsed {
            self.problems.end.get_or_init(|| problem);
        }
    }
}

/// A scalar where a string is wanted: `appVersion: 1.20` is "1.2".
pub(crate) fn scalar_text(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Bool(value) => Some(value.to_string()),
        Node::Int(number) => Some(number.to_string()),
        Node::Uint(number) => Some(number.to_string()),
        Node::Float(number) => Some(number::format_float32(*number)),
        Node::Null | Node::Bytes(_) | Node::List(_) | Node::Map(_) => None,
    }
}
