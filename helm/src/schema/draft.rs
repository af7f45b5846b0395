//! The drafts of JSON Schema: their names, where subschemas stand in them, and their metaschemas.

use std::sync::OnceLock;

use super::compile::{Compiled, compile_metaschema};
use crate::bounds::Apart;

/// A draft, in order of age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    V4,
    V6,
    V7,
    V2019,
    V2020,
}

/// Where under a keyword subschemas stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The value is one.
    Value,
    /// Its items are.
    Items,
    /// Its entries are.
    Entries,
}

const PLACES: &[(Draft, &str, Place)] = &[
    (Draft::V4, "definitions", Place::Entries),
    (Draft::V4, "not", Place::Value),
    (Draft::V4, "allOf", Place::Items),
    (Draft::V4, "anyOf", Place::Items),
    (Draft::V4, "oneOf", Place::Items),
    (Draft::V4, "properties", Place::Entries),
    (Draft::V4, "additionalProperties", Place::Value),
    (Draft::V4, "patternProperties", Place::Entries),
    (Draft::V4, "items", Place::Value),
    (Draft::V4, "items", Place::Items),
    (Draft::V4, "additionalItems", Place::Value),
    (Draft::V4, "dependencies", Place::Entries),
    (Draft::V6, "propertyNames", Place::Value),
    (Draft::V6, "contains", Place::Value),
    (Draft::V7, "if", Place::Value),
    (Draft::V7, "then", Place::Value),
    (Draft::V7, "else", Place::Value),
    (Draft::V2019, "$defs", Place::Entries),
    (Draft::V2019, "dependentSchemas", Place::Entries),
    (Draft::V2019, "unevaluatedProperties", Place::Value),
    (Draft::V2019, "unevaluatedItems", Place::Value),
    (Draft::V2019, "contentSchema", Place::Value),
    (Draft::V2020, "prefixItems", Place::Items),
];

/// What json-schema.org publishes, by URL without scheme and host.
const DOCUMENTS: &[(&str, &str)] = &[
    ("draft-04/schema", include_str!("metaschemas/draft-04.json")),
    ("draft-06/schema", include_str!("metaschemas/draft-06.json")),
    ("draft-07/schema", include_str!("metaschemas/draft-07.json")),
    ("draft/2019-09/schema", include_str!("metaschemas/2019-09.json")),
    (
        "draft/2019-09/meta/applicator",
        include_str!("metaschemas/2019-09-applicator.json"),
    ),
    (
        "draft/2019-09/meta/content",
        include_str!("metaschemas/2019-09-content.json"),
    ),
    ("draft/2019-09/meta/core", include_str!("metaschemas/2019-09-core.json")),
    (
        "draft/2019-09/meta/format",
        include_str!("metaschemas/2019-09-format.json"),
    ),
    (
        "draft/2019-09/meta/meta-data",
        include_str!("metaschemas/2019-09-meta-data.json"),
    ),
    (
        "draft/2019-09/meta/validation",
        include_str!("metaschemas/2019-09-validation.json"),
    ),
    ("draft/2020-12/schema", include_str!("metaschemas/2020-12.json")),
    (
        "draft/2020-12/meta/applicator",
        include_str!("metaschemas/2020-12-applicator.json"),
    ),
    (
        "draft/2020-12/meta/content",
        include_str!("metaschemas/2020-12-content.json"),
    ),
    ("draft/2020-12/meta/core", include_str!("metaschemas/2020-12-core.json")),
    (
        "draft/2020-12/meta/format-annotation",
        include_str!("metaschemas/2020-12-format-annotation.json"),
    ),
    (
        "draft/2020-12/meta/format-assertion",
        include_str!("metaschemas/2020-12-format-assertion.json"),
    ),
    (
        "draft/2020-12/meta/meta-data",
        include_str!("metaschemas/2020-12-meta-data.json"),
    ),
    (
        "draft/2020-12/meta/unevaluated",
        include_str!("metaschemas/2020-12-unevaluated.json"),
    ),
    (
        "draft/2020-12/meta/validation",
        include_str!("metaschemas/2020-12-validation.json"),
    ),
];

const LATEST: &str = "draft/2020-12/schema";

/// What follows the host in URLs of json-schema.org.
pub(super) fn published(url: &str) -> Option<&str> {
    url.strip_prefix("http://json-schema.org/")
        .or_else(|| url.strip_prefix("https://json-schema.org/"))
}

/// A document of json-schema.org.
pub(super) fn document(url: &str) -> Option<&'static str> {
    let path = match published(url)? {
        "schema" => LATEST,
        path => path,
    };
    DOCUMENTS.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}

impl Draft {
    /// What a schema without `$schema` is taken for.
    pub(super) const LATEST: Self = Self::V2020;

    const ALL: [(Self, &str); 5] = [
        (Self::V4, "http://json-schema.org/draft-04/schema"),
        (Self::V6, "http://json-schema.org/draft-06/schema"),
        (Self::V7, "http://json-schema.org/draft-07/schema"),
        (Self::V2019, "https://json-schema.org/draft/2019-09/schema"),
        (Self::V2020, "https://json-schema.org/draft/2020-12/schema"),
    ];

    /// The draft whose metaschema a URL without fragment names.
    pub(super) fn by_url(url: &str) -> Option<Self> {
        let path = match published(url)? {
            "schema" => LATEST,
            path => path,
        };
        let draft = Self::ALL.into_iter().find(|(_, url)| published(url) == Some(path));
        draft.map(|(draft, _)| draft)
    }

    /// The keyword that gives a subschema a URL of its own.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::V4 { "id" } else { "$id" }
    }

    /// Keywords with subschemas.
    pub(super) fn places(self) -> impl Iterator<Item = (&'static str, Place)> {
        let known = PLACES.iter().filter(move |(since, ..)| *since <= self);
        known.map(|(_, keyword, place)| (*keyword, *place))
    }

    /// What every schema of the draft must satisfy, compiled once.
    pub(super) fn metaschema(self) -> Result<&'static Compiled, String> {
        static COMPILED: [OnceLock<Result<Compiled, String>>; 5] = [const { OnceLock::new() }; 5];
        let compiled = COMPILED[self as usize].get_or_init(|| {
            let _apart = Apart::within(u64::MAX, None);
            compile_metaschema(Self::ALL[self as usize].1)
        });
        compiled.as_ref().map_err(Clone::clone)
    }
}
