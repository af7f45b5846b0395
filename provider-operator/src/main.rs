//! The provider operator: node images into a cloud.

#![expect(
    dead_code,
    unused_imports,
    reason = "whoever asks for all this, the drivers, is not here yet"
)]

mod executor;
mod identity;
mod progress;
mod registry;
mod source;
#[cfg(test)]
mod stand_ins;
mod worker;

fn main() {}
