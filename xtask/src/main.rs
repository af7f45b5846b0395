//! Placeholder until its first command.
fn main() {}
