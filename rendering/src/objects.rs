//! From manifests to objects: what an object must have, lists taken apart, names that occur twice.

use std::collections::HashMap;

use crds::object_name::{LONGEST, is_addressable};
use helm::yaml::Node;
use helm::{Manifest, Warning};
use serde_json::{Map, Number, Value};

use crate::answers::Questions;
use crate::{Rendered, RenderedObject, digest};

/// Most levels of lists and maps in an object. The API server takes far more, but nobody who reads JSON with the usual bound of 127 levels could
/// read its answer: who manages which field lies up to 5 levels deeper there than the field, and in a list of objects everything 2 more.
pub(crate) const MAX_DEPTH: usize = 120;

/// A manifest that is no object which can be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// A document is a list or a scalar.
    #[error("{source_template} renders a document that is no object")]
    NotAnObject {
        /// The template.
        source_template: String,
    },
    /// A field that every object has is missing, empty or no string.
    #[error("{source_template} renders an object without {field}")]
    MissingField {
        /// The template.
        source_template: String,
        /// The path of the field.
        field: &'static str,
    },
    /// The API server would choose another name every time.
    #[error("{source_template} renders an object with generateName, give it a name")]
    GeneratedName {
        /// The template.
        source_template: String,
    },
    /// Version, kind, name or namespace cannot be part of an address.
    #[error(
        "{source_template} renders {kind} {name:?} with a {field} that no object can have, use letters, digits, - and ."
    )]
    Unaddressable {
        /// The template.
        source_template: String,
        /// The kind with its group: `Deployment.apps`.
        kind: String,
        /// The beginning of the name.
        name: String,
        /// The path of the field.
        field: &'static str,
    },
    /// It could not be read again once it was applied.
    #[error(
        "{source_template} renders {kind} {name:?} with more than {MAX_DEPTH} levels of lists and maps, make it flatter"
    )]
    TooDeep {
        /// The template.
        source_template: String,
        /// The kind with its group: `Deployment.apps`.
        kind: String,
        /// The name.
        name: String,
    },
    /// A `List` has no items.
    #[error("{source_template} renders a List without items")]
    ListWithoutItems {
        /// The template.
        source_template: String,
    },
    /// Two objects have the same group, kind, namespace and name.
    #[error("{first} and {second} both render {kind} {name:?}")]
    Twice {
        /// The kind with its group: `Deployment.apps`.
        kind: String,
        /// The name.
        name: String,
        /// The template that comes first.
        first: String,
        /// The other template, possibly the same.
        second: String,
    },
}

impl ObjectError {
    /// The template that renders it; of two, the later one.
    pub(crate) fn template(&self) -> &str {
        match self {
            Self::NotAnObject { source_template }
            | Self::MissingField { source_template, .. }
            | Self::GeneratedName { source_template }
            | Self::Unaddressable { source_template, .. }
            | Self::TooDeep { source_template, .. }
            | Self::ListWithoutItems { source_template }
            | Self::Twice {
                second: source_template,
                ..
            } => source_template,
        }
    }
}

/// What the API server tells objects by.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn check(&self, version: &str, source: &str) -> Result<(), ObjectError> {
        let field = if !is_addressable(&self.name) {
            "metadata.name"
        } else if !is_addressable(&self.kind) {
            "kind or group"
        } else if !is_addressable(version) {
            "version"
        } else if !self.namespace.is_empty() && !is_addressable(&self.namespace) {
            "metadata.namespace"
        } else {
            return Ok(());
        };
        Err(ObjectError::Unaddressable {
            source_template: source.to_owned(),
            kind: self.kind.clone(),
            name: self.name.chars().take(LONGEST).collect(),
            field,
        })
    }
}

/// Takes the objects out of a rendering. Objects without a namespace are taken to be in `namespace`.
pub(crate) fn collect(
    manifests: impl Iterator<Item = Manifest>,
    warnings: &[Warning],
    namespace: &str,
) -> Result<Rendered, ObjectError> {
    let mut collection = Collection {
        namespace,
        objects: Vec::new(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
        seen: HashMap::new(),
    };
    for manifest in manifests {
        collection.add_manifest(manifest)?;
    }
    let digests: Vec<&str> = collection.objects.iter().map(|object| object.digest.as_str()).collect();
    Ok(Rendered {
        digest: digest::of_bytes(digests.join("\n").as_bytes()),
        objects: collection.objects,
        warnings: collection.warnings,
        questions: Questions::default(),
    })
}

struct Collection<'a> {
    namespace: &'a str,
    objects: Vec<RenderedObject>,
    warnings: Vec<String>,
    seen: HashMap<Identity, String>,
}

impl Collection<'_> {
    fn add_manifest(&mut self, manifest: Manifest) -> Result<(), ObjectError> {
        if *manifest.document() == Node::Null {
            return Ok(());
        }
        let source = manifest.source.clone();
        for key in manifest.duplicate_keys() {
            self.warnings.push(format!(
                "{source} has the key {key:?} more than once, the last value is used"
            ));
        }
        if manifest.hook.is_some() {
            self.warnings.push(format!(
                "{source} renders a Helm hook, it is applied like any other object"
            ));
        }
        self.add(to_json(manifest.into_document()), &source)
    }

    fn add(&mut self, value: Value, source: &str) -> Result<(), ObjectError> {
        let Value::Object(object) = &value else {
            return Err(ObjectError::NotAnObject {
                source_template: source.to_owned(),
            });
        };
        let missing = |field| ObjectError::MissingField {
            source_template: source.to_owned(),
            field,
        };
        let api_version = text(object, "apiVersion").ok_or_else(|| missing("apiVersion"))?;
        let kind = text(object, "kind").ok_or_else(|| missing("kind"))?;
        if is_list(api_version, kind, object) {
            return self.add_items(value, source);
        }
        let metadata = object
            .get("metadata")
            .and_then(Value::as_object)
            .ok_or_else(|| missing("metadata"))?;
        let Some(name) = text(metadata, "name") else {
            let generated = text(metadata, "generateName").is_some();
            let source_template = source.to_owned();
            return Err(if generated {
                ObjectError::GeneratedName { source_template }
            } else {
                missing("metadata.name")
            });
        };
        let (kind, version) = match api_version.split_once('/') {
            Some((group, version)) => (format!("{kind}.{group}"), version),
            None => (kind.to_owned(), api_version),
        };
        let namespace = text(metadata, "namespace").unwrap_or(self.namespace).to_owned();
        let name = name.to_owned();
        let identity = Identity { kind, namespace, name };
        identity.check(version, source)?;
        if is_deeper(&value, MAX_DEPTH) {
            return Err(ObjectError::TooDeep {
                source_template: source.to_owned(),
                kind: identity.kind,
                name: identity.name,
            });
        }
        if let Some(first) = self.seen.get(&identity) {
            return Err(ObjectError::Twice {
                kind: identity.kind,
                name: identity.name,
                first: first.clone(),
                second: source.to_owned(),
            });
        }
        self.seen.insert(identity, source.to_owned());
        self.objects.push(RenderedObject {
            digest: digest::of_json(&value),
            value,
            source: source.to_owned(),
        });
        Ok(())
    }

    fn add_items(&mut self, mut list: Value, source: &str) -> Result<(), ObjectError> {
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items.into_iter().try_for_each(|item| self.add(item, source)),
            _ => Err(ObjectError::ListWithoutItems {
                source_template: source.to_owned(),
            }),
        }
    }
}

/// `List` itself, and lists of one kind, which kubectl takes apart too.
fn is_list(api_version: &str, kind: &str, object: &Map<String, Value>) -> bool {
    (api_version == "v1" && kind == "List")
        || (kind.ends_with("List") && object.get("items").is_some_and(Value::is_array))
}

/// Whether there are more levels of lists and maps than these. The engine lets none be without bounds.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_inner_deeper = |inner: &Value| is_deeper(inner, levels.saturating_sub(1));
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_inner_deeper),
        Value::Object(entries) => levels == 0 || entries.values().any(is_inner_deeper),
        _ => false,
    }
}

/// A string that is not empty.
fn text<'a>(object: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    object
        .get(field)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// The JSON that Go makes of a document: a float without a fraction is an integer.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn to_json(node: Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(value),
        Node::Int(number) => Value::from(number),
        Node::Uint(number) => Value::from(number),
        Node::Float(number) if number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0 => {
            Value::from(number as i64)
        }
        Node::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Node::Text(text) => Value::String(text),
        Node::Bytes(bytes) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        Node::List(items) => Value::Array(items.into_iter().map(to_json).collect()),
        Node::Map(entries) => Value::Object(entries.into_iter().map(|(key, node)| (key, to_json(node))).collect()),
    }
}

/// JSON as values of a chart, where Helm has floats only.
pub(crate) fn to_node(value: &Value) -> Node {
    with_numbers(value, &|number| Node::Float(number.as_f64().unwrap_or_default()))
}

/// JSON as an object that the API server gives, where integers are integers.
pub(crate) fn to_node_of_object(value: &Value) -> Node {
    with_numbers(value, &|number| match number.as_i64() {
        Some(integer) => Node::Int(integer),
        None => Node::Float(number.as_f64().unwrap_or_default()),
    })
}

fn with_numbers(value: &Value, number: &impl Fn(&Number) -> Node) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Number(value) => number(value),
        Value::String(text) => Node::Text(text.clone()),
        Value::Array(items) => Node::List(items.iter().map(|item| with_numbers(item, number)).collect()),
        Value::Object(entries) => {
            let entries = entries.iter();
            Node::Map(
                entries
                    .map(|(key, value)| (key.clone(), with_numbers(value, number)))
                    .collect(),
            )
        }
    }
}

/// JSON as clients of Kubernetes read it: a number without fraction and exponent is an integer, if it is not too large for one.
pub(crate) fn to_exact_node(value: &Value) -> Node {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Node::Int(whole),
            None => to_node(value),
        },
        Value::Array(items) => Node::List(items.iter().map(to_exact_node).collect()),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), to_exact_node(value)));
            Node::Map(entries.collect())
        }
        other => to_node(other),
    }
}

/// JSON as templates of another language get it.
pub(crate) fn to_plain_json(node: &Node) -> Value {
    to_json(node.clone())
}
