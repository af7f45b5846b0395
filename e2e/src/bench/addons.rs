//! `lab bench addons`: the add-ons of a fleet of clusters, on real API servers: how fast beside a raw writer, how soon, and what they cost while nothing is to
//! be done.
//!
//! No manager of Cluster API runs: the benchmark itself writes the Clusters, what their control planes say, and the kubeconfigs. Requests are counted by the audit
//! logs of all API servers, watches by these too, and memory by the kernel; only how often charts were rendered and how long an answer to a hook took
//! says the operator itself.

mod fleet;
mod hooks;
mod idle;
mod place;
mod raw;
mod reaction;
mod run;
mod step;

use anyhow::{Context, Result};

pub(super) use self::run::Run;
use self::{
    fleet::{Fleet, names},
    place::Place,
    raw::RawWriter,
    run::Beside,
    step::Step,
};
use crate::{
    arguments::addons::{AddonsArguments, AddonsMeasure},
    progress::Progress,
};

/// Measures what is asked for, all of it with the same operator.
pub(super) async fn measure(arguments: &AddonsArguments) -> Result<Vec<Run>> {
    let progress = Progress::start(format!("add-ons of {} clusters", arguments.clusters));
    progress.step("starting control planes");
    let place = Place::find(arguments, &progress).await?;
    let runs = Box::pin(course(&place, arguments, &progress)).await;
    let cleaned = place.clean_up().await;
    let runs = runs?;
    cleaned.map(|()| runs)
}

/// Every measure begins where the one before has ended, so that those that are not asked for are gone through as far as others need them.
async fn course(place: &Place, arguments: &AddonsArguments, progress: &Progress) -> Result<Vec<Run>> {
    let is_wanted = |measure: AddonsMeasure| arguments.measures.is_empty() || arguments.measures.contains(&measure);
    let names = names("c", usize::from(arguments.clusters));
    let mut operated = place.operate(progress).await?;
    let mut runs = Vec::new();
    progress.step("the operator installs the add-ons");
    let install = Box::pin(step::install(place, &mut operated, &names, progress)).await?;
    if is_wanted(AddonsMeasure::Idle) {
        runs.push(Run::Idle(
            Box::pin(idle::measure(place, &mut operated, arguments, progress)).await?,
        ));
    }
    let mut upgrade = None;
    if is_wanted(AddonsMeasure::Upgrade) || is_wanted(AddonsMeasure::Hooks) {
        progress.step("the operator upgrades the add-ons");
        upgrade = Some(Box::pin(step::upgrade(place, &mut operated, &names, progress)).await?);
    }
    if is_wanted(AddonsMeasure::Hooks) {
        progress.step("hooks are called while the operator takes the add-ons back");
        runs.push(Run::Hooks(
            Box::pin(hooks::measure(place, &mut operated, &names, progress)).await?,
        ));
    }
    if is_wanted(AddonsMeasure::Reaction) {
        runs.push(Run::Reaction(
            Box::pin(reaction::measure(place, &mut operated, arguments, progress)).await?,
        ));
    }
    operated.operator.stop().await?;
    let steps = [
        Some(install).filter(|_| is_wanted(AddonsMeasure::Install) || is_wanted(AddonsMeasure::Upgrade)),
        upgrade.filter(|_| is_wanted(AddonsMeasure::Upgrade)),
    ];
    let written = Box::pin(beside_raw_writer(place, arguments, &names, steps, progress)).await?;
    Ok(written.into_iter().chain(runs).collect())
}

/// Makes the writes of the steps again, in another namespace of every API server: the second needs the objects of the first.
async fn beside_raw_writer(
    place: &Place,
    arguments: &AddonsArguments,
    names: &[String],
    steps: [Option<Step>; 2],
    progress: &Progress,
) -> Result<Vec<Run>> {
    let [Some(install), upgrade] = steps else {
        return Ok(Vec::new());
    };
    let writer = RawWriter::begin(place, arguments.connections.into()).await?;
    let fleet = Fleet::new(&place.ground.client, &writer.namespace);
    progress.step("the raw writer installs");
    let raw = writer
        .write(&install, async || {
            fleet.create_all(names, &place.classes[0]).await.map(drop)
        })
        .await
        .context("failed to install without an operator")?;
    let mut runs = vec![Run::Install(Beside::of(arguments, &install, &raw))];
    if let Some(upgrade) = upgrade {
        progress.step("the raw writer upgrades");
        let raw = writer
            .write(&upgrade, async || {
                fleet.change_all(names, &place.classes[1]).await.map(drop)
            })
            .await
            .context("failed to upgrade without an operator")?;
        runs.push(Run::Upgrade(Beside::of(arguments, &upgrade, &raw)));
    }
    Ok(runs)
}
