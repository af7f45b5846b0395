//! The decisions in a modelled world: scenarios as golden text, and properties of every history.

#![expect(clippy::panic, reason = "a script with a mistake and a broken rule end the test")]

mod histories;
mod inputs;
mod journeys;
mod scenarios;
mod world;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::FileFailurePersistence;

/// So many cases, unless `PROPTEST_CASES` says otherwise; failures are kept beside the test.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            default.cases
        } else {
            cases
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 4000,
        ..default
    }
}
