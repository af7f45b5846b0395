//! Renders charts with the real Helm and with ours, and compares what they answer.
//!
//! Every render is alone: a program that crashes or never ends costs its own comparison and no other.

mod judge;
mod memory;
mod report;

use std::{
    ffi::OsString,
    fs,
    num::NonZero,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, Result, anyhow};

pub use self::report::{Counts, Difference, Report};
use self::{
    judge::{Exceptions, Judgement},
    memory::Memory,
    report::Outcome,
};
use crate::{
    Helm, Lab,
    charts::{self, Chart, Variant},
    lab,
    progress::Progress,
};

/// The name of every release; any would do.
const RELEASE: &str = "tested";

/// What is compared.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The profiles; without any, all that the lab has.
    pub profiles: Vec<String>,
    /// Every `*.tgz` below this folder; without it, the charts of the repository and of the corpus.
    pub charts: Option<PathBuf>,
    /// Only charts whose name contains one of these; without any, all.
    pub names: Vec<String>,
    /// Both answers of every difference are written below this folder.
    pub keep: Option<PathBuf>,
    /// Whether answers of the real Helm that gave equality once are believed the next time.
    pub remember: bool,
}

/// One comparison.
struct Render<'a> {
    profile: &'a str,
    theirs: &'a Helm,
    ours: &'a Helm,
    /// Of the real binary.
    binary: &'a [u8; 32],
    chart: &'a Chart,
    variant: &'a Variant,
}

/// The two programs of a profile.
struct Pair {
    profile: String,
    theirs: Helm,
    ours: Helm,
    binary: [u8; 32],
}

/// Compares everything that the settings name, on all processors.
pub fn run(settings: &Settings, lab: &Lab) -> Result<Report> {
    let scratch = tempfile::tempdir().context("failed to make a folder for charts and values")?;
    let charts = charts(settings, scratch.path())?;
    let pairs = pairs(settings, lab)?;
    let memory = Memory::open(lab::cache().filter(|_| settings.remember));
    let exceptions = Exceptions::listed()?;
    let renders: Vec<_> = pairs.iter().flat_map(|pair| pair.renders(&charts)).collect();
    eprintln!(
        "{} of {}",
        counted(renders.len(), "render"),
        counted(charts.len(), "chart")
    );
    let progress = Progress::start();
    let [next, done, different] = [const { AtomicUsize::new(0) }; 3];
    let worker = || {
        let mut outcomes = Vec::new();
        while let Some(render) = renders.get(next.fetch_add(1, Ordering::Relaxed)) {
            let judgement = render.judge(&memory, &exceptions);
            let judgement = judgement.unwrap_or_else(|error| Judgement::impossible(&error));
            done.fetch_add(1, Ordering::Relaxed);
            different.fetch_add(usize::from(!judgement.is_equal()), Ordering::Relaxed);
            progress.tick(|| {
                let [done, different] = [&done, &different].map(|count| count.load(Ordering::Relaxed));
                format!("{done} of {} renders, {different} different", renders.len())
            });
            outcomes.push(render.outcome(settings.keep.as_deref(), judgement)?);
        }
        Ok(outcomes)
    };
    let outcomes = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| {
            let outcomes: Result<Vec<Outcome>> = worker.join().map_err(|_| anyhow!("a worker panicked"))?;
            outcomes
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    drop(progress);
    let profiles = pairs.into_iter().map(|pair| pair.profile);
    Ok(Report::new(profiles, outcomes.into_iter().flatten()))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn charts(settings: &Settings, scratch: &Path) -> Result<Vec<Chart>> {
    let mut folders = vec![];
    if let Some(folder) = &settings.charts {
        folders.push(folder.clone());
    } else {
        let packed = scratch.join("repository");
        for own in lab::own_charts() {
            charts::pack(&own, &packed)?;
        }
        folders.push(packed);
        folders.extend(lab::corpus());
    }
    let mut found = Vec::new();
    for folder in folders {
        for path in charts::archives(&folder)? {
            let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
            let path = std::path::absolute(&path).with_context(|| format!("unable to find {}", path.display()))?;
            if settings.names.is_empty() || settings.names.iter().any(|part| name.contains(part)) {
                found.push(Chart::read(name, path, &scratch.join("values"))?);
            }
        }
    }
    Ok(found)
}

fn pairs(settings: &Settings, lab: &Lab) -> Result<Vec<Pair>> {
    let mut profiles = settings.profiles.clone();
    if profiles.is_empty() {
        profiles.extend(lab.helm.keys().cloned());
    }
    profiles.sort();
    profiles.dedup();
    let pairs = profiles.into_iter().map(|profile| {
        let program = lab.helm(&profile)?;
        Ok(Pair {
            theirs: Helm::real(program),
            ours: Helm::ours(&lab.ours, &profile),
            binary: if settings.remember {
                memory::digest_of(program)?
            } else {
                [0; 32]
            },
            profile,
        })
    });
    pairs.collect()
}

impl Pair {
    fn renders<'a>(&'a self, charts: &'a [Chart]) -> impl Iterator<Item = Render<'a>> {
        let variants = |chart: &'a Chart| chart.variants.iter().map(move |variant| (chart, variant));
        charts.iter().flat_map(variants).map(|(chart, variant)| Render {
            profile: &self.profile,
            theirs: &self.theirs,
            ours: &self.ours,
            binary: &self.binary,
            chart,
            variant,
        })
    }
}

impl Render<'_> {
    fn judge(&self, memory: &Memory, exceptions: &Exceptions) -> Result<Judgement> {
        let mut arguments: Vec<OsString> = vec![RELEASE.into(), self.chart.path.clone().into()];
        arguments.extend(self.variant.arguments.iter().cloned());
        let ours = self.ours.ask(&arguments)?;
        let remembered = memory.of(self.binary, &self.chart.digest, &self.variant.key);
        if remembered.knows(&ours) {
            return Ok(Judgement::equal(&ours));
        }
        let judgement = judge::judge(ours, || self.theirs.ask(&arguments))?;
        if let Judgement::Equal { answer, .. } = &judgement {
            remembered.keep(answer)?;
        }
        Ok(judgement.limited(exceptions, &self.chart.name, &self.variant.name))
    }

    fn outcome(&self, keep: Option<&Path>, judgement: Judgement) -> Result<Outcome> {
        if let (Some(folder), Judgement::Different(difference)) = (keep, &judgement) {
            let stem = format!("{}__{}", self.chart.name, self.variant.name).replace('/', "_");
            let folder = folder.join(self.profile);
            let write = |name: &str, text: &[u8]| fs::write(folder.join(format!("{stem}.{name}")), text);
            fs::create_dir_all(&folder)
                .and_then(|()| write("ours", &difference.ours))
                .and_then(|()| write("theirs", &difference.theirs))
                .with_context(|| format!("failed to write into {}", folder.display()))?;
        }
        Ok(Outcome::of(
            self.profile,
            &self.chart.name,
            &self.variant.name,
            judgement,
        ))
    }
}
