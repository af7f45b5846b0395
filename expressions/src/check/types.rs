//! Types of parts of an expression, as far as they are known before it is evaluated.

use crate::{
    schemas::{Place, Shape},
    syntax::Literal,
};

/// What is known of a part.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    /// The name of a type.
    Name,
    List(Box<Self>),
    Map,
    /// A place in the schema of an object: only this is unknown to the language itself, which lets any types meet there.
    Of(Place<'s>),
}

/// Sets of kinds of values that can be compared with one another.
pub(super) type Kinds = u16;

pub(super) const NULL: Kinds = 1;
pub(super) const BOOL: Kinds = 1 << 1;
pub(super) const NUMBER: Kinds = 1 << 2;
pub(super) const TEXT: Kinds = 1 << 3;
pub(super) const BYTES: Kinds = 1 << 4;
pub(super) const DURATION: Kinds = 1 << 5;
pub(super) const TIMESTAMP: Kinds = 1 << 6;
pub(super) const TYPE: Kinds = 1 << 7;
pub(super) const LIST: Kinds = 1 << 8;
pub(super) const MAP: Kinds = 1 << 9;
const ALL: Kinds = (1 << 10) - 1;

/// What can be before or after another.
pub(super) const ORDERED: Kinds = BOOL | NUMBER | TEXT | BYTES | DURATION | TIMESTAMP;

impl<'s> Type<'s> {
    pub(super) fn of_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(_) => Self::Bool,
            Literal::Int(_) => Self::Int,
            Literal::Uint(_) => Self::Uint,
            Literal::Double(_) => Self::Double,
            Literal::Text(_) => Self::Text,
            Literal::Bytes(_) => Self::Bytes,
        }
    }

    /// Of which kinds its values can be.
    pub(super) fn kinds(&self) -> Kinds {
        match self {
            Self::Any => ALL,
            Self::Null => NULL,
            Self::Bool => BOOL,
            Self::Int | Self::Uint | Self::Double => NUMBER,
            Self::Text => TEXT,
            Self::Bytes => BYTES,
            Self::Duration => DURATION,
            Self::Timestamp => TIMESTAMP,
            Self::Name => TYPE,
            Self::List(_) => LIST,
            Self::Map => MAP,
            Self::Of(place) => match place.shape() {
                Shape::Any => ALL,
                Shape::Bool => BOOL,
                Shape::Int | Shape::Number => NUMBER,
                Shape::Text(_) => TEXT,
                Shape::IntOrText => NUMBER | TEXT,
                Shape::List(_) => LIST,
                Shape::Map(_) | Shape::Object(_) => MAP,
            },
        }
    }

    pub(super) fn may_be(&self, kinds: Kinds) -> bool {
        self.kinds() & kinds != 0
    }

    /// The type that the language itself knows, where it refuses others: of literals and of what functions give.
    pub(super) fn declared(&self) -> Option<&'static str> {
        match self {
            Self::Bool => Some("bool"),
            Self::Int => Some("int"),
            Self::Uint => Some("uint"),
            Self::Double => Some("double"),
            Self::Text => Some("string"),
            Self::Bytes => Some("bytes"),
            Self::Duration => Some("duration"),
            Self::Timestamp => Some("timestamp"),
            Self::Name => Some("type"),
            Self::Any | Self::Null | Self::List(_) | Self::Map | Self::Of(_) => None,
        }
    }

    /// What a macro gives its variable: elements of a list, or keys of a map.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::List(element) => (**element).clone(),
            Self::Of(place) => match place.shape() {
                Shape::List(element) => Self::Of(element),
                Shape::Map(_) | Shape::Object(_) => Self::Text,
                _ => Self::Any,
            },
            _ => Self::Any,
        }
    }

    /// The texts that it can be, if the schema has a list of them.
    pub(super) fn values(&self) -> Vec<&'s str> {
        match self {
            Self::Of(place) => match place.shape() {
                Shape::Text(values) => values,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// See [`Place::older`].
    pub(super) fn older(&self) -> Option<&'static str> {
        match self {
            Self::Of(place) => place.older(),
            _ => None,
        }
    }

    /// In words, with an article.
    pub(super) fn told(&self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Uint => "an unsigned integer",
            Self::Double => "a number with a fraction",
            Self::Text => "a string",
            Self::Bytes => "bytes",
            Self::Duration => "a duration",
            Self::Timestamp => "a timestamp",
            Self::Name => "a type",
            Self::List(_) => "a list",
            Self::Map => "a map",
            Self::Of(place) => match place.shape() {
                Shape::Any => "anything",
                Shape::Bool => "a boolean",
                Shape::Int => "an integer",
                Shape::Number => "a number",
                Shape::Text(_) => "a string",
                Shape::IntOrText => "an integer or a string",
                Shape::List(_) => "a list",
                Shape::Map(_) => "a map",
                Shape::Object(_) => "an object",
            },
        }
    }
}
