//! The life of an operator's process: how it begins, stands for its Lease, is asked to stop, and ends. What it works on, and how long each part may
//! take to end, is decided by the operator; its flags are read by nobody here.

mod endpoints;
mod program;
mod signals;
mod standing;

pub use self::endpoints::{Endpoints, listening};
pub use self::program::{Program, until_stopped};
pub use self::signals::stop_on_signal;
pub(crate) use self::standing::candidacy;
pub use self::standing::{Standing, StandingError, host, permits};
