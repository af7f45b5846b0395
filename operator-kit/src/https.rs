//! HTTPS servers of our own, for requests of the API server: certificates from files that change while the process runs. What is answered is the
//! caller's business.

mod bodies;
mod certificate;
mod files;
mod server;

pub use self::bodies::{Bodies, BodyRefused, Content, LARGE_AT_ONCE, USUAL_BODY};
pub use self::certificate::{Certificates, Expiries, follow};
pub use self::server::{ServerOptions, serve_https};

#[cfg(test)]
mod tests;
