//! How the proxy treats requests for a while.

use std::time::Duration;

use http::StatusCode;

/// A state of the connection between program and API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// Everything passes.
    #[default]
    Fair,
    /// Every request is answered with this status and reaches nobody.
    RefuseAll(StatusCode),
    /// Writes (as the proxy counts them) are answered with this status and reach nobody; everything else passes.
    RefuseWrites(StatusCode),
    /// Watches are granted and end at once, before their first event; everything else passes.
    ShortWatches,
    /// New requests are held without an answer, and dropped when the weather changes. Running watches go on.
    Hang,
    /// New requests wait this long and then pass, unless whoever asks has gone by then. Running watches go on.
    Slow(Duration),
}

impl Weather {
    /// The status with which this weather refuses such a request.
    pub(super) fn refusal(self, is_write: bool) -> Option<StatusCode> {
        match self {
            Self::RefuseAll(status) => Some(status),
            Self::RefuseWrites(status) if is_write => Some(status),
            Self::Fair | Self::RefuseWrites(_) | Self::ShortWatches | Self::Hang | Self::Slow(_) => None,
        }
    }
}
