//! How fast charts render: in this process, in a new process of ours, and in one of the real Helm, as ratios within one run.
//!
//! Processes are timed in turns, so that whatever else the machine does slows both.

mod clusters;
mod growth;
mod report;

use std::{
    fs,
    hint::black_box,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use helm::{
    Chart, RenderOptions,
    answers::{Moment, Seeded},
    chart::ArchiveLimits,
    yaml::Node,
};

pub use self::report::Report;
use self::report::{Corpus, Floor, Measured, Memory, Phases};
use crate::{Lab, charts, lab};

/// The version that all times are compared with.
const PROFILE: &str = "v3.19";

const LARGE: &str = "prometheus-community_helm-charts__charts_kube-prometheus-stack.tgz";
const SMALL: &str = "stefanprodan_podinfo__charts_podinfo.tgz";

/// What clusters of a stack get. It asks nothing that every cluster would have another answer to.
const ADDON: &str = "SovereignCloudStack_cluster-stacks__providers_docker_scs_cluster-addon_metrics-server.tgz";

/// Processes of each kind for one chart.
const PROCESSES: usize = 15;

/// Renders in this process, of which the median counts: so many at least, and of small charts as many as there is time for. What the processor
/// does in some milliseconds is chance.
const RENDERS: usize = 60;
const RENDERING: Duration = Duration::from_millis(500);

/// Measures everything. Takes some minutes, and wants a calm machine.
pub fn run(lab: &Lab) -> Result<Report> {
    let folder =
        lab::corpus().context("set STACKWRIGHT_CORPUS to a corpus of charts: its folder `charts` is rendered")?;
    let programs = Programs {
        theirs: lab.helm(PROFILE)?,
        ours: &lab.ours,
    };
    let (large, small) = (folder.join(LARGE), folder.join(SMALL));
    Ok(Report {
        charts: vec![programs.measure(&large)?, programs.measure(&small)?],
        floor: programs.floor()?,
        corpus: programs.corpus(&folder)?,
        memory: Memory {
            theirs_mib: peak(&mut template(programs.theirs, &large))?,
            ours_mib: peak(&mut template(programs.ours, &large))?,
        },
        growth: growth::measure(&lab.ours)?,
        clusters: clusters::measure(&folder.join(ADDON))?,
    })
}

struct Programs<'a> {
    theirs: &'a Path,
    ours: &'a Path,
}

impl Programs<'_> {
    /// What each takes to start and to print its help.
    fn floor(&self) -> Result<Floor> {
        let help = |program: &Path| {
            let mut times = Vec::new();
            for _ in 0..PROCESSES {
                let mut command = Command::new(program);
                times.push(process(command.args(["template", "--help"]))?.context("a program has no help")?);
            }
            anyhow::Ok(median(times))
        };
        Ok(Floor {
            theirs_ms: help(self.theirs)?,
            ours_ms: help(self.ours)?,
        })
    }

    fn measure(&self, path: &Path) -> Result<Measured> {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..PROCESSES {
            theirs.push(process(&mut template(self.theirs, path))?.context("the real Helm fails")?);
            ours.push(process(&mut template(self.ours, path))?.context("our program fails")?);
        }
        Ok(Measured {
            chart: stem(path),
            theirs_ms: median(theirs),
            cold_ms: median(ours),
            phases: phases(path)?,
        })
    }

    /// Every chart that both render, once each.
    fn corpus(&self, folder: &Path) -> Result<Corpus> {
        let mut ratios = Vec::new();
        for path in charts::archives(folder)? {
            let theirs = process(&mut template(self.theirs, &path))?;
            let ours = process(&mut template(self.ours, &path))?;
            if let (Some(theirs), Some(ours)) = (theirs, ours) {
                ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
            }
        }
        ratios.sort_by(f64::total_cmp);
        let at = |percent: usize| ratios.get(ratios.len() * percent / 100).copied();
        Ok(Corpus {
            charts: ratios.len(),
            median: at(50).context("no chart of the corpus renders")?,
            tenth: at(10).context("no chart of the corpus renders")?,
        })
    }
}

fn template(program: &Path, chart: &Path) -> Command {
    let mut command = Command::new(program);
    // Ours does nothing else, and so has no word for it.
    command.args((!program.ends_with("helm-template")).then_some("template"));
    command.arg("measured").arg(chart);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// From start to end; nothing when the chart does not render.
fn process(command: &mut Command) -> Result<Option<Duration>> {
    let begin = Instant::now();
    let output = command.output().context("failed to run a program")?;
    Ok(output.status.success().then(|| begin.elapsed()))
}

/// The peak of a program's resident memory in MiB by the kernel (`VmHWM`). It is asked when the program has begun to write: more than
/// fits into a pipe keeps it there.
fn peak(command: &mut Command) -> Result<f64> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run a program")?;
    let mut stdout = child.stdout.take().context("the program has no output")?;
    let mut first = [0; 1];
    stdout.read_exact(&mut first).context("the program writes nothing")?;
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).context("failed to look at a program")?;
    stdout
        .read_to_end(&mut Vec::new())
        .context("failed to read from a program")?;
    ensure!(
        child.wait().context("failed to wait for a program")?.success(),
        "the program fails"
    );
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .context("the program ended before it was looked at")?;
    Ok(kib / 1024.0)
}

fn options() -> RenderOptions {
    let now = Moment {
        seconds: 1_800_000_000,
        nanoseconds: 0,
    };
    RenderOptions {
        answers: std::sync::Arc::new(Seeded::new([1; 32], now)),
        ..RenderOptions::new("measured", "default")
    }
}

fn load(archive: &[u8]) -> Result<Chart> {
    Ok(Chart::from_archive(archive, &ArchiveLimits::default())?)
}

fn phases(path: &Path) -> Result<Phases> {
    let archive = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let options = options();
    let (mut loads, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let begin = Instant::now();
        let chart = load(&archive)?;
        loads.push(begin.elapsed());
        let begin = Instant::now();
        black_box(chart.render(&Node::Null, &options)?);
        firsts.push(begin.elapsed());
    }
    let chart = load(&archive)?;
    let (mut renders, mut prints, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    let start = Instant::now();
    while renders.len() < RENDERS || start.elapsed() < RENDERING {
        let begin = Instant::now();
        black_box(chart.render(&Node::Null, &options)?);
        renders.push(begin.elapsed());
    }
    for _ in 0..RENDERS {
        let rendering = chart.render(&Node::Null, &options)?;
        let begin = Instant::now();
        black_box(rendering.stdout());
        prints.push(begin.elapsed());
        let begin = Instant::now();
        for manifest in &rendering.manifests {
            black_box(manifest.document());
        }
        reads.push(begin.elapsed());
    }
    let (first, render) = (median(firsts), median(renders));
    Ok(Phases {
        load_ms: median(loads),
        parse_ms: (first - render).max(0.0),
        render_ms: render,
        print_ms: median(prints),
        documents_ms: median(reads),
        output_bytes: chart.render(&Node::Null, &options)?.stdout().len(),
    })
}

fn stem(path: &Path) -> String {
    let name: PathBuf = path.with_extension("");
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit('_').next().unwrap_or(&name).to_owned()
}

/// In milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
