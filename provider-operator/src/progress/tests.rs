//! What is written when, in paused time, by an API server that keeps it.

use std::sync::Arc;

use planning::image::Deed;
use provider_plugin::Stage;
use serde_json::json;

use super::*;
use crate::stand_ins::{Cluster, object, plan};

const MIB: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

fn ledger_of(cluster: &Arc<Cluster>, deed: Deed) -> Option<Ledger> {
    let ledgers = Ledgers::new(cluster.client(), "operator-0".to_owned());
    ledgers.open(&plan(&object("fleet", "node"), deed))
}

fn ledger(cluster: &Arc<Cluster>) -> Ledger {
    let deed = Deed::Transfer {
        id: "image-2".to_owned(),
        attempt: 2,
        staged: false,
    };
    ledger_of(cluster, deed).unwrap()
}

fn progress(sent: u64, total: Option<u64>) -> Progress {
    Progress {
        sent,
        total,
        resumes: 1,
        stage: Stage::Sending,
    }
}

fn seal() -> Seal {
    Seal {
        attempt: 2,
        source_digest: format!("sha256:{}", "1".repeat(64)),
        sha512: "2".repeat(128),
        bytes: 7,
    }
}

/// Tells of `step` bytes more each 100 ms, so often.
async fn moving(ledger: &Ledger, step: u64, times: u64, total: Option<u64>) {
    for number in 1..=times {
        ledger.note(progress(step * number, total));
        time::sleep(SECOND / 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_transfer_is_told_of_every_ten_seconds_and_at_its_end() {
    let cluster = Cluster::new();
    let ledger = ledger(&cluster);
    let begun = Instant::now();
    let wall = Timestamp::now();
    let total = Some(100_000 * MIB);
    ledger.beside(moving(&ledger, MIB, 350, total)).await;
    let writes = cluster.writes();
    let at: Vec<u64> = writes.iter().map(|write| (write.at - begun).as_secs()).collect();
    assert_eq!(at, [0, 10, 20, 30, 35]);
    let last = writes.last().unwrap();
    assert_eq!(last.manager, PROGRESS_FIELD_MANAGER);
    assert_eq!(last.object, "filestorenodeimagereleases/node");
    assert_eq!(last.body["metadata"]["uid"], "uid-of-fleet-node");
    for (field, value) in [
        ("attempt", json!(2)),
        ("via", json!("Upload")),
        ("sentBytes", json!(350 * MIB)),
        ("totalBytes", json!(100_000 * MIB)),
        ("resumes", json!(1)),
        ("holder", json!("operator-0")),
    ] {
        assert_eq!(*last.field(field), value, "{field}");
    }
    for write in &writes {
        let times = ["startedAt", "lastProgressTime"].map(|field| {
            let time = write.field(field).as_str().unwrap();
            time.parse::<Timestamp>().unwrap()
        });
        // The clock of the wall does not stand still in a test, and is written down in whole seconds.
        let around = [
            wall - jiff::SignedDuration::from_secs(2),
            times[0],
            times[1],
            Timestamp::now(),
        ];
        assert!(around.is_sorted(), "{around:?}");
        assert_eq!(write.field("startedAt"), last.field("startedAt"), "it begins once");
    }
    let rate = last.field("bytesPerSecond").as_u64().unwrap();
    assert!(rate.abs_diff(10 * MIB) < MIB, "{rate} bytes in a second");
    let summary = last.field("summary").as_str().unwrap();
    assert!(summary.starts_with("0 % of 97.6 GiB, "), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn a_fast_transfer_is_told_of_in_twentieths_and_not_more_than_once_in_a_second() {
    let cluster = Cluster::new();
    let ledger = ledger(&cluster);
    // 1 % in a tenth of a second.
    ledger.beside(moving(&ledger, MIB, 100, Some(100 * MIB))).await;
    let writes = cluster.writes();
    let sent: Vec<u64> = writes
        .iter()
        .map(|write| write.field("sentBytes").as_u64().unwrap() / MIB)
        .collect();
    assert_eq!(sent.len(), 11, "{sent:?}");
    let pauses = writes.windows(2).map(|pair| pair[1].at - pair[0].at);
    assert!(
        pauses.clone().all(|pause| pause >= SECOND),
        "{:?}",
        pauses.collect::<Vec<_>>()
    );
    // 1 % in a second: a twentieth comes before ten seconds are over.
    let cluster = Cluster::new();
    let ledger = self::ledger(&cluster);
    let slowly = async {
        for number in 1..=20 {
            ledger.note(progress(number * MIB, Some(100 * MIB)));
            time::sleep(SECOND).await;
        }
    };
    ledger.beside(slowly).await;
    let sent: Vec<u64> = cluster
        .writes()
        .iter()
        .map(|write| write.field("sentBytes").as_u64().unwrap() / MIB)
        .collect();
    assert_eq!(sent, [1, 6, 11, 16, 20]);
}

#[tokio::test(start_paused = true)]
async fn what_is_read_back_is_told_as_that_and_takes_nothing_from_what_was_sent() {
    let cluster = Cluster::new();
    let ledger = ledger(&cluster);
    let total = Some(100 * MIB);
    let work = async {
        moving(&ledger, 10 * MIB, 10, total).await;
        for number in 1..=30 {
            ledger.note(Progress {
                stage: Stage::ReadingBack,
                ..progress(2 * MIB * number, total)
            });
            time::sleep(SECOND / 10).await;
        }
    };
    ledger.beside(work).await;
    let writes = cluster.writes();
    let sent: Vec<u64> = writes
        .iter()
        .map(|write| write.field("sentBytes").as_u64().unwrap())
        .collect();
    assert!(sent.is_sorted(), "{sent:?}");
    assert_eq!(*sent.last().unwrap(), 100 * MIB);
    let last = writes.last().unwrap();
    let rate = last.field("bytesPerSecond").as_u64().unwrap();
    assert!(rate.abs_diff(20 * MIB) < 2 * MIB, "{rate} bytes in a second");
    let summary = last.field("summary").as_str().unwrap();
    assert!(summary.starts_with("60 % of 100.0 MiB, reading it back, "), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nothing_moves() {
    let cluster = Cluster::new();
    let ledger = ledger(&cluster);
    let still = async {
        ledger.note(progress(MIB, None));
        time::sleep(SECOND * 300).await;
    };
    ledger.beside(still).await;
    assert_eq!(cluster.writes().len(), 1);
    ledger.beside(time::sleep(SECOND)).await;
    let untouched = Cluster::new();
    self::ledger(&untouched).beside(time::sleep(SECOND * 60)).await;
    assert!(untouched.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_what_sends_an_image_has_a_ledger() {
    let cluster = Cluster::new();
    let read = Deed::ReadBack {
        id: "image-1".to_owned(),
        attempt: 1,
    };
    for deed in [Deed::Look, Deed::Probe, read] {
        assert!(ledger_of(&cluster, deed).is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_seal_is_stored_and_progress_that_comes_later_leaves_it() {
    let cluster = Cluster::new();
    let ledger = ledger(&cluster);
    let sending = async {
        ledger.note(progress(3, Some(7)));
        ledger.seal(&seal()).await.unwrap();
        ledger.note(progress(7, Some(7)));
    };
    ledger.beside(sending).await;
    let sealed = json!({
        "attempt": 2, "sourceDigest": seal().source_digest, "sha512": seal().sha512, "sizeBytes": 7,
    });
    assert_eq!(cluster.transfer("node")["sealed"], sealed);
    assert_eq!(cluster.transfer("node")["sentBytes"], 7);
    let writes = cluster.writes();
    let seals: Vec<_> = writes.iter().filter(|write| write.is_seal()).collect();
    let [write] = seals.as_slice() else {
        panic!("there are {} seals", seals.len());
    };
    assert_ne!(
        write.manager, PROGRESS_FIELD_MANAGER,
        "what it owns alone it would take away"
    );
    for field in ["attempt", "via", "sentBytes"] {
        assert!(!write.field(field).is_null(), "{field} is required of every transfer");
    }
}

#[tokio::test(start_paused = true)]
async fn a_seal_is_tried_again_for_half_a_minute() {
    let cluster = Cluster::new();
    cluster.refuse_seals([503, 500, 429]);
    let begun = Instant::now();
    ledger(&cluster).seal(&seal()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert!(!cluster.transfer("node")["sealed"].is_null());
    let cluster = Cluster::new();
    cluster.refuse_seals([503; 100]);
    let begun = Instant::now();
    let error = ledger(&cluster).seal(&seal()).await.unwrap_err();
    assert!(begun.elapsed() <= SEALING, "{:?}", begun.elapsed());
    assert!(error.message.contains("503"), "{}", error.message);
    assert!(cluster.transfer("node").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_seal_for_another_object_or_without_a_right_is_refused_at_once() {
    for code in [403, 404, 409, 422] {
        let cluster = Cluster::new();
        cluster.refuse_seals([code]);
        let begun = Instant::now();
        ledger(&cluster).seal(&seal()).await.unwrap_err();
        assert_eq!(begun.elapsed(), Duration::ZERO, "{code}");
        assert!(cluster.transfer("node").is_null());
    }
}
