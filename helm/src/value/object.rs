//! Go values with fields and methods, and the declared types of parameters. No concrete type lives here.

use std::any::Any;

use super::{IntType, List, Map, Value};

/// A Go value with named fields or methods: `.Chart`, `.Files`, `.Capabilities`, versions, times.
///
/// What a template can do with it is asked here; the executor, the printer and the encoders know no concrete type.
pub trait GoObject: Any {
    /// The full Go type, as `typeOf` prints it: `engine.files`, `*semver.Version`.
    fn type_name(&self) -> String;

    /// What the type is made of.
    fn shape(&self) -> Shape;

    /// The exported field of that name.
    fn field(&self, name: &str) -> Option<Value> {
        match self.shape() {
            Shape::Struct(fields) | Shape::Pointer(fields) => fields
                .into_iter()
                .find_map(|(field, value)| (field == name).then_some(value)),
            Shape::Map(_) | Shape::List(_) | Shape::Number(..) | Shape::Complex(..) => None,
        }
    }

    /// The names of fields that are there, but not for templates.
    fn hidden_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The method of that name, pointer methods included.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Why a template cannot call a method although it exists: Go's words about what the method returns.
    fn uncallable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Calls a method with arguments that were checked against its signature. An error is the Go error's text.
    fn call(&self, _name: &str, _arguments: &[Value]) -> Result<Value, String> {
        Ok(Value::Nil)
    }

    /// What `String()` of the type itself gives; every print of the value uses it.
    fn string(&self) -> Option<String> {
        None
    }

    /// What `String()` of the pointer type gives. Only `{{ x }}` uses it, because it prints a field where it stands.
    fn pointer_string(&self) -> Option<String> {
        self.string()
    }

    /// The same in an `interface {}`, where Go does not reach the methods of its pointer; nothing when it is the same there.
    fn boxed(&self) -> Option<Value> {
        None
    }

    /// What `deepCopy` makes of it: fields that are not exported are empty in the copy. `None`: nothing is lost.
    fn copied(&self) -> Option<Value> {
        None
    }

    /// What `GoString()` of the type gives; `%#v` uses it.
    fn go_string(&self) -> Option<String> {
        None
    }

    /// Whether Go can compare values of the type by `==`.
    fn is_comparable(&self) -> bool {
        matches!(self.shape(), Shape::Pointer(_))
    }

    /// Whether `==` holds in Go between this value and another one. A value always equals itself.
    fn is_same(&self, _other: &dyn GoObject) -> bool {
        false
    }

    /// Whether `reflect.DeepEqual` holds between this value and another one. A value always equals itself.
    fn is_alike(&self, other: &dyn GoObject) -> bool {
        self.is_same(other)
    }

    /// What `encoding/json` writes for it. `None`: by its shape, with Go's field names.
    fn json(&self) -> Option<Json> {
        None
    }
}

/// What a [`GoObject`] is made of.
pub enum Shape {
    /// A struct, with its exported fields in declaration order.
    Struct(Vec<(&'static str, Value)>),
    /// A pointer to a struct.
    Pointer(Vec<(&'static str, Value)>),
    /// A map type with methods.
    Map(Map),
    /// A slice type with methods.
    List(List),
    /// An integer type with methods, as [`Value::Int`].
    Number(i64, IntType),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
}

/// What `encoding/json` writes for a [`GoObject`].
pub enum Json {
    /// An object whose fields keep this order in JSON (YAML sorts them).
    Fields(Vec<(&'static str, Value)>),
    /// The encoding of another value.
    Value(Value),
    /// Nothing: the error.
    Refused(String),
}

/// A parameter type of a function or method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`: like any, but a literal nil is not given a type.
    Reflect,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint32`; a template has no such value but a constant.
    Uint32,
    /// `float64`
    Float64,
    /// `string`
    Str,
    /// `[]byte`
    Bytes,
    /// `[]string`
    Strings,
    /// `[]interface {}`
    List,
    /// `map[string]interface {}`; named map types are assignable.
    Map,
    /// `map[string]string`
    StringMap,
    /// A Go type of the engine, by its full name.
    Named(&'static str),
}

impl Type {
    /// Go's name of the type, as error texts show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Float64 => "float64",
            Self::Str => "string",
            Self::Bytes => "[]uint8",
            Self::Strings => "[]string",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
            Self::StringMap => "map[string]string",
            Self::Named(name) => name,
        }
    }

    /// Whether nil is a value of the type.
    pub const fn can_be_nil(self) -> bool {
        matches!(
            self,
            Self::Any | Self::Reflect | Self::Bytes | Self::Strings | Self::List | Self::Map | Self::StringMap
        ) || matches!(self, Self::Named(name) if name.as_bytes()[0] == b'*')
    }
}

/// The declared Go signature of a function or method.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Parameter types; of a variadic function the last one is the type of each further argument.
    pub parameters: &'static [Type],
    /// Whether the last parameter may be given any number of times.
    pub variadic: bool,
}
