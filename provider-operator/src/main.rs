//! The provider operator: node images into a cloud.

mod executor;
mod identity;
mod progress;
mod registry;
mod source;
mod worker;

fn main() {}
