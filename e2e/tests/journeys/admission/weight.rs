//! Clusters that weigh more as a tree than as a text.

use anyhow::{Context, Result, ensure};
use e2e::usage::{Usage, forget_peak};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{CLASS, cluster, clusters, guarded, installed};
use crate::journey;

/// Three bytes each, so that one request has almost all the bytes that an API server takes.
const ELEMENTS: usize = 900_000;
/// Requests at once.
const AT_ONCE: usize = 4;
/// The most that judging them may add to what is resident, in MiB: each is twice the bytes of a request, and has a tree of more than 100.
const MOST_MEMORY: f64 = 40.0;

#[test]
fn clusters_of_many_small_things_are_judged_at_once_in_the_memory_of_their_bytes() -> Result<()> {
    journey(async |journey| {
        let _certificates = guarded(journey, &[]).await?;
        installed(journey).await?;
        let api = clusters(journey);
        let process = journey.operator()?.process_id().context("it runs")?;
        let mut heavy = cluster("web", CLASS, "v1.34.9");
        let nothing: Vec<Value> = vec![json!({}); ELEMENTS];
        heavy["spec"]["topology"]["variables"] = json!([{ "name": "nothing", "value": nothing }]);
        forget_peak(process)?;
        let before = Usage::of(process)?.resident_mib;
        for answer in try_join_all((0..AT_ONCE).map(|_| api.try_create(&heavy))).await? {
            ensure!(answer.code == 403 && answer.message.contains("v1.34.9"), "{answer:?}");
        }
        let added = Usage::of(process)?.peak_mib - before;
        eprintln!("{added} MiB more than {before}");
        ensure!(added < MOST_MEMORY, "{added} MiB more than {before}");
        Ok(())
    })
}
