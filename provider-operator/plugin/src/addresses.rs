//! Which addresses may be connected to. Says what is asked; the operator answers by its flags, and a provider asks before every connection.

use std::{fmt::Debug, net::IpAddr};

/// Which addresses a provider may connect to on behalf of somebody who may write objects but not reach the operator's own network.
pub trait Addresses: Send + Sync + Debug {
    /// Whether this address may be connected to. `host` is the name that it was resolved from, or the address itself, as people wrote it.
    ///
    /// An error is a sentence for people: which address is refused, and which flag would allow it.
    fn allows(&self, host: &str, address: IpAddr) -> Result<(), String>;
}
