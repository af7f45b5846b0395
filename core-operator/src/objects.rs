//! The objects of an owner, in the API server where they live: looked at, and written as its plan says. Decides nothing.
//!
//! A driver of owners (releases today; add-ons have their objects in clusters) does it so:
//!
//! 1. It has a [`Place`]: the client, discovery and watches of the API server where the objects are. All objects with our label are watched, or those of
//!    one owner where it shares the API server with others that are none of its business.
//! 2. It remembers what it learned of objects in a [`Memory`], which lies beside what it remembers of the owner itself, in [`Memories`].
//! 3. It makes [`Intents`] of what was rendered, asks [`Place::observe`] how the objects are, and has its plan made of that (`planning::objects`).
//! 4. It performs the steps of the plan with a [`Pass`]. What is done to the owner itself, and what only it knows, the driver gives as an [`Owner`].

mod adoption;
mod bodies;
mod definition;
mod execute;
mod inherited;
mod intent;
mod kinds;
mod live;
mod memory;
mod observe;
mod owner;
mod place;
mod reading;
mod refusal;
mod remember;
mod scopes;
mod writing;

pub(crate) use self::bodies::{Bodies, Unprepared};
pub(crate) use self::execute::{Failed, Outcome, Pass};
pub(crate) use self::inherited::locate;
pub(crate) use self::intent::{Intents, Marks, Remembered};
pub(crate) use self::kinds::named_kinds;
pub(crate) use self::live::is_predecessors;
pub(crate) use self::memory::{Memories, Memory, lock};
pub(crate) use self::observe::Asked;
pub(crate) use self::owner::Owner;
pub(crate) use self::place::Place;
pub(crate) use self::scopes::Scopes;

#[cfg(test)]
mod tests;
