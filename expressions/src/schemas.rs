//! What fields objects of a kind have, and of which types.
//!
//! Three sources: a table of what Kubernetes itself serves, which is compiled in; `CustomResourceDefinition`s; and what an API server publishes as `OpenAPI`
//! v3. Nothing is read before it is asked for, so that a table of all kinds costs its text and no more.

mod json;
mod part;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

pub use self::part::part_of;
use self::{json::Described, table::Word};

/// A kind of objects, in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKind {
    /// Group and version, as in a manifest.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

impl ObjectKind {
    /// The kind that a manifest with these two fields has.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
        }
    }
}

/// The schemas that are known.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    definitions: Vec<Value>,
    documents: Vec<Arc<Value>>,
    table: Table,
}

/// What the table of kinds that is compiled in stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Table {
    /// All that there is of these kinds.
    #[default]
    Whole,
    /// What an older Kubernetes had: there may be more.
    Older,
    /// Nothing.
    Unused,
}

impl Schemas {
    /// Those of the kinds that Kubernetes itself serves, in all versions that the API server of the tests knows.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The same for a Kubernetes of this major and minor version. A newer one than that of the table has fields and values that are not in it: what is not there
    /// is noted then, and is no error. Types are: a field keeps its own within a version of its API.
    pub fn of_kubernetes(version: (u32, u32)) -> Self {
        let is_newer = table::version().is_none_or(|known| version > known);
        Self {
            table: if is_newer { Table::Older } else { Table::Whole },
            ..Self::default()
        }
    }

    /// None but those that are added: what an API server itself says of its kinds is all that counts.
    pub fn without_table() -> Self {
        Self {
            table: Table::Unused,
            ..Self::default()
        }
    }

    /// Adds what a `CustomResourceDefinition` says, of which nothing is required: a manifest that is none adds nothing. It comes before all others of
    /// the same kind.
    pub fn add_definition(&mut self, definition: Value) {
        self.definitions.push(definition);
    }

    /// Adds what an API server publishes for one group and version (`/openapi/v3/apis/GROUP/VERSION`). It comes before what is compiled in.
    pub fn add_openapi(&mut self, document: impl Into<Arc<Value>>) {
        self.documents.push(document.into());
    }

    /// Whether a schema of a kind is known.
    pub fn describes(&self, kind: &ObjectKind) -> bool {
        self.of(kind).is_some()
    }

    /// Whether objects of a kind are in namespaces; nothing where neither a definition nor the table of kinds says so.
    pub fn is_namespaced(&self, kind: &ObjectKind) -> Option<bool> {
        let mut definitions = self.definitions.iter().rev();
        let defined = definitions.find_map(|definition| json::is_namespaced(definition, kind));
        defined.or_else(|| match self.table {
            Table::Whole | Table::Older => table::is_namespaced(kind),
            Table::Unused => None,
        })
    }

    /// Whether the Kubernetes that is asked about is newer than that of the table, and may have kinds that are not in it.
    pub fn is_of_older_kubernetes(&self) -> bool {
        self.table == Table::Older
    }

    /// The kinds that Kubernetes itself serves, each behind its group and version.
    pub fn kinds_of_kubernetes() -> impl Iterator<Item = (&'static str, &'static str)> {
        table::kinds()
    }

    /// What an object of a kind has; nothing if no schema of it is known.
    pub(crate) fn of(&self, kind: &ObjectKind) -> Option<Place<'_>> {
        let metadata = match self.table {
            Table::Whole => Word::of(table::METADATA),
            Table::Older | Table::Unused => Word::of_older(table::METADATA),
        };
        let mut definitions = self.definitions.iter().rev();
        let defined = definitions.find_map(|definition| json::of_definition(definition, kind, metadata));
        let published = || {
            self.documents
                .iter()
                .rev()
                .find_map(|document| json::of_document(document, kind, metadata))
        };
        defined
            .or_else(published)
            .map(Place::Json)
            .or_else(|| self.in_table(kind).map(Place::Table))
    }

    fn in_table(&self, kind: &ObjectKind) -> Option<Word<'_>> {
        match self.table {
            Table::Whole => table::of_kind(kind).map(Word::of),
            Table::Older => table::of_kind(kind).map(Word::of_older),
            Table::Unused => None,
        }
    }
}

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'s> {
    /// A type in the words of the table.
    Table(Word<'s>),
    Json(Described<'s>),
}

/// What can stand in a place.
#[derive(Clone, Debug)]
pub(crate) enum Shape<'s> {
    /// Anything; the schema says nothing more.
    Any,
    Bool,
    Int,
    /// `int` or `double`, as it happens to be written.
    Number,
    /// One of these texts, or any if there are none.
    Text(Vec<&'s str>),
    IntOrText,
    List(Place<'s>),
    /// Keys of any name.
    Map(Place<'s>),
    Object(Fields<'s>),
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'s> {
    known: Vec<(&'s str, Place<'s>)>,
    /// Whether there may be others.
    pub(crate) is_open: bool,
}

impl<'s> Fields<'s> {
    pub(crate) fn get(&self, name: &str) -> Option<Place<'s>> {
        self.known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, place)| *place)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'s str> {
        self.known.iter().map(|(name, _)| *name)
    }
}

impl<'s> Place<'s> {
    pub(crate) fn shape(self) -> Shape<'s> {
        match self {
            Self::Table(word) => word.shape(),
            Self::Json(described) => described.shape(),
        }
    }

    /// The version of Kubernetes of which this is known, where that is older than the one that is asked about.
    pub(crate) fn older(self) -> Option<&'static str> {
        match self {
            Self::Table(word) if word.is_older() => table::named_version(),
            Self::Table(_) | Self::Json(_) => None,
        }
    }
}
