//! Begun last by `cargo xtask test`, when all other programs have noted what their operators asked the API server for.

use anyhow::{Result, ensure};
use e2e::rights::{Differences, OperatorName, differences};

#[test]
fn every_right_of_an_operator_is_exercised_or_has_its_reason() -> Result<()> {
    for (operator, table) in [
        (OperatorName::Core, "crds/src/manifests/operator.rs"),
        (OperatorName::Provider, "crds/src/manifests/provider_operator.rs"),
    ] {
        let Some(Differences { never, all_the_same }) = differences(operator)? else {
            println!("not compared: only `cargo xtask test` of everything knows what all journeys together ask for");
            return Ok(());
        };
        ensure!(
            never.is_empty(),
            "no journey asks for these: take them out of {table}, or say there what they are for: {never:#?}"
        );
        ensure!(
            all_the_same.is_empty(),
            "journeys ask for these although `e2e::rights` says that none does: {all_the_same:#?}"
        );
    }
    Ok(())
}
