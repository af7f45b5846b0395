//! Who is told of every request that a provider sends to a cloud. Measures nothing itself.

use std::{fmt::Debug, time::Duration};

/// Counts requests.
pub trait Requests: Send + Sync + Debug {
    /// A request has ended. `operation`: what it was for, in words of the provider that are always the same ones; `status`: that of HTTP, `None`
    /// where no answer came; `took`: with the bodies of both directions. Never waits.
    fn answered(&self, operation: &'static str, status: Option<u16>, took: Duration);
}
