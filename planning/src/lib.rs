//! Every decision of the operators: pure, total, deterministic.
//!
//! A controller observes, calls one of the `plan` functions here, performs what the plan says and observes again. Nothing in this crate reads a clock,
//! a file, an environment or an API server; the time is an argument, and so is everything that was seen.

pub mod addon;
pub mod admission;
mod approval;
mod contest;
pub mod digest;
pub mod election;
pub mod health;
pub mod image;
pub mod next;
pub mod node_image;
pub mod object_key;
pub mod objects;
pub mod outage;
mod outline;
mod pacing;
mod pairs;
mod pause;
pub mod polling;
pub mod release;
mod shortening;
pub mod stack;
pub mod stored_data;
pub mod topology;
pub mod unlisted;
pub mod warnings;
pub mod waves;
