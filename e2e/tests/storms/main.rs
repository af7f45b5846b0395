//! The operator in bad weather: every course under seeds, and systematically with one event lost and from an old snapshot.

mod gone;
mod in_use;
mod mutants;
mod patterns;
mod proxy;
mod rest;
mod seeds;
mod soak;

use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use e2e::{storm::Surveys, travel::Course};

/// Each course in fair weather, once for all tests of this program.
static SURVEYS: LazyLock<Result<Surveys>> = LazyLock::new(|| Surveys::of(&Course::ALL));

fn surveys() -> Result<&'static Surveys> {
    SURVEYS.as_ref().map_err(|error| anyhow!("{error:#}"))
}
