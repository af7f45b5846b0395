//! Whether as many may go at once as would go: few always, many when somebody has approved just these. The same for the releases that left the source of
//! a stack and for the objects that left a release.
//!
//! An approval is written into the status before the first of them goes. From then on it holds for each of them, whatever has become of the others:
//! the digest names all, and nobody can make it again once some are gone. It names their identities too: what is made again under the same name was
//! approved by nobody, however long the annotation stays.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::digest::digest;

/// One that would go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Doomed<Name> {
    /// What it is called.
    pub(crate) name: Name,
    /// The uid of what is called so now.
    pub(crate) uid: String,
}

/// Whether those may go that would.
pub(crate) enum Permission {
    /// They may.
    Given,
    /// They were approved, and the status has to say so first.
    Unrecorded,
    /// Somebody has to approve them by this digest.
    Missing(String),
}

/// What a user and the status say about a mass deletion.
pub(crate) struct Approval<'a> {
    /// Value of the annotation that approves one by its digest.
    pub(crate) annotation: Option<&'a str>,
    /// The digest of the one that the status says was approved.
    pub(crate) status: Option<&'a str>,
}

impl<'a> Approval<'a> {
    /// The digest that the status says was approved, as long as the annotation says it too.
    pub(crate) fn recorded(&self) -> Option<&'a str> {
        self.status.filter(|digest| self.annotation == Some(digest))
    }

    /// Decides about those that would go, of which so many always may; `is_recorded` tells which of them the status names as approved.
    pub(crate) fn permission<Name: Serialize>(
        &self,
        doomed: &BTreeSet<Doomed<Name>>,
        limit: usize,
        is_recorded: impl Fn(&Name) -> bool,
    ) -> Permission {
        let is_recorded = |doomed: &Doomed<Name>| is_recorded(&doomed.name);
        if doomed.len() <= limit || self.recorded().is_some() && doomed.iter().all(is_recorded) {
            return Permission::Given;
        }
        let digest = digest(doomed);
        if self.annotation == Some(digest.as_str()) {
            Permission::Unrecorded
        } else {
            Permission::Missing(digest)
        }
    }
}
