//! The subcommands of `lab`, one module each: arguments and what to say; the work is the library's.

pub(crate) mod conformance_provider;
pub(crate) mod control_plane;
pub(crate) mod soak;
pub(crate) mod storm;
