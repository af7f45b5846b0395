//! What happens to node images: what the acts about releases do otherwise where there are images, and an act of their own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::names::ReleaseTag;
use e2e::eventually;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use super::{acts::OWNER, images::Images, picture::Picture, play::Play, summary::ImagesPlayed, text::short};

/// An image has to be so far, in percent, before something happens to it.
const WELL_ON_ITS_WAY: u8 = 40;
/// Until then it does not come further than this, so that it is still on its way when something happens.
const HELD_AT: usize = 70;
/// Who stops reading has hung up by then.
pub(super) const SOON: Duration = Duration::from_secs(5);

impl Play<'_> {
    /// The node images, where there are any.
    pub(super) fn images(&self) -> Option<Arc<Images>> {
        self.stage.images().cloned()
    }

    /// What became of node images so far, where there are any.
    pub(super) fn images_played(&self) -> Option<ImagesPlayed> {
        self.images().map(|_| self.images_played)
    }

    /// The first release with its node image, whose source breaks off.
    pub(super) async fn subscribe_with(&mut self, images: &Images) -> Result<()> {
        let first = &self.cast.first;
        self.cast.publish(first)?;
        let (template, stack) = (images.template(self.stage.namespace()), self.stack(&[first]));
        if let Some(secret) = images.secret() {
            self.apply_object(&secret).await?;
            self.screen
                .say("A login for the cloud is in the Secret cloud. The platform team applies two objects:");
        } else {
            self.screen.say("The platform team applies two objects:");
        }
        for object in [&template, &stack] {
            let text = serde_yaml::to_string(object).context("failed to write an object as YAML")?;
            self.screen.quote(&text);
            self.screen.gap();
        }
        self.screen.say(&format!(
            "One operator finds the release {first}; another one brings the image that its nodes boot from to {}. No class is applied before it \
             is there.",
            images.place()
        ));
        self.linger().await?;
        images.give_at_most(HELD_AT);
        self.apply_object(&template).await?;
        let since = self.apply(&stack).await?;
        self.until_on_its_way(first, since).await?;
        self.screen
            .say("In the middle of it the source goes away: it closes the connection, and answers nobody.");
        images.take_the_source_away();
        self.linger().await?;
        self.screen.say("It is back.");
        images.bring_the_source_back();
        let took = self.until_usable(first, &[first], Instant::now()).await?;
        let from = images.asked_last_from()?;
        ensure!(from > 0, "the image was begun anew");
        images.there_is_only(&[&images.first]).await?;
        self.images_played.resumed_from = from;
        self.screen.good(&format!(
            "The source was asked for the rest alone, from {} MiB on.",
            from >> 20
        ));
        self.screen.good(&format!(
            "All of it is in {}, with the digest that the release names. Then came the class: {} was usable {} after the source was back.",
            images.place(),
            first.version(),
            short(took)
        ));
        Ok(())
    }

    /// A release that needs the image that is there; `asked` is how often the source was asked before.
    pub(super) async fn nothing_was_sent(&mut self, asked: usize) -> Result<()> {
        let Some(images) = self.images() else { return Ok(()) };
        ensure!(images.asked() == asked, "an image that is there was asked for again");
        images.there_is_only(&[&images.first]).await?;
        self.screen
            .good("It needs the node image that is there already: nothing was sent.");
        Ok(())
    }

    /// One of two releases that share an image is gone.
    pub(super) async fn the_image_stays_for(&mut self, other: &ReleaseTag) -> Result<()> {
        let Some(images) = self.images() else { return Ok(()) };
        images.there_is_only(&[&images.first]).await?;
        self.screen
            .good(&format!("The node image stays, because {} needs it.", other.version()));
        Ok(())
    }

    /// All releases are gone.
    pub(super) async fn no_image_is_left(&mut self) -> Result<()> {
        let Some(images) = self.images() else { return Ok(()) };
        images.there_is_only(&[]).await?;
        let what = match &images.built {
            Some(_) => "The node images went, each with its last release",
            None => "The node image went with its last release",
        };
        self.screen.good(&format!("{what}: {} is empty.", images.place()));
        Ok(())
    }

    /// A release that needs another image, and that nobody wants any more while it comes.
    pub(super) async fn give_up(&mut self, unwanted: &ReleaseTag) -> Result<()> {
        let images = self.images().context("the demo has no node images")?;
        let newest = self.cast.newest();
        self.screen.say(&format!(
            "The release {unwanted} is published. It needs another node image, which begins to come."
        ));
        self.linger().await?;
        images.give_at_most(HELD_AT);
        self.cast.publish(unwanted)?;
        self.until_on_its_way(unwanted, Instant::now()).await?;
        let mut stack = self.stack(&[newest]);
        stack["spec"]["autoSubscribe"] = false.into();
        self.screen.say(&format!(
            "The platform team changes its mind: the stack is to stay at {}.",
            newest.version()
        ));
        self.screen
            .quote(&format!("autoSubscribe: false\nversions: [{}]", newest.version()));
        self.linger().await?;
        let since = self.apply(&stack).await?;
        let gone = |picture: &Picture| {
            picture.is_gone(unwanted) && picture.has_no_image_for(unwanted) && picture.usable_are(&[newest])
        };
        let waiting = format!("{} to be gone", unwanted.version());
        let took = self.until(&waiting, since, gone).await?;
        eventually(SOON, "the source to be left alone", async || images.source_is_quiet()).await?;
        images.there_is_only(&[&images.first]).await?;
        self.images_played.stopped = took;
        self.screen.good(&format!(
            "{} later nobody reads from the source any more, and {} has the image of {} and nothing else: no half image, and no trace of one.",
            short(took),
            images.place(),
            newest.version()
        ));
        Ok(())
    }

    async fn until_on_its_way(&mut self, tag: &ReleaseTag, since: Instant) -> Result<()> {
        let is_well = |picture: &Picture| picture.percent_sent(tag) >= Some(WELL_ON_ITS_WAY);
        self.until("the image to be on its way", since, is_well).await.map(drop)
    }

    pub(super) async fn apply_object(&self, object: &Value) -> Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let objects: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.stage.namespace(), &resource);
        let applied = objects
            .patch(name, &PatchParams::apply(OWNER), &Patch::Apply(object))
            .await;
        applied
            .map(drop)
            .with_context(|| format!("failed to apply {kind} {name}"))
    }
}
