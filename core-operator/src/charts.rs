//! Class charts to objects: reads the archives from storages that may hang, and renders them beside the reactor, in the lane that they need.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crds::ClusterStackRelease;
use crds::policy::HelmProfile;
use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use operator_kit::failure::chain;
use release::{Admitted, ReleaseError};
use rendering::{ChartBytes, ErrorClass, Lane, ReadChart, RenderError, RenderRequest, Rendered, Renderer, Renderings};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tracing::Span;

use crate::lanes::{Chart, Ended, Failed, Lanes, Unrendered};
use crate::metrics::Metrics;

/// How long an archive may take to be read while others wait for their turn. Archives of class charts have some kilobytes.
const QUICK: Duration = Duration::from_millis(500);

/// How long where nobody waits.
const SLOW: Duration = Duration::from_secs(10);

/// Renders class charts.
pub(crate) struct Charts {
    kitchen: Arc<Kitchen>,
    lanes: Arc<Lanes<Rendered>>,
}

/// What it takes to render one.
struct Kitchen {
    renderer: Renderer,
    metrics: Metrics,
    /// One reads from each storage at a time: one that hangs keeps one thread, and none from those who read elsewhere.
    storages: Mutex<HashMap<PathBuf, Weak<Semaphore>>>,
}

/// Which chart to render, and as what.
struct Order {
    kitchen: Arc<Kitchen>,
    files: Admitted,
    chart_digest: String,
    /// What tells it from others that a release may want: all else is the same in all of its orders.
    identity: String,
    /// The release name of the contract: provider, name and Kubernetes version, without the stack's version.
    release_name: String,
    namespace: String,
    profile: HelmProfile,
    since: Instant,
    span: Span,
}

/// Why an archive could not be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the storage {storage:?} gives no answer within {limit:?}")]
    Late { storage: PathBuf, limit: Duration },
    #[error(transparent)]
    Read(ReleaseError),
    #[error("the operator ends")]
    Stopped,
}

impl Charts {
    /// Keeps so many bytes of what was rendered, and wakes releases through this queue.
    pub(crate) fn new(
        cache_bytes: usize,
        metrics: Metrics,
        woken: UnboundedSender<ObjectRef<ClusterStackRelease>>,
    ) -> Self {
        Self {
            kitchen: Arc::new(Kitchen {
                renderer: Renderer::new(cache_bytes),
                metrics,
                storages: Mutex::default(),
            }),
            lanes: Lanes::new(woken),
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
        self.lanes.render(release, order).await
    }

    fn order(&self, files: &Admitted, namespace: &str, profile: HelmProfile) -> Order {
        let chart_digest = files.release().class_digest().to_string();
        Order {
            kitchen: Arc::clone(&self.kitchen),
            files: files.clone(),
            identity: format!("{chart_digest} {profile}"),
            chart_digest,
            release_name: files.release().tag.stem().to_string(),
            namespace: namespace.to_owned(),
            profile,
            since: Instant::now(),
            span: tracing::info_span!("render", release = %files.release().tag),
        }
    }

    /// A release is gone, and wants nothing any more.
    pub(crate) fn forget(&self, release: &ObjectRef<ClusterStackRelease>) {
        self.lanes.forget(release);
    }
}

impl Order {
    fn request<'a>(&'a self, chart: &'a ReadChart<'a>) -> RenderRequest<'a> {
        RenderRequest {
            identity: &self.chart_digest,
            chart,
            release_name: &self.release_name,
            namespace: &self.namespace,
            kubernetes_version: None,
            api_versions: &[],
            include_crds: false,
            profile: self.profile,
            values: &serde_json::Value::Null,
            answers: None,
        }
    }
}

/// What was in the way of the archive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It would not come in time.
    Late,
    /// It is not what it was.
    Changed,
}

impl Chart for Order {
    type Rendered = Rendered;

    fn identity(&self) -> &str {
        &self.identity
    }

    fn storage(&self) -> &Path {
        self.files.release().storage()
    }

    fn lane(&self) -> Lane {
        self.kitchen.renderer.lane(&self.chart_digest)
    }

    async fn kept(self: Arc<Self>) -> Option<Rendered> {
        let order = Arc::clone(&self);
        let find = move || order.kitchen.renderer.kept(&order.request(&|| Ok(Vec::new().into())));
        let kept = spawn_blocking(find).await.ok()??;
        self.kitchen.metrics.rendered(self.since.elapsed());
        Some(kept)
    }

    async fn reach(&self) -> Result<(), Failed> {
        let read = self.kitchen.read(&self.files, Lane::Slow).await;
        read.map(drop).map_err(|error| {
            let unread = Unread::of(&error);
            let chart = self.chart_digest.clone();
            let source = error.into();
            failed(&RenderError::ReadChart { chart, source }, Some(unread))
        })
    }

    async fn render(self: Arc<Self>, lane: Lane) -> Result<Rendered, Ended> {
        let (order, storages) = (Arc::clone(&self), Handle::current());
        let work = move || {
            let _within = order.span.enter();
            let unread = RefCell::new(None);
            let read = || {
                let read = storages.block_on(order.kitchen.read(&order.files, lane));
                read.map(ChartBytes::Archive).map_err(|error| {
                    unread.replace(Some(Unread::of(&error)));
                    error.into()
                })
            };
            let rendered = order.kitchen.renderer.render(&order.request(&read), lane);
            (rendered, unread.take())
        };
        let (outcome, unread) = spawn_blocking(work)
            .await
            .unwrap_or_else(|stopped| (Err(RenderError::Watch(stopped.into())), None));
        let outcome = outcome.map_err(|error| ended(&error, unread, lane));
        if !matches!(outcome, Err(Ended::TooSlow)) {
            self.kitchen.metrics.rendered(self.since.elapsed());
        }
        outcome
    }
}

impl Unread {
    fn of(error: &ReadError) -> Self {
        match error {
            ReadError::Late { .. } | ReadError::Stopped => Self::Late,
            ReadError::Read(_) => Self::Changed,
        }
    }
}

impl Kitchen {
    /// The bytes of the archive. In the quick lane nobody waits for others who read from the same storage: one of them may hang.
    async fn read(&self, files: &Admitted, lane: Lane) -> Result<Vec<u8>, ReadError> {
        let storage = files.release().storage().to_owned();
        let place = self.place(storage.clone());
        let limit = match lane {
            Lane::Quick => QUICK,
            Lane::Slow => SLOW,
        };
        let too_late = || ReadError::Late { storage, limit };
        let reading = async {
            let turn = match lane {
                Lane::Quick => place.try_acquire_owned().ok(),
                // Never closed.
                Lane::Slow => place.acquire_owned().await.ok(),
            };
            let turn = turn?;
            let files = files.clone();
            let read = spawn_blocking(move || {
                // Kept for as long as the storage takes.
                let _turn = turn;
                files.read_class_chart()
            });
            Some(read.await)
        };
        match timeout(limit, reading).await {
            Ok(Some(Ok(read))) => read.map_err(ReadError::Read),
            Ok(Some(Err(_))) => Err(ReadError::Stopped),
            Ok(None) | Err(_) => Err(too_late()),
        }
    }

    fn place(&self, storage: PathBuf) -> Arc<Semaphore> {
        let mut storages = self.storages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = storages.get(&storage).and_then(Weak::upgrade) {
            return place;
        }
        storages.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(Semaphore::new(1));
        storages.insert(storage, Arc::downgrade(&place));
        place
    }
}

fn ended(error: &RenderError, unread: Option<Unread>, lane: Lane) -> Ended {
    if matches!(error, RenderError::TooSlow { .. }) || lane == Lane::Quick && unread == Some(Unread::Late) {
        return Ended::TooSlow;
    }
    Ended::Failed(failed(error, unread))
}

fn failed(error: &RenderError, unread: Option<Unread>) -> Failed {
    Failed {
        message: chain(error),
        transient: error.class() == ErrorClass::Transient,
        unreadable: unread == Some(Unread::Changed),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::Path;

    use futures::StreamExt;
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};
    use prometheus_client::registry::Registry;
    use release::pack::{self, Versioning};
    use release::{Release, Verification, admit};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;

    use super::*;

    const TAG: &str = "docker-harbor-1-34-v1";

    fn charts() -> (Charts, UnboundedReceiver<ObjectRef<ClusterStackRelease>>) {
        let (queue, woken) = unbounded();
        let metrics = Metrics::register(&mut Registry::default());
        (Charts::new(0, metrics, queue), woken)
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
            async move { kitchen.read(&files, Lane::Quick).await }
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
