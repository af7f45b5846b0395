//! What the page says of sources, whatever they do.

use prometheus_client::encoding::text;
use release::store::StoreError;

use super::*;

/// Writes what a test has made up.
struct Made<F>(F);

impl<F> fmt::Debug for Made<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Made")
    }
}

impl<F: Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static> Collector for Made<F> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut Page(encoder))
    }
}

fn page(write: impl Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Made(write)));
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    page
}

fn has(page: &str, line: &str) {
    assert!(page.lines().any(|found| found == line), "no line {line}\n{page}");
}

#[test]
fn longest_outage_and_oldest_answer_of_each_sort_are_told() {
    let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let ago = move |seconds: i64| Timestamp::from_second(now.as_second() - seconds).unwrap();
    let page = page(move |page| {
        let source = |kind, out, answered: Option<i64>| Followed {
            kind,
            answers: i64::is_negative(out),
            out_since: (!i64::is_negative(out)).then(|| ago(out)),
            answered_at: answered.map(ago),
        };
        let followed = [
            source(SourceKind::Github, 60, Some(90)),
            source(SourceKind::Github, 3600, None),
            source(SourceKind::Github, -1, Some(10)),
            source(SourceKind::Oci, -1, Some(20)),
            source(SourceKind::Directory, -1, None),
        ];
        sources(page, &followed, now)
    });
    for line in [
        "stackwright_sources{source=\"github\",answers=\"true\"} 1.0",
        "stackwright_sources{source=\"github\",answers=\"false\"} 2.0",
        "stackwright_sources{source=\"directory\",answers=\"true\"} 1.0",
        "stackwright_sources{source=\"http\",answers=\"true\"} 0.0",
        "stackwright_source_outage_seconds{source=\"github\"} 3600.0",
        "stackwright_source_outage_seconds{source=\"oci\"} 0.0",
        "stackwright_source_last_answer_seconds{source=\"github\"} 90.0",
        "stackwright_source_last_answer_seconds{source=\"oci\"} 20.0",
    ] {
        has(&page, line);
    }
    assert!(!page.contains("last_answer_seconds{source=\"http\"}"), "{page}");
}

#[test]
fn every_answer_is_counted_under_one_label() {
    let page = page(|page| {
        requests(page, |kind| match kind {
            SourceKind::Github => Statistics {
                requests: 1 + 2 + 3 + 4 + 5 + 6,
                granted: 1,
                unchanged: 2,
                redirected: 3,
                refused: 4,
                broken: 5,
                failures: 6,
                held_back: 7,
                bytes: 8,
            },
            _ => Statistics::default(),
        })
    });
    for (answer, count) in [("2xx", 1), ("304", 2), ("3xx", 3), ("4xx", 4), ("5xx", 5), ("none", 6)] {
        let line = format!("stackwright_source_requests_total{{source=\"github\",answer=\"{answer}\"}} {count}.0");
        has(&page, &line);
    }
    has(
        &page,
        "stackwright_source_requests_held_back_total{source=\"github\"} 7.0",
    );
    has(&page, "stackwright_source_received_bytes_total{source=\"github\"} 8.0");
    has(
        &page,
        "stackwright_source_requests_total{source=\"oci\",answer=\"304\"} 0.0",
    );
}

#[test]
fn numbers_of_the_store_stand_under_their_names() {
    let page = page(|page| {
        let usage = Usage {
            bytes: 1,
            limit: 2,
            releases: 3,
            downloads: [(true, 0, Some(50)), (true, 0, None), (false, 30, Some(100))]
                .map(download)
                .into(),
            downloaded: 4,
            downloaded_bytes: 5,
            evictions: 6,
            rehashes: 7,
            corrupt: 8,
            unwritable: Some(StoreError::Stopped),
        };
        store(page, &usage)
    });
    for (name, value) in [
        ("bytes", 1),
        ("limit_bytes", 2),
        ("releases", 3),
        ("unwritable", 1),
        ("downloads{state=\"queued\"}", 2),
        ("downloads{state=\"running\"}", 1),
        ("downloading_bytes", 30),
        ("downloading_expected_bytes", 150),
        ("downloaded_releases_total", 4),
        ("downloaded_bytes_total", 5),
        ("evictions_total", 6),
        ("rehashes_total", 7),
        ("corrupt_releases_total", 8),
    ] {
        has(&page, &format!("stackwright_store_{name} {value}.0"));
    }
}

fn download((queued, done, total): (bool, u64, Option<u64>)) -> Download {
    Download {
        tag: "docker-harbor-1-34-v1".parse().unwrap(),
        origin: "a source".to_owned(),
        queued,
        done,
        total,
    }
}
