//! What others notice of images that are being sent: how long after a change of another image its status is about it.

use std::{
    future::Future,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use super::place::Place;

/// How often the status is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Between one change and the next.
const REST: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_mins(1);
/// What becomes of the image when its object goes. It is what it was when all is done.
const DELETE: &str = "Delete";
const POLICIES: [&str; 2] = ["Retain", DELETE];

/// Does the work, and changes a ready image again and again until it is done. Milliseconds from the answer to each change until the status was about it.
pub(super) async fn beside<T>(
    place: &Place,
    name: &str,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Vec<f64>)> {
    let mut work = pin!(work);
    let mut milliseconds = Vec::new();
    let done = loop {
        tokio::select! {
            done = &mut work => break done?,
            took = change(place, name, POLICIES[milliseconds.len() % 2]) => milliseconds.push(took?),
        }
    };
    change(place, name, DELETE).await?;
    Ok((done, milliseconds))
}

/// Changes what becomes of the image at the end: nothing of it has to be done in the cloud.
async fn change(place: &Place, name: &str, policy: &str) -> Result<f64> {
    sleep(REST).await;
    let patch = Patch::Merge(json!({ "spec": { "deletionPolicy": policy } }));
    let changed = place.images.patch(name, &PatchParams::default(), &patch).await;
    let changed = changed.context("failed to change an image")?;
    let begin = Instant::now();
    loop {
        let image = place.images.get_status(name).await.context("failed to read an image")?;
        let status = image.status.unwrap_or_default();
        if status.observed_generation >= changed.metadata.generation {
            return Ok(begin.elapsed().as_secs_f64() * 1000.0);
        }
        ensure!(
            begin.elapsed() < DEADLINE,
            "the status is not about the change after {DEADLINE:?}"
        );
        sleep(LOOK_INTERVAL).await;
    }
}
