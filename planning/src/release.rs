//! Decisions about one ClusterStackRelease: what to apply, check, prune and delete, and what its status says.
//!
//! Reads `observed` and a time, and nothing else. What becomes of objects once the release may have them is decided in [`objects`](crate::objects).

mod action;
mod claim;
mod class;
mod confinement;
mod findings;
mod objects;
mod observed;
mod plan;
mod progress;
mod status;
mod waiting;
mod without_files;

pub use action::{ReleaseAction, Step};
pub use claim::{Claim, Member, Word, holder, standing};
pub use observed::{Assets, Controlled, Provider, ProviderProgress, ReleaseObserved};
pub use plan::{ReleasePlan, plan};
pub use waiting::Waiting;
