//! Why nothing more happens to a release, as data for reports; the conditions say the same in words.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::objects::moved_from;
use super::observed::{Assets, Provider, ReleaseObserved};
use super::without_files::is_without_files;
use crate::objects::{Decisions, Rendering, Wait};

/// Why nothing more happens, as data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waiting {
    /// The object is paused.
    Paused,
    /// A watch has not listed yet what the status was made from: what it says still stands.
    Watches,
    /// The spec cannot be used.
    InvalidSpec,
    /// The source does not have the release.
    Assets,
    /// No signature of the release is good, and one may come.
    Signature,
    /// The release is signed wrongly.
    Unverified,
    /// The release has to be mended.
    BrokenRelease,
    /// The source holds other bytes than those that were pinned.
    DigestChanged,
    /// The chart does not render.
    Rendering,
    /// The chart did not render, for a reason that may pass.
    NextRendering,
    /// The chart takes long to render, or has many before it.
    SlowRendering,
    /// The provider is not ready.
    Provider,
    /// Clusters are not known yet.
    ClusterList,
    /// Clusters use the class.
    InUse {
        /// Which (`namespace/name`).
        clusters: BTreeSet<String>,
    },
    /// Something about its objects.
    #[serde(untagged)]
    Objects(Wait),
}

/// Why nothing more happens, sorted and without repetition.
pub(super) fn waiting(observed: &ReleaseObserved, decisions: &Decisions) -> Vec<Waiting> {
    let mut waiting = BTreeSet::new();
    if observed.deleting {
        match &observed.used_by {
            None => waiting.insert(Waiting::ClusterList),
            Some(clusters) if !clusters.is_empty() => waiting.insert(Waiting::InUse {
                clusters: clusters.clone(),
            }),
            Some(_) => false,
        };
    } else {
        waiting.extend(waiting_for_inputs(observed));
    }
    waiting.extend(observed.set().waits(decisions).into_iter().map(Waiting::Objects));
    waiting.into_iter().collect()
}

fn waiting_for_inputs(observed: &ReleaseObserved) -> Vec<Waiting> {
    let assets = match &observed.assets {
        _ if moved_from(observed).is_some() => Some(Waiting::DigestChanged),
        Assets::Missing { .. } if is_without_files(observed) => None,
        Assets::Missing { .. } => Some(Waiting::Assets),
        Assets::Broken { .. } => Some(Waiting::BrokenRelease),
        Assets::Refused { awaited: true, .. } => Some(Waiting::Signature),
        Assets::Refused { awaited: false, .. } => Some(Waiting::Unverified),
        Assets::Ready { .. } | Assets::NotRead => None,
    };
    let provider = match &observed.provider {
        Provider::NotWanted | Provider::Found { ready: true, .. } => None,
        Provider::Foreign => Some(Waiting::InvalidSpec),
        _ => Some(Waiting::Provider),
    };
    let rendering = match &observed.rendering {
        Rendering::Failed { transient: None, .. } => Some(Waiting::Rendering),
        Rendering::Failed { transient: Some(_), .. } => Some(Waiting::NextRendering),
        Rendering::Awaited { .. } => Some(Waiting::SlowRendering),
        Rendering::NotRendered | Rendering::Rendered { .. } => None,
    };
    assets.into_iter().chain(provider).chain(rendering).collect()
}
