//! Sources of releases as objects and flags name them, with what Secrets hold. What is asked of a source, and when, is decided by operators.
//!
//! One [`Connector`] for a process, made of its client, its guarded network and what its flags name ([`UsualArgs`], [`DownloadArgs`]). It says which
//! [`Place`] a `spec.source`, or none, names in a namespace, and how to come to it ([`Connect`]). What comes of that ([`Connection`]) can be asked for
//! tags, and as the origin of a store of releases it has them downloaded by digest. A Secret is read when a source is connected to; nobody but the
//! source keeps what was in it.

mod connect;
mod download;
mod file;
mod kind;
mod place;
mod secret;
mod usual;

pub use self::connect::{Connect, ConnectError, Connection, Connector};
pub use self::download::DownloadArgs;
pub use self::file::{FileError, NamedFile};
pub use self::kind::SourceKind;
pub use self::place::{Place, PlaceError, described_directory};
pub use self::secret::{NamedSecret, SecretError};
pub use self::usual::{UsualArgs, UsualError, UsualSource};
