//! Our chart engine beside the real Helm: what needs the real binaries, and nothing that ships.

mod answer;
pub mod bench;
mod charts;
pub mod conformance;
pub mod fuzz;
pub mod lab;
pub mod likeness;
mod process;
mod progress;

pub use answer::{Answer, Helm};
pub use charts::{Chart, Variant};
pub use lab::Lab;
