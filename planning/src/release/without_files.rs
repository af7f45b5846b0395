//! Which releases were applied and have files that cannot be had now, and what is said of them. Nothing can be written, because nobody knows what.

use crds::conditions::{ConditionType, Finding, Reason};

use super::observed::{Assets, ReleaseObserved};
use crate::outage::Outage;

/// Whether all that the inventory names was applied and the files cannot be had. Without an inventory nobody knows what was applied.
pub(super) fn is_without_files(observed: &ReleaseObserved) -> bool {
    let rows = &observed.status.resources;
    matches!(observed.assets, Assets::Missing { .. })
        && observed.status.assets.is_some()
        && !rows.is_empty()
        && rows.iter().all(|row| !row.digest.is_empty())
}

/// Why files are not there, and how long it was tried to get them.
pub(super) fn told(message: &str, outage: Option<&Outage>) -> String {
    outage.map_or_else(|| message.to_owned(), |outage| outage.tell(message))
}

/// That the files cannot be had does not make unusable what is applied; it is told.
pub(super) fn downloaded(message: &str, withdrawn: bool, outage: Option<&Outage>) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    const APPLIED: &str = "what is applied stays and is watched, but cannot be repaired until they are back";
    if withdrawn {
        let message = format!("the files of the release are no longer in the source: {APPLIED}");
        return Finding::holds_because(TYPE, Reason::ReleaseNotFound, message);
    }
    let message = told(
        &format!("the files of the release cannot be had now: {APPLIED}; {message}"),
        outage,
    );
    Finding::holds_because(TYPE, Reason::SourceUnavailable, message)
}
