//! Both operators as two processes: a ClusterStack is usable when its node image is in the cloud, tells how far it is on the way there, and is only as
//! usable as the image is afterwards.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionStatus, ConditionType, find},
    providers::openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease},
};
use e2e::{
    Operator, eventually,
    image_server::{ImageServer, Pace},
    journey::{SOON, status},
    lapse::lapse,
    releases::StackSource,
    stage::{API_VERSION, DISK, SECRET, Stage, on_stage, on_stage_with_both, small},
};
use http::Method;
use kube::ResourceExt;
use openstack_lab::{
    disk,
    proxy::Trouble,
    source::{Article, sha256, sha512},
};
use serde_json::json;

const STACK: &str = "harbor";
/// The name of the image in the cloud.
const IMAGE: &str = "ubuntu";
/// The object of the image: the stack, the image, and the version of the node images.
const IMAGE_OBJECT: &str = "docker-harbor-1-34-ubuntu-v1";

/// Publishes our own stack as this version, whose nodes boot from the disk at this URL: the version v1 of its node images, whatever its own is.
fn publish(stage: &Stage<'_>, version: &str, url: &str, disk: &[u8]) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    let digest = sha256(disk);
    let images = format!(
        "apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1\n\
         openStackNodeImages:\n\
         - url: {url}\n  digest: {digest}\n  createOpts:\n    name: {IMAGE}\n    disk_format: qcow2\n    container_format: bare\n    visibility: private\n"
    );
    source.write("node-images.yaml", &images)?;
    let releases = &stage.journey.releases;
    let tag = releases.publish_stack(&source.path(), version)?;
    releases.edit(&tag, |folder| {
        let file = folder.join("metadata.yaml");
        let text = fs::read_to_string(&file).context("failed to read the metadata")?;
        let own = format!("nodeImage: {version}");
        ensure!(text.contains(&own), "{text}");
        fs::write(&file, text.replace(&own, "nodeImage: v1")).context("failed to write the metadata")
    })?;
    Ok(tag)
}

/// Asks for these versions of the stack, with images in the cloud of the usual Secret.
async fn want(stage: &Stage<'_>, versions: &[&str]) -> Result<()> {
    const TEMPLATE: &str = "OpenStackClusterStackReleaseTemplate";
    let spec = json!({ "identityRef": { "kind": "Secret", "name": SECRET } });
    let template = json!({
        "apiVersion": API_VERSION, "kind": TEMPLATE,
        "metadata": { "name": "images" }, "spec": { "template": { "spec": spec } },
    });
    stage.journey.apply(template).await?;
    let provider = json!({ "apiVersion": API_VERSION, "kind": TEMPLATE, "name": "images" });
    let spec = json!({ "versions": versions, "noProvider": false, "providerRef": provider });
    stage.journey.stack(STACK, spec).await
}

/// The per cent that words tell last.
fn percent(words: &str) -> Option<i64> {
    let (before, _) = words.rsplit_once(" %")?;
    before
        .rsplit(|letter: char| !letter.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// How far the image is, as each of those tells who speak of it: its object and the column of that, the provider's release, and the columns of the
/// release and of the stack, and the summary of that. Nothing where they tell nothing yet.
async fn told(stage: &Stage<'_>, tag: &str) -> Result<[i64; 6]> {
    let journey = stage.journey;
    let image = journey.api::<OpenStackNodeImageRelease>().get_opt(IMAGE_OBJECT).await?;
    let sent = image
        .and_then(|image| image.status?.transfer)
        .map(|transfer| transfer.sent_bytes);
    let provider = journey.api::<OpenStackClusterStackRelease>().get_opt(tag).await?;
    let done = provider
        .and_then(|release| release.status?.progress)
        .map(|progress| progress.done);
    let stack = journey.api::<ClusterStack>().get(STACK).await?;
    let summary = stack.status.and_then(|status| status.summary.first()?.message.clone());
    let columns = [
        journey.cell::<OpenStackNodeImageRelease>(IMAGE_OBJECT, "Done").await?,
        journey.cell::<ClusterStackRelease>(tag, "Message").await?,
        journey.cell::<ClusterStack>(STACK, "Message").await?,
        summary,
    ];
    let [image, release, stack, summary] = columns.map(|words| words.as_deref().and_then(percent).unwrap_or_default());
    Ok([
        sent.unwrap_or_default(),
        image,
        done.unwrap_or_default(),
        release,
        stack,
        summary,
    ])
}

/// What was told at all times.
#[derive(Default)]
struct Growth(Vec<[i64; 6]>);

impl Growth {
    /// Waits until everybody tells of more than before.
    async fn goes_on(&mut self, stage: &Stage<'_>, tag: &str) -> Result<()> {
        let before = self.0.last().copied().unwrap_or_default();
        let seen = std::sync::Mutex::new(&mut self.0);
        eventually(SOON, "everybody to tell of more", async || {
            let now = told(stage, tag).await?;
            if let Ok(mut seen) = seen.lock() {
                seen.push(now);
            }
            let is_more = now.iter().zip(before).all(|(now, before)| *now > before);
            ensure!(is_more, "{now:?} after {before:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Nobody ever told of less than before, or of the end.
    fn is_steady(&self) -> Result<()> {
        let falls = self
            .0
            .windows(2)
            .find(|pair| pair[0].iter().zip(pair[1]).any(|(before, after)| after < *before));
        ensure!(falls.is_none(), "less than before: {falls:?}");
        let is_whole = |told: &&[i64; 6]| [told[1], told[3], told[4], told[5]].contains(&100);
        let whole = self.0.iter().find(is_whole);
        ensure!(whole.is_none(), "all of it before all of it was sent: {whole:?}");
        Ok(())
    }
}

/// Whether the class of a release is in the cluster.
async fn has_class(stage: &Stage<'_>, tag: &str) -> Result<bool> {
    let objects = stage.journey.marked(tag).await?;
    Ok(objects.iter().any(|object| object.starts_with("ClusterClass ")))
}

/// Waits until the image belongs to exactly these releases.
async fn belongs_to(stage: &Stage<'_>, tags: &[&String]) -> Result<()> {
    let what = format!("the image to belong to {tags:?}");
    eventually(SOON, what, async || {
        let object = stage
            .journey
            .api::<OpenStackNodeImageRelease>()
            .get(IMAGE_OBJECT)
            .await?;
        let references = object.owner_references();
        let mut owners: Vec<_> = references.iter().map(|owner| &owner.name).collect();
        owners.sort();
        ensure!(owners == tags, "{owners:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[test]
fn a_class_waits_for_its_image_and_the_stack_tells_how_far_it_is_and_the_next_release_shares_it() -> Result<()> {
    on_stage_with_both(async |stage| {
        let theirs = stage.cloud.uploaded("theirs", &small(9)).await?;
        let before = stage.cloud.image(&theirs).await?;
        let disk = disk::qcow2_of(1, 16 << 20, 8 << 20);
        let server = ImageServer::start([(DISK.to_owned(), disk.clone().into())]).await?;
        let hold_at = |quarters: usize| Pace {
            hold_at: Some(disk.len() / 4 * quarters),
            ..Pace::default()
        };
        server.set_pace(hold_at(1));
        let first = publish(stage, "v1", &server.url(DISK), &disk)?;
        stage.operate().await?;
        want(stage, &["v1"]).await?;
        let mut growth = Growth::default();
        for quarters in 1..=3 {
            server.set_pace(hold_at(quarters));
            growth.goes_on(stage, &first).await?;
        }
        growth.is_steady()?;
        ensure!(!has_class(stage, &first).await?, "the class came before its image");

        server.set_pace(Pace::default());
        stage.journey.release_ready(&first).await?;
        stage.journey.usable(STACK, "v1").await?;
        ensure!(
            has_class(stage, &first).await?,
            "the release is ready without its class"
        );
        let id = stage.id(IMAGE_OBJECT).await?;
        let image = stage.cloud.image(&id).await?;
        let is_it = image["status"] == "active"
            && image["name"] == IMAGE
            && image["cs_verified"] == sha256(&disk).as_str()
            && image["os_hash_value"] == sha512(&disk).as_str();
        ensure!(is_it, "{image}");

        let second = publish(stage, "v2", &server.url(DISK), &disk)?;
        want(stage, &["v1", "v2"]).await?;
        stage.journey.release_ready(&second).await?;
        belongs_to(stage, &[&first, &second]).await?;
        want(stage, &["v2"]).await?;
        stage.journey.gone::<ClusterStackRelease>(&first).await?;
        belongs_to(stage, &[&second]).await?;
        stage.looked_again(IMAGE_OBJECT, "one is left").await?;
        ensure!(stage.id(IMAGE_OBJECT).await? == id, "it is another image");
        stage.cloud.holds(&[id]).await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was sent again");

        stage.journey.delete::<ClusterStack>(STACK).await?;
        stage.journey.gone::<ClusterStackRelease>(&second).await?;
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        let after = stage.cloud.image(&theirs).await?;
        ensure!(before == after, "somebody else's image was touched: {after}");
        Ok(Vec::new())
    })
}

/// Waits until nobody calls the release usable any more, and its object and the stack tell why in these words.
async fn is_told(stage: &Stage<'_>, tag: &str, words: &str) -> Result<()> {
    let journey = stage.journey;
    stage.release_is(tag, false).await?;
    let what = format!("not ready: {words}");
    let tells = |conditions: &[Condition]| {
        let type_ = ConditionType::ProviderClusterStackReleaseReady;
        let condition = find(conditions, type_).filter(|condition| condition.status == ConditionStatus::False);
        condition.is_some_and(|condition| {
            let message = condition.message.as_deref().unwrap_or_default();
            condition.reason.is_some() && message.contains(words)
        })
    };
    let release = journey
        .until_release(tag, &what, |release| {
            !status(release).ready && tells(&status(release).conditions)
        })
        .await?;
    ensure!(release.status.is_some(), "{release:?}");
    journey
        .until_stack(STACK, &what, |stack| {
            let Some(status) = &stack.status else { return false };
            let ready = find(&status.conditions, ConditionType::Ready);
            let is_unready =
                ready.is_some_and(|ready| ready.status == ConditionStatus::False && ready.reason.is_some());
            let summary = status.summary.first().filter(|summary| !summary.ready);
            let message = summary.and_then(|summary| summary.message.as_deref());
            is_unready && message.is_some_and(|message| message.contains(words))
        })
        .await?;
    journey.usable(STACK, "").await?;
    ensure!(has_class(stage, tag).await?, "what Clusters may use was taken away");
    Ok(())
}

/// Waits until everybody calls the release usable.
async fn is_usable(stage: &Stage<'_>, tag: &str) -> Result<String> {
    stage.release_is(tag, true).await?;
    stage.journey.release_ready(tag).await?;
    stage.journey.usable(STACK, "v1").await?;
    stage.id(IMAGE_OBJECT).await
}

#[test]
fn an_image_that_somebody_spoils_takes_release_and_stack_out_of_use_until_it_is_good_again() -> Result<()> {
    on_stage_with_both(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let tag = publish(stage, "v1", &stage.source.url(DISK), &disk)?;
        stage.operate().await?;
        want(stage, &["v1"]).await?;
        stage.journey.release_ready(&tag).await?;
        let id = is_usable(stage, &tag).await?;

        stage.cloud.act(&id, "deactivate").await?;
        stage.look_again(IMAGE_OBJECT, "it is deactivated").await?;
        stage.not_ready(IMAGE_OBJECT, "ImageDeactivated").await?;
        is_told(stage, &tag, "deactivated the image").await?;
        stage.cloud.act(&id, "reactivate").await?;
        stage.look_again(IMAGE_OBJECT, "it is allowed again").await?;
        ensure!(is_usable(stage, &tag).await? == id, "it is another image");

        // With another digest on it, it could be anything: what is shown as verified in the end is verified.
        let other = sha256(b"something else");
        stage.cloud.set(&id, "cs_verified", &other).await?;
        stage.looked_again(IMAGE_OBJECT, "somebody marked it").await?;
        eventually(SOON, "an image with the right mark", async || {
            let id = is_usable(stage, &tag).await?;
            let image = stage.cloud.image(&id).await?;
            ensure!(image["cs_verified"] == sha256(&disk).as_str(), "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;

        let id = stage.id(IMAGE_OBJECT).await?;
        stage
            .source
            .put(DISK, Article::of(disk.clone()).held_at(disk.len() / 2));
        stage.cloud.delete(&id).await?;
        stage.look_again(IMAGE_OBJECT, "it is gone").await?;
        is_told(stage, &tag, IMAGE_OBJECT).await?;
        stage.source.let_go();
        let again = is_usable(stage, &tag).await?;
        ensure!(again != id, "the id of an image that was deleted");
        Ok(vec![again])
    })
}

/// Starts the core operator of an act that kills it.
async fn core(stage: &Stage<'_>) -> Result<Operator> {
    let mut core = Operator::start(stage.journey.lab(), &stage.journey.options)?;
    core.ready().await?;
    Ok(core)
}

/// Kills a core operator between two instructions, and starts the next.
async fn next_core(stage: &Stage<'_>, dead: Operator) -> Result<Operator> {
    let process = dead.process_id().context("no core operator runs")?;
    dead.kill().await?;
    lapse(stage.journey, process).await?;
    core(stage).await
}

#[test]
fn a_stack_and_its_image_come_and_go_although_both_operators_are_killed_on_the_way() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage
            .source
            .put(DISK, Article::of(disk.clone()).held_at(disk.len() / 2));
        let tag = publish(stage, "v1", &stage.source.url(DISK), &disk)?;
        let first = core(stage).await?;
        stage.operate().await?;
        want(stage, &["v1"]).await?;
        stage.reads(DISK, 1).await?;
        stage.kill().await?;
        let second = next_core(stage, first).await?;
        stage.operate().await?;

        // The image gets ready while nobody hears of it, and who begins then has not seen it get so.
        second.pause()?;
        stage.source.let_go();
        let id = stage.id(IMAGE_OBJECT).await?;
        stage.release_is(&tag, true).await?;
        ensure!(
            !has_class(stage, &tag).await?,
            "somebody who is stopped applied the class"
        );
        let third = next_core(stage, second).await?;
        ensure!(is_usable(stage, &tag).await? == id, "it is another image");
        ensure!(has_class(stage, &tag).await?, "the release is ready without its class");
        stage.cloud.holds(&[id]).await?;

        stage.proxy.meet(Method::DELETE, "/v2/images/", 1, Trouble::Hang);
        stage.journey.delete::<ClusterStack>(STACK).await?;
        stage.met(1).await?;
        stage.kill().await?;
        let _fourth = next_core(stage, third).await?;
        stage.operate().await?;
        stage.journey.gone::<ClusterStackRelease>(&tag).await?;
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        Ok(Vec::new())
    })
}
