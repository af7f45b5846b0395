//! The table of kinds that Kubernetes itself serves.
//!
//! One line for each kind: `kind GROUP/VERSION KIND TYPE`, and behind that `namespaced` or `cluster` where its objects can be read one by one. Then the
//! types, each a line `type NAME` and one for each field: a space, the name and its type, which is `any`, `bool`, `int`, `number`, `text`, `text(A|B)`,
//! `int-or-text`, a list `[T]`, a map `{T}`, or the name of another after `@`.
//! A test of the whole control plane makes it of what the API server publishes: `e2e/tests/journeys/schemas.rs`.

use super::{Fields, ObjectKind, Place, Shape};

const TABLE: &str = include_str!("kubernetes.txt");

/// The type of a kind, if it is one of Kubernetes.
pub(super) fn of_kind(kind: &ObjectKind) -> Option<&'static str> {
    words_of(kind).next()
}

/// Whether objects of a kind are in namespaces, if it is one of Kubernetes that has objects.
pub(super) fn is_namespaced(kind: &ObjectKind) -> Option<bool> {
    words_of(kind).nth(1).map(|scope| scope == "namespaced")
}

/// What the line of a kind says of it.
fn words_of(kind: &ObjectKind) -> impl Iterator<Item = &'static str> {
    let line = format!("\nkind {} {} ", kind.api_version, kind.kind);
    let line = after(&line).and_then(|rest| rest.lines().next());
    line.into_iter().flat_map(|line| line.split(' '))
}

/// All kinds, each behind its group and version.
pub(super) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let mut words = line.strip_prefix("kind ")?.split(' ');
        Some((words.next()?, words.next()?))
    })
}

/// The metadata of any object.
pub(super) const METADATA: &str = "@meta.v1.ObjectMeta";

/// Any text.
pub(super) const TEXT: Word<'static> = Word::of("text");

/// The version of Kubernetes that the table is of, as its first line names it.
pub(super) fn named_version() -> Option<&'static str> {
    let line = TABLE.lines().next()?;
    line.split_ascii_whitespace().find(|word| {
        let number = word.strip_prefix('v').and_then(|rest| rest.split('.').next());
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Its major and minor number.
pub(super) fn version() -> Option<(u32, u32)> {
    let mut numbers = named_version()?.trim_start_matches('v').split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// A type in the words of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'s> {
    text: &'s str,
    is_older: bool,
}

impl<'s> Word<'s> {
    pub(super) const fn of(text: &'s str) -> Self {
        Self { text, is_older: false }
    }

    /// The same, where a newer Kubernetes is asked about.
    pub(super) const fn of_older(text: &'s str) -> Self {
        Self { text, is_older: true }
    }

    pub(super) fn is_older(self) -> bool {
        self.is_older
    }

    /// A type that this one is made of.
    fn part(self, text: &'s str) -> Place<'s> {
        Place::Table(Self { text, ..self })
    }

    pub(super) fn shape(self) -> Shape<'s> {
        let word = self.text;
        let within = |open: char, close: char| word.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = within('[', ']') {
            return Shape::List(self.part(inner));
        }
        if let Some(inner) = within('{', '}') {
            return Shape::Map(self.part(inner));
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
                .and_then(|name| self.fields(name))
                .map_or(Shape::Any, Shape::Object),
        }
    }

    fn fields(self, name: &str) -> Option<Fields<'s>> {
        let rest = after(&format!("\ntype {name}\n"))?;
        let lines = rest.lines().map_while(|line| line.strip_prefix(' '));
        let known = lines
            .filter_map(|line| line.split_once(' '))
            .map(|(name, word)| (name, self.part(word)));
        Some(Fields {
            known: known.collect(),
            is_open: false,
        })
    }
}

fn after(line: &str) -> Option<&'static str> {
    TABLE.find(line).map(|at| &TABLE[at + line.len()..])
}
