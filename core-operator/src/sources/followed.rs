//! What is told of sources as a whole: their sorts, and how each of them is.

use crds::source::Source;
use jiff::Timestamp;
use planning::stack::Listing;

/// The sorts of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// A folder of this machine.
    Directory,
    /// A repository on GitHub, or on a server that speaks its API.
    Github,
    /// An index on a web server.
    Http,
    /// A repository in a registry.
    Oci,
}

impl SourceKind {
    pub(crate) const ALL: [Self; 4] = [Self::Directory, Self::Github, Self::Http, Self::Oci];
    /// Those that are asked over the network.
    pub(crate) const REMOTE: [Self; 3] = [Self::Github, Self::Http, Self::Oci];

    pub(super) fn of(source: &Source) -> Self {
        match source {
            Source::Directory(_) => Self::Directory,
            Source::Github(_) => Self::Github,
            Source::Http(_) => Self::Http,
            Source::Oci(_) => Self::Oci,
        }
    }

    /// As it is written in `spec.source`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Github => "github",
            Self::Http => "http",
            Self::Oci => "oci",
        }
    }
}

/// How one source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) kind: SourceKind,
    /// Whether it answered when it was asked last.
    pub(crate) answers: bool,
    /// Since when it does not.
    pub(crate) out_since: Option<Timestamp>,
    /// When it answered last, of one that is asked from time to time.
    pub(crate) answered_at: Option<Timestamp>,
}

impl Followed {
    pub(super) fn of(kind: SourceKind, listing: &Listing, answered_at: Option<Timestamp>) -> Self {
        let out_since = match listing {
            Listing::Unavailable { outage, .. } => outage.as_ref().map(|outage| outage.since),
            _ => None,
        };
        Self {
            kind,
            answers: matches!(listing, Listing::Known { .. }),
            out_since,
            answered_at,
        }
    }
}
