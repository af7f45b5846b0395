//! What all clusters go through at once, and what the operator wrote for it.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{
    Metrics,
    audit::AuditEvents,
    usage::{Usage, forget_peak},
};
use jiff::Timestamp;

use super::{
    fleet::Fleet,
    place::{Operated, Place},
};
use crate::progress::Progress;

/// One step, made by the operator.
pub(super) struct Step {
    /// What it asked each API server, that of the management cluster first.
    pub(super) requests: Vec<AuditEvents>,
    /// From the first write of the benchmark to the last of the operator.
    pub(super) took: Duration,
    /// Charts that were rendered, by its own account.
    pub(super) renderings: f64,
    /// Processor time.
    pub(super) cpu: Duration,
    /// Highest resident memory.
    pub(super) peak_mib: f64,
}

/// New Clusters of the first class: their kubeconfigs and control planes are there already.
pub(super) async fn install(
    place: &Place,
    operated: &mut Operated,
    names: &[String],
    progress: &Progress,
) -> Result<Step> {
    let fleet = Fleet::new(&place.ground.client, &place.namespace);
    fleet
        .prepare_all(names, |number| place.server_of(number).kubeconfig.as_str())
        .await?;
    let class = &place.classes[0];
    let begin = async || fleet.create_all(names, class).await.map(drop);
    step(place, operated, &fleet, (names, class), begin, progress).await
}

/// The second class for all Clusters.
pub(super) async fn upgrade(
    place: &Place,
    operated: &mut Operated,
    names: &[String],
    progress: &Progress,
) -> Result<Step> {
    let fleet = Fleet::new(&place.ground.client, &place.namespace);
    let class = &place.classes[1];
    let begin = async || fleet.change_all(names, class).await.map(drop);
    step(place, operated, &fleet, (names, class), begin, progress).await
}

async fn step(
    place: &Place,
    operated: &mut Operated,
    fleet: &Fleet,
    (names, class): (&[String], &str),
    begin: impl AsyncFnOnce() -> Result<()>,
    progress: &Progress,
) -> Result<Step> {
    let rendered = renderings(&operated.operator.metrics().await?);
    forget_peak(operated.process)?;
    let before = Usage::of(operated.process)?;
    let marks = place.marks().await?;
    let start = Timestamp::now();
    begin().await?;
    fleet
        .until_complete(names.len(), class, &mut operated.operator, progress)
        .await?;
    place.until_quiet(progress).await?;
    let requests = place.requests_since(marks).await?;
    let answered = |events: &AuditEvents| events.clone().writes().iter().map(|write| write.answered).max();
    let end = requests.iter().filter_map(answered).max();
    let end = end.context("the operator wrote nothing")?;
    let after = Usage::of(operated.process)?;
    Ok(Step {
        requests,
        took: Duration::try_from(end.duration_since(start)).context("it was done before it began")?,
        renderings: renderings(&operated.operator.metrics().await?) - rendered,
        cpu: after.cpu.saturating_sub(before.cpu),
        peak_mib: after.peak_mib,
    })
}

/// How many requests of one sort there were to all API servers.
pub(super) fn sum(requests: &[AuditEvents], narrow: fn(AuditEvents) -> AuditEvents) -> usize {
    let narrowed = requests.iter().cloned().map(narrow);
    narrowed.map(|events| events.len()).sum()
}

/// Charts that were rendered and not taken from what is kept of past renderings.
fn renderings(metrics: &Metrics) -> f64 {
    let rendered = metrics.sum("stackwright_renders_total", &[("outcome", "rendered")]);
    rendered.unwrap_or_default()
}
