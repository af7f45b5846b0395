//! Why there is no answer of a server, and what can end that.

use std::{error::Error, fmt, io, net::IpAddr, time::Duration};

use thiserror::Error;
use url::{Position, Url};

use super::{NETWORKS_FLAG, PLAIN_HTTP_FLAG};
use crate::ErrorClass;

/// Longest text of a place in a message; paths can be as long as their writers like.
const LONGEST_PLACE: usize = 200;

/// Where something is on the web, without what can be secret: no credentials, no query, no fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(String);

impl Place {
    /// Scheme, host, port and path.
    pub fn of(url: &Url) -> Self {
        let (origin, path) = (Self::origin(url).0, &url[Position::BeforePath..Position::AfterPath]);
        let text: String = format!("{origin}{path}").chars().take(LONGEST_PLACE).collect();
        Self(text)
    }

    /// Scheme, host and port: all that is told of a place that a server named.
    pub fn origin(url: &Url) -> Self {
        Self(format!(
            "{}://{}",
            url.scheme(),
            &url[Position::BeforeHost..Position::AfterPort]
        ))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What an address is that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum AddressKind {
    /// This machine.
    Loopback,
    /// This network segment, where clouds answer with the credentials of the machine.
    LinkLocal,
    /// A private network, or that of a cluster or provider.
    Private,
    /// No particular machine.
    Unspecified,
    /// Many machines.
    Multicast,
    /// For documentation, measurement or the future.
    Reserved,
    /// Public, but the name says that it is inside of a cluster, machine or site.
    InternalName,
}

/// What took too long; in words, what there was of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Stage {
    /// Name, connection and TLS.
    #[strum(serialize = "no connection")]
    Connect,
    /// The status and headers.
    #[strum(serialize = "no answer")]
    Head,
    /// The next chunk of a body.
    #[strum(serialize = "nothing more of its answer")]
    Idle,
    /// All of a body that is read into memory.
    #[strum(serialize = "only a part of its answer")]
    Whole,
}

/// Why there is no answer of a server.
#[derive(Debug, Error)]
pub enum HttpError {
    /// A URL that cannot be used.
    #[error("the URL {place} {problem}")]
    InvalidUrl {
        /// The URL without secrets.
        place: Place,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A URL that asks for HTTP without TLS.
    #[error("{place} is not reached by TLS; write https, or allow it with the flag {PLAIN_HTTP_FLAG} of the operator")]
    PlainHttp {
        /// The URL without secrets.
        place: Place,
    },
    /// A host whose addresses are all out of bounds.
    #[error(
        "{place} is at {address}, which is not public ({kind}); if releases may come from there, name its network with the flag \
         {NETWORKS_FLAG} of the operator"
    )]
    RefusedAddress {
        /// Scheme, host and port.
        place: Place,
        /// One of the addresses.
        address: IpAddr,
        /// What it is.
        kind: AddressKind,
    },
    /// A URL of another server than that of the client.
    #[error("{place} is not on the server {home}")]
    ForeignUrl {
        /// What was asked for.
        place: Place,
        /// The server of the client.
        home: Place,
    },
    /// Certificates that cannot be read.
    #[error("the certificates to trust are not usable: {problem}; give certificates of authorities in PEM")]
    InvalidCertificates {
        /// What is wrong with them.
        problem: &'static str,
    },
    /// Nobody is trusted.
    #[error(
        "there are no certificates of authorities where this program runs; put them into its image or mount them, or give the one of the server with \
         the source"
    )]
    NoRoots,
    /// The client could not be made.
    #[error("unable to make an HTTP client")]
    Build {
        /// What the library said.
        #[source]
        source: reqwest::Error,
    },
    /// Credentials that cannot be sent.
    #[error(
        "the credentials for {place} are empty or have characters that no header can carry; look for line breaks in the Secret"
    )]
    InvalidCredentials {
        /// Scheme, host and port.
        place: Place,
    },
    /// The name has no address.
    #[error("unable to find the address of {place}; look at its name and at the DNS of the operator")]
    Resolve {
        /// Scheme, host and port.
        place: Place,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Nobody there, or TLS did not come about.
    #[error("unable to connect to {place}")]
    Connect {
        /// Scheme, host and port.
        place: Place,
        /// What the system said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server is not the one it should be.
    #[error(
        "unable to trust {place}; if its certificate is signed by an authority of your own, give that authority's certificate with the source"
    )]
    Tls {
        /// Scheme, host and port.
        place: Place,
        /// What TLS said.
        #[source]
        source: rustls::Error,
    },
    /// Something did not come in time.
    #[error("{place} gave {stage} within {} seconds", .after.as_secs_f32())]
    TimedOut {
        /// What was asked for.
        place: Place,
        /// What did not come.
        stage: Stage,
        /// The time allowed.
        after: Duration,
    },
    /// The exchange broke before the answer began, or the answer was no HTTP.
    #[error("no usable answer from {place}")]
    Exchange {
        /// What was asked for.
        place: Place,
        /// What the library said.
        #[source]
        source: reqwest::Error,
    },
    /// The answer broke off.
    #[error("the answer of {place} broke off")]
    Body {
        /// What was asked for.
        place: Place,
        /// What the library said.
        #[source]
        source: reqwest::Error,
    },
    /// More than may be read into memory.
    #[error("the answer of {place} has more than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        place: Place,
        /// The bound.
        limit: usize,
    },
    /// A long answer that comes slowly, while others do too.
    #[error(
        "the answer of {place} is long and takes more than {} seconds, and there is no room for another slow one; see what slows it down",
        .after.as_secs_f32()
    )]
    TooManySlow {
        /// What was asked for.
        place: Place,
        /// The time allowed.
        after: Duration,
    },
    /// Compressed though it was not asked for.
    #[error("the answer of {place} is encoded, which was not asked for")]
    Encoded {
        /// What was asked for.
        place: Place,
    },
    /// A redirect that is not followed.
    #[error("{from} sends on to {to}, {problem}")]
    RefusedRedirect {
        /// What was asked for.
        from: Place,
        /// Scheme, host and port.
        to: Place,
        /// Why not.
        problem: &'static str,
    },
    /// A redirect without a place to go.
    #[error("{from} sends on to nowhere: it has no usable Location")]
    LostRedirect {
        /// What was asked for.
        from: Place,
    },
    /// A chain of redirects.
    #[error("{from} sends on more than {limit} times")]
    TooManyRedirects {
        /// What was asked for first.
        from: Place,
        /// The bound.
        limit: usize,
    },
    /// The server said when to come again.
    #[error("{place} wants to be left alone for now")]
    BackingOff {
        /// Scheme, host and port.
        place: Place,
        /// What is left of the time.
        wait: Duration,
    },
    /// We ask this server too often ourselves.
    #[error("{place} is asked too often by this operator; there is no turn for this request soon")]
    Busy {
        /// Scheme, host and port.
        place: Place,
        /// How long it would have to wait.
        wait: Duration,
    },
}

impl HttpError {
    /// What can end the problem. None is [`ErrorClass::Terminal`]: a server that answers wrongly today can be right tomorrow, and nobody
    /// tells of a flag or Secret that was changed but time.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::BackingOff { .. } | Self::Busy { .. } => ErrorClass::Waiting,
            _ => ErrorClass::Transient,
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. }
            | Self::ForeignUrl { .. }
            | Self::InvalidCertificates { .. }
            | Self::InvalidCredentials { .. }
            | Self::NoRoots
            | Self::Build { .. } => "SourceMisconfigured",
            Self::PlainHttp { .. } | Self::RefusedAddress { .. } => "SourceNotAllowed",
            Self::RefusedRedirect { .. } | Self::LostRedirect { .. } | Self::TooManyRedirects { .. } => {
                "SourceRedirects"
            }
            Self::Resolve { .. } | Self::Connect { .. } => "SourceUnreachable",
            Self::Tls { .. } => "SourceNotTrusted",
            Self::TimedOut { .. } | Self::TooManySlow { .. } => "SourceTimedOut",
            Self::Exchange { .. } | Self::Body { .. } | Self::Encoded { .. } => "SourceUnreadable",
            Self::TooLarge { .. } => "SourceTooLarge",
            Self::BackingOff { .. } | Self::Busy { .. } => "SourceRateLimited",
        }
    }

    /// Whether nobody answered, or will for now, whatever is asked for.
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Resolve { .. }
                | Self::Connect { .. }
                | Self::Tls { .. }
                | Self::TimedOut { .. }
                | Self::TooManySlow { .. }
                | Self::Exchange { .. }
                | Self::Body { .. }
                | Self::BackingOff { .. }
                | Self::Busy { .. }
        )
    }

    /// How long it is of no use to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::BackingOff { wait, .. } | Self::Busy { wait, .. } => Some(*wait),
            _ => None,
        }
    }
}
