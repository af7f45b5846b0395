//! Decisions about the objects of one owner, whoever that is and in whatever API server they live: what to apply, check, prune and delete, in which
//! order, and what the inventory in the owner's status says of each. A ClusterStackRelease has its objects beside it, a ClusterAddon in its cluster.
//!
//! The plan of an owner uses this so:
//!
//! 1. It makes an [`ObjectSet`] of what its observation has: what is wanted ([`Intent`] by key), what was seen of every object ([`ObjectObserved`]), the
//!    rows of its own status, how differences and deletions are to be treated, and what is to be left alone for now.
//! 2. One of [`ObjectSet::installation`], [`ObjectSet::removal`] and [`ObjectSet::watched`] gives the [`Decisions`] about each object, by which
//!    everything else goes. What has to wait for something else than objects (files, a provider, a condition) is the owner's business: it then asks for no
//!    installation, or for one with fewer intents.
//! 3. [`Decisions::steps`] brings the actions into order (looks, applications by wave, deletions by wave backwards); [`ObjectSet::inventory`] gives the rows
//!    of the next status, [`record_before_writes`] puts the write of that status before the first write that needs it, [`ObjectSet::waits`] says why nothing
//!    more happens, [`Decisions::next`] when time alone changes it, and [`ObjectSet::applied`] what the condition says.
//!
//! What is written to the owner itself stands in its own actions, which are the `Own` of an [`Action`]: nothing here knows them.
//!
//! An owner that applies its objects in stages asks [`ObjectSet::syncs`] how far each of them is, wants those of all stages that were reached, and holds back ([`ObjectSet::held`]) what the stages to come have
//! had: so nothing of them is taken for a leftover before it is known that nobody wants it. Leftovers go once all that is wanted stands.

mod action;
mod bounds;
mod decisions;
mod findings;
mod inventory;
mod news;
mod observed;
mod order;
mod pace;
mod prune;
mod reach;
mod rendering;
mod rows;
mod set;
mod sync;
mod terminating;
mod waiting;
mod watching;
mod wording;

pub use action::{Action, ApplyReason, ObjectAction, OwnAction, Step};
pub use decisions::{Asked, Decisions};
pub use inventory::{Inventoried, key_of};
pub use news::{corrected, corrections};
pub use observed::{
    Attempt, Belongs, Drifted, Failure, HealthSeen, Holder, Intent, KindScope, ObjectMemory, ObjectObserved, Read,
    Seen, Standing, Verified,
};
pub use order::record_before_writes;
pub use prune::Fate;
pub use rendering::{RenderAttempts, Rendering};
pub use rows::Inventory;
pub use set::{ObjectSet, OwnerKind, Prune};
pub use sync::{Sync, SyncState};
pub use waiting::Wait;
pub use watching::Unrepaired;

pub(crate) use order::is_class;
pub(crate) use wording::{awaited_kinds, refusals, summary};
