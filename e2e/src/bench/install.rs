//! One operator that installs everything from nothing to ready, and what that took.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    AuditLog,
    audit::{AuditEvents, Mark},
    operator::Operator,
    usage::Usage,
};
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use tokio::time::{Instant, sleep};

use super::{
    ground::{Ground, OPERATOR_AGENT},
    replay::Identity,
    stock::Stock,
};
use crate::progress::Progress;

/// Longer than any working operator takes for what this benchmark is meant for.
const READY_DEADLINE: Duration = Duration::from_mins(15);
/// How often the stacks are asked. They are few, and what is measured is told by the audit log.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// No write for this long: the work is done.
const QUIET: Duration = Duration::from_secs(3);
/// Until then it must be quiet.
const QUIET_DEADLINE: Duration = Duration::from_mins(2);
/// What a process holds is looked at when it has had the time to give back what it needed for the work.
pub(super) const IDLE: Duration = Duration::from_secs(15);

/// A running operator with nothing to do, and how it got there.
pub(super) struct Installed {
    pub(super) operator: Operator,
    /// Process id of the operator.
    pub(super) process: u32,
    /// Its requests of the whole time.
    pub(super) requests: AuditEvents,
    /// From the first ClusterStack to its last write.
    pub(super) took: Duration,
    /// Before there was anything to do.
    pub(super) empty: Usage,
    /// When the last write was made.
    pub(super) busy: Usage,
    /// A while later.
    pub(super) idle: Usage,
}

/// Gives an operator that has nothing to do the stacks of a stock, and waits until all is ready and quiet.
pub(super) async fn install(
    ground: &Ground,
    mut operator: Operator,
    namespace: &str,
    stock: &Stock,
    progress: &Progress,
) -> Result<Installed> {
    let process = operator.process_id().context("the operator has no process")?;
    let empty = Usage::of(process)?;
    let mark = ground.audit.mark().await?;
    let begin = Timestamp::now();
    create_stacks(ground, namespace, stock).await?;
    until_ready(ground, namespace, stock.count(), &mut operator, progress).await?;
    until_quiet(ground, progress).await?;
    let busy = Usage::of(process)?;
    let requests = ground.audit.since(mark).await?.of_agent(OPERATOR_AGENT);
    let end = requests
        .clone()
        .writes()
        .iter()
        .map(|write| write.answered)
        .max()
        .context("the operator wrote nothing")?;
    progress.step("waiting for its memory to settle");
    sleep(IDLE).await;
    Ok(Installed {
        idle: Usage::of(process)?,
        operator,
        process,
        requests,
        took: Duration::try_from(end.duration_since(begin)).context("it was done before it began")?,
        empty,
        busy,
    })
}

/// Creates the ClusterStacks of a stock in a namespace; returns who they are there.
pub(super) async fn create_stacks(
    ground: &Ground,
    namespace: &str,
    stock: &Stock,
) -> Result<BTreeMap<String, Identity>> {
    let api: Api<ClusterStack> = Api::namespaced(ground.client.clone(), namespace);
    let api = &api;
    let creations = stock.cluster_stacks().map(async |stack| {
        let stacked: ClusterStack =
            serde_json::from_value(stack).context("unable to read a ClusterStack of our own")?;
        let created = api
            .create(&PostParams::default(), &stacked)
            .await
            .context("failed to create a ClusterStack")?;
        let identity = Identity {
            uid: created.uid().unwrap_or_default(),
            resource_version: created.resource_version().unwrap_or_default(),
        };
        Ok::<_, anyhow::Error>((created.name_any(), identity))
    });
    Ok(try_join_all(creations).await?.into_iter().collect())
}

async fn until_ready(
    ground: &Ground,
    namespace: &str,
    releases: usize,
    operator: &mut Operator,
    progress: &Progress,
) -> Result<()> {
    let stacks: Api<ClusterStack> = Api::namespaced(ground.client.clone(), namespace);
    let end = Instant::now() + READY_DEADLINE;
    loop {
        operator.check()?;
        let listed = stacks
            .list(&ListParams::default())
            .await
            .context("failed to list the stacks")?;
        let rows = listed
            .iter()
            .filter_map(|stack| stack.status.as_ref())
            .flat_map(|status| &status.summary);
        let ready = rows.filter(|row| row.ready).count();
        if ready == releases {
            break;
        }
        progress.tick(&format!("{ready} of {releases} releases ready"));
        ensure!(
            Instant::now() < end,
            "{ready} of {releases} releases were ready after {READY_DEADLINE:?}"
        );
        sleep(LOOK_INTERVAL).await;
    }
    let all: Api<ClusterStackRelease> = Api::namespaced(ground.client.clone(), namespace);
    let listed = all
        .list(&ListParams::default())
        .await
        .context("failed to list the releases")?;
    let ready = listed
        .iter()
        .filter(|release| release.status.as_ref().is_some_and(|status| status.ready));
    let ready = ready.count();
    ensure!(
        ready == releases,
        "the stacks call all {releases} releases ready, but {ready} are"
    );
    Ok(())
}

/// Returns when the operator has written nothing for a while.
pub(super) async fn until_quiet(ground: &Ground, progress: &Progress) -> Result<()> {
    until_quiet_of(ground, OPERATOR_AGENT, progress).await
}

/// The same of the operator that the API server knows so.
pub(super) async fn until_quiet_of(ground: &Ground, agent: &str, progress: &Progress) -> Result<()> {
    until_quiet_in(&[&ground.audit], agent, progress).await
}

/// The same of what an operator writes to several API servers.
pub(super) async fn until_quiet_in(logs: &[&AuditLog], agent: &str, progress: &Progress) -> Result<()> {
    let end = Instant::now() + QUIET_DEADLINE;
    loop {
        progress.step("all ready, waiting for quiet");
        let marks: Vec<Mark> = try_join_all(logs.iter().map(|log| log.mark())).await?;
        sleep(QUIET).await;
        let since = logs.iter().zip(marks).map(|(log, mark)| log.since(mark));
        let requests = try_join_all(since).await?.into_iter();
        let writes: usize = requests.map(|requests| requests.of_agent(agent).writes().len()).sum();
        if writes == 0 {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "the operator still writes {QUIET_DEADLINE:?} after all is ready"
        );
    }
}
