//! The ways that journeys go again and again, killed elsewhere each time: stations, what is compared at them, and what may never happen between.

use std::{collections::BTreeSet, future::pending, pin::pin, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease};
use e2e::{
    eventually,
    stage::{API_VERSION, DISK, IMAGE, IMAGE_OBJECT, Stage, small, tag},
    world::{World, differences},
};
use futures::StreamExt;
use http::Method;
use kube::{
    ResourceExt,
    api::{DynamicObject, ListParams},
    runtime::{WatchStreamExt, watcher},
};
use openstack_lab::source::{Article, sha256, sha512};
use serde_json::{Value, json};

/// A cloud of which nobody hears is waited for: a minute until an image moves that somebody else sends. The rest is for a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
/// Where the source has another disk.
const OTHER: &str = "/other.qcow2";
/// The name of an image that somebody else has made.
const THEIRS: &str = "theirs";
/// What is another one after a crash, or in each journey, and what says when.
const INCOMPARABLE: [&str; 8] = [
    "assets",
    "attempt",
    "contentKey",
    "lastFailure",
    "lastHandledReconcileAt",
    "lastTransitionTime",
    "transfer",
    "uid",
];

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Two releases share an image, which goes with the second of them.
    Shared,
    /// An image comes that the cloud fetches, and goes.
    Fetched,
    /// An image comes by the stage of the cloud, and goes.
    Staged,
    /// An image that is there is wanted with another option, of another content and for ever, and beside it somebody else's.
    Changed,
    /// An image comes by a later attempt, because the cloud could not fetch it, and goes.
    Refused,
}

/// Where the world is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Station {
    /// The image is there.
    Ready,
    /// It has the option.
    Amended,
    /// It has the new content, and the old image is gone.
    Renewed,
    /// Somebody else's image is used.
    Adopted,
    /// A second release has it too.
    Shared,
    /// The first release is gone, and the image is not.
    Kept,
    /// All is gone.
    Gone,
}

impl Course {
    /// Goes the whole way.
    pub(super) async fn travel(
        self,
        stage: &Stage<'_>,
        mut arrived: impl AsyncFnMut(Station) -> Result<()>,
    ) -> Result<()> {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let theirs = Theirs::begin(stage).await?;
        let via = match self {
            Self::Shared => {
                shared(stage, arrived).await?;
                return theirs.untouched(stage).await;
            }
            Self::Changed => {
                changed(stage, arrived).await?;
                return theirs.untouched(stage).await;
            }
            Self::Refused => {
                stage.source.put(DISK, Article::of(disk.clone()).refused_to("Python"));
                "ServerSide"
            }
            Self::Fetched => "ServerSide",
            Self::Staged => "Staged",
        };
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": via } });
        stage.want(IMAGE, DISK, changes).await?;
        arrived(Station::Ready).await?;
        stage.journey.delete::<OpenStackNodeImageRelease>(IMAGE).await?;
        arrived(Station::Gone).await?;
        theirs.untouched(stage).await
    }

    /// Waits until the world is what it has to be at a station, in a journey without a crash.
    pub(super) async fn arrived(self, stage: &Stage<'_>, station: Station) -> Result<()> {
        let image = self.image();
        match (self, station) {
            (Self::Shared, Station::Ready) => drop(stage.release_is(&tag("v1"), true).await?),
            (_, Station::Ready | Station::Amended | Station::Renewed) => drop(stage.ready(image).await?),
            (_, Station::Adopted) => drop(stage.ready(THEIRS).await?),
            (_, Station::Shared) => {
                stage.release_is(&tag("v2"), true).await?;
                stage.image_belongs_to(&[tag("v1"), tag("v2")]).await?;
            }
            (_, Station::Kept) => {
                stage.journey.gone::<OpenStackClusterStackRelease>(&tag("v1")).await?;
                stage.image_belongs_to(&[tag("v2")]).await?;
            }
            (_, Station::Gone) => {
                stage.journey.gone::<OpenStackNodeImageRelease>(image).await?;
                stage.journey.gone::<OpenStackNodeImageRelease>(THEIRS).await?;
                stage.journey.gone::<OpenStackClusterStackRelease>(&tag("v2")).await?;
            }
        }
        match station {
            Station::Gone => stage.cloud.holds(&[]).await,
            Station::Ready
            | Station::Amended
            | Station::Renewed
            | Station::Adopted
            | Station::Shared
            | Station::Kept => stage.cloud.holds(&[stage.id(image).await?]).await,
        }
    }

    /// The name of the object of the image.
    fn image(self) -> &'static str {
        match self {
            Self::Shared => IMAGE_OBJECT,
            Self::Fetched | Self::Staged | Self::Changed | Self::Refused => IMAGE,
        }
    }

    /// How many images are made of bytes, those included that the cloud could not fetch.
    fn made(self) -> usize {
        match self {
            Self::Shared | Self::Fetched | Self::Staged => 1,
            Self::Changed => 2,
            Self::Refused => 3,
        }
    }

    /// Of all that was asked of the cloud in a journey, no more requests made an image of bytes than there are. One whose answer came too late for the dead may
    /// be asked again, and is refused.
    pub(super) fn judge(self, stage: &Stage<'_>) -> Result<()> {
        let makes = |(method, part): &(Method, &str)| {
            let changes = stage.proxy.changes().into_iter();
            let is_meant = |change: &openstack_lab::proxy::Passed| {
                let is_done = change.status.is_some_and(|status| status.is_success());
                change.method == *method && change.target.contains(part) && is_done
            };
            changes.filter(is_meant).count()
        };
        let made: usize = [(Method::PUT, "/file"), (Method::POST, "/import")]
            .iter()
            .map(makes)
            .sum();
        ensure!(
            made <= self.made(),
            "{made} images were made of bytes: {:?}",
            stage.proxy.changes()
        );
        Ok(())
    }
}

async fn shared(stage: &Stage<'_>, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    let [first, second] = [tag("v1"), tag("v2")];
    stage.publish("v1")?;
    stage.publish("v2")?;
    stage.want_release(&first).await?;
    arrived(Station::Ready).await?;
    let id = stage.id(IMAGE_OBJECT).await?;
    stage.want_release(&second).await?;
    arrived(Station::Shared).await?;
    stage.journey.delete::<OpenStackClusterStackRelease>(&first).await?;
    arrived(Station::Kept).await?;
    ensure!(
        stage.id(IMAGE_OBJECT).await? == id,
        "another image took the place of one that was verified"
    );
    stage.journey.delete::<OpenStackClusterStackRelease>(&second).await?;
    arrived(Station::Gone).await
}

async fn changed(stage: &Stage<'_>, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    stage.source.put(OTHER, Article::of(small(2)));
    stage.want(IMAGE, DISK, json!({})).await?;
    arrived(Station::Ready).await?;
    let first = stage.id(IMAGE).await?;
    let mut wishes = json!({ "image": { "createOpts": { "min_disk": 12 } } });
    stage.want(IMAGE, DISK, wishes.clone()).await?;
    eventually(PATIENCE, "the option in the cloud", async || {
        let image = stage.cloud.image(&first).await?;
        ensure!(image["min_disk"] == 12, "{image}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    arrived(Station::Amended).await?;
    ensure!(stage.id(IMAGE).await? == first, "an option made another image");
    wishes["deletionPolicy"] = "Delete".into();
    stage.want(IMAGE, OTHER, wishes.clone()).await?;
    arrived(Station::Renewed).await?;
    let second = stage.id(IMAGE).await?;
    ensure!(second != first, "one image has two contents");
    stage.want(THEIRS, DISK, json!({ "policy": "Adopt" })).await?;
    arrived(Station::Adopted).await?;
    wishes["deletionPolicy"] = "Retain".into();
    stage.want(IMAGE, OTHER, wishes).await?;
    stage.ready(IMAGE).await?;
    for name in [IMAGE, THEIRS] {
        stage.journey.delete::<OpenStackNodeImageRelease>(name).await?;
    }
    arrived(Station::Gone).await?;
    let image = stage.cloud.image(&second).await?;
    let fields = image.as_object().into_iter().flatten();
    let marks = fields.filter(|(field, _)| field.starts_with("cs_")).count();
    let stays = image["status"] == "active" && image["os_hash_value"] == sha512(&small(2)).as_str();
    ensure!(stays && marks == 0, "it does not stay as somebody else's: {image}");
    Ok(())
}

/// What others have in the project: an image, and a record of the same name as ours that waits for its bytes.
struct Theirs([(String, Value); 2]);

impl Theirs {
    async fn begin(stage: &Stage<'_>) -> Result<Self> {
        let ids = [
            stage.cloud.uploaded(THEIRS, &small(3)).await?,
            stage.cloud.queued(IMAGE).await?,
        ];
        let [finished, queued] = ids;
        let images = [stage.cloud.image(&finished).await?, stage.cloud.image(&queued).await?];
        let [first, second] = images;
        Ok(Self([(finished, first), (queued, second)]))
    }

    async fn untouched(self, stage: &Stage<'_>) -> Result<()> {
        for (id, before) in self.0 {
            let after = stage.cloud.image(&id).await?;
            ensure!(before == after, "somebody else's image was touched: {after}");
        }
        Ok(())
    }
}

/// The objects as they are, without what differs between any two journeys.
pub(super) async fn world(stage: &Stage<'_>) -> Result<World> {
    let mut world = World::new();
    for kind in ["OpenStackClusterStackRelease", "OpenStackNodeImageRelease"] {
        let objects = stage.journey.objects(API_VERSION, kind);
        for object in objects.list(&ListParams::default()).await?.items {
            world.insert(format!("{kind} {}", object.name_any()), normalised(stage, &object));
        }
    }
    Ok(world)
}

fn normalised(stage: &Stage<'_>, object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    let owners: BTreeSet<String> = object
        .owner_references()
        .iter()
        .map(|owner| owner.name.clone())
        .collect();
    let mut value = json!({
        "labels": metadata.labels, "annotations": metadata.annotations, "finalizers": metadata.finalizers, "owners": owners,
        "generation": metadata.generation, "deleting": metadata.deletion_timestamp.is_some(),
        "spec": object.data["spec"], "status": object.data["status"],
    });
    let id = value
        .pointer("/status/image/id")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let mut texts = vec![
        (stage.journey.namespace.clone(), "NAMESPACE"),
        (stage.source.url(""), "SOURCE"),
    ];
    texts.extend(id.map(|id| (id, "IMAGE")));
    compare(&mut value, &texts);
    value
}

/// Removes what cannot be compared, and replaces texts that differ between journeys.
fn compare(value: &mut Value, texts: &[(String, &str)]) {
    match value {
        Value::String(text) => {
            for (from, to) in texts {
                *text = text.replace(from, to);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| compare(item, texts)),
        Value::Object(members) => {
            members.retain(|name, _| !INCOMPARABLE.contains(&name.as_str()));
            members.values_mut().for_each(|member| compare(member, texts));
        }
        _ => {}
    }
}

/// Waits until the world is this one, and the images of the project are those of which it tells.
pub(super) async fn becomes(stage: &Stage<'_>, wanted: &World) -> Result<()> {
    eventually(PATIENCE, "the world to be the undisturbed one", async || {
        let found = world(stage).await?;
        ensure!(found == *wanted, "{}", differences(wanted, &found));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let objects = stage.journey.api::<OpenStackNodeImageRelease>();
    let objects = objects.list(&ListParams::default()).await?.items;
    let images = objects.into_iter().filter_map(|object| object.status?.image);
    let ours = images.filter(|image| !image.adopted);
    let ids: Vec<String> = ours.map(|image| image.id).collect();
    stage.cloud.holds(&ids).await
}

/// Ends when an image is called ready that is not verified, or is not what the source gives.
pub(super) async fn nothing_unverified_is_ready(stage: &Stage<'_>) -> Result<()> {
    let objects = stage.journey.api::<OpenStackNodeImageRelease>();
    let mut changes = pin!(
        watcher(objects.clone(), watcher::Config::default())
            .default_backoff()
            .applied_objects()
    );
    let sums = [1, 2].map(|seed| Value::from(sha512(&small(seed))));
    while let Some(change) = changes.next().await {
        // A watch that was interrupted begins anew.
        let Ok(object) = change else { continue };
        let status = object.status.clone().unwrap_or_default();
        if !status.ready || object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let shown = status.image.context("a ready image without an id")?;
        let image = stage.cloud.image(&shown.id).await?;
        let is_verified = image["status"] == "active"
            && image["os_hidden"] == false
            && (shown.adopted || image["cs_verified"].is_string() && sums.contains(&image["os_hash_value"]));
        if is_verified {
            continue;
        }
        // It may be on its way out by now.
        let now = objects.get_opt(&object.name_any()).await?;
        let goes = now.is_none_or(|now| now.metadata.deletion_timestamp.is_some());
        ensure!(goes, "called ready: {image}");
    }
    pending().await
}
