//! The provider operator: node images into a cloud.

mod executor;
mod identity;
mod progress;
mod registry;
mod source;
#[cfg(test)]
mod stand_ins;
mod worker;

fn main() {}
