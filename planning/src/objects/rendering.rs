//! What became of a chart that was to be turned into objects.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::observed::Intent;
use crate::next::{Next, rests_until, retry_delay_seconds};
use crate::object_key::ObjectKey;

/// State of the rendering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Rendering {
    /// Nothing to render: no assets, or the object is being deleted.
    NotRendered,
    /// The chart does not render.
    Failed {
        /// The chart engine's words.
        message: String,
        /// What was tried, when time alone may mend it; otherwise the chart has to be mended.
        #[serde(default)]
        transient: Option<RenderAttempts>,
    },
    /// It takes long, or has many before it. Whoever looked is told when it is over.
    Awaited {
        /// What came of it last time, when it failed then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// The objects that the chart asks for.
    Rendered {
        /// What to apply, by key.
        intents: BTreeMap<ObjectKey, Intent>,
    },
}

/// Renderings that failed one after the other, for reasons that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderAttempts {
    /// How many times in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
}

impl RenderAttempts {
    /// When it may be tried again: each time later, up to five minutes. `None` when it may be by now.
    pub fn retry_at(self, now: Timestamp) -> Option<Timestamp> {
        let delay = SignedDuration::from_secs(retry_delay_seconds(self.attempts));
        rests_until(self.at, delay, now)
    }
}

impl Rendering {
    /// The objects that the chart asks for, if that is known.
    pub fn intents(&self) -> Option<&BTreeMap<ObjectKey, Intent>> {
        match self {
            Self::Rendered { intents } => Some(intents),
            Self::NotRendered | Self::Failed { .. } | Self::Awaited { .. } => None,
        }
    }

    /// When it may be rendered again, if it is time that mends it.
    pub(crate) fn next(&self, now: Timestamp) -> Next {
        match self {
            Self::Failed {
                transient: Some(attempts),
                ..
            } => attempts.retry_at(now).map_or(Next::Now, Next::At),
            Self::Failed { transient: None, .. } | Self::NotRendered | Self::Awaited { .. } | Self::Rendered { .. } => {
                Next::Await
            }
        }
    }
}
