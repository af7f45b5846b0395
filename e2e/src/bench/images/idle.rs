//! Ready images that nobody wants otherwise: what is written, and what the cloud is asked.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use e2e::{
    image_server::ImageServer,
    usage::{Usage, rounded},
};
use tokio::time::sleep;

use super::{
    place::{AGENT, Place, disk_of},
    run::{Idle, Run},
};
use crate::{
    arguments::images::ImagesArguments,
    bench::{ground::elected, install::until_quiet_of},
    progress::Progress,
};

const PATH: &str = "/disk.raw";
const BYTES: usize = 64 << 10;
/// Small images make little work of their own.
const AT_ONCE: u16 = 8;

/// Looks at an operator whose images are all ready.
pub(super) async fn measure(place: &Place, arguments: &ImagesArguments, progress: &Progress) -> Result<Vec<Run>> {
    let bytes = disk_of(BYTES);
    let source = ImageServer::start([(PATH.to_owned(), bytes.clone())]).await?;
    let (mut operator, process) = place.operate(AT_ONCE, elected(&place.namespace)).await?;
    let names: Vec<String> = (1..=arguments.idle_images)
        .map(|number| format!("idle-{number}"))
        .collect();
    for name in &names {
        place.want(name, &source.url(PATH), &bytes).await?;
    }
    for (done, name) in names.iter().enumerate() {
        progress.tick(&format!("idle: {done} of {} images ready", names.len()));
        place.ready(name).await?;
    }
    until_quiet_of(&place.ground, AGENT, progress).await?;
    let mark = place.ground.audit.mark().await?;
    let asked = place.real.asked_of_glance()?.len();
    let (before, begin) = (Usage::of(process)?, Instant::now());
    let duration = Duration::from_secs(arguments.seconds.into());
    while begin.elapsed() < duration {
        sleep(Duration::from_secs(1).min(duration.saturating_sub(begin.elapsed()))).await;
        operator.check()?;
        let seconds = begin.elapsed().as_secs();
        progress.tick(&format!("idle: {seconds} of {} s looked at", arguments.seconds));
    }
    let (after, elapsed) = (Usage::of(process)?, begin.elapsed());
    let requests = place.ground.audit.since(mark).await?.of_agent(AGENT);
    let asked = place.real.asked_of_glance()?.split_off(asked);
    // One look at an image asks some questions, each once.
    let mut looks: BTreeMap<_, usize> = BTreeMap::new();
    for question in &asked {
        *looks
            .entry((&question.method, &question.path, &question.query))
            .or_default() += 1;
    }
    let looks = looks.into_values().max().unwrap_or_default();
    for name in &names {
        place.give_up(name).await?;
    }
    for name in &names {
        place.gone(name).await?;
    }
    operator.stop().await?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    Ok(vec![Run::Idle(Idle {
        images: names.len(),
        seconds: arguments.seconds,
        writes: requests.clone().writes().len(),
        lease_renewals: requests.lease_writes().len(),
        requests: asked.len(),
        looks,
        cpu_percent: rounded(100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64(), 2),
        rss_mib: after.resident_mib,
    })])
}
