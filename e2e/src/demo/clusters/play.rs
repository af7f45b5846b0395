//! Follows the world while the acts play: looks at it, shows it, and waits for what an act is about.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crds::{ClusterAddon, cluster_addon::name_for};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use tokio::time::sleep;

use super::{
    super::{picture::last_seen, screen::Screen, text::short},
    ground::{CLUSTER, Ground},
    view::View,
};

/// Everything takes seconds on an idle machine.
const DEADLINE: Duration = Duration::from_mins(3);
/// Between two looks: short enough for those who watch.
const BEAT: Duration = Duration::from_millis(120);
const ACTS: usize = 5;
/// The API version of Clusters that every minor of Cluster API serves.
const CLUSTER_API: (&str, &str) = ("cluster.x-k8s.io", "v1beta1");
const CONTROL_PLANE: (&str, &str, &str) = ("controlplane.cluster.x-k8s.io", "v1beta1", "ShimControlPlane");

/// What is told at the end.
#[derive(Clone, Default)]
pub(super) struct Told {
    pub(super) objects: usize,
    pub(super) from: String,
    pub(super) to: String,
}

pub(super) struct Play<'a> {
    pub(super) ground: &'a mut Ground,
    pub(super) screen: &'a mut Screen,
    pub(super) client: Client,
    pub(super) view: View,
    /// How long it took in all acts together from what was done to what it leads to.
    pub(super) waited: Duration,
    pub(super) told: Told,
    pause: Duration,
    act: usize,
}

impl<'a> Play<'a> {
    /// `pause` is for those who watch: before something happens, and after it.
    pub(super) fn begin(ground: &'a mut Ground, screen: &'a mut Screen, pause: Duration) -> Self {
        Self {
            client: ground.client(),
            ground,
            screen,
            view: View::default(),
            waited: Duration::ZERO,
            told: Told::default(),
            pause,
            act: 0,
        }
    }

    /// Announces an act and plays it.
    pub(super) async fn act(&mut self, title: &str, act: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.act += 1;
        self.screen.heading(&format!("{}/{ACTS}  {title}", self.act));
        let played = act(self).await;
        played.with_context(|| format!("act {} of {ACTS} failed: {title}", self.act))?;
        self.linger().await
    }

    /// Waits until the world is as the act wants it, and tells how long that took since `since`. `what` completes the sentence "waiting for …".
    pub(super) async fn until(
        &mut self,
        what: &str,
        since: Instant,
        holds: impl Fn(&View) -> bool,
    ) -> Result<Duration> {
        self.screen.working(Some(&format!("waiting for {what}")));
        let begun = Instant::now();
        loop {
            self.look().await?;
            if holds(&self.view) {
                break;
            }
            if since.elapsed() > DEADLINE {
                bail!(
                    "waited {} for {what}\n{}",
                    short(since.elapsed()),
                    last_seen(&self.view.rows())
                );
            }
            sleep(BEAT).await;
        }
        let took = since.elapsed();
        self.waited += begun.elapsed();
        self.screen.working(None);
        self.screen.show(self.view.rows());
        Ok(took)
    }

    /// Waits for what the status of our objects does not tell, and goes on showing what happens. `what` completes the sentence "waiting for …".
    pub(super) async fn until_over<T>(&mut self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.screen.working(Some(&format!("waiting for {what}")));
        let begun = Instant::now();
        tokio::pin!(work);
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                looked = self.beat() => looked?,
            }
        };
        self.waited += begun.elapsed();
        self.screen.working(None);
        outcome
    }

    /// Leaves those who watch the time to read, while the world goes on.
    pub(super) async fn linger(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < self.pause {
            self.beat().await?;
        }
        self.ground.check()
    }

    /// Goes on showing what happens, for ever.
    pub(super) async fn watch(&mut self) -> Result<()> {
        loop {
            self.beat().await?;
        }
    }

    /// A look, and the time until the next one.
    async fn beat(&mut self) -> Result<()> {
        self.look().await?;
        sleep(BEAT).await;
        Ok(())
    }

    /// Sees what is there now and shows it.
    async fn look(&mut self) -> Result<()> {
        self.ground.check()?;
        let addons: Api<ClusterAddon> = Api::namespaced(self.client.clone(), self.ground.namespace());
        let clusters = self.clusters();
        let planes = self.objects(CONTROL_PLANE);
        let of_cluster = ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={CLUSTER}"));
        let name = name_for(CLUSTER);
        let looks = tokio::try_join!(
            clusters.get_opt(CLUSTER),
            addons.get_opt(&name),
            planes.list(&of_cluster)
        );
        let (cluster, addon, planes) = looks.context("failed to look at the Cluster")?;
        let plane = planes.items.first();
        self.view = View {
            cluster,
            addon,
            control_plane: plane.and_then(|plane| Some(plane.data["spec"]["version"].as_str()?.to_owned())),
        };
        self.screen.show(self.view.rows());
        self.screen.refresh();
        Ok(())
    }

    pub(super) fn clusters(&self) -> Api<DynamicObject> {
        let (group, version) = CLUSTER_API;
        self.objects((group, version, "Cluster"))
    }

    fn objects(&self, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), self.ground.namespace(), &resource)
    }
}
