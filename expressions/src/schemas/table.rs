//! The table of kinds that Kubernetes itself serves.
//!
//! One line for each kind: `kind GROUP/VERSION KIND TYPE`. Then the types, each a line `type NAME` and one for each field: a space, the name and its type, which
//! is `any`, `bool`, `int`, `number`, `text`, `text(A|B)`, `int-or-text`, a list `[T]`, a map `{T}`, or the name of another after `@`.
//! A test of the whole control plane makes it of what the API server publishes: `e2e/tests/journeys/schemas.rs`.

use super::{Fields, ObjectKind, Place, Shape};

const TABLE: &str = include_str!("kubernetes.txt");

/// The type of a kind, if it is one of Kubernetes.
pub(super) fn of_kind(kind: &ObjectKind) -> Option<&'static str> {
    let line = format!("\nkind {} {} ", kind.api_version, kind.kind);
    after(&line).and_then(|rest| rest.lines().next())
}

/// The metadata of any object.
pub(super) const METADATA: &str = "@meta.v1.ObjectMeta";

fn after(line: &str) -> Option<&'static str> {
    TABLE.find(line).map(|at| &TABLE[at + line.len()..])
}

pub(super) fn shape(word: &str) -> Shape<'_> {
    let within = |open: char, close: char| word.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(inner) = within('[', ']') {
        return Shape::List(Place::Table(inner));
    }
    if let Some(inner) = within('{', '}') {
        return Shape::Map(Place::Table(inner));
    }
    if let Some(values) = word.strip_prefix("text(").and_then(|rest| rest.strip_suffix(')')) {
        return Shape::Text(values.split('|').collect());
    }
    match word {
        "bool" => Shape::Bool,
        "int" => Shape::Int,
        "number" => Shape::Number,
        "text" => Shape::Text(Vec::new()),
        "int-or-text" => Shape::IntOrText,
        _ => word
            .strip_prefix('@')
            .and_then(fields)
            .map_or(Shape::Any, Shape::Object),
    }
}

fn fields(name: &str) -> Option<Fields<'static>> {
    let rest = after(&format!("\ntype {name}\n"))?;
    let lines = rest.lines().map_while(|line| line.strip_prefix(' '));
    let known = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, word)| (name, Place::Table(word)));
    Some(Fields {
        known: known.collect(),
        is_open: false,
    })
}
