//! Begun last by `cargo xtask test`, when all other programs have noted what their operators asked the API server for.

use anyhow::{Result, ensure};
use e2e::rights::{OperatorName, never_asked_for};

#[test]
fn every_right_of_an_operator_is_exercised_or_has_its_reason() -> Result<()> {
    for (operator, table) in [
        (OperatorName::Core, "crds/src/manifests/operator.rs"),
        (OperatorName::Provider, "crds/src/manifests/provider_operator.rs"),
    ] {
        let Some(never) = never_asked_for(operator)? else {
            println!("not compared: only `cargo xtask test` of everything knows what all journeys together ask for");
            return Ok(());
        };
        ensure!(
            never.is_empty(),
            "no journey asks for these: take them out of {table}, or say there what they are for: {never:#?}"
        );
    }
    Ok(())
}
