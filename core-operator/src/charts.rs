//! Charts to objects: reads them from storages that may hang, and renders them beside the reactor, in the lane that they need.

mod kitchen;
mod order;

use std::sync::Arc;

use crds::policy::HelmProfile;
use crds::{ClusterAddon, ClusterStackRelease};
use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use release::{Admitted, ReleaseError};
use rendering::answers::Lookup;
use rendering::{Lane, Rendered, Renderer, Renderings};

use self::kitchen::Kitchen;
pub(crate) use self::kitchen::ReadError;
use self::order::Order;
pub(crate) use self::order::{ADDON_NAMESPACE, AddonChart};
use crate::lanes::{Failed, Lanes, Unrendered, Whose};
use crate::metrics::Metrics;

/// Renders charts.
pub(crate) struct Charts {
    kitchen: Arc<Kitchen>,
    lanes: Arc<Lanes<Plate>>,
}

/// What comes of a chart.
pub(crate) enum Plate {
    /// Its objects.
    Rendered(Arc<Rendered>),
    /// The objects of the cluster that it looks up and nobody has looked for.
    Needs(Vec<Lookup>),
}

/// The queues of those who are woken when what they wanted is rendered.
pub(crate) struct Woken {
    pub(crate) releases: UnboundedSender<ObjectRef<ClusterStackRelease>>,
    /// Of add-ons, where these are looked after.
    pub(crate) addons: Option<UnboundedSender<ObjectRef<ClusterAddon>>>,
}

impl Woken {
    /// A closed queue means that the process is about to end.
    fn wake(&self, whose: &Whose) {
        match whose {
            Whose::Release(release) => drop(self.releases.unbounded_send(release.clone())),
            Whose::Addon { addon, .. } => {
                if let Some(addons) = &self.addons {
                    drop(addons.unbounded_send(addon.clone()));
                }
            }
        }
    }
}

impl Charts {
    /// Keeps so many bytes of what was rendered.
    pub(crate) fn new(cache_bytes: usize, metrics: Metrics, woken: Woken) -> Self {
        Self {
            kitchen: Arc::new(Kitchen::new(Renderer::new(cache_bytes), metrics)),
            lanes: Lanes::new(move |whose| woken.wake(whose)),
        }
    }

    /// What became of all that was to be rendered so far.
    pub(crate) fn renderings(&self) -> Renderings {
        self.kitchen.renderer.renderings()
    }

    /// Renders the class chart of a release. Waits for a moment; what takes longer goes on, and the release is woken when it is over.
    pub(crate) async fn render(
        &self,
        release: &ObjectRef<ClusterStackRelease>,
        files: &Admitted,
        namespace: &str,
        profile: HelmProfile,
    ) -> Result<Arc<Rendered>, Unrendered> {
        let order = self.order(files, namespace, profile);
        let plate = self.lanes.render(&Whose::Release(release.clone()), order).await?;
        match &*plate {
            Plate::Rendered(rendered) => Ok(Arc::clone(rendered)),
            // Where nobody answers, nothing is needed.
            Plate::Needs(_) => Err(Unrendered::Failed(Failed::for_now("a class chart looks up objects"))),
        }
    }

    fn order(&self, files: &Admitted, namespace: &str, profile: HelmProfile) -> Order {
        Order::of_class(Arc::clone(&self.kitchen), files, namespace, profile)
    }

    /// A release is gone, and wants nothing any more.
    pub(crate) fn forget(&self, release: &ObjectRef<ClusterStackRelease>) {
        self.lanes
            .forget(|whose| matches!(whose, Whose::Release(one) if one == release));
    }
}

impl Charts {
    /// Renders a chart of add-ons, under the same conditions.
    pub(crate) async fn render_addon(
        &self,
        addon: &ObjectRef<ClusterAddon>,
        files: &Admitted,
        chart: AddonChart,
    ) -> Result<Arc<Plate>, Unrendered> {
        let whose = Whose::Addon {
            addon: addon.clone(),
            chart: chart.folder.clone(),
        };
        let order = Order::of_addon(Arc::clone(&self.kitchen), files, chart);
        self.lanes.render(&whose, order).await
    }

    /// A ClusterAddon is gone, and wants nothing any more.
    pub(crate) fn forget_addon(&self, addon: &ObjectRef<ClusterAddon>) {
        self.lanes
            .forget(|whose| matches!(whose, Whose::Addon { addon: one, .. } if one == addon));
    }

    /// Reads something of a release from its storage, which may hang: ten seconds at most.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        files: &Admitted,
        read: impl FnOnce(&Admitted) -> Result<T, ReleaseError> + Send + 'static,
    ) -> Result<T, ReadError> {
        self.kitchen.read(files, Lane::Slow, read).await
    }

    /// Renders whatever is to be rendered beside the charts.
    pub(crate) fn renderer(&self) -> Arc<Renderer> {
        Arc::clone(&self.kitchen.renderer)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use futures::StreamExt;
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};
    use prometheus_client::registry::Registry;
    use release::pack::{self, Versioning};
    use release::{Release, Verification, admit};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::*;
    use crate::lanes::Chart;

    const TAG: &str = "docker-harbor-1-34-v1";

    fn charts() -> (Charts, UnboundedReceiver<ObjectRef<ClusterStackRelease>>) {
        let (queue, woken) = unbounded();
        let metrics = Metrics::register(&mut Registry::default());
        let queues = Woken {
            releases: queue,
            addons: None,
        };
        (Charts::new(0, metrics, queues), woken)
    }

    /// A release in a storage of its own, and the archive of its chart.
    fn admitted(storage: &Path) -> (Admitted, PathBuf) {
        let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
        let versioning = Versioning::Given("v1".parse().unwrap());
        pack::create(&stack, storage, &versioning).unwrap();
        let release = Release::open(&storage.join(TAG), &TAG.parse().unwrap()).unwrap();
        let chart = storage
            .join(TAG)
            .join(&release.charts.as_ref().unwrap().class_chart.name);
        (admit(Arc::new(release), Verification::Off).unwrap(), chart)
    }

    /// A file that whoever reads it waits for. In the end he reads nothing from it, and who comes later finds none.
    struct Hanging(PathBuf);

    impl Hanging {
        fn at(file: PathBuf) -> Self {
            fs::remove_file(&file).unwrap();
            mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            Self(file)
        }
    }

    impl Drop for Hanging {
        fn drop(&mut self) {
            let _writer = OpenOptions::new().read(true).write(true).open(&self.0).unwrap();
            fs::remove_file(&self.0).unwrap();
        }
    }

    fn is_late(read: &Result<Vec<u8>, ReadError>) -> bool {
        matches!(read, Err(ReadError::Late { .. }))
    }

    #[tokio::test]
    async fn a_storage_that_hangs_keeps_one_thread_and_a_moment_of_one_turn() {
        let (charts, _woken) = charts();
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let (hanging, chart) = admitted(folders[0].path());
        let hangs = Hanging::at(chart);
        let read = |files: &Admitted| {
            let (kitchen, files) = (Arc::clone(&charts.kitchen), files.clone());
            async move { kitchen.read(&files, Lane::Quick, Admitted::read_class_chart).await }
        };
        assert!(is_late(&read(&hanging).await), "it takes a moment");
        // The next one does not even wait: it is over when it is looked at for the first time.
        let at_once = timeout(Duration::ZERO, read(&hanging)).await;
        assert!(is_late(&at_once.unwrap()));
        let (healthy, _) = admitted(folders[1].path());
        assert!(!read(&healthy).await.unwrap().is_empty());
        drop(hangs);
    }

    #[tokio::test]
    async fn a_chart_on_a_storage_that_hangs_is_awaited_and_others_are_rendered() {
        let (charts, mut woken) = charts();
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let (hanging, chart) = admitted(folders[0].path());
        let hangs = Hanging::at(chart);
        let render = async |name: &str, files: &Admitted| {
            let release = ObjectRef::new(name).within("fleet");
            charts.render(&release, files, "fleet", HelmProfile::default()).await
        };
        assert_eq!(render("hanging", &hanging).await.unwrap_err(), Unrendered::Awaited);
        let (healthy, _) = admitted(folders[1].path());
        assert_ne!(render("healthy", &healthy).await, Err(Unrendered::Awaited));

        // What it says then is nothing.
        drop(hangs);
        let release = woken.next().await.unwrap();
        assert_eq!(release.name, "hanging");
        let Unrendered::Failed(failed) = render("hanging", &hanging).await.unwrap_err() else {
            panic!("it is over");
        };
        assert!(failed.transient, "{failed:?}");
    }

    #[tokio::test]
    async fn whoever_wants_a_turn_waits_for_a_storage_that_hangs_before_he_has_one() {
        let (charts, _woken) = charts();
        let folder = TempDir::new().unwrap();
        let (files, chart) = admitted(folder.path());
        let order = charts.order(&files, "fleet", HelmProfile::default());
        assert_eq!(order.reach().await, Ok(()));
        let hangs = Hanging::at(chart);
        for _ in 0..2 {
            let waiting = timeout(Duration::ZERO, order.reach());
            assert!(
                waiting.await.is_err(),
                "the first one reads, and the second one waits for him"
            );
        }
        drop(hangs);
        let failed = order.reach().await.unwrap_err();
        assert!(failed.transient, "{failed:?}");
    }

    #[tokio::test]
    async fn a_chart_that_is_another_one_by_now_is_not_rendered() {
        let (charts, _woken) = charts();
        let folder = TempDir::new().unwrap();
        let (files, chart) = admitted(folder.path());
        fs::write(&chart, "other").unwrap();
        let release = ObjectRef::new(TAG).within("fleet");
        let told = charts.render(&release, &files, "fleet", HelmProfile::default()).await;
        let Err(Unrendered::Failed(failed)) = told else {
            panic!("{told:?}");
        };
        assert!(failed.transient && failed.unreadable, "{failed:?}");
    }
}
