//! The decisions in a modelled world: scenarios as golden text, and properties of every history.

#![expect(clippy::panic, reason = "a script with a mistake and a broken rule end the test")]

mod histories;
mod inputs;
mod journeys;
mod renderings;
mod scenarios;
mod world;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

const SEED: u64 = 1;

/// The same so many cases in every run, so that no merge is stopped by luck. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` explore others: as many as the
/// one says, those that follow from the other. What they find is kept beside the test.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    };
    let explores = |name| std::env::var_os(name).is_some();
    if explores("PROPTEST_CASES") || explores("PROPTEST_RNG_SEED") {
        return default;
    }
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(SEED),
        ..default
    }
}
