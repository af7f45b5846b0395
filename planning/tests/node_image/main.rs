//! A provider's releases and the images that they share: names, tables of decisions, and histories of several releases on one API server.

#![expect(clippy::panic, reason = "a condition that is not there ends the test")]

mod entries;
mod scenarios;
mod table;
mod world;
