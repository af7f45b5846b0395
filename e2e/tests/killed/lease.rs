//! Two processes, of which the first loses its Lease with requests of its under way in the cloud: while it is stopped by SIGSTOP, and while it works.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    Ended, FaultProxy, Operator, Weather, eventually,
    journey::SOON,
    provider_operator::ProviderOptions,
    stage::{DISK, Stage, on_stage, small},
    world::quiet,
};
use http::{Method, StatusCode};
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Api, api::PostParams};
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::{Article, sha512},
};
use serde_json::{Value, json};

/// Long enough that two busy cores renew it, short enough to wait for its end.
const LEASE: &str = "--lease-duration=8s";
/// The Lease of an operator that serves OpenStack alone.
const NAME: &str = "openstack.provider.clusterstack.x-k8s.io";
/// An image that does not move is given up after a minute.
const GIVEN_UP: Duration = Duration::from_mins(10);
/// Somebody else who may hold it.
const STRANGER: &str = "somebody_1_else";
/// Where the source has the image that is half sent.
const HALF: &str = "/half.qcow2";

/// How an operator is started that stands for election, with a folder of its own.
async fn candidacy(stage: &Stage<'_>, name: &str) -> Result<ProviderOptions> {
    let namespace = format!("--leader-elect-namespace={}", stage.journey.namespace);
    let mut options = stage.options(&["--leader-elect=true", LEASE, &namespace]).await?;
    options.folder = stage.journey.folder().join(name);
    Ok(options)
}

/// Starts it.
async fn candidate(stage: &Stage<'_>, name: &str) -> Result<Operator> {
    candidacy(stage, name).await?.start(stage.journey.lab())
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
        once_but(stage, &half).await?;
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

/// Each image was made of bytes once; the answer is where.
fn once(stage: &Stage<'_>) -> Result<Vec<String>> {
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
    Ok(sent)
}

/// The same, and the half that was given up never became an image.
async fn once_but(stage: &Stage<'_>, half: &str) -> Result<()> {
    let sent = once(stage)?;
    ensure!(
        !sent.iter().any(|target| target.contains(half)),
        "{half} was given up: {sent:?}"
    );
    let image = stage.cloud.image(half).await?;
    ensure!(image["status"] == StatusCode::NOT_FOUND.as_u16(), "{image}");
    Ok(())
}

/// Gives the Lease to somebody who holds it for as long as it lasts, and does nothing with it.
async fn give_away(stage: &Stage<'_>) -> Result<()> {
    let leases: Api<Lease> = stage.journey.api();
    eventually(SOON, "the Lease to be another's", async || {
        let mut lease = leases.get(NAME).await?;
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(STRANGER.to_owned());
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        // Refused when it was renewed meanwhile, and then read again.
        leases
            .replace(NAME, &PostParams::default(), &lease)
            .await
            .map(drop)
            .map_err(anyhow::Error::from)
    })
    .await
}

/// A process that runs on loses its Lease while it sends an image, whose source stands still; `words` are what it ends with.
fn taken_from_the_living(lose: impl AsyncFnOnce(&Stage<'_>, &FaultProxy) -> Result<()>, words: &str) -> Result<()> {
    on_stage(async |stage| {
        let api = FaultProxy::start(stage.journey.control_plane()).await?;
        let disk = small(1);
        let article = Article::of(disk.clone()).held_at(disk.len() / 2);
        stage.source.put(HALF, article);
        let options = candidacy(stage, "first").await?.by_way_of(&api).await?;
        let mut first = options.start(stage.journey.lab())?;
        leads(stage, &first).await?;
        stage.want("half", HALF, json!({})).await?;
        let half = named(stage, "half", "saving").await?;
        quiet(&api).await?;
        let (writes, changes) = (api.writes().len(), stage.proxy.changes().len());

        lose(stage, &api).await?;
        ensure!(first.ended(SOON).await? == Ended::Status(1), "it works without a Lease");
        let log = fs::read_to_string(first.log())?;
        ensure!(log.contains(words), "it does not say why it ended: {log}");
        // The body was cut off, and the record was left to the next one.
        stage.cloud.becomes(&half, "queued").await?;
        let late = (api.writes().split_off(writes), stage.proxy.changes().split_off(changes));
        ensure!(late.0.is_empty() && late.1.is_empty(), "{late:?} came late");

        let mut second = candidate(stage, "second").await?;
        leads(stage, &second).await?;
        stage.source.let_go();
        ensure!(ready_by(stage, "half", 1).await? == half, "it is another record");
        let image = stage.cloud.image(&half).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        once(stage)?;
        let [made, deleted] = [Method::POST, Method::DELETE].map(|method| stage.proxy.count(&method, "/v2/images"));
        ensure!((made, deleted) == (1, 0), "{made} records, {deleted} deletions");
        second.check()?;
        Ok(vec![half])
    })
}

#[test]
fn a_process_whose_lease_becomes_another_s_ends_its_upload_and_itself_and_the_next_one_completes_the_image()
-> Result<()> {
    let lose = async |stage: &Stage<'_>, _: &FaultProxy| give_away(stage).await;
    taken_from_the_living(lose, &format!("is held by {STRANGER}"))
}

#[test]
fn a_process_that_cannot_renew_its_lease_ends_its_upload_and_itself_and_the_next_one_completes_the_image() -> Result<()>
{
    let lose = async |_: &Stage<'_>, api: &FaultProxy| {
        api.set_weather(Weather::Hang);
        Ok(())
    };
    taken_from_the_living(lose, "was not renewed")
}
