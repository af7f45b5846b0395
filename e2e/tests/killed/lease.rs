//! Two processes, of which the first is stopped by SIGSTOP until its Lease is another's, with requests of its under way in the cloud.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    Ended, Operator, eventually,
    journey::SOON,
    stage::{DISK, Stage, on_stage, small},
};
use http::{Method, StatusCode};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::Article,
};
use serde_json::{Value, json};

/// Long enough that two busy cores renew it, short enough to wait for its end.
const LEASE: &str = "--lease-duration=8s";
/// The Lease of an operator that serves OpenStack alone.
const NAME: &str = "openstack.provider.clusterstack.x-k8s.io";
/// An image that does not move is given up after a minute.
const GIVEN_UP: Duration = Duration::from_mins(10);
/// Where the source has the image that is half sent.
const HALF: &str = "/half.qcow2";

/// Starts an operator that stands for election, with a folder of its own.
async fn candidate(stage: &Stage<'_>, name: &str) -> Result<Operator> {
    let namespace = format!("--leader-elect-namespace={}", stage.journey.namespace);
    let mut options = stage.options(&["--leader-elect=true", LEASE, &namespace]).await?;
    options.folder = stage.journey.folder().join(name);
    options.start(stage.journey.lab())
}

/// Waits until the Lease names this operator's process.
async fn leads(stage: &Stage<'_>, operator: &Operator) -> Result<()> {
    let leases: Api<Lease> = stage.journey.api();
    eventually(
        SOON,
        format!("the operator of {} to lead", operator.log().display()),
        async || {
            let process = operator.process_id().context("it does not run")?;
            let lease = leases.get(NAME).await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            ensure!(holder.contains(&format!("_{process}_")), "{holder:?} leads");
            Ok::<_, anyhow::Error>(())
        },
    )
    .await
}

/// Waits until the cloud has an image of this name in this status; the answer is its id.
async fn named(stage: &Stage<'_>, name: &str, status: &str) -> Result<String> {
    eventually(SOON, format!("{name} to be {status}"), async || {
        let images = stage.cloud.images().await?;
        let found = images
            .iter()
            .find(|image| image["name"] == name && image["status"] == status);
        let id = found.and_then(|image| image["id"].as_str());
        id.map(str::to_owned).with_context(|| format!("{images:?}"))
    })
    .await
}

/// What the first process is stopped in.
struct UnderWay {
    /// Half of this image is sent.
    half: String,
    /// All of this image is, and the answer is on its way.
    whole: String,
    /// This one's deletion has not come to the cloud.
    deleted: String,
}

/// Has the first process do four things that do not end: an upload, an upload without an answer, a record without an answer and a deletion.
async fn begun(stage: &Stage<'_>) -> Result<UnderWay> {
    stage.want("deleted", DISK, json!({})).await?;
    let deleted = stage.id("deleted").await?;

    stage.proxy.meet(Method::PUT, "/file", 1, Trouble::HoldAnswer);
    stage.want("whole", DISK, json!({})).await?;
    let whole = named(stage, "whole", "active").await?;

    let disk = small(2);
    stage
        .source
        .put(HALF, Article::of(disk.clone()).held_at(disk.len() / 2));
    stage.want("half", HALF, json!({})).await?;
    let half = named(stage, "half", "saving").await?;

    stage.proxy.meet(Method::POST, "/v2/images", 1, Trouble::Hang);
    stage.want("new", DISK, json!({})).await?;
    stage.met(2).await?;

    stage.proxy.meet(Method::DELETE, "/v2/images/", 1, Trouble::Hang);
    stage.journey.delete::<OpenStackNodeImageRelease>("deleted").await?;
    stage.met(3).await?;
    Ok(UnderWay { half, whole, deleted })
}

/// Waits until the image is ready by this attempt; the answer is its id.
async fn ready_by(stage: &Stage<'_>, name: &str, attempt: i64) -> Result<String> {
    let id = eventually(GIVEN_UP, format!("{name} to be ready"), async || {
        let status = stage.status(name).await?;
        ensure!(status.ready && status.attempt == Some(attempt), "{status:?}");
        status.image.map(|image| image.id).context("an id")
    });
    id.await
}

pub(super) fn what_a_process_had_under_way_in_the_cloud_when_it_was_stopped_past_its_lease_does_no_harm() -> Result<()>
{
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        let mut first = candidate(stage, "first").await?;
        leads(stage, &first).await?;
        let UnderWay { half, whole, deleted } = begun(stage).await?;
        first.pause()?;

        let mut second = candidate(stage, "second").await?;
        leads(stage, &second).await?;
        stage.source.let_go();
        stage.journey.gone::<OpenStackNodeImageRelease>("deleted").await?;
        stage.want("deleted", DISK, json!({})).await?;
        ensure!(ready_by(stage, "whole", 1).await? == whole, "it was sent again");
        let new = ready_by(stage, "new", 1).await?;
        // No cloud gives an id again.
        let anew = ready_by(stage, "deleted", 2).await?;
        let again = ready_by(stage, "half", 2).await?;
        ensure!(anew != deleted && again != half, "{anew} {again}");
        let ids = vec![whole, new, anew, again];
        stage.cloud.holds(&ids).await?;
        let before = images(stage, &ids).await?;

        // What it had sent before arrives now, and it wakes.
        stage.proxy.relent();
        refused(stage).await?;
        first.wake()?;
        ensure!(
            first.ended(SOON).await? == Ended::Status(1),
            "it ends by a Lease that it does not have"
        );
        once(stage, &half).await?;
        ensure!(before == images(stage, &ids).await?, "{before:?} are others now");
        for name in ["whole", "new", "deleted", "half"] {
            stage.looked_again(name, "after the first woke").await?;
            stage.ready(name).await?;
        }
        second.check()?;
        Ok(ids)
    })
}

async fn images(stage: &Stage<'_>, ids: &[String]) -> Result<Vec<Value>> {
    let mut images = Vec::new();
    for id in ids {
        images.push(stage.cloud.image(id).await?);
    }
    Ok(images)
}

/// Waits until what came late was answered: there was nothing to do any more.
async fn refused(stage: &Stage<'_>) -> Result<()> {
    let late = |passed: &Passed| passed.trouble == Some(Trouble::Hang);
    eventually(SOON, "what was held to be answered", async || {
        let passed = stage.proxy.passed();
        let late: Vec<_> = passed
            .into_iter()
            .filter(late)
            .map(|passed| (passed.method, passed.status))
            .collect();
        let expected = [
            (Method::POST, Some(StatusCode::CONFLICT)),
            (Method::DELETE, Some(StatusCode::NOT_FOUND)),
        ];
        ensure!(late == expected, "{late:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Each image was made of bytes once, and the half that was given up never became an image.
async fn once(stage: &Stage<'_>, half: &str) -> Result<()> {
    let sent: Vec<String> = stage
        .proxy
        .changes()
        .into_iter()
        .filter(|change| change.method == Method::PUT && change.status.is_some_and(|status| status.is_success()))
        .map(|change| change.target)
        .collect();
    let mut targets = sent.clone();
    targets.sort();
    targets.dedup();
    ensure!(targets.len() == sent.len(), "an image was sent twice: {sent:?}");
    ensure!(
        !sent.iter().any(|target| target.contains(half)),
        "{half} was given up: {sent:?}"
    );
    let image = stage.cloud.image(half).await?;
    ensure!(image["status"] == StatusCode::NOT_FOUND.as_u16(), "{image}");
    Ok(())
}
