//! A value together with the little that Go's reflection remembers about where it came from.

use crate::value::{Element, Value};

/// A value on its way through an expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    /// The value stands in an `interface {}`: it was read from a map or list of such. Go tells a nil there from no
    /// value at all, and names the type of such a value "interface {}" in some errors.
    pub(crate) is_boxed: bool,
}

impl Operand {
    /// An element of a map or list.
    pub(crate) fn element(value: Value, element: Element) -> Self {
        Self {
            value,
            is_boxed: element == Element::Any,
        }
    }

    /// Takes the value out of the interface, as the end of every pipeline does.
    pub(crate) fn unboxed(self) -> Self {
        Self {
            is_boxed: false,
            ..self
        }
    }

    /// Go's static type name.
    pub(crate) fn type_name(&self) -> String {
        if self.is_boxed {
            "interface {}".to_owned()
        } else {
            self.value.type_name()
        }
    }

    /// Neither a value nor an interface that holds nil.
    pub(crate) fn is_invalid(&self) -> bool {
        !self.is_boxed && matches!(self.value, Value::Nil)
    }
}

impl From<Operand> for Value {
    fn from(operand: Operand) -> Self {
        operand.value
    }
}

impl AsRef<Value> for Operand {
    fn as_ref(&self) -> &Value {
        &self.value
    }
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self { value, is_boxed: false }
    }
}
