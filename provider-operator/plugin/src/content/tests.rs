//! A content gives an image whole, or everything but its end.

use futures::{FutureExt, TryStreamExt};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use tokio::{runtime::Builder, task};

use super::*;
use crate::{
    Algorithm, Hasher, Seal, Stage,
    suite::{Notes, ScriptedSource, SharedSource},
};

const MIB: usize = 1024 * 1024;

/// A raw disk of so many bytes.
fn disk(count: usize) -> Bytes {
    (0..count).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

fn digest(algorithm: Algorithm, bytes: &[u8]) -> Pinned {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(bytes);
    hasher.finish()
}

fn plan() -> ContentPlan {
    ContentPlan {
        attempt: 7,
        ..ContentPlan::default()
    }
}

struct Lab {
    source: Arc<ScriptedSource>,
    notes: Arc<Notes>,
}

impl Lab {
    fn of(source: ScriptedSource) -> Self {
        Self::told_to(source, Notes::default())
    }

    fn told_to(source: ScriptedSource, notes: Notes) -> Self {
        Self {
            source: Arc::new(source),
            notes: Arc::new(notes),
        }
    }

    fn content(&self, plan: ContentPlan) -> Content {
        let source = Arc::new(SharedSource(Arc::clone(&self.source)));
        Content::new(source, self.source.said(), plan, Arc::<Notes>::clone(&self.notes))
    }

    /// What was given, how it ended, and what is known of it.
    async fn read(&self, plan: ContentPlan) -> (Vec<u8>, Option<ContentError>, SumsHandle) {
        let body = self.content(plan).open().await.unwrap();
        let (given, error) = all(body.stream).await;
        (given, error, body.sums)
    }
}

async fn all(mut stream: ContentStream) -> (Vec<u8>, Option<ContentError>) {
    let mut given = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(piece) => {
                assert!((1..=MIB).contains(&piece.len()), "{}", piece.len());
                given.extend_from_slice(&piece);
            }
            Err(error) => return (given, Some(error)),
        }
    }
    (given, None)
}

#[tokio::test]
async fn an_image_is_given_whole_and_digested_twice() {
    let disk = disk(5 * MIB + 3);
    for pinned in [
        None,
        Some(digest(Algorithm::Sha256, &disk)),
        Some(digest(Algorithm::Sha512, &disk)),
    ] {
        let lab = Lab::of(ScriptedSource::of(disk.clone()));
        let plan = ContentPlan {
            pinned: pinned.clone(),
            ..plan()
        };
        let body = lab.content(plan).open().await.unwrap();
        assert_eq!(body.length, Some(disk.len() as u64));
        let (given, error) = all(body.stream).await;
        assert!(given == disk && error.is_none(), "{error:?}");
        let sums = Sums {
            source: pinned.unwrap_or_else(|| digest(Algorithm::Sha256, &disk)),
            sha512: digest(Algorithm::Sha512, &disk).hex().to_owned(),
            bytes: disk.len() as u64,
        };
        assert_eq!(body.sums.sums(), Some(sums.clone()));
        let seal = Seal {
            attempt: 7,
            source_digest: sums.source.to_string(),
            sha512: sums.sha512,
            bytes: sums.bytes,
        };
        assert_eq!(lab.notes.seals(), [seal]);
        let last = lab.notes.progress().pop().unwrap();
        assert_eq!(
            (last.sent, last.total, last.stage),
            (sums.bytes, Some(sums.bytes), Stage::Sending)
        );
    }
}

#[tokio::test]
async fn an_image_is_sent_unpacked_and_pinned_as_it_lies() {
    for packed in [
        &include_bytes!("../compression/packed/disk.gz")[..],
        include_bytes!("../compression/packed/disk.zst"),
    ] {
        let lab = Lab::of(ScriptedSource::of(packed));
        let plan = ContentPlan {
            pinned: Some(digest(Algorithm::Sha256, packed)),
            ..plan()
        };
        let body = lab.content(plan).open().await.unwrap();
        assert_eq!((body.length, &body.origin), (None, &None));
        let (given, error) = all(body.stream).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(given.len(), 3 * MIB);
        let sums = body.sums.sums().unwrap();
        assert_eq!(sums.source, digest(Algorithm::Sha256, packed));
        assert_eq!(sums.sha512, digest(Algorithm::Sha512, &given).hex());

        // Who wants it as it lies gets it so.
        let plan = ContentPlan {
            compression: Compression::None,
            ..self::plan()
        };
        let (given, error, _) = lab.read(plan).await;
        assert!(given == packed && error.is_none(), "{error:?}");
    }
}

#[tokio::test]
async fn the_last_piece_waits_for_the_digest() {
    let disk = disk(3 * MIB);
    let demanded = digest(Algorithm::Sha256, b"something else");
    let found = digest(Algorithm::Sha256, &disk);
    for (pinned, remembered, word) in [
        (Some(demanded.clone()), None, "is demanded"),
        (Some(demanded.clone()), Some(found.clone()), "is demanded"),
        (None, Some(demanded.clone()), "before; pin the one that is meant"),
    ] {
        let lab = Lab::of(ScriptedSource::of(disk.clone()));
        let plan = ContentPlan {
            pinned,
            remembered,
            ..plan()
        };
        let (given, error, sums) = lab.read(plan).await;
        let error = error.expect("another digest");
        assert_eq!(error.class, ErrorClass::SourceMismatch);
        for part in [word, &demanded.to_string(), &found.to_string()] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
        assert!(given.len() < disk.len(), "{}", given.len());
        assert_eq!(sums.failure().map(|error| error.message), Some(error.message));
        assert_eq!((sums.sums(), lab.notes.seals().len()), (None, 0));
    }
}

#[tokio::test]
async fn the_last_piece_waits_for_the_seal() {
    let disk = disk(2 * MIB);
    let lab = Lab::told_to(ScriptedSource::of(disk.clone()), Notes::refusing());
    let (given, error, sums) = lab.read(plan()).await;
    let error = error.expect("no seal");
    assert_eq!(
        (error.class, error.message.as_str()),
        (ErrorClass::Sealing, "the API server is away")
    );
    assert!(given.len() < disk.len());
    assert_eq!(sums.sums(), None);

    // A seal that takes its time is waited for, and the cloud is not to blame.
    let slow = Notes::sealing(|_| futures::future::pending().boxed());
    let lab = Lab::told_to(ScriptedSource::of(disk.clone()), slow);
    let body = lab.content(plan()).open().await.unwrap();
    let sums = body.sums.clone();
    let reading = task::spawn(all(body.stream));
    while lab.notes.seals().is_empty() {
        task::yield_now().await;
    }
    assert!(sums.sent() < disk.len() as u64);
    assert_eq!((sums.turn(), sums.sums()), (Turn::Source, None));
    reading.abort();
}

#[tokio::test]
async fn an_image_of_one_byte_waits_too() {
    let lab = Lab::told_to(ScriptedSource::of(vec![0]), Notes::refusing());
    let (given, error, _) = lab.read(plan()).await;
    assert_eq!(
        (given, error.map(|error| error.class)),
        (vec![], Some(ErrorClass::Sealing))
    );
    let lab = Lab::of(ScriptedSource::of(vec![0]));
    let (given, error, _) = lab.read(plan()).await;
    assert_eq!((given, error.is_none()), (vec![0], true));
}

#[tokio::test]
async fn a_packed_file_with_a_damaged_end_gives_no_last_piece() {
    let packed = include_bytes!("../compression/packed/disk.xz");
    let length = packed.len() - 1;
    let lab = Lab::of(ScriptedSource::of(&packed[..length]));
    let (given, error, _) = lab.read(plan()).await;
    assert_eq!(error.map(|error| error.class), Some(ErrorClass::SourceNotAnImage));
    assert!(given.len() < 3 * MIB);
    assert!(lab.notes.seals().is_empty());
}

#[tokio::test]
async fn what_is_no_image_is_found_before_anything_is_sent() {
    let page = Lab::of(ScriptedSource::of("<!doctype html><title>Not found</title>"));
    let error = page.content(plan()).open().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceNotAnImage);
    let plan = ContentPlan {
        format: Some(Format::Qcow2),
        ..plan()
    };
    for raw in [
        disk(MIB),
        Bytes::from_static(include_bytes!("../compression/packed/disk.gz")),
    ] {
        let error = Lab::of(ScriptedSource::of(raw))
            .content(plan.clone())
            .open()
            .await
            .unwrap_err();
        assert!(error.message.contains("shall be qcow2"), "{error}");
    }
    let empty = Lab::of(ScriptedSource::of(""))
        .content(self::plan())
        .open()
        .await
        .unwrap_err();
    assert_eq!(empty.message, "the file is empty");
}

#[tokio::test(start_paused = true)]
async fn breaks_of_the_source_are_not_seen_but_counted() {
    let disk = disk(10 * MIB);
    let lab = Lab::of(ScriptedSource::of(disk.clone()).breaking_every(3 * MIB as u64));
    let (given, error, sums) = lab.read(plan()).await;
    assert!(given == disk && error.is_none(), "{error:?}");
    assert_eq!(sums.sums().unwrap().sha512, digest(Algorithm::Sha512, &disk).hex());
    assert_eq!(lab.notes.progress().pop().unwrap().resumes, 3);
}

#[tokio::test]
async fn what_is_read_is_known_before_it_is_given_and_the_end_also_where_the_length_is_not() {
    let lab = Lab::of(ScriptedSource::of(disk(9000)).saying(|probe| probe.size = None));
    let body = lab.content(plan()).open().await.unwrap();
    assert_eq!((body.length, body.sums.sent()), (None, 0));
    let (given, error) = all(body.stream).await;
    assert!(given.len() == 9000 && error.is_none(), "{error:?}");
    assert_eq!((body.sums.read(), body.sums.sent()), (9000, 9000));
    let told = lab.notes.progress();
    let last = told.last().expect("something was told");
    assert_eq!(
        (last.sent, last.total),
        (9000, Some(9000)),
        "all bytes are with the cloud now"
    );
    assert!(
        told.iter().any(|told| told.sent == 0),
        "before anything was given: {told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_is_not_the_clouds_turn() {
    let lab = Lab::of(ScriptedSource::of(disk(4 * MIB)).hanging_at(2 * MIB as u64));
    let body = lab.content(plan()).open().await.unwrap();
    assert_eq!(body.sums.turn(), Turn::Cloud);
    let mut stream = body.stream;
    let reading = async { while stream.next().await.is_some() {} };
    let _ = time::timeout(Duration::from_secs(20), reading).await;
    assert_eq!(body.sums.turn(), Turn::Source);
    // All but what is held back.
    assert!(body.sums.sent() >= MIB as u64, "{}", body.sums.sent());
}

#[tokio::test]
async fn dropping_ends_the_reading() {
    let lab = Lab::of(ScriptedSource::of(disk(8 * MIB)));
    let mut body = lab.content(plan()).open().await.unwrap();
    body.stream.next().await.unwrap().unwrap();
    let given = lab.source.given();
    drop(body);
    task::yield_now().await;
    assert!(given <= 3 * MIB as u64, "{given} bytes were read for one piece");
    assert_eq!(lab.source.given(), given);
    // Nobody but the lab holds the source any more.
    assert_eq!(Arc::strong_count(&lab.source), 1);
}

fn part(bytes: &[u8]) -> ByteStream {
    let pieces: Vec<_> = bytes
        .chunks(100_000)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    stream::iter(pieces).boxed()
}

#[tokio::test]
async fn a_part_is_gone_on_with_and_digested_with_the_rest() {
    let disk = disk(5 * MIB);
    for held in [1, 2 * MIB + 1, 5 * MIB - 1] {
        let lab = Lab::of(ScriptedSource::of(disk.clone()));
        let body = lab.content(plan()).open_after(part(&disk), held as u64).await.unwrap();
        assert_eq!(body.length, Some(disk.len() as u64));
        let (given, error) = all(body.stream).await;
        assert!(given == disk[held..] && error.is_none(), "{error:?}");
        assert_eq!(lab.source.opened(), [held as u64]);
        let sums = body.sums.sums().unwrap();
        assert_eq!(
            (sums.sha512.as_str(), sums.bytes),
            (digest(Algorithm::Sha512, &disk).hex(), 5 * MIB as u64)
        );
        assert_eq!(sums.source, digest(Algorithm::Sha256, &disk));
        let progress = lab.notes.progress();
        assert_eq!(progress[0].stage, Stage::Reading);
        assert_eq!(progress.last().unwrap().sent, 5 * MIB as u64);
        assert!(progress.is_sorted_by_key(|progress| progress.sent));
    }
}

#[tokio::test]
async fn a_spoilt_part_is_noticed() {
    let disk = disk(3 * MIB);
    let mut spoilt = disk[..MIB].to_vec();
    spoilt[5000] ^= 1;
    let plan = ContentPlan {
        pinned: Some(digest(Algorithm::Sha256, &disk)),
        ..plan()
    };
    let lab = Lab::of(ScriptedSource::of(disk.clone()));
    let body = lab
        .content(plan.clone())
        .open_after(part(&spoilt), MIB as u64)
        .await
        .unwrap();
    let (_, error) = all(body.stream).await;
    assert_eq!(error.unwrap().class, ErrorClass::SourceMismatch);

    let short = lab
        .content(plan.clone())
        .open_after(part(&disk[..MIB - 1]), MIB as u64)
        .await
        .unwrap();
    let (_, error) = all(short.stream).await;
    assert_eq!(
        error.unwrap().message,
        "1 bytes are missing from the part that is there"
    );

    let whole = lab
        .content(plan)
        .open_after(part(&disk), 3 * MIB as u64)
        .await
        .unwrap_err();
    assert_eq!(whole.class, ErrorClass::State);
    let packed = Lab::of(ScriptedSource::of(&include_bytes!("../compression/packed/disk.gz")[..]));
    let packed_part = part(include_bytes!("../compression/packed/disk.gz"));
    let error = packed
        .content(self::plan())
        .open_after(packed_part, 5000)
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::State);
}

#[test]
fn the_same_bytes_are_known_again_by_digest_or_tag() {
    let origin = |source: ScriptedSource, plan: ContentPlan| Lab::of(source).content(plan).origin();
    let source = || ScriptedSource::of(disk(1000));
    assert_eq!(origin(source(), plan()).unwrap(), "tag \"1\", 1000 bytes");
    let pinned = ContentPlan {
        pinned: Some(digest(Algorithm::Sha256, b"")),
        ..plan()
    };
    let by_digest = origin(source(), pinned.clone()).unwrap();
    assert!(
        by_digest.starts_with("sha256:e3b0c442") && by_digest.ends_with(", 1000 bytes"),
        "{by_digest}"
    );
    assert_eq!(
        origin(source().saying(|probe| probe.tag = None), pinned.clone()),
        Some(by_digest)
    );
    assert_eq!(origin(source().saying(|probe| probe.tag = None), plan()), None);
    assert_eq!(
        origin(source().saying(|probe| probe.ranges = false), pinned.clone()),
        None
    );
    assert_eq!(origin(source().saying(|probe| probe.size = None), pinned), None);
}

#[tokio::test]
async fn how_a_file_is_packed_is_seen_at_its_beginning() {
    let packed = &include_bytes!("../compression/packed/disk.gz")[..];
    for (bytes, format, kind) in [
        (Bytes::from_static(packed), Some(Format::Qcow2), Some(Compression::Gzip)),
        (disk(MIB), Some(Format::Raw), None),
        (disk(MIB), None, None),
    ] {
        let lab = Lab::of(ScriptedSource::of(bytes));
        let source = Arc::new(SharedSource(Arc::clone(&lab.source)));
        let found = packed_at_source(source, &lab.source.said(), format.as_ref()).await;
        assert_eq!(found.unwrap(), kind);
        assert!(lab.source.given() <= 64 * 1024, "{}", lab.source.given());
    }
    let lab = Lab::of(ScriptedSource::of(disk(MIB)));
    let source = Arc::new(SharedSource(Arc::clone(&lab.source)));
    let refused = packed_at_source(source, &lab.source.said(), Some(&Format::Qcow2)).await;
    assert_eq!(refused.unwrap_err().class, ErrorClass::SourceNotAnImage);
}

/// Takes every seal, and says whether others wait.
struct Waiting(bool);

#[async_trait::async_trait]
impl Report for Waiting {
    fn progress(&self, _: crate::Progress) {}

    fn others_wait(&self) -> bool {
        self.0
    }

    async fn seal(&self, _: &Seal) -> Result<(), crate::SealError> {
        Ok(())
    }
}

/// 64 KiB at once, and then a byte each 25 seconds, a hundred times.
fn dripping(others_wait: bool) -> Sending {
    let first = stream::iter([Ok(disk(64 * 1024))]);
    let drips = stream::iter(0..100).then(|_| async {
        time::sleep(Duration::from_secs(25)).await;
        Ok::<_, ContentError>(disk(1))
    });
    Sending {
        bytes: first.chain(drips).boxed(),
        held: 0,
        length: None,
        longest: sending::UNTOLD,
        attempt: 1,
        source: Arc::new(OnceLock::from(digest(Algorithm::Sha256, b"a disk"))),
        resumes: Arc::default(),
        report: Arc::new(Waiting(others_wait)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_drips_is_given_up_after_ten_minutes_where_others_wait() {
    let begun = time::Instant::now();
    let (stream, sums) = dripping(true).stream();
    let (_, error) = all(stream).await;
    let error = error.expect("it is too slow");
    assert_eq!(error.class, ErrorClass::SourceBroken);
    for part in ["64 KiB a second", "put the image where it comes faster"] {
        assert!(error.message.contains(part), "{error}");
    }
    assert!(sums.failure().is_some());
    let took = begun.elapsed();
    assert!(
        (Duration::from_mins(10)..Duration::from_mins(11)).contains(&took),
        "{took:?}"
    );
    let (given, error) = all(dripping(false).stream().0).await;
    assert!(error.is_none(), "nobody wants the place: {error:?}");
    assert_eq!(given.len(), 64 * 1024 + 100);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_drips_is_given_up_as_what_it_is() {
    let bytes = stream::iter((0..100).map(|_| Ok::<_, ContentError>(disk(1000)))).boxed();
    let sending = Sending {
        bytes,
        ..dripping(true)
    };
    let (mut stream, _) = sending.stream();
    let error = loop {
        match stream.next().await.expect("it does not come to an end") {
            Ok(_) => time::sleep(Duration::from_secs(50)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.class, ErrorClass::Busy);
    assert!(error.message.contains("the cloud takes"), "{error}");
}

#[tokio::test]
async fn an_image_without_a_length_ends_where_no_image_is_so_long() {
    for (length, is_taken) in [(None, false), (Some(2000), true)] {
        let pieces = (0..20).map(|_| Ok::<_, ContentError>(disk(100)));
        let sending = Sending {
            bytes: stream::iter(pieces).boxed(),
            length,
            longest: 1999,
            ..dripping(true)
        };
        let (given, error) = all(sending.stream().0).await;
        assert_eq!(error.is_none(), is_taken, "{error:?}");
        if let Some(error) = error {
            assert_eq!(error.class, ErrorClass::SourceNotAnImage);
            assert!(error.message.contains("more than 1999 bytes"), "{error}");
            assert!(given.len() < 2000, "{}", given.len());
        }
    }
}

#[tokio::test]
async fn large_pieces_of_a_source_are_given_in_small_ones() {
    let disk = disk(5 * MIB);
    let sending = Sending {
        bytes: stream::iter([Ok(disk.clone())]).boxed(),
        held: 0,
        length: None,
        longest: sending::UNTOLD,
        attempt: 1,
        source: Arc::new(OnceLock::from(digest(Algorithm::Sha256, &disk))),
        resumes: Arc::default(),
        report: Arc::new(Notes::default()),
    };
    let pieces: Vec<Bytes> = sending.stream().0.try_collect().await.unwrap();
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [MIB; 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However often the source breaks, and however much of the image is there already: what is given is the rest, and all is digested.
    #[test]
    fn any_way_to_the_end_is_the_same_image(count in 2..300_000_usize, held in 0..300_000_usize, every in 40_000..400_000_u64) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let disk = disk(count);
            let held = held % count;
            let lab = Lab::of(ScriptedSource::of(disk.clone()).breaking_every(every));
            let content = lab.content(plan());
            let body = match held {
                0 => content.open().await,
                held => content.open_after(part(&disk), held as u64).await,
            };
            let body = body.unwrap();
            let (given, error) = all(body.stream).await;
            prop_assert!(error.is_none(), "{:?}", error);
            prop_assert!(given == disk[held..]);
            let sums = body.sums.sums().unwrap();
            prop_assert_eq!(sums.source, digest(Algorithm::Sha256, &disk));
            prop_assert_eq!(lab.notes.seals()[0].sha512.clone(), sums.sha512);
            prop_assert_eq!(lab.source.given(), (count - held) as u64);
            Ok(())
        })?;
    }
}
