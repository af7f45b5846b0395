//! What is done next about one node image: a state machine without a memory of its own.
//!
//! [`decide()`] is told what is wanted, what status says, what was seen in the cloud and at the image's source, and what is under way, and answers with
//! one [`Step`]. It asks no cloud, waits for nothing and knows no provider. What status says after a step is [`after()`]'s answer, so that whoever
//! performs steps decides nothing; what people read is [`tell()`]'s.
//!
//! What keeps images safe: an attempt is written to status before its record is created, and the next attempt before the record of the last one is
//! discarded. So whoever acts on what it saw a while ago can create what is found again, and delete what nobody wants any more.

mod absent;
mod after;
mod case;
mod decide;
mod deletion;
mod execution;
mod failure;
mod judge;
mod kept;
mod key;
mod op;
mod records;
mod retry;
mod seen;
mod sending;
mod spread;
mod status;
mod step;
mod sweep;
mod tell;
mod unshown;
mod wait;
mod wanted;
mod wording;

pub use after::after;
pub use decide::{AMEND_AGAIN, LOOK_READY, LOOK_WAITING, SENDING_RESTS, SHORT_DEED, STOPPING, decide, look_ready};
pub use deletion::GOING;
pub use execution::{ExecutionReason, executed_as};
pub use failure::{FINAL_EXITS, Failure, FailureClass, Quota};
pub use judge::{Verdict, judge, pinned};
pub use kept::{CloudImage, Halted, Kept, Retry, Sealed};
pub use key::{KeyParts, content_key};
pub use op::{Deed, DeedName, DiscardReason, Done, Form, Op, OpState, StopReason};
pub use records::{IMPORT_BASE, IMPORT_RATE};
pub use retry::{look_again, settle};
pub use seen::{
    Abilities, Amended, Cloud, Drift, ForeignSeen, JobsSight, ReadBack, RecordSeen, RecordState, Seen, Sight, Source,
};
pub use sending::{IMPORTS_AT_MOST, PROBE_HOLDS};
pub use step::{AttemptReason, Halt, HaltReason, Intent, Settlement, Step};
pub use sweep::{GRACE, OwnedImage, SEEN_APART, Sightings, SweepDeed, Swept, listed, sweep, sweep_again};
pub use tell::{Situation, Told, tell};
pub use unshown::Unshown;
pub use wait::{Awaited, Since, Until, Wait, WaitReason};
pub use wanted::{Algorithm, DeletionPolicy, Execution, ImagePolicy, Now, Pinned, Via, Wanted};
