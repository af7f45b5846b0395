//! One node image in a modelled cloud: the table of rules, every input at once, golden scenarios, and properties of every history.

#![expect(clippy::panic, reason = "a script with a mistake and a broken rule end the test")]

mod properties;
mod scenarios;
mod sweep;
mod table;
mod world;
