//! Complex numbers: the constants `1i` and `1+2i`.

use std::any::Any;

use crate::value::{GoObject, Shape};

/// A Go `complex128`: its real and its imaginary part.
pub(crate) struct Complex(pub(crate) f64, pub(crate) f64);

impl GoObject for Complex {
    fn type_name(&self) -> String {
        "complex128".to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Complex(self.0, self.1)
    }

    fn is_comparable(&self) -> bool {
        true
    }

    #[expect(clippy::float_cmp, reason = "Go compares both parts by ==")]
    fn is_same(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0 == other.0 && self.1 == other.1)
    }
}
