//! `lab bench idle`: what an operator costs that has nothing to do, while stacks have it poll GitHub as often as they may.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{
    github::Github,
    usage::{Usage, rounded},
    web::Visit,
};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    ground::{Ground, OPERATOR_AGENT, elected},
    install::{Installed, install},
    report::{Goal, Row},
    sources::{self, GITHUB_SECRET, OFTEN},
    stock::{OBJECTS, RELEASES_OF_A_STACK, Shape, Stock},
};
use crate::{arguments::IdleArguments, progress::Progress};

/// Releases of the two runs when nothing else is asked for.
const RELEASES: [u32; 2] = [100, 1000];
/// Most stacks that poll.
const POLLING: usize = 50;
/// Releases of others in their repository, which makes its list three pages long.
const FOREIGN: usize = 200;

/// One number of releases, measured. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    releases: u32,
    stacks: usize,
    /// Stacks that have GitHub polled every ten seconds, all of them the same repository.
    polling_stacks: usize,
    seconds: u32,
    /// Besides renewals of the Lease.
    writes: usize,
    lease_renewals: usize,
    /// Gets and lists; watches that began anew are counted apart.
    reads: usize,
    watches_begun: usize,
    /// What GitHub answered with 304, and with anything else.
    polls_unchanged: usize,
    polls_otherwise: usize,
    /// Of one core.
    cpu_percent: f64,
    idle_rss_mib: f64,
}

/// Measures every number of releases that is asked for.
pub(super) async fn measure(arguments: &IdleArguments) -> Result<Vec<Run>> {
    let numbers = arguments.releases.map_or(RELEASES.to_vec(), |releases| vec![releases]);
    let mut runs = Vec::new();
    for (index, releases) in numbers.iter().enumerate() {
        let progress = Progress::start(format!("idle {} of {} · {releases} releases", index + 1, numbers.len()));
        let run = Box::pin(measure_one(arguments, *releases, &progress)).await;
        runs.push(run.with_context(|| format!("failed to measure {releases} releases"))?);
    }
    Ok(runs)
}

async fn measure_one(arguments: &IdleArguments, releases: u32, progress: &Progress) -> Result<Run> {
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("idle").await?;
    let run = Box::pin(measure_on(&ground, &namespace, arguments, releases, progress)).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let run = run?;
    cleaned.map(|()| run)
}

async fn measure_on(
    ground: &Ground,
    namespace: &str,
    arguments: &IdleArguments,
    releases: u32,
    progress: &Progress,
) -> Result<Run> {
    let count = usize::try_from(releases)?;
    let polling = POLLING.min(count / 2);
    let others = count - polling;
    let shape = Shape::even(others, others.div_ceil(RELEASES_OF_A_STACK), OBJECTS).after_single(polling);
    let mut stock = Stock::pack(ground.folder(), &shape, progress).await?;
    let github = Github::start().await?;
    github.tag((0..FOREIGN).map(|number| format!("docker-other-1-34-v{number}")));
    let source = github.source("127.0.0.1", Some(GITHUB_SECRET));
    let further = json!({ "interval": OFTEN, "source": source });
    stock.elsewhere(0..polling, &further, |folder, _| github.publish(folder))?;
    sources::add_github_secret(&ground.client, namespace).await?;
    progress.step("the operator installs");
    let flags = [elected(namespace), sources::flags(ground.folder())].concat();
    let operator = ground.operate(namespace, &stock.releases, flags).await?;
    let mut installed = install(ground, operator, namespace, &stock, progress).await?;
    github.api.forget_visits();
    let mark = ground.audit.mark().await?;
    let before = Usage::of(installed.process)?;
    let elapsed = look(&mut installed, arguments.seconds, progress).await?;
    let after = Usage::of(installed.process)?;
    let requests = ground.audit.since(mark).await?.of_agent(OPERATOR_AGENT);
    let visits = github.api.visits();
    installed.operator.stop().await?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    let unchanged = visits.iter().filter(|visit| is_unchanged(visit)).count();
    Ok(Run {
        releases,
        stacks: shape.stacks(),
        polling_stacks: polling,
        seconds: arguments.seconds,
        writes: requests.clone().writes().len(),
        lease_renewals: requests.clone().lease_writes().len(),
        reads: requests.clone().reads_other_than_watch().len(),
        watches_begun: requests.filter(|request| request.verb == "watch").len(),
        polls_unchanged: unchanged,
        polls_otherwise: visits.len() - unchanged,
        cpu_percent: rounded(100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64(), 2),
        idle_rss_mib: after.resident_mib,
    })
}

/// Lets the time pass; the answer is how much did.
async fn look(installed: &mut Installed, seconds: u32, progress: &Progress) -> Result<Duration> {
    let begin = Instant::now();
    let duration = Duration::from_secs(seconds.into());
    while begin.elapsed() < duration {
        sleep(Duration::from_secs(1).min(duration.saturating_sub(begin.elapsed()))).await;
        installed.operator.check()?;
        progress.tick(&format!("{} of {seconds} s looked at", begin.elapsed().as_secs()));
    }
    Ok(begin.elapsed())
}

fn is_unchanged(visit: &Visit) -> bool {
    visit.status == StatusCode::NOT_MODIFIED
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "releases",
        "stacks",
        "of them polling",
        "seconds",
        "writes",
        "Lease renewals",
        "reads",
        "watches begun",
        "304 of GitHub",
        "other answers",
        "CPU %",
        "idle MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.releases.to_string(),
            self.stacks.to_string(),
            self.polling_stacks.to_string(),
            self.seconds.to_string(),
            self.writes.to_string(),
            self.lease_renewals.to_string(),
            self.reads.to_string(),
            self.watches_begun.to_string(),
            self.polls_unchanged.to_string(),
            self.polls_otherwise.to_string(),
            format!("{:.2}", self.cpu_percent),
            format!("{:.1}", self.idle_rss_mib),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} releases", self.releases);
        vec![
            Goal::none("writes besides the Lease", &of, self.writes),
            Goal::none("reads besides watches", &of, self.reads),
            Goal::none("polls that are not 304", &of, self.polls_otherwise),
            Goal::at_most(0.5, "CPU %", &of, self.cpu_percent),
        ]
    }
}
