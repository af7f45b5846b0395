//! What origins had to show for the releases that are here, so that they can be verified without them. Blocks; believes nothing.

use super::contents::Contents;
use crate::{Digest, Evidence, trust::MAX_WRITTEN};

impl Contents {
    /// What is written down. What cannot be read, or is none, is not there: it can be asked for again.
    pub(super) fn evidence(&self, release: Digest, origin: Digest) -> Option<Evidence> {
        let written = self.disk.evidence(release, origin, MAX_WRITTEN as u64).ok()?;
        Evidence::read(&written)
    }

    /// Writes down what an origin has to show for a release that is here.
    pub(super) fn vouch(&self, release: Digest, origin: Digest, evidence: &Evidence) {
        let Some(before) = self.evidence_counted(release) else {
            return;
        };
        let written = serde_json::to_vec(evidence).map_err(std::io::Error::from);
        let written = written.and_then(|written| self.disk.vouch(release, origin, &written));
        if let Err(error) = written {
            tracing::warn!(%release, %error, "unable to note the signatures of a release; a restart asks for them again");
        }
        self.count_evidence(release, before);
    }
}
