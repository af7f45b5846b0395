//! Images on their way: one large one beside another writer, many at once, and one whose source breaks.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use e2e::{
    image_server::{ImageServer, Pace},
    usage::{Usage, forget_peak, rounded},
};
use serde_json::json;

use super::{
    place::{Place, disk_of},
    reaction::beside,
    run::{Broken, Many, Run, Upload},
    writer::Writer,
};
use crate::{
    arguments::images::ImagesArguments,
    bench::report::{median, quantile},
    progress::Progress,
};

/// Where the source has the image.
const PATH: &str = "/disk.raw";
/// Bytes between two breaks.
const BREAK_EVERY: usize = 3 << 20;
/// As many as the operator allows itself by default.
const AT_ONCE: u16 = 2;
/// The image that is changed while many others are sent.
const OTHER: &str = "other";
const OTHER_BYTES: usize = 1 << 20;

fn mebibytes(number: u32) -> Result<usize> {
    Ok(usize::try_from(number)? << 20)
}

async fn serve(bytes: &Bytes) -> Result<ImageServer> {
    ImageServer::start([(PATH.to_owned(), bytes.clone())]).await
}

/// One round of the operator.
struct Round {
    put_seconds: f64,
    ready_seconds: f64,
    id: String,
}

/// How long Glance took for the bytes of a whole image, in seconds.
fn last_put(place: &Place, id: &str) -> Result<f64> {
    let puts = place.puts(id)?;
    puts.last().copied().context("Glance knows of no PUT of a whole image")
}

async fn round(place: &Place, name: &str, url: &str, bytes: &Bytes) -> Result<Round> {
    let begin = Instant::now();
    place.want(name, url, bytes).await?;
    let id = place.ready(name).await?;
    let ready_seconds = begin.elapsed().as_secs_f64();
    Ok(Round {
        put_seconds: last_put(place, &id)?,
        ready_seconds,
        id,
    })
}

/// Large images one after the other, each also sent by another writer.
pub(super) async fn one(place: &Place, arguments: &ImagesArguments, progress: &Progress) -> Result<Vec<Run>> {
    let bytes = disk_of(mebibytes(arguments.mebibytes)?);
    let source = serve(&bytes).await?;
    let file = place.ground.folder().join("disk.raw");
    let writer = Writer::of(&bytes, &file).await?;
    let (operator, process) = place.operate(AT_ONCE, Vec::new()).await?;
    let idle = Usage::of(process)?.resident_mib;
    let (mut ours, mut theirs, mut ready, mut extra) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    for number in 1..=arguments.rounds {
        progress.step(&format!("upload {number} of {}: {}", arguments.rounds, writer.told()));
        let options = json!({ "name": "beside", "disk_format": "raw", "container_format": "bare" });
        let id = place.cloud.create(&options).await?;
        writer.send(&place.cloud, &id).await?;
        theirs.push(last_put(place, &id)?);
        place.cloud.delete(&id).await?;
        progress.step(&format!("upload {number} of {}: the operator", arguments.rounds));
        let before = Usage::of(process)?.resident_mib;
        forget_peak(process)?;
        let name = format!("upload-{number}");
        let found = round(place, &name, &source.url(PATH), &bytes).await?;
        extra = extra.max(Usage::of(process)?.peak_mib - before.min(idle));
        ours.push(found.put_seconds);
        ready.push(found.ready_seconds);
        place.give_up(&name).await?;
        place.gone(&name).await?;
    }
    operator.stop().await?;
    let (seconds, beside_seconds) = (median(&ours), median(&theirs));
    Ok(vec![Run::Upload(Upload {
        mebibytes: arguments.mebibytes,
        rounds: ours.len(),
        seconds,
        beside_seconds,
        beside: writer.told().to_owned(),
        ratio: rounded(seconds / beside_seconds, 3),
        to_ready_seconds: median(&ready),
        idle_rss_mib: idle,
        extra_rss_mib: rounded(extra, 1),
    })])
}

/// Many images at once, and how soon another one is answered meanwhile.
pub(super) async fn many(place: &Place, arguments: &ImagesArguments, progress: &Progress) -> Result<Vec<Run>> {
    let bytes = disk_of(mebibytes(arguments.each)?);
    let source = serve(&bytes).await?;
    let mut names: Vec<String> = (1..=arguments.images).map(|number| format!("many-{number}")).collect();
    let (operator, process) = place.operate(arguments.images, Vec::new()).await?;
    let small = disk_of(OTHER_BYTES);
    let other = serve(&small).await?;
    place.want(OTHER, &other.url(PATH), &small).await?;
    place.ready(OTHER).await?;
    forget_peak(process)?;
    progress.step(&format!("at once: {} images", names.len()));
    let begin = Instant::now();
    let all = async {
        for name in &names {
            place.want(name, &source.url(PATH), &bytes).await?;
        }
        for (done, name) in names.iter().enumerate() {
            progress.tick(&format!("at once: {done} of {} ready", names.len()));
            place.ready(name).await?;
        }
        Ok(begin.elapsed().as_secs_f64())
    };
    let (seconds, changes) = Box::pin(beside(place, OTHER, all)).await?;
    ensure!(!changes.is_empty(), "all images were there before another was changed");
    let peak_rss_mib = Usage::of(process)?.peak_mib;
    names.push(OTHER.to_owned());
    for name in &names {
        place.give_up(name).await?;
    }
    for name in &names {
        place.gone(name).await?;
    }
    operator.stop().await?;
    Ok(vec![Run::Many(Many {
        images: usize::from(arguments.images),
        mebibytes: arguments.each,
        seconds: rounded(seconds, 2),
        changes: changes.len(),
        reaction_p99_ms: quantile(&changes, 99),
        peak_rss_mib,
    })])
}

/// A source that breaks beside the same one that does not.
pub(super) async fn broken(place: &Place, arguments: &ImagesArguments, progress: &Progress) -> Result<Vec<Run>> {
    let bytes = disk_of(mebibytes(arguments.broken)?);
    let source = serve(&bytes).await?;
    let (operator, _) = place.operate(AT_ONCE, Vec::new()).await?;
    progress.step("broken source: the same unbroken before");
    let unbroken = round(place, "unbroken", &source.url(PATH), &bytes).await?;
    let asked = source.given().len();
    source.set_pace(Pace {
        break_every: Some(BREAK_EVERY),
        ..Pace::default()
    });
    progress.step("broken source");
    let found = round(place, "broken", &source.url(PATH), &bytes).await?;
    let breaks = source.given().len() - asked - 1;
    ensure!(breaks > 0, "the source did not break");
    let puts = place.puts(&found.id)?.len();
    for name in ["unbroken", "broken"] {
        place.give_up(name).await?;
        place.gone(name).await?;
    }
    operator.stop().await?;
    Ok(vec![Run::Broken(Broken {
        mebibytes: arguments.broken,
        breaks,
        seconds: rounded(found.put_seconds, 3),
        unbroken_seconds: rounded(unbroken.put_seconds, 3),
        ratio: rounded(found.put_seconds / unbroken.put_seconds, 3),
        puts,
    })])
}
