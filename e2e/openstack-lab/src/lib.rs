//! A Keystone and a Glance in this process, and the facts that hold for them and for the real ones alike.
//!
//! Whoever tests a client of OpenStack starts a [`fake::Fake`] and knows nothing but its [`Site`]. That the fake does what the real services
//! do is what the [`facts`] are for: they are asked over plain HTTP, through a client of their own, so that no mistake is shared with what
//! they test.

pub mod client;
pub mod disk;
pub mod facts;
pub mod fake;
mod site;

pub use site::{Kind, Limits, Login, Site};
