//! What origins had to show for the releases that are here, so that they can be verified without them. Blocks; believes nothing.

use std::io::{Error, ErrorKind};

use super::{contents::Contents, error::StoreError};
use crate::{Digest, Evidence, trust::MAX_WRITTEN};

impl Contents {
    /// What is written down. What cannot be read, or is none, is not there: it can be asked for again.
    pub(super) fn evidence(&self, release: Digest, origin: Digest) -> Option<Evidence> {
        let written = self.disk.evidence(release, origin, MAX_WRITTEN as u64).ok()?;
        Evidence::read(&written)
    }

    /// Writes down what an origin has to show for a release that is here.
    pub(super) fn vouch(&self, release: Digest, origin: Digest, evidence: &Evidence) -> Result<(), StoreError> {
        let Some(before) = self.evidence_counted(release) else {
            return Err(self.unreadable(Error::new(ErrorKind::NotFound, "the release is not there any more")));
        };
        let written = serde_json::to_vec(evidence).map_err(Error::from);
        let written = written.and_then(|written| self.disk.vouch(release, origin, &written));
        self.count_evidence(release, before);
        written.map_err(|error| self.write_error(error))
    }
}
