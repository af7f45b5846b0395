//! Tests of the room through its public face, in one binary.

mod directory_source;
mod directory_watch;
mod fixture;
mod hostile_releases;
