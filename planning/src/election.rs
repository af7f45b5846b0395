//! Who works on what: when a replica may hold a Lease, which replicas are alive, and which shards each of them takes or gives away.
//!
//! Times are those of a replica's own clock, counted from any moment. Clocks are never compared.

mod handover;
mod lease;
mod offers;
mod roll;
mod shard;
mod share;

pub use self::handover::Handover;
pub use self::lease::{Candidate, Sighting, Step, Timing};
pub use self::offers::Offers;
pub use self::roll::Roll;
pub use self::shard::{shard_of, shard_of_release, shard_of_stack};
pub use self::share::Share;
