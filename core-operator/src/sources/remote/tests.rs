//! The follower of a remote source, with a store on a real disk. What plays the remote source has real files and can fail.

mod arrival;
mod credentials;
mod faraway;
mod lost;
mod outages;
mod panics;
mod polls;
mod process;
mod signatures;
