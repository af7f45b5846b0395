//! Transfers that are given up in their middle: how long until the cloud is quiet.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::providers::image_status::NodeImageStatus;
use e2e::image_server::{ImageServer, Pace};
use tokio::time::sleep;

use super::{
    place::{Place, disk_of},
    run::{Cancel, Run},
};
use crate::{
    arguments::images::ImagesArguments,
    bench::report::{median, quantile},
    progress::Progress,
};

const PATH: &str = "/disk.raw";
const BYTES: usize = 16 << 20;
const AT_ONCE: u16 = 2;
const DEADLINE: Duration = Duration::from_mins(1);
/// How often it is looked. Each look asks Glance once, who has enough to do.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Gives up one transfer after the other.
pub(super) async fn measure(place: &Place, arguments: &ImagesArguments, progress: &Progress) -> Result<Vec<Run>> {
    let bytes = disk_of(BYTES);
    let source = ImageServer::start([(PATH.to_owned(), bytes.clone())]).await?;
    // Half of it is in Glance then, which waits for the rest.
    source.set_pace(Pace {
        hold_at: Some(BYTES / 2),
        ..Pace::default()
    });
    let (operator, _) = place.operate(AT_ONCE, Vec::new()).await?;
    let mut milliseconds = Vec::new();
    for number in 1..=arguments.cancels {
        progress.tick(&format!("cancel {number} of {}", arguments.cancels));
        let name = format!("cancel-{number}");
        place.want(&name, &source.url(PATH), &bytes).await?;
        let is_sent = |status: &NodeImageStatus| {
            let transfer = status.transfer.as_ref();
            transfer.is_some_and(|transfer| transfer.sent_bytes > 0)
        };
        place.until(&name, "on its way", is_sent).await?;
        ensure!(source.giving() == 1, "the source gives {} bodies", source.giving());
        let images = place.cloud.images().await?;
        let id = images.first().and_then(|image| image["id"].as_str());
        let id = id.context("Glance has no record of an image that is sent")?;
        let begin = Instant::now();
        place.give_up(&name).await?;
        while source.giving() > 0 || place.cloud.has(id).await? {
            ensure!(begin.elapsed() < DEADLINE, "it is not quiet after {DEADLINE:?}");
            sleep(LOOK_INTERVAL).await;
        }
        milliseconds.push(begin.elapsed().as_secs_f64() * 1000.0);
        place.gone(&name).await?;
    }
    operator.stop().await?;
    Ok(vec![Run::Cancel(Cancel {
        samples: milliseconds.len(),
        median_ms: median(&milliseconds),
        p99_ms: quantile(&milliseconds, 99),
        longest_ms: quantile(&milliseconds, 100),
    })])
}
