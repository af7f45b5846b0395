//! A source that breaks is one stream, or an error that says why it is not.

use futures::TryStreamExt;
use tokio::time::Instant;

use super::*;
use crate::suite::{ScriptedSource, SharedSource};

const MIB: u64 = 1024 * 1024;

fn bytes(count: u64) -> Bytes {
    (0..count)
        .map(|at| u8::try_from(at * 31 % 251).unwrap_or_default())
        .collect()
}

struct Outcome {
    bytes: Result<Bytes, SourceError>,
    opened: Vec<u64>,
    resumes: u32,
    took: Duration,
}

async fn read_from(source: ScriptedSource, from: u64, is_checked: bool) -> Outcome {
    let source = Arc::new(source);
    let resumes = Arc::<AtomicU32>::default();
    let begun = Instant::now();
    let resuming = Resuming {
        source: Arc::new(SharedSource(Arc::clone(&source))),
        probe: source.said(),
        from,
        is_checked,
        resumes: Arc::clone(&resumes),
    };
    let pieces: Result<Vec<Bytes>, _> = resuming.stream().try_collect().await;
    Outcome {
        bytes: pieces.map(|pieces| pieces.concat().into()),
        opened: source.opened(),
        resumes: resumes.load(Ordering::Relaxed),
        took: begun.elapsed(),
    }
}

async fn read_all(source: ScriptedSource) -> Outcome {
    read_from(source, 0, false).await
}

#[tokio::test(start_paused = true)]
async fn a_source_that_breaks_is_opened_where_it_broke() {
    let whole = bytes(10 * MIB);
    let read = read_all(ScriptedSource::of(whole.clone()).breaking_every(3 * MIB)).await;
    assert_eq!(read.bytes.unwrap(), whole);
    assert_eq!(read.opened, [0, 3 * MIB, 6 * MIB, 9 * MIB]);
    assert_eq!((read.resumes, read.took), (3, Duration::ZERO), "each time at once");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_only_gives_all_of_it_is_skipped_to_where_it_broke() {
    let whole = bytes(4 * MIB);
    let source = ScriptedSource::of(whole.clone())
        .saying(|probe| probe.ranges = false)
        .breaking_every(3 * MIB);
    let read = read_all(source).await;
    // Each time it breaks at the same byte, so nothing new comes.
    assert_eq!(read.bytes.unwrap_err().class, ErrorClass::SourceBroken);

    let source = ScriptedSource::of(whole.clone()).saying(|probe| probe.ranges = false);
    let read = read_from(source, MIB + 5, false).await;
    assert_eq!(read.bytes.unwrap(), whole.slice(1024 * 1024 + 5..));
}

#[tokio::test(start_paused = true)]
async fn ten_breaks_without_a_mebibyte_of_progress_are_the_end() {
    let read = read_all(ScriptedSource::of(bytes(2 * MIB)).breaking_every(100 * 1024)).await;
    let error = read.bytes.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceBroken);
    assert_eq!(
        error.message,
        "https://images.example/node.img broke 10 times within 1048576 bytes"
    );
    assert_eq!(read.opened.len(), 10);

    // Slow progress is progress.
    let whole = bytes(8 * MIB);
    let read = read_all(ScriptedSource::of(whole.clone()).breaking_every(200 * 1024)).await;
    assert_eq!(read.bytes.unwrap(), whole);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_falls_silent_has_broken() {
    let source = ScriptedSource::of(bytes(MIB)).hanging_at(MIB / 2);
    let read = read_all(source).await;
    let error = read.bytes.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceBroken);
    assert_eq!(read.opened.len(), 10);
    // Ten silences of half a minute, and the pauses between them: none, 1, 2, 4, 8, 15 and three times 30 seconds.
    assert_eq!(read.took, Duration::from_mins(5 + 2));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_became_another_one_is_not_gone_on_with() {
    let read = read_all(ScriptedSource::of(bytes(4 * MIB)).breaking_every(MIB).changing()).await;
    let error = read.bytes.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceChanged);
    assert!(error.message.contains("has another file now"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_tag_and_digest_a_broken_file_is_not_gone_on_with() {
    let source = || {
        ScriptedSource::of(bytes(4 * MIB))
            .saying(|probe| probe.tag = None)
            .breaking_every(MIB)
    };
    let error = read_all(source()).await.bytes.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceBroken);
    assert!(error.message.ends_with("pin its digest"), "{error}");
    assert_eq!(read_from(source(), 0, true).await.bytes.unwrap(), bytes(4 * MIB));
}

#[tokio::test(start_paused = true)]
async fn what_fails_before_the_first_byte_fails_at_once() {
    let read = read_all(ScriptedSource::of(bytes(MIB)).breaking_every(0)).await;
    assert_eq!(read.bytes.unwrap_err().class, ErrorClass::SourceBroken);
    assert_eq!((read.opened, read.took), (vec![0], Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_source_is_left_alone_for_as_long_as_it_asks_but_not_for_ever() {
    let source = |asked| {
        ScriptedSource::of(bytes(2 * MIB))
            .breaking_every(MIB)
            .with_fault(ErrorClass::Throttled, Some(Duration::from_secs(asked)))
    };
    let read = read_all(source(20)).await;
    assert_eq!(read.bytes.unwrap(), bytes(2 * MIB));
    assert_eq!(read.took, Duration::from_secs(20));
    let read = read_all(source(31)).await;
    let error = read.bytes.unwrap_err();
    assert_eq!((error.class, read.took), (ErrorClass::Throttled, Duration::ZERO));
    assert_eq!(error.retry_after, Some(Duration::from_secs(31)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_tried_again() {
    let source = ScriptedSource::of(bytes(2 * MIB))
        .breaking_every(MIB)
        .with_fault(ErrorClass::SourceGone, None);
    let read = read_all(source).await;
    assert_eq!(read.bytes.unwrap_err().class, ErrorClass::SourceGone);
    assert_eq!(read.opened, [0]);
}

#[tokio::test(start_paused = true)]
async fn more_or_less_than_was_said_is_no_end() {
    let short = read_all(ScriptedSource::of(bytes(2 * MIB)).ending_at(MIB)).await;
    assert_eq!(short.bytes.unwrap_err().class, ErrorClass::SourceBroken);
    assert!(short.opened.len() > 1, "{:?}", short.opened);

    let source = ScriptedSource::of(bytes(2 * MIB)).saying(|probe| probe.size = Some(MIB));
    let error = read_all(source).await.bytes.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceChanged);
    assert!(error.message.contains("more than the 1048576 bytes"), "{error}");

    // Who says no size ends where it ends.
    let source = ScriptedSource::of(bytes(MIB)).saying(|probe| probe.size = None);
    assert_eq!(read_all(source).await.bytes.unwrap(), bytes(MIB));
}
