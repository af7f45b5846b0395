//! Decisions about one ClusterStackRelease: what to apply, check, prune and delete, and what its status says.
//!
//! Reads `observed` and a time, and nothing else.

mod bounds;
mod findings;
mod inventory;
mod news;
mod object;
mod observed;
mod plan;
mod prune;
mod status;
mod waiting;
mod wording;

pub use inventory::key_of;
pub use news::{corrected, corrections};
pub use object::{Inventoried, Sync, SyncState, decide};
pub use observed::{
    Assets, Attempt, Belongs, Drifted, Failure, HealthSeen, Holder, Intent, ObjectMemory, ObjectObserved, Provider,
    Read, ReleaseObserved, Rendering, Seen, Verified,
};
pub use plan::{ApplyReason, ReleaseAction, ReleasePlan, Step, plan};
pub use prune::prune_digest;
pub use waiting::Waiting;
