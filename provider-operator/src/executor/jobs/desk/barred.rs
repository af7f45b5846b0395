//! Where there can be no Jobs, why, and until when that is believed. Finds nothing out itself.

use std::time::Duration;

use crds::manifests::ProviderOperatorRole;

use super::Desk;

/// The roles that are named where they are missing.
const JOBS: &str = ProviderOperatorRole::Jobs.name();
const SIGHT_OF_JOBS: &str = ProviderOperatorRole::SightOfJobs.name();

impl Desk {
    /// Jobs cannot be had in a namespace.
    pub(in super::super) fn bar(&mut self, namespace: &str, why: String, until: Duration) {
        self.barred.insert(namespace.to_owned(), (until, why));
    }

    /// They cannot be had anywhere, until they are listed.
    pub(in super::super) fn bar_all(&mut self, why: &str) {
        let why = format!(
            "{why}; bind the role {SIGHT_OF_JOBS} to the operator, everywhere or in the one namespace that it looks after"
        );
        self.bar("", why, Duration::MAX);
    }

    /// Why they cannot be had, as far as that is known now.
    pub(in super::super) fn barred(&mut self, namespace: &str, now: Duration) -> Option<String> {
        self.barred.retain(|_, (until, _)| *until > now);
        let (_, why) = self.barred.get(namespace).or_else(|| self.barred.get(""))?;
        Some(why.clone())
    }
}

/// Why there are no Jobs in a namespace where the right to make them is missing.
pub(in super::super) fn without_right(why: &str) -> String {
    format!("{why}; bind the role {JOBS} to the operator in this namespace")
}
