//! Charts as they are read, and the one that was rendered last.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use helm::chart::{ArchiveLimits, LoadError};
use helm::{Chart, FileProblem, Profile, RenderOptions, StackError};

use crate::{RenderError, RenderRequest, Renderer, engine_profile};
use crds::policy::HelmProfile;

/// A chart as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartBytes {
    /// The bytes of the archive of one chart (`.tgz`).
    Archive(Vec<u8>),
    /// The files of the folder of a chart, by their paths in it. Which of them belong to the chart, its `.helmignore` says.
    Files(Vec<(String, Vec<u8>)>),
}

impl From<Vec<u8>> for ChartBytes {
    fn from(archive: Vec<u8>) -> Self {
        Self::Archive(archive)
    }
}

impl ChartBytes {
    fn load(self, limits: &ArchiveLimits) -> Result<Chart, LoadError> {
        match self {
            Self::Archive(archive) => Chart::from_archive(&archive, limits),
            Self::Files(files) => Chart::from_files(files, limits),
        }
    }
}

/// The chart that was rendered last.
pub(crate) struct LoadedChart {
    identity: String,
    chart: Chart,
}

/// The chart of a request, which takes the place of the one that was rendered last.
pub(crate) fn loaded(
    request: &RenderRequest<'_>,
    last: &mut Option<LoadedChart>,
    over: &Arc<AtomicBool>,
) -> Result<Chart, RenderError> {
    let identity = || request.identity.to_owned();
    if let Some(last) = last.as_ref().filter(|last| last.identity == request.identity) {
        return Ok(last.chart.clone());
    }
    // What it takes is free before the other one is loaded.
    *last = None;
    let bytes = (request.chart)().map_err(|source| RenderError::ReadChart {
        chart: identity(),
        source,
    })?;
    let limits = ArchiveLimits {
        cancelled: Arc::clone(over),
        ..ArchiveLimits::default()
    };
    let chart = bytes.load(&limits).map_err(|source| RenderError::LoadChart {
        chart: identity(),
        source,
    })?;
    *last = Some(LoadedChart {
        identity: identity(),
        chart: chart.clone(),
    });
    Ok(chart)
}

impl Renderer {
    /// What is wrong with the files of a chart of add-ons and of those in it, whatever values it gets: see [`Chart::problems`]. Nothing is executed.
    /// Blocks.
    pub fn problems(
        &self,
        chart: ChartBytes,
        profile: HelmProfile,
        kubernetes_version: &str,
    ) -> Result<Vec<FileProblem>, StackError> {
        let profile = engine_profile(profile);
        let chart = match chart.load(&ArchiveLimits::default()) {
            Ok(chart) => chart,
            Err(error) => return Ok(vec![error.located(profile)]),
        };
        let over = Arc::<AtomicBool>::default();
        let options = RenderOptions {
            profile,
            kube_version: Some(kubernetes_version.to_owned()),
            include_crds: true,
            other_language: Some(Arc::new(self.tera_language(&over))),
            cancelled: over,
            // No template sees these, because none runs.
            ..RenderOptions::new("", "")
        };
        chart.problems(&options)
    }
}

/// The names of the functions that templates of charts can call, in no particular order.
pub fn chart_functions(profile: HelmProfile) -> impl Iterator<Item = &'static str> {
    engine_profile(profile).functions().names()
}

/// The position of the newest of these versions of a chart that fits into the range of a dependency, as Helm reads both; none where none fits.
/// Equal versions: the first.
pub fn newest_in_range(range: &str, versions: &[&str]) -> Option<usize> {
    let profile: &Profile = engine_profile(HelmProfile::default());
    helm::chart::newest_in_range(range, versions, profile)
}
