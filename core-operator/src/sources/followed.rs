//! What is told of sources as a whole: how each of them is.

use jiff::Timestamp;
use planning::stack::Listing;
use sourcing::SourceKind;

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
