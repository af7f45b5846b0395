//! Decisions about one ClusterStack: which releases shall exist, what they shall say, and what the stack's status says of them.

mod approval;
mod findings;
mod notes;
mod observed;
mod obstacle;
mod orphans;
mod plan;
mod provider;
mod select;
mod status;

pub use notes::Note;
pub use observed::{
    ActionFailure, AppliedProviderObject, ListedRelease, Listing, Owner, ProviderObject, ProviderTemplate, ReleaseView,
    StackObserved,
};
pub use orphans::{Leftover, templates_of};
pub use plan::{StackAction, StackPlan, StackWaiting, plan};
pub use provider::{LAST_APPLIED, release_kind};

#[cfg(test)]
mod tests;
