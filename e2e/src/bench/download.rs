//! `lab bench download`: a large release from a web server of this machine until it is verified and kept, beside `curl` and `sha256sum`.
//!
//! Nearly all of it is the archive of the add-ons, of bytes that nothing makes smaller: nobody renders it. The operator does more than the
//! other two: it unpacks what it downloaded, to see what is in it, and has the disk confirm what it keeps.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    eventually,
    operator::Operator,
    releases::{Releases, write_small_stack},
    usage::{Usage, forget_peak, rounded},
    web::IndexServer,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{process::Command, time::sleep};

use super::{
    ground::Ground,
    report::{Goal, Row},
    sources,
    stock::{pack, tag},
};
use crate::{arguments::DownloadArguments, progress::Progress};

const STACK: &str = "s000";
/// The largest file that a chart may have.
const FILE_MEBIBYTES: u32 = 5;
const DEADLINE: Duration = Duration::from_mins(2);
/// How often the cache is looked at for a release that has arrived. One look costs some microseconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// What an operator holds is looked at when it has had the time to give back what it needed for the release before.
const PAUSE: Duration = Duration::from_secs(3);

/// All rounds. Keys say their unit; times are medians.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    mebibytes: u32,
    rounds: usize,
    /// From the first question for a file until the release is in its place in the cache.
    operator_seconds: f64,
    /// `curl` into a file, then `sha256sum` of it.
    tools_seconds: f64,
    /// The same with the disk told to keep it, which the operator waits for too.
    tools_synced_seconds: f64,
    /// `operator_seconds / tools_seconds`.
    ratio: f64,
    ratio_to_synced: f64,
    /// The most above what the operator held just before, in the worst round.
    extra_rss_mib: f64,
    operator_mebibytes_a_second: f64,
}

/// One version, downloaded by all three.
struct Round {
    operator: Duration,
    tools: Duration,
    synced: Duration,
    extra_mib: f64,
}

/// Measures all rounds with one operator.
pub(super) async fn measure(arguments: &DownloadArguments) -> Result<Vec<Run>> {
    let progress = Progress::start(format!("download · {} MiB", arguments.mebibytes));
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("download").await?;
    let run = Box::pin(measure_on(&ground, &namespace, arguments, &progress)).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let run = run?;
    cleaned.map(|()| vec![run])
}

async fn measure_on(
    ground: &Ground,
    namespace: &str,
    arguments: &DownloadArguments,
    progress: &Progress,
) -> Result<Run> {
    let releases = Releases::at(&ground.folder().join("packed"))?;
    let index = IndexServer::start().await?;
    let place = Place {
        ground,
        namespace,
        index: &index,
        cache: ground.folder().join("cache/sha256"),
    };
    let versions: Vec<String> = (1..=arguments.rounds).map(|number| format!("v{number}")).collect();
    let empty = Releases::at(&ground.folder().join("empty"))?;
    let operator = ground
        .operate(namespace, &empty, sources::flags(ground.folder()))
        .await?;
    let mut rounds = Vec::new();
    for version in &versions {
        progress.step(&format!("packs {version} of {}", versions.len()));
        let source = ground.folder().join("sources").join(version);
        write_large_stack(&source, arguments.mebibytes)?;
        pack(&releases, vec![(source.clone(), version.clone())], progress).await?;
        fs::remove_dir_all(&source).with_context(|| format!("failed to remove {}", source.display()))?;
        let folder = releases.folder_of(&tag(STACK, version));
        let archive = addon_archive(&folder)?;
        index.publish(&folder)?;
        releases.unpublish(&tag(STACK, version))?;
        progress.step(&format!("downloads {version} of {}", versions.len()));
        rounds.push(place.round(&operator, version, &archive).await?);
    }
    operator.stop().await?;
    Ok(told(arguments.mebibytes, &rounds))
}

fn told(mebibytes: u32, rounds: &[Round]) -> Run {
    let median = |of: fn(&Round) -> Duration| {
        let mut sorted: Vec<f64> = rounds.iter().map(|round| of(round).as_secs_f64()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    };
    let (operator, tools) = (median(|round| round.operator), median(|round| round.tools));
    let synced = median(|round| round.synced);
    Run {
        mebibytes,
        rounds: rounds.len(),
        operator_seconds: rounded(operator, 3),
        tools_seconds: rounded(tools, 3),
        tools_synced_seconds: rounded(synced, 3),
        ratio: rounded(operator / tools, 2),
        ratio_to_synced: rounded(operator / synced, 2),
        extra_rss_mib: rounds.iter().map(|round| round.extra_mib).fold(0.0, f64::max),
        operator_mebibytes_a_second: rounded(f64::from(mebibytes) / operator, 0),
    }
}

/// Our small stack with so much noise among the files of the chart of its add-ons.
fn write_large_stack(folder: &Path, mebibytes: u32) -> Result<()> {
    write_small_stack(folder, STACK, 1)?;
    let files = folder.join("cluster-addon/files");
    let what = || format!("failed to write {}", files.display());
    fs::create_dir_all(&files).with_context(what)?;
    let mut noise = File::open("/dev/urandom").context("failed to open /dev/urandom")?;
    let (mut left, mut number) = (mebibytes, 0);
    while left > 0 {
        let size = left.min(FILE_MEBIBYTES);
        let mut file = File::create(files.join(format!("noise-{number}"))).with_context(what)?;
        let mut bytes = vec![0; usize::try_from(size << 20)?];
        noise.read_exact(&mut bytes).context("failed to read /dev/urandom")?;
        file.write_all(&bytes).with_context(what)?;
        left -= size;
        number += 1;
    }
    Ok(())
}

/// The name of the largest file of a release.
fn addon_archive(release: &Path) -> Result<String> {
    let what = || format!("failed to list {}", release.display());
    let mut largest = (0, String::new());
    for entry in fs::read_dir(release).with_context(what)? {
        let entry = entry.with_context(what)?;
        let size = entry.metadata().with_context(what)?.len();
        largest = largest.max((size, entry.file_name().to_string_lossy().into_owned()));
    }
    Ok(largest.1)
}

/// Where releases are downloaded.
struct Place<'a> {
    ground: &'a Ground,
    namespace: &'a str,
    index: &'a IndexServer,
    /// Where an operator puts a release that has come, by its digest.
    cache: PathBuf,
}

impl Place<'_> {
    async fn round(&self, operator: &Operator, version: &str, archive: &str) -> Result<Round> {
        let tag = tag(STACK, version);
        let url = format!("{}/stacks/{tag}/{archive}", self.index.server.url("127.0.0.1"));
        // The other two first: whatever they warm is warm for the operator, as it is for them after the first round.
        let (tools, synced) = (self.tools(&url, false).await?, self.tools(&url, true).await?);
        sleep(PAUSE).await;
        let process = operator.process_id().context("the operator has no process")?;
        forget_peak(process)?;
        let before = Usage::of(process)?;
        self.index.server.forget_visits();
        let known = self.kept();
        self.want(version).await?;
        let arrived = self.arrival(known).await?;
        let after = Usage::of(process)?;
        let visits = self.index.server.visits();
        let of_release = visits.iter().find(|visit| visit.target.contains(&tag));
        let begun = of_release.context("the release was not downloaded")?.at;
        self.until_ready(&tag).await?;
        Ok(Round {
            operator: Duration::try_from(arrived.duration_since(begun)).context("it came before it was asked for")?,
            tools,
            synced,
            extra_mib: rounded(after.peak_mib - before.resident_mib, 1),
        })
    }

    /// How long curl and sha256sum take.
    async fn tools(&self, url: &str, synced: bool) -> Result<Duration> {
        let file = self.ground.folder().join("downloaded");
        let begin = Instant::now();
        run(Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--output"])
            .arg(&file)
            .arg(url))
        .await?;
        if synced {
            run(Command::new("sync").arg(&file)).await?;
        }
        run(Command::new("sha256sum").arg(&file)).await?;
        let took = begin.elapsed();
        fs::remove_file(&file).with_context(|| format!("failed to remove {}", file.display()))?;
        Ok(took)
    }

    /// Releases that the cache has.
    fn kept(&self) -> usize {
        fs::read_dir(&self.cache).map_or(0, Iterator::count)
    }

    async fn arrival(&self, known: usize) -> Result<jiff::Timestamp> {
        let begin = Instant::now();
        while self.kept() <= known {
            ensure!(begin.elapsed() < DEADLINE, "no release has come within {DEADLINE:?}");
            sleep(LOOK_INTERVAL).await;
        }
        Ok(jiff::Timestamp::now())
    }

    /// Has the stack want this version and no other.
    async fn want(&self, version: &str) -> Result<()> {
        let api: Api<ClusterStack> = Api::namespaced(self.ground.client.clone(), self.namespace);
        let mut spec = json!({
            "provider": "docker", "name": STACK, "kubernetesVersion": "1.34", "noProvider": true,
            "autoSubscribe": false, "versions": [version],
        });
        spec["source"] = self.index.source();
        let patched = if api.get_opt(STACK).await.context("failed to read the stack")?.is_some() {
            // A poll that was made before the version was there would be waited for otherwise.
            let annotations = json!({ crds::labels::REQUESTED_AT: version });
            let patch: Value = json!({ "metadata": { "annotations": annotations }, "spec": spec });
            api.patch(STACK, &PatchParams::default(), &Patch::Merge(patch)).await
        } else {
            let stack = json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
                "metadata": { "name": STACK }, "spec": spec,
            });
            let stack = serde_json::from_value(stack).context("unable to read a ClusterStack of our own")?;
            api.create(&PostParams::default(), &stack).await
        };
        patched.map(drop).context("failed to ask for a version")
    }

    async fn until_ready(&self, tag: &str) -> Result<()> {
        let releases: Api<ClusterStackRelease> = Api::namespaced(self.ground.client.clone(), self.namespace);
        eventually(DEADLINE, format!("{tag} to be ready"), async || {
            let release = releases.get(tag).await?;
            ensure!(release.status.as_ref().is_some_and(|status| status.ready), "it is not");
            Ok(())
        })
        .await
    }
}

async fn run(command: &mut Command) -> Result<()> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let running = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(DEADLINE, running).await {
        Err(_) => bail!("{program} did not end within {DEADLINE:?}"),
        Ok(Err(error)) => Err(error).with_context(|| format!("failed to run {program}; install it to compare with it")),
        Ok(Ok(ended)) => {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            ensure!(ended.status.success(), "{program} failed: {said}");
            Ok(())
        }
    }
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "MiB",
        "rounds",
        "operator s",
        "curl, sha256sum s",
        "curl, sync, sha256sum s",
        "ratio",
        "ratio to synced",
        "MiB a second",
        "extra MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.mebibytes.to_string(),
            self.rounds.to_string(),
            format!("{:.3}", self.operator_seconds),
            format!("{:.3}", self.tools_seconds),
            format!("{:.3}", self.tools_synced_seconds),
            format!("{:.2}", self.ratio),
            format!("{:.2}", self.ratio_to_synced),
            format!("{:.0}", self.operator_mebibytes_a_second),
            format!("{:.1}", self.extra_rss_mib),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} MiB", self.mebibytes);
        vec![
            // 80 % of the speed.
            Goal::at_most(1.25, "time of curl and sha256sum", &of, self.ratio),
            Goal::at_most(16.0, "MiB above what was held before", &of, self.extra_rss_mib),
        ]
    }
}
