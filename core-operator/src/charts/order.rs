//! Which chart to render, and as what.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use crds::policy::HelmProfile;
use operator_kit::failure::chain;
use planning::addon::SINGLE_STAGE;
use release::{Admitted, ReleaseError};
use rendering::answers::Answers;
use rendering::{ChartBytes, ChartValues, ErrorClass, Lane, ReadChart, RenderError, RenderRequest, Rendered};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::Span;

use super::Plate;
use super::kitchen::{Kitchen, ReadError};
use crate::lanes::{Chart, Ended, Failed};

/// Which chart to render, and as what.
pub(super) struct Order {
    kitchen: Arc<Kitchen>,
    files: Admitted,
    /// Where the chart is in the release.
    source: Source,
    /// What tells the chart from all others.
    chart: String,
    /// What tells it from others that the same one may want of this chart: all else is the same in all of these orders.
    identity: String,
    release_name: String,
    namespace: String,
    kubernetes_version: Option<String>,
    profile: HelmProfile,
    values: Option<Arc<ChartValues>>,
    answers: Option<Arc<Answers>>,
    since: Instant,
    span: Span,
}

/// Where a chart is in a release.
#[derive(Clone)]
enum Source {
    Class,
    /// It is the archive of the add-ons.
    Addons,
    /// A folder in that.
    Stage(String),
}

impl Source {
    fn read(&self, files: &Admitted) -> Result<ChartBytes, ReleaseError> {
        match self {
            Self::Class => files.read_class_chart().map(ChartBytes::Archive),
            Self::Addons => files.read_addon_archive().map(ChartBytes::Archive),
            Self::Stage(folder) => files.read_stage_chart(folder).map(ChartBytes::Files),
        }
    }
}

/// A chart of add-ons, for one cluster.
pub(crate) struct AddonChart {
    /// Its folder; [`SINGLE_STAGE`] where there is one chart alone.
    pub(crate) folder: String,
    /// Whether the archive has folders.
    pub(crate) is_staged: bool,
    /// What tells it from others that may be wanted of this folder for this cluster: everything below, and the bytes of the chart.
    pub(crate) identity: String,
    /// [What the chart is](RenderRequest::identity).
    pub(crate) chart: String,
    pub(crate) kubernetes_version: String,
    pub(crate) profile: HelmProfile,
    pub(crate) values: Arc<ChartValues>,
    pub(crate) answers: Arc<Answers>,
}

/// Where objects of add-ons are that name no namespace.
pub(crate) const ADDON_NAMESPACE: &str = "kube-system";

impl Order {
    pub(super) fn of_class(kitchen: Arc<Kitchen>, files: &Admitted, namespace: &str, profile: HelmProfile) -> Self {
        let chart = files.release().class_digest().to_string();
        Self {
            kitchen,
            files: files.clone(),
            source: Source::Class,
            identity: format!("{chart} {profile}"),
            chart,
            // The release name of the contract: provider, name and Kubernetes version, without the stack's version.
            release_name: files.release().tag.stem().to_string(),
            namespace: namespace.to_owned(),
            kubernetes_version: None,
            profile,
            values: None,
            answers: None,
            since: Instant::now(),
            span: tracing::info_span!("render", release = %files.release().tag),
        }
    }

    pub(super) fn of_addon(kitchen: Arc<Kitchen>, files: &Admitted, wanted: AddonChart) -> Self {
        let AddonChart {
            folder,
            is_staged,
            identity,
            chart,
            kubernetes_version,
            profile,
            values,
            answers,
        } = wanted;
        let span = tracing::info_span!("render", release = %files.release().tag, chart = folder);
        Self {
            kitchen,
            files: files.clone(),
            source: if is_staged {
                Source::Stage(folder)
            } else {
                Source::Addons
            },
            chart,
            identity,
            // That of the Go operator, for every chart.
            release_name: SINGLE_STAGE.to_owned(),
            namespace: ADDON_NAMESPACE.to_owned(),
            kubernetes_version: Some(kubernetes_version),
            profile,
            values: Some(values),
            answers: Some(answers),
            since: Instant::now(),
            span,
        }
    }

    fn request<'a>(&'a self, chart: &'a ReadChart<'a>) -> RenderRequest<'a> {
        RenderRequest {
            identity: &self.chart,
            chart,
            release_name: &self.release_name,
            namespace: &self.namespace,
            kubernetes_version: self.kubernetes_version.as_deref(),
            api_versions: &[],
            include_crds: !matches!(self.source, Source::Class),
            profile: self.profile,
            values: self.values.as_ref().map_or(&Value::Null, |values| &values.values),
            answers: self.answers.as_deref(),
        }
    }

    /// Whether the templates are given Secrets of the cluster: what they say is told to people who may not read these.
    fn knows_secrets(&self) -> bool {
        let mut found = self.answers.iter().flat_map(|answers| &answers.found);
        found.any(|(lookup, object)| lookup.kind == "Secret" && !object.is_null())
    }

    async fn read(&self, lane: Lane) -> Result<ChartBytes, ReadError> {
        let source = self.source.clone();
        let read = move |files: &Admitted| source.read(files);
        self.kitchen.read(&self.files, lane, read).await
    }
}

/// What was in the way of the files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// They would not come in time.
    Late,
    /// They are not what they were.
    Changed,
}

impl Chart for Order {
    type Rendered = Plate;

    fn identity(&self) -> &str {
        &self.identity
    }

    fn storage(&self) -> &Path {
        self.files.release().storage()
    }

    fn lane(&self) -> Lane {
        self.kitchen.renderer.lane(&self.chart)
    }

    async fn kept(self: Arc<Self>) -> Option<Plate> {
        let order = Arc::clone(&self);
        let find = move || order.kitchen.renderer.kept(&order.request(&|| Ok(Vec::new().into())));
        let kept = spawn_blocking(find).await.ok()??;
        self.kitchen.metrics.rendered(self.since.elapsed());
        Some(Plate::Rendered(Arc::new(kept)))
    }

    async fn reach(&self) -> Result<(), Failed> {
        self.read(Lane::Slow).await.map(drop).map_err(|error| {
            let unread = Unread::of(&error);
            let chart = self.chart.clone();
            let source = error.into();
            failed(&RenderError::ReadChart { chart, source }, Some(unread))
        })
    }

    async fn render(self: Arc<Self>, lane: Lane) -> Result<Plate, Ended> {
        let (order, storages) = (Arc::clone(&self), Handle::current());
        let work = move || {
            let _within = order.span.enter();
            let unread = RefCell::new(None);
            let read = || {
                let read = storages.block_on(order.read(lane));
                read.map_err(|error| {
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
        let outcome = plate(outcome, unread, lane, self.knows_secrets());
        if !matches!(outcome, Err(Ended::TooSlow)) {
            self.kitchen.metrics.rendered(self.since.elapsed());
        }
        outcome
    }
}

impl Unread {
    fn of(error: &ReadError) -> Self {
        if error.is_changed() { Self::Changed } else { Self::Late }
    }
}

fn plate(
    outcome: Result<Rendered, RenderError>,
    unread: Option<Unread>,
    lane: Lane,
    knows_secrets: bool,
) -> Result<Plate, Ended> {
    match outcome {
        Ok(rendered) => Ok(Plate::Rendered(Arc::new(rendered))),
        Err(RenderError::Needs { lookups }) => Ok(Plate::Needs(lookups)),
        Err(RenderError::TooSlow { .. }) => Err(Ended::TooSlow),
        Err(_) if lane == Lane::Quick && unread == Some(Unread::Late) => Err(Ended::TooSlow),
        Err(error) if knows_secrets => Err(Ended::Failed(Failed {
            message: without_details(&error),
            ..failed(&error, unread)
        })),
        Err(error) => Err(Ended::Failed(failed(&error, unread))),
    }
}

/// What failed and where, without what templates may have put into words.
fn without_details(error: &RenderError) -> String {
    let place = match error.place() {
        Some((template, Some(line))) => format!(": {template}, line {line}"),
        Some((template, None)) => format!(": {template}"),
        None => String::new(),
    };
    format!(
        "{error}{place}; what is wrong there is not told, because the chart looks up Secrets, and its words may repeat them"
    )
}

fn failed(error: &RenderError, unread: Option<Unread>) -> Failed {
    Failed {
        message: chain(error),
        transient: error.class() == ErrorClass::Transient,
        unreadable: unread == Some(Unread::Changed),
    }
}
