//! What a stage waits for: one expression of CEL over objects of a workload cluster.
//!
//! Three questions, each pure: what a text says ([`parse()`]), whether it can be meant of objects of these kinds ([`check()`]), and whether it is so
//! of these objects ([`evaluate()`]). Reads no files, asks no server, knows no clock.
//!
//! The language is what cel-go 0.26 accepts without extensions, because stages are written for the Go operator: its standard library and macros,
//! and every object a variable whose fields have any type. An expression that the Go operator evaluates gives the same here; `tests/recorded`
//! holds what the real cel-go answered. Not taken over, because nobody writes it about an object of Kubernetes: names that begin with a dot,
//! variables with a dot in their name, and messages of protobuf.
//!
//! # Why it ends
//! Whoever makes a release writes the expression, and whoever may write into the workload cluster writes the objects. Neither may occupy a worker:
//! - a text has at most [`LONGEST_TEXT`] bytes and its tree is at most [`DEEPEST`] deep, so that no walk of it exhausts a stack;
//! - it has at most [`MOST_LISTS`] lists, maps and macros, so that no walk of a value does;
//! - every visit of a node, every element that is walked over, copied or compared, and every few bytes of a text that is copied, compared or searched
//!   take from one budget ([`STEPS`]), before the work is done. What is spent bounds time and memory at once, whatever is nested in what;
//! - a pattern is short and its automaton small; searching with it takes time linear in the text, which is paid for like the rest.

mod check;
mod evaluation;
mod nearest;
mod schemas;
mod syntax;
mod words;

pub use check::{Finding, Severity, check};
pub use evaluation::{Missing, Outcome, STEPS, Side, evaluate};
pub use nearest::{instead, nearest};
pub use schemas::{ObjectKind, Schemas, part_of};
pub use syntax::{DEEPEST, Expression, LONGEST_TEXT, MOST_LISTS, ParseError, Position, is_variable, parse};
