//! Decisions about one ClusterStackRelease: what to apply, check, prune and delete, and what its status says.
//!
//! Reads `observed` and a time, and nothing else.

mod action;
mod bounds;
mod claim;
mod class;
mod confinement;
mod findings;
mod inventory;
mod news;
mod object;
mod objects;
mod observed;
mod pacing;
mod plan;
mod prune;
mod reach;
mod rows;
mod status;
mod waiting;
mod watching;
mod without_files;
mod wording;

pub use action::{ApplyReason, ReleaseAction, Step};
pub use claim::{Claim, Member, Standing, Word, holder, standing};
pub use inventory::{Inventoried, key_of};
pub use news::{corrected, corrections};
pub use object::{Sync, SyncState, decide};
pub use observed::{
    Assets, Attempt, Belongs, Controlled, Drifted, Failure, HealthSeen, Holder, Intent, KindScope, ObjectMemory,
    ObjectObserved, Provider, ProviderProgress, Read, ReleaseObserved, RenderAttempts, Rendering, Seen, Verified,
};
pub use plan::{ReleasePlan, plan};
pub use reach::unreached;
pub use waiting::Waiting;
