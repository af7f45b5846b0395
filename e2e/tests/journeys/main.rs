//! What users do, on a real control plane: each test is a journey through a namespace of its own, with an operator of its own.
//!
//! After each journey every decision that its operator recorded is made again, and has to come out the same to the bit.

mod admission;
mod apply;
mod asking;
mod back;
mod broken;
mod cleanup;
mod clusterctl;
mod columns;
mod confined;
mod conforms;
mod contract;
mod definitions;
mod drift;
mod events;
mod faults;
mod foreign;
mod health;
mod image_sources;
mod installation;
mod kubectl_wait;
mod node_images;
mod older;
mod oracle;
mod polls;
mod pulled_images;
mod real;
mod refused;
mod remote;
mod replay;
mod schemas;
mod shared;
mod signed;
#[cfg(test)]
#[path = "../../../release/tests/it/sigstore/mod.rs"]
#[expect(dead_code, reason = "the tests of `release` make more kinds of bundles with it")]
mod sigstore;
mod subscribe;
mod takeover;
mod withdrawn;

use anyhow::Result;
use e2e::Journey;

/// A journey, and the replay of its decisions.
fn journey(travel: impl AsyncFnOnce(&mut Journey) -> Result<()>) -> Result<()> {
    e2e::journey::journey(async |journey| {
        travel(journey).await?;
        replay::every_decision_again(&journey.decisions())
    })
}
