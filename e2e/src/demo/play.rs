//! Follows the world while the acts play: takes what the API server tells, shows it, and waits for what an act is about.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use crds::names::ReleaseTag;
use kube::Client;
use tokio::time::{interval, sleep};

use super::{
    cast::Cast,
    picture::{Id, Picture, last_seen},
    screen::Screen,
    stage::Stage,
    summary::ImagesPlayed,
    text::short,
    watches::{Change, Watches, What},
};

/// Everything takes less than a second on an idle machine; real releases on a busy one take longer.
const DEADLINE: Duration = Duration::from_mins(2);
/// How long a complaint about a release may last that is to be used: some end by themselves.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at the operator's health and at the clock.
const BEAT: Duration = Duration::from_millis(80);

pub(super) struct Play<'a> {
    pub(super) cast: &'a Cast,
    pub(super) stage: &'a mut Stage,
    pub(super) screen: &'a mut Screen,
    pub(super) client: Client,
    pub(super) picture: Picture,
    /// How long it took in all acts together from what was done to what it leads to.
    pub(super) waited: Duration,
    pub(super) images_played: ImagesPlayed,
    watches: Watches,
    pause: Duration,
    act: usize,
    acts: usize,
}

impl<'a> Play<'a> {
    /// `pause` is for those who watch: before something happens, and after it.
    pub(super) fn begin(
        cast: &'a Cast,
        stage: &'a mut Stage,
        screen: &'a mut Screen,
        picture: Picture,
        pause: Duration,
    ) -> Result<Self> {
        let client = stage.client()?;
        let provider = stage.images().map(|images| images.provider());
        let acts = if cast.second.is_some() { 6 } else { 4 };
        Ok(Self {
            watches: Watches::start(&client, stage.namespace(), provider, stage.kubelet().is_some()),
            acts: acts + [&cast.unwanted, &cast.built].into_iter().flatten().count(),
            act: 0,
            waited: Duration::ZERO,
            images_played: ImagesPlayed::default(),
            cast,
            stage,
            screen,
            client,
            picture,
            pause,
        })
    }

    /// Announces an act and plays it.
    pub(super) async fn act(&mut self, title: &str, act: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.act += 1;
        self.picture.turn_the_page();
        self.screen.heading(&format!("{}/{}  {title}", self.act, self.acts));
        self.screen.show(self.picture.rows());
        let played = act(self).await;
        played.with_context(|| format!("act {} of {} failed: {title}", self.act, self.acts))?;
        self.linger().await
    }

    /// Waits until the picture is as the act wants it, and tells how long that took since `since`. `what` completes the
    /// sentence "waiting for …".
    pub(super) async fn until(
        &mut self,
        what: &str,
        since: Instant,
        holds: impl Fn(&Picture) -> bool,
    ) -> Result<Duration> {
        self.screen.working(Some(&format!("waiting for {what}")));
        let mut beat = interval(BEAT);
        while !holds(&self.picture) {
            if since.elapsed() > DEADLINE {
                bail!(
                    "waited {} for {what}\n{}",
                    short(since.elapsed()),
                    last_seen(&self.picture.rows())
                );
            }
            tokio::select! {
                change = self.watches.next() => self.take(change),
                _ = beat.tick() => {
                    self.stage.check()?;
                    self.screen.refresh();
                }
            }
        }
        let took = since.elapsed();
        self.waited += took;
        self.screen.working(None);
        self.screen.show(self.picture.rows());
        Ok(took)
    }

    /// Waits until a release is ready and these, it among them, are what can be used. One that the operator keeps complaining about will
    /// not be: somebody gave the demo broken ones.
    pub(super) async fn until_usable(
        &mut self,
        tag: &ReleaseTag,
        usable: &[&ReleaseTag],
        since: Instant,
    ) -> Result<Duration> {
        let complained = Cell::new(None);
        let hopeless = |picture: &Picture| {
            let is_broken = picture.complaint(tag).is_some();
            complained.set(complained.get().filter(|_| is_broken).or(is_broken.then(Instant::now)));
            complained.get().is_some_and(|first| first.elapsed() > PATIENCE)
        };
        let holds = |picture: &Picture| picture.is_ready(tag) && picture.usable_are(usable);
        let waiting = format!("{} to be usable", tag.version());
        let took = self
            .until(&waiting, since, |picture| holds(picture) || hopeless(picture))
            .await?;
        if !holds(&self.picture) {
            let complaint = self.picture.complaint(tag).unwrap_or_default();
            bail!("{tag} cannot be used, and the demo needs releases that can: {complaint}");
        }
        Ok(took)
    }

    /// Waits until all these objects of a release are repaired and it can be used.
    pub(super) async fn until_repaired(&mut self, tag: &ReleaseTag, objects: &[Id], since: Instant) -> Result<()> {
        let repaired =
            |picture: &Picture| picture.is_ready(tag) && objects.iter().all(|id| picture.repaired_after(id).is_some());
        self.until("both to be repaired", since, repaired).await.map(drop)
    }

    /// Leaves those who watch the time to read, while the world goes on.
    pub(super) async fn linger(&mut self) -> Result<()> {
        let end = sleep(self.pause);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                change = self.watches.next() => self.take(change),
            }
        }
        self.stage.check()
    }

    /// Goes on showing what happens, for ever.
    pub(super) async fn watch(&mut self) -> Result<()> {
        let mut beat = interval(BEAT);
        loop {
            tokio::select! {
                change = self.watches.next() => self.take(change),
                _ = beat.tick() => self.screen.refresh(),
            }
            self.stage.check()?;
        }
    }

    /// Takes a change and all that came with it, so that a burst is one frame.
    fn take(&mut self, change: Option<Change>) {
        let mut next = change;
        while let Some(change) = next {
            if let What::Release(release) = &change.what {
                self.watches.include(release);
            }
            self.picture.take(change);
            next = self.watches.arrived();
        }
        self.screen.show(self.picture.rows());
    }
}
