//! A compiled schema: its keywords with subschemas as numbers of a list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use super::document::Json;
use super::draft::Draft;
use super::format::Format;
use super::number::Decimal;
use crate::functions::patterns;

/// The place of a subschema in the list.
pub(super) type Id = usize;

/// One subschema. Absent keywords are none or empty.
#[derive(Debug)]
pub(super) struct Subschema {
    pub(super) url: String,
    pub(super) pointer: String,
    pub(super) draft: Draft,
    /// The schema resource it belongs to.
    pub(super) resource: Id,
    /// Of a resource: its `$dynamicAnchor`s.
    pub(super) dynamic_anchors: BTreeMap<String, Id>,
    /// `true`, `false`, or an empty object.
    pub(super) always: Option<bool>,
    pub(super) reference: Option<Id>,
    pub(super) recursive_reference: Option<Id>,
    pub(super) is_recursive_anchor: bool,
    /// With the anchor that it names.
    pub(super) dynamic_reference: Option<(Id, String)>,
    pub(super) dynamic_anchor: String,
    pub(super) types: Types,
    pub(super) values: Option<Vec<Json>>,
    pub(super) value: Option<Json>,
    pub(super) format: Option<&'static Format>,
    pub(super) not: Option<Id>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) condition: Option<Condition>,
    pub(super) object: ObjectRules,
    pub(super) array: ArrayRules,
    pub(super) text: TextRules,
    pub(super) number: NumberRules,
}

/// `if`, `then` and `else`.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) test: Id,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

/// What is left over, where that matters.
#[derive(Debug)]
pub(super) enum Additional {
    Allowed(bool),
    Schema(Id),
}

#[derive(Debug)]
pub(super) enum Dependency {
    Properties(Vec<String>),
    Schema(Id),
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) names: Option<Id>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) patterns: Vec<(Pattern, Id)>,
    pub(super) additional: Option<Additional>,
    pub(super) dependencies: BTreeMap<String, Dependency>,
    pub(super) dependent_required: BTreeMap<String, Vec<String>>,
    pub(super) dependent_schemas: BTreeMap<String, Id>,
    pub(super) unevaluated: Option<Id>,
}

#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) is_unique: bool,
    pub(super) contains: Option<Contains>,
    /// Schemas of the first items.
    pub(super) first: Vec<Id>,
    /// What all other items are.
    pub(super) rest: Option<Additional>,
    pub(super) unevaluated: Option<Id>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: Id,
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) pattern: Option<Pattern>,
}

/// Bounds, with the numbers as written.
#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) exclusive_minimum: Option<Bound>,
    pub(super) exclusive_maximum: Option<Bound>,
    pub(super) divisor: Option<Bound>,
}

#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) text: String,
    pub(super) number: Decimal,
}

impl Subschema {
    pub(super) fn new(url: String, pointer: String) -> Self {
        Self {
            url,
            pointer,
            draft: Draft::LATEST,
            resource: 0,
            dynamic_anchors: BTreeMap::new(),
            always: None,
            reference: None,
            recursive_reference: None,
            is_recursive_anchor: false,
            dynamic_reference: None,
            dynamic_anchor: String::new(),
            types: Types::default(),
            values: None,
            value: None,
            format: None,
            not: None,
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            condition: None,
            object: ObjectRules::default(),
            array: ArrayRules::default(),
            text: TextRules::default(),
            number: NumberRules::default(),
        }
    }

    /// Every property of an object is looked at by the schema itself.
    pub(super) fn evaluates_all_properties(&self) -> bool {
        self.object.additional.is_some()
    }

    /// How many first items of a list the schema itself looks at.
    pub(super) fn evaluated_items(&self, length: usize) -> usize {
        match self.array.rest {
            Some(_) => length,
            None => self.array.first.len().min(length),
        }
    }
}

/// The JSON types, in the order in which messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [(Self, &str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::Number, "number"),
        (Self::Integer, "integer"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
    ];

    /// The type of a value. An integer is a number.
    pub(super) const fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(_) => Self::Boolean,
            Json::Number(_) => Self::Number,
            Json::Text(_) => Self::String,
            Json::List(_) => Self::Array,
            Json::Map(_) => Self::Object,
        }
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A set of types; an empty one allows all.
#[derive(Clone, Debug, Default)]
pub(super) struct Types(BTreeSet<Type>);

impl Types {
    /// What `type` says. Unknown names mean nothing.
    pub(super) fn read(keyword: &Json) -> Self {
        let names: Vec<&str> = match keyword {
            Json::Text(name) => vec![name],
            Json::List(names) => names.iter().filter_map(Json::as_text).collect(),
            _ => Vec::new(),
        };
        let types = Type::ALL.into_iter().filter(|(_, name)| names.contains(name));
        Self(types.map(|(found, _)| found).collect())
    }

    pub(super) fn allow(&self, value: &Json) -> bool {
        let is_integer = |value: &Json| matches!(value, Json::Number(text) if Decimal::parse(text).is_some_and(|number| number.is_integer()));
        self.0.is_empty() || self.0.contains(&Type::of(value)) || (self.0.contains(&Type::Integer) && is_integer(value))
    }

    pub(super) fn names(&self) -> String {
        self.0.iter().map(|name| name.name()).collect::<Vec<_>>().join(" or ")
    }
}

/// A regular expression in Go's syntax. Checked at once, compiled when it is first needed.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    rust: String,
    compiled: OnceLock<Option<Regex>>,
}

/// How large a compiled pattern may be.
const MAX_REGEX_BYTES: usize = 12 << 20;

impl Pattern {
    /// The error is Go's.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let pattern = patterns::translate(text).map_err(|error| format!("error parsing regexp: {error}"))?;
        Ok(Self {
            text: text.to_owned(),
            rust: pattern.rust,
            compiled: OnceLock::new(),
        })
    }

    /// What compiling may cost.
    pub(super) fn steps_to_compile(&self) -> u64 {
        if self.compiled.get().is_some() {
            return 0;
        }
        let repeats = if self.text.contains('{') { 20_000 } else { 0 };
        repeats + 20 * self.text.len() as u64
    }

    /// Whether the text has a match; nothing when the pattern cannot be used here.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        let compile = || {
            let mut builder = RegexBuilder::new(&self.rust);
            builder.size_limit(MAX_REGEX_BYTES).build().ok()
        };
        let regex = self.compiled.get_or_init(compile).as_ref()?;
        // The bounds of ASCII words lie within characters too, where Go does not look.
        let mut found = regex.find_iter(text.as_bytes());
        Some(found.any(|found| text.is_char_boundary(found.start())))
    }
}
