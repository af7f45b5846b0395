//! All add-ons complete and nothing to do: what is written and read anywhere, how many watches there are, and what is held for a cluster.

use std::time::{Duration, Instant};

use anyhow::Result;
use e2e::{
    audit::AuditEvents,
    usage::{Usage, rounded},
};
use tokio::time::sleep;

use super::{
    place::{Operated, Place},
    run::Idle,
    step::sum,
};
use crate::{
    arguments::addons::AddonsArguments,
    bench::{install::IDLE, report::count},
    progress::Progress,
};

/// Looks at the fleet for a while.
pub(super) async fn measure(
    place: &Place,
    operated: &mut Operated,
    arguments: &AddonsArguments,
    progress: &Progress,
) -> Result<Idle> {
    progress.step("waiting for the memory of the operator to settle");
    sleep(IDLE).await;
    let marks = place.marks().await?;
    let (before, begin) = (Usage::of(operated.process)?, Instant::now());
    let duration = Duration::from_secs(arguments.seconds.into());
    while begin.elapsed() < duration {
        sleep(Duration::from_secs(1).min(duration.saturating_sub(begin.elapsed()))).await;
        operated.operator.check()?;
        let seconds = begin.elapsed().as_secs();
        progress.tick(&format!("{seconds} of {} s looked at", arguments.seconds));
    }
    let (after, elapsed) = (Usage::of(operated.process)?, begin.elapsed());
    let watches = place.watches().await? - operated.watches;
    let requests = place.requests_since(marks).await?;
    let clusters = usize::from(arguments.clusters);
    let each = |number: f64| rounded(number / count(clusters), 3);
    let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
    Ok(Idle {
        clusters,
        seconds: arguments.seconds,
        writes: sum(&requests, AuditEvents::writes),
        lease_renewals: sum(&requests, AuditEvents::lease_writes),
        reads: sum(&requests, AuditEvents::reads_other_than_watch),
        watches_per_cluster: each(watches),
        empty_rss_mib: operated.empty.resident_mib,
        rss_mib: after.resident_mib,
        rss_mib_per_cluster: each(after.resident_mib - operated.empty.resident_mib),
        cpu_percent: rounded(100.0 * cpu / elapsed.as_secs_f64(), 2),
    })
}
