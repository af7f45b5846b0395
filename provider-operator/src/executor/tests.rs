//! The executor with clouds of clay in paused time, and with real counterparts.

mod bench;
mod ends;
mod gates;
#[cfg(all(feature = "filestore", feature = "openstack"))]
mod real;
mod turns;
