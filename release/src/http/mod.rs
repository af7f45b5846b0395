//! The only way this room speaks HTTP: a client that guards what it reaches, what it sends and what it accepts.
//!
//! * [`Network`] is made once for a process. It knows which addresses may be reached, whom the process trusts, and how often each host may
//!   be asked; every source shares it.
//! * [`Client`] speaks to one server in the name of one set of credentials. It is cheap to make and to clone.
//! * [`Request`] is a GET or a HEAD, never with a body; [`Response`] has any status, [`Response::bytes`] or [`Response::reader`].
//!
//! What holds for every exchange:
//!
//! * TLS, unless the operator allows plain HTTP; public addresses, unless the operator names the network. Addresses are checked when they are
//!   connected to, so that a name that changes its address between check and use wins nothing.
//! * Credentials reach the scheme, host and port they are for. A redirect is followed by us, a few times, only to hosts that the request
//!   allows and never from TLS to none; what leaves the server of the client carries no credentials, and nothing else that the caller did
//!   not mark as harmless. There is no Referer, no cookie, no proxy of the environment.
//! * Connecting, the wait for the head of an answer, the silence between two chunks and the whole of what is read into memory have
//!   deadlines; heads, bodies that are read into memory and redirects have limits. Nothing is decompressed.
//! * Hosts are asked at a bounded rate, and not before the time that they named.
//!
//! It does not know what the answers mean, which of them are errors, and who wants them.

mod client;
mod credentials;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod hosts;
mod lookup;
mod network;
mod policy;
mod redirect;
mod response;
mod retry_after;
mod statistics;
mod tls;

pub use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
pub use ipnet::IpNet;
pub use secrecy::{ExposeSecret, SecretString};
pub use url::Url;

pub use self::{
    client::{Client, Request},
    credentials::Credentials,
    error::{AddressKind, HttpError, Place, Stage},
    hosts::Rate,
    lookup::SystemLookup,
    network::{Deadlines, Lookup, LookupFuture, Network, NetworkOptions},
    redirect::Redirects,
    response::{Body, Response},
    statistics::Statistics,
};

pub(crate) use self::retry_after::{retry_after_now as retry_after, until_now as until};

/// The flag of the operator that allows HTTP without TLS, as messages name it.
pub const PLAIN_HTTP_FLAG: &str = "--allow-plain-http";

/// The flag of the operator that names networks besides the public ones, as messages name it.
pub const NETWORKS_FLAG: &str = "--allow-source-network";
