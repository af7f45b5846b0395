//! Work that cannot be trusted to end, in a process of its own: bytes in, bytes out, and whatever happens in between is over at its deadline.
//!
//! Knows how to start, bound and end such a process, and nothing of the work. A program that has such work says so first thing in its
//! `main` with [`serve`]; then [`Program::itself`] starts the same program again with a first argument that makes it serve, and
//! [`Program::ask`] talks to it. The process has no environment, no argument but that one, pipes and `/dev/null` instead of files, and
//! [`Limits`] that the system holds. Only Unix systems are known; those besides Linux hold fewer of them ([`Limits`] says which).

mod child;
mod death;
mod limits;
mod parent;

pub use child::serve;
pub use death::Death;
pub use limits::Limits;
pub use parent::{AskError, Bounds, Program};
