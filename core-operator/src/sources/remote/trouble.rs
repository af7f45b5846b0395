//! Why something was not had from a source, in one form for whatever failed.

use std::time::Duration;

use operator_kit::failure::{chain, chain_without};
use planning::outage::Outage;
use planning::stack::Listing;
use release::ErrorClass;
use release::source::{ReleaseSource, SourceError};
use release::store::StoreError;
use sourcing::ConnectError;

/// Why something was not had from a source.
pub(super) struct Trouble {
    pub(super) class: ErrorClass,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
    /// Whether nothing was asked, because the source cannot be used as it is configured.
    is_configuration: bool,
}

impl Trouble {
    /// What a source said, without what it was told in confidence.
    pub(super) fn of_source(error: &SourceError, source: &dyn ReleaseSource) -> Self {
        Self {
            class: error.class(),
            message: chain_without(error, |words| source.without_secrets(words)),
            retry_after: error.retry_after(),
            is_configuration: false,
        }
    }

    /// What kept the store from having something of a source.
    pub(super) fn of_download(error: StoreError, source: &dyn ReleaseSource) -> Self {
        let message = chain_without(&error, |words| source.without_secrets(words));
        Self {
            message,
            ..Self::from(error)
        }
    }

    /// What is known of the source meanwhile.
    pub(super) fn listing(self, outage: Outage) -> Listing {
        let Self { message, .. } = self;
        if self.is_configuration {
            Listing::Unusable { message }
        } else {
            Listing::Unavailable {
                message,
                outage: Some(outage),
            }
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self {
            class: error.class(),
            message: chain(&error),
            retry_after: match &error {
                StoreError::Fetch { source, .. } => source.retry_after(),
                _ => None,
            },
            is_configuration: false,
        }
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        Self {
            class: error.class(),
            message: chain(&error),
            retry_after: None,
            is_configuration: error.class() != ErrorClass::Transient,
        }
    }
}
