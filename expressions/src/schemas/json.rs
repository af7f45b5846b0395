//! Schemas as JSON: those of `CustomResourceDefinition`s, and those that an API server publishes.

use serde_json::{Map, Value};

use super::{
    Fields, ObjectKind, Place, Shape,
    table::{self, Word},
};

/// References in a row that are followed: a circle has no end.
const MOST_REFERENCES: usize = 16;

/// A schema and the document that it refers into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described<'s> {
    document: &'s Value,
    schema: &'s Value,
    part: Part,
    /// The metadata of any object.
    metadata: Word<'static>,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A field of something.
    Field,
    /// A whole object, whose metadata are those of all: a definition may say less of them.
    Defined,
    /// A whole object, of which the API server says all.
    Published,
}

/// The schema of a kind in a `CustomResourceDefinition`.
pub(super) fn of_definition<'s>(
    definition: &'s Value,
    kind: &ObjectKind,
    metadata: Word<'static>,
) -> Option<Described<'s>> {
    let version = defined_version(definition, kind)?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let named = versions.iter().find(|entry| entry["name"] == version)?;
    Some(Described {
        document: definition,
        schema: named.pointer("/schema/openAPIV3Schema")?,
        part: Part::Defined,
        metadata,
    })
}

/// Whether objects of a kind are in namespaces, if this is the `CustomResourceDefinition` of it. All versions of a kind are alike in that.
pub(super) fn is_namespaced(definition: &Value, kind: &ObjectKind) -> Option<bool> {
    defined_version(definition, kind)?;
    match definition.pointer("/spec/scope")?.as_str()? {
        "Namespaced" => Some(true),
        "Cluster" => Some(false),
        _ => None,
    }
}

/// The version of a kind, if this is the `CustomResourceDefinition` of it in any version.
fn defined_version<'k>(definition: &Value, kind: &'k ObjectKind) -> Option<&'k str> {
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str);
    let (group, version) = kind.api_version.split_once('/')?;
    let is_it = text("/spec/group") == Some(group) && text("/spec/names/kind") == Some(&kind.kind);
    is_it.then_some(version)
}

/// The schema of a kind in a document of `OpenAPI` v3.
pub(super) fn of_document<'s>(
    document: &'s Value,
    kind: &ObjectKind,
    metadata: Word<'static>,
) -> Option<Described<'s>> {
    let (_, schema) = entry(schemas_of(document)?, kind)?;
    Some(Described {
        document,
        schema,
        part: Part::Published,
        metadata,
    })
}

/// All schemas of a document.
pub(super) fn schemas_of(document: &Value) -> Option<&Map<String, Value>> {
    document.pointer("/components/schemas")?.as_object()
}

/// The schema of a kind among those of a document, with its name.
pub(super) fn entry<'s>(schemas: &'s Map<String, Value>, kind: &ObjectKind) -> Option<(&'s String, &'s Value)> {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    let is_it =
        |entry: &Value| entry["group"] == group && entry["version"] == version && entry["kind"] == kind.kind.as_str();
    schemas.iter().find(|(_, schema)| {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        // Options of calls name every group; an object names itself alone.
        kinds.is_some_and(|kinds| kinds.len() == 1 && kinds.iter().any(is_it))
    })
}

impl<'s> Described<'s> {
    fn at(self, schema: &'s Value) -> Place<'s> {
        Place::Json(Self {
            document: self.document,
            schema,
            part: Part::Field,
            metadata: self.metadata,
        })
    }

    pub(super) fn shape(self) -> Shape<'s> {
        let Some(schema) = self.resolved() else {
            return Shape::Any;
        };
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
        if flag("x-kubernetes-int-or-string") || schema["format"] == "int-or-string" {
            return Shape::IntOrText;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Shape::Bool,
            Some("integer") => Shape::Int,
            Some("number") => Shape::Number,
            Some("string") => Shape::Text(values(schema)),
            Some("array") => schema
                .get("items")
                .map_or(Shape::Any, |items| Shape::List(self.at(items))),
            Some("object") => {
                let is_open = flag("x-kubernetes-preserve-unknown-fields") || flag("x-kubernetes-embedded-resource");
                self.object(schema, is_open)
            }
            // An amount is published as either; what the API server gives is always a text.
            None if is_amount(schema) => Shape::Text(Vec::new()),
            _ => Shape::Any,
        }
    }

    /// The schema itself, where this one only refers to it.
    fn resolved(self) -> Option<&'s Value> {
        let mut schema = self.schema;
        for _ in 0..MOST_REFERENCES {
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                schema = self.document.pointer(reference.strip_prefix('#')?)?;
            } else if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
                && schema.get("type").is_none()
            {
                schema = only;
            } else {
                return Some(schema);
            }
        }
        None
    }

    fn object(self, schema: &'s Value, is_open: bool) -> Shape<'s> {
        let additional = schema.get("additionalProperties");
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return match additional {
                Some(values @ Value::Object(_)) => Shape::Map(self.at(values)),
                _ => Shape::Any,
            };
        };
        let is_open = is_open || !matches!(additional, None | Some(Value::Bool(false)));
        let mut known: Vec<_> = properties
            .iter()
            .map(|(name, schema)| (name.as_str(), self.at(schema)))
            .collect();
        if self.part != Part::Field {
            let is_described = |place: &Place<'_>| matches!(place.shape(), Shape::Object(_));
            let says_all = self.part == Part::Published;
            known.retain(|(name, place)| match *name {
                "metadata" => says_all && is_described(place),
                "apiVersion" | "kind" => false,
                _ => true,
            });
            if known.iter().all(|(name, _)| *name != "metadata") {
                known.push(("metadata", Place::Table(self.metadata)));
            }
            known.extend([
                ("apiVersion", Place::Table(table::TEXT)),
                ("kind", Place::Table(table::TEXT)),
            ]);
        }
        Shape::Object(Fields { known, is_open })
    }
}

fn values(schema: &Value) -> Vec<&str> {
    let values = schema.get("enum").and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_amount(schema: &Value) -> bool {
    let one_of = schema.get("oneOf").and_then(Value::as_array);
    one_of.is_some_and(|kinds| kinds.len() == 2 && kinds.iter().any(|kind| kind["type"] == "string"))
}
