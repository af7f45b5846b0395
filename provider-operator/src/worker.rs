//! One deed, done: the only code that calls an image store. It is the same wherever it runs, asks no Kubernetes and remembers nothing; when it is done,
//! and what follows, others decide.
//!
//! In a Job it is a program of its own ([`program`]), which is told what to do by a [`document`] and leaves a [`report`].

mod artifact;
pub(crate) mod document;
pub(crate) mod exit;
mod failure;
mod plan;
pub(crate) mod program;
mod read_back;
pub(crate) mod report;
mod sums;
mod work;

pub(crate) use self::failure::{Failed, Whose};
pub(crate) use self::plan::{ContentSpec, Found, WorkPlan, Worked};
pub(crate) use self::work::work;
