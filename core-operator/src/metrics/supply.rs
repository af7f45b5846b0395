//! Where releases come from, what is kept of them and what was rendered of them, as of the moment when somebody asks for the metrics.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use release::http::Statistics;
use release::store::{Download, Usage};
use rendering::Renderings;
use sourcing::SourceKind;

use super::page::{Page, Series, number, single};
use crate::context::Context;
use crate::sources::Followed;

/// Tells nothing as long as this process does not work, as a standby does not.
#[derive(Clone, Default)]
pub(crate) struct Supply {
    context: Arc<OnceLock<Weak<Context>>>,
}

impl Supply {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let supply = Self::default();
        registry.register_collector(Box::new(supply.clone()));
        supply
    }

    /// Tells of these from now on.
    pub(crate) fn tell_of(&self, context: &Arc<Context>) {
        // A process works once.
        let _ = self.context.set(Arc::downgrade(context));
    }
}

impl Collector for Supply {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(context) = self.context.get().and_then(Weak::upgrade) else {
            return Ok(());
        };
        let mut page = Page(encoder);
        sources(&mut page, &context.sources.followed(), context.now())?;
        requests(&mut page, |kind| context.sources.statistics(kind))?;
        if let Some(usage) = context.sources.usage() {
            store(&mut page, &usage)?;
        }
        renderings(&mut page, context.charts.renderings())
    }
}

impl fmt::Debug for Supply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Supply").finish_non_exhaustive()
    }
}

fn sources(page: &mut Page<'_>, followed: &[Followed], now: Timestamp) -> fmt::Result {
    let of = |kind: SourceKind| followed.iter().filter(move |source| source.kind == kind);
    let since = |time: Timestamp| now.duration_since(time).as_secs_f64().max(0.0);
    let counts = SourceKind::ALL.iter().flat_map(|kind| {
        let count = |answers: bool| number(of(*kind).filter(|source| source.answers == answers).count() as u64);
        [("true", true), ("false", false)]
            .map(|(label, answers)| (vec![("source", kind.name()), ("answers", label)], count(answers)))
    });
    page.gauge(
        "stackwright_sources",
        "Sources that are followed, by whether they answered when they were asked last",
        &counts.collect::<Vec<_>>(),
    )?;
    let outages = SourceKind::REMOTE.map(|kind| {
        let longest = of(kind)
            .filter_map(|source| source.out_since)
            .map(since)
            .fold(0.0, f64::max);
        (vec![("source", kind.name())], longest)
    });
    page.gauge(
        "stackwright_source_outage_seconds",
        "How long the source has not answered that has not answered for longest",
        &outages,
    )?;
    let oldest = SourceKind::REMOTE.iter().filter_map(|kind| {
        let oldest = of(*kind)
            .filter_map(|source| source.answered_at)
            .map(since)
            .fold(None, |oldest: Option<f64>, age| {
                Some(oldest.map_or(age, |oldest| oldest.max(age)))
            });
        oldest.map(|age| (vec![("source", kind.name())], age))
    });
    page.gauge(
        "stackwright_source_last_answer_seconds",
        "How long ago the source answered last whose last answer is oldest",
        &oldest.collect::<Vec<_>>(),
    )
}

fn requests(page: &mut Page<'_>, statistics: impl Fn(SourceKind) -> Statistics) -> fmt::Result {
    let (mut requests, mut held_back, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for kind in SourceKind::REMOTE {
        let counted = statistics(kind);
        let source = ("source", kind.name());
        for (answer, count) in [
            ("2xx", counted.granted),
            ("304", counted.unchanged),
            ("3xx", counted.redirected),
            ("4xx", counted.refused),
            ("5xx", counted.broken),
            ("none", counted.failures),
        ] {
            requests.push((vec![source, ("answer", answer)], number(count)));
        }
        held_back.push((vec![source], number(counted.held_back)));
        bytes.push((vec![source], number(counted.bytes)));
    }
    page.counter(
        "stackwright_source_requests",
        "Requests to sources, and to where they send on to, by answer",
        &requests,
    )?;
    page.counter(
        "stackwright_source_requests_held_back",
        "Requests that were not sent, because the server named a time before which it wants none, or too many waited",
        &held_back,
    )?;
    page.counter(
        "stackwright_source_received_bytes",
        "Bytes of the bodies of answers",
        &bytes,
    )
}

fn store(page: &mut Page<'_>, usage: &Usage) -> fmt::Result {
    let Usage {
        bytes,
        limit,
        releases,
        downloads,
        downloaded,
        downloaded_bytes,
        evictions,
        rehashes,
        corrupt,
        unwritable,
    } = usage;
    let queued = downloads.iter().filter(|download| download.queued).count();
    let by_state: [Series<'_>; 2] = [("running", downloads.len() - queued), ("queued", queued)]
        .map(|(state, count)| (vec![("state", state)], number(count as u64)));
    page.gauge("stackwright_store_downloads", "Downloads by state", &by_state)?;
    let done: u64 = downloads.iter().map(|download| download.done).sum();
    // What the source does not tell is at least what came of it.
    let total = |download: &Download| download.total.map_or(download.done, |total| total.max(download.done));
    let total: u64 = downloads.iter().map(total).sum();
    let unwritable = u64::from(unwritable.is_some());
    let counts = [bytes, limit, &(*releases as u64), &done, &total, &unwritable];
    for ((name, help), count) in HELD.iter().zip(counts) {
        page.gauge(name, help, &single(number(*count)))?;
    }
    let counts = [downloaded, downloaded_bytes, evictions, rehashes, corrupt];
    for ((name, help), count) in DONE.iter().zip(counts) {
        page.counter(name, help, &single(number(*count)))?;
    }
    Ok(())
}

/// What is so now of the store, with help.
const HELD: [(&str, &str); 6] = [
    ("stackwright_store_bytes", "Bytes of the releases in the cache"),
    ("stackwright_store_limit_bytes", "Most bytes that the cache may take"),
    ("stackwright_store_releases", "Releases in the cache"),
    (
        "stackwright_store_downloading_bytes",
        "Bytes that have come of the downloads that have not ended",
    ),
    (
        "stackwright_store_downloading_expected_bytes",
        "Bytes that these downloads have in all, as far as their sources tell",
    ),
    (
        "stackwright_store_unwritable",
        "1 while nothing can be written to the cache",
    ),
];

/// What was done by the store since the start, with help.
const DONE: [(&str, &str); 5] = [
    ("stackwright_store_downloaded_releases", "Releases downloaded"),
    (
        "stackwright_store_downloaded_bytes",
        "Bytes of the files of downloads that have ended",
    ),
    ("stackwright_store_evictions", "Releases removed to make room"),
    (
        "stackwright_store_rehashes",
        "Releases read again and held against their digest",
    ),
    (
        "stackwright_store_corrupt_releases",
        "Releases that were not any more what was downloaded",
    ),
];

fn renderings(page: &mut Page<'_>, renderings: Renderings) -> fmt::Result {
    let Renderings {
        cached,
        rendered,
        failed,
    } = renderings;
    let series = [("cached", cached), ("rendered", rendered), ("failed", failed)]
        .map(|(outcome, count)| (vec![("outcome", outcome)], number(count)));
    page.counter(
        "stackwright_renders",
        "Renderings of charts, of classes and of add-ons, by what came of them",
        &series,
    )
}

#[cfg(test)]
mod tests;
