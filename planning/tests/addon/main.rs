//! The add-ons of clusters: what is due, which stages lead where, and what the hooks of Cluster API are answered, whatever is called, lost, killed or old.

#![expect(clippy::panic, reason = "a target that is not there ends the test")]

mod answers;
mod calls;
mod clusters;
mod courses;
mod given;
mod histories;
mod moments;
mod plans;
mod presences;
mod targets;
mod world;
