//! The values that templates see: Go's dynamic types, as far as templates can tell them apart.
//!
//! Decides what a value is and what is shared. It does not decide how a value prints (`format`), compares
//! (`functions::compare`) or reads and writes YAML and JSON (`yaml`, `json`).
//!
//! Strings are byte strings, because templates cut them at byte positions. Maps are references: `set` and `merge` change
//! a map for everybody who holds it. Lists never change after creation, except that `sortAlpha` sorts a list of strings
//! in place, because no other function can write to an element.

mod containers;
mod object;

use std::fmt;
use std::rc::Rc;

use crate::bounds::MAX_DEPTH;
pub use containers::{Element, Key, List, Map};
pub use object::{GoObject, Json, Shape, Signature, Type};

/// A Go string or the content of a file. Not necessarily UTF-8.
pub type Bytes = Rc<[u8]>;

/// One dynamically typed Go value.
#[derive(Clone, Default)]
pub enum Value {
    /// Go's nil: a YAML null, a missing key, the literal `nil`.
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// Any signed or unsigned integer type. A `uint64` lies here with its bits; `IntType::number` reads it.
    Int(i64, IntType),
    /// `float64`: every number of a YAML or JSON text.
    Float(f64),
    /// `string`
    Str(Bytes),
    /// `[]byte`
    Bytes(Bytes),
    /// Any other slice type.
    List(List),
    /// Any map type with string keys.
    Map(Map),
    /// A Go struct, or a named type with methods.
    Obj(Rc<dyn GoObject>),
}

/// The Go integer type of a [`Value::Int`]. Templates see the difference in `%T`, `typeOf` and typed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntType {
    /// `int`: literals, `len`, `until`.
    Int,
    /// `int64`: arithmetic of the functions.
    Int64,
    /// `int32`, also called rune.
    Int32,
    /// `uint8`: an element of a `[]byte`.
    Uint8,
    /// `uint64`: the parts of a version.
    Uint64,
}

impl IntType {
    /// Go's name of the type, which is also the name of its kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::Uint8 => "uint8",
            Self::Uint64 => "uint64",
        }
    }

    /// The number that the bits of a [`Value::Int`] mean.
    pub(crate) const fn number(self, bits: i64) -> i128 {
        if self.is_unsigned() {
            bits.cast_unsigned() as i128
        } else {
            bits as i128
        }
    }

    /// Go prints unsigned integers differently where it writes its own syntax.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::Uint8 | Self::Uint64)
    }
}

impl Value {
    /// A Go `int`.
    pub const fn int(value: i64) -> Self {
        Self::Int(value, IntType::Int)
    }

    /// A Go `int64`.
    pub const fn int64(value: i64) -> Self {
        Self::Int(value, IntType::Int64)
    }

    /// The bytes of a string, nothing for other types.
    pub fn as_str(&self) -> Option<&[u8]> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The map behind a plain or named map value, nothing for other types.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The bytes of this value alone, without what its elements hold.
    pub(crate) fn own_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Str(text) | Self::Bytes(text) => text.len(),
                Self::List(list) => size_of_val(list.items()),
                Self::Map(map) => map.own_bytes(),
                _ => 0,
            }
    }

    /// The bytes that only this value holds: nothing of what is shared with other values, everything of what was just made.
    pub(crate) fn unshared_bytes(&self) -> usize {
        self.unshared_bytes_at(0)
    }

    fn unshared_bytes_at(&self, depth: usize) -> usize {
        let is_shared = match self {
            Self::Str(text) | Self::Bytes(text) => Rc::strong_count(text) > 1,
            Self::List(list) => list.is_shared(),
            Self::Map(map) => map.is_shared(),
            _ => false,
        };
        if is_shared || depth > MAX_DEPTH {
            return 0;
        }
        let inner: usize = match self {
            Self::List(list) => list.items().iter().map(|item| item.unshared_bytes_at(depth + 1)).sum(),
            Self::Map(map) => map
                .entries()
                .values()
                .map(|value| value.unshared_bytes_at(depth + 1))
                .sum(),
            _ => 0,
        };
        self.own_bytes() + inner
    }

    /// Go's name of the dynamic type, as `%T` and `typeOf` print it; `<nil>` for nil.
    pub fn type_name(&self) -> String {
        match self {
            Self::Nil => "<nil>".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Int(_, int_type) => int_type.name().to_owned(),
            Self::Float(_) => "float64".to_owned(),
            Self::Str(_) => "string".to_owned(),
            Self::Bytes(_) => "[]uint8".to_owned(),
            Self::List(list) => list.type_name(),
            Self::Map(map) => map.type_name(),
            Self::Obj(object) => object.type_name(),
        }
    }

    /// The name of Go's reflection kind, as `kindOf` prints it; `invalid` for nil.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_, int_type) => int_type.name(),
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Obj(object) => match object.shape() {
                Shape::Struct(_) => "struct",
                Shape::Pointer(_) => "ptr",
                Shape::Map(_) => "map",
                Shape::List(_) => "slice",
                Shape::Number(_, int_type) => int_type.name(),
                Shape::Complex(..) => "complex128",
            },
        }
    }
}

/// Values of a chart are many, and reading and copying them is half of what a render does.
const _: () = assert!(size_of::<Value>() <= 24);

impl AsRef<Self> for Value {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.as_bytes().into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into_bytes().into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Str(bytes.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Str(bytes.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl fmt::Debug for Value {
    /// Scalars by value, containers by type and size only: they may contain themselves.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => formatter.write_str("nil"),
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Int(bits, int_type) => write!(formatter, "{}", int_type.number(*bits)),
            Self::Float(value) => write!(formatter, "{value:?}"),
            Self::Str(text) | Self::Bytes(text) => write!(formatter, "{:?}", String::from_utf8_lossy(text)),
            Self::List(list) => write!(formatter, "{}({})", self.type_name(), list.items().len()),
            Self::Map(map) => write!(formatter, "{}({})", self.type_name(), map.len()),
            Self::Obj(_) => formatter.write_str(&self.type_name()),
        }
    }
}
