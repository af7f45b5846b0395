//! Every decision: pure, total, deterministic

pub mod digest;
pub mod health;
pub mod object_key;
pub mod waves;
