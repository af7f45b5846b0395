//! Whether an expression can be meant of objects of these kinds.

mod operands;
#[cfg(test)]
mod tests;
mod types;
mod walk;

use std::collections::BTreeMap;

use self::walk::{Scope, Walk};
use crate::{
    schemas::{ObjectKind, Schemas},
    syntax::{Expression, Position},
};

/// Something to say about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is wrong.
    pub severity: Severity,
    /// Where in the text.
    pub position: Position,
    /// The path of the field that it is about, from the key of an object on, or the part of the expression. Elements of lists are `[]`.
    pub path: String,
    /// What it is, and what to do.
    pub message: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The expression is used, but a part of it could not be looked at, or may not be what is meant.
    Note,
    /// It cannot hold, or does not mean what is written.
    Error,
}

/// Looks at an expression with the schemas of its objects, which are given by their keys. Findings come in the order of the text.
///
/// Errors are: fields that no object of the kind has, types that do not fit, variables and functions that do not exist, a result that is neither true nor false, and
/// values outside of the few that a field can have, if it needs one of them to hold; a note, if it may hold without them. Where no schema says anything there is a note, and everything is allowed. So it is with
/// a field that the expression asks for with `has()`, because it may be about objects of several versions.
pub fn check(expression: &Expression, objects: &BTreeMap<String, ObjectKind>, schemas: &Schemas) -> Vec<Finding> {
    let mut walk = Walk::new(expression, objects, schemas);
    let result = walk.type_of(&expression.root, Scope::TOP);
    if !result.may_be(types::BOOL) {
        walk.error(
            &expression.root,
            Scope::TOP,
            &format!(
                "the expression gives {} and not true or false: compare it with something",
                result.told()
            ),
        );
    }
    walk.findings()
}
