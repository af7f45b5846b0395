//! Every deed with a cloud of clay: what it calls, what it brings, and how it fails.

use std::sync::Arc;

use planning::image::{Algorithm, Deed, DiscardReason, Done, FailureClass, ReadBack, Source};
use provider_plugin::{ContentKey, ErrorClass, ImageSource, OwnerId, Pinned, Stage};

use super::*;
use crate::source::SumsFile;
use crate::stand_ins::{Act, Clay, Disk, NoDisk, Notes, object, plan};

/// Five bytes that are no text, which would be no image.
const IMAGE: &[u8] = b"\0\x01\x02\x03\x04";
/// Five others.
const OTHER: &[u8] = b"\0\x05\x06\x07\x08";

struct Room {
    clay: Arc<Clay>,
    notes: Arc<Notes>,
    content: ContentSpec,
    goes: bool,
    holds: bool,
}

impl Room {
    fn new() -> Self {
        Self {
            clay: Arc::default(),
            notes: Arc::default(),
            content: ContentSpec::default(),
            goes: false,
            holds: true,
        }
    }

    async fn work(&self, deed: Deed, files: Option<&Files>) -> Worked {
        let mut plan = plan(&object("fleet", "one"), deed);
        plan.content = self.content.clone();
        plan.goes = self.goes;
        plan.holds = self.holds;
        let report: Arc<dyn Report> = Arc::clone(&self.notes) as Arc<dyn Report>;
        work(&plan, &self.clay.store("east"), files, report).await
    }

    async fn done(&self, deed: Deed) -> Result<Done, FailureClass> {
        class(self.work(deed, None).await)
    }
}

fn class(worked: Worked) -> Result<Done, FailureClass> {
    worked.outcome.map_err(|failed| failed.failure.class)
}

fn id() -> String {
    "image-1".to_owned()
}

fn transfer() -> Deed {
    Deed::Transfer {
        id: id(),
        attempt: 1,
        staged: false,
    }
}

fn digest_of(bytes: &[u8]) -> Pinned {
    let mut hasher = provider_plugin::Hasher::new(provider_plugin::Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finish()
}

fn with_sums(bytes: &'static [u8], sums: impl ImageSource + 'static) -> Files {
    Files {
        image: Arc::new(Disk::of(bytes)),
        sums: Some(SumsFile {
            file: Arc::new(sums),
            name: "node.img".to_owned(),
        }),
        tag_is_digest: false,
    }
}

#[tokio::test]
async fn each_deed_is_one_call_of_the_store() {
    let room = Room::new();
    let created = Deed::Create { attempt: 3, id: None };
    assert_eq!(
        room.done(created).await,
        Ok(Done::Created {
            id: "image-3".to_owned()
        })
    );
    let chosen = Deed::Create {
        attempt: 1,
        id: Some("mine".to_owned()),
    };
    assert_eq!(room.done(chosen).await, Ok(Done::Created { id: "mine".to_owned() }));
    assert_eq!(room.done(Deed::Look).await, Ok(Done::Looked));
    assert_eq!(
        room.done(Deed::Import { id: id(), attempt: 1 }).await,
        Ok(Done::ImportBegun)
    );
    let verified = "sha256:00".to_owned();
    let publish = Deed::Publish {
        id: id(),
        attempt: 1,
        verified,
    };
    assert_eq!(room.done(publish).await, Ok(Done::Published));
    assert_eq!(room.done(Deed::Amend { id: id() }).await, Ok(Done::Amended));
    let discard = Deed::Discard {
        id: id(),
        attempt: 1,
        why: DiscardReason::Superseded,
    };
    assert_eq!(room.done(discard).await, Ok(Done::Discarded));
    assert_eq!(room.done(Deed::Relinquish { id: id() }).await, Ok(Done::Relinquished));
    let calls = [
        "east create fleet/one",
        "east create fleet/one",
        "east observe fleet/one",
        "east import ",
        "east publish image-1 as sha256:00",
        "east amend image-1",
        "east discard image-1 of mine",
        "east relinquish image-1 of mine",
    ];
    assert_eq!(room.clay.calls(), calls);
}

/// A record that another installation holds.
fn elsewhere(id: &str) -> Record {
    Record {
        id: ImageId(id.to_owned()),
        key: ContentKey::parse(&"a".repeat(64)).unwrap(),
        attempt: 1,
        holder: OwnerId::parse("another").unwrap(),
        state: RecordState::Whole,
        size: None,
        sha512: None,
        format: None,
        verified: None,
        shown: false,
        drift: Vec::new(),
        marker: String::new(),
    }
}

#[tokio::test]
async fn what_another_installation_holds_is_taken_over_unless_the_object_goes() {
    let looked = "east observe fleet/one";
    let cases: [(bool, &str, &[&str]); 2] = [
        (false, "mine", &[looked, "east hold image-1 for mine"]),
        (true, "another", &[looked]),
    ];
    for (goes, holder, calls) in cases {
        let room = Room { goes, ..Room::new() };
        room.clay.show([elsewhere("image-1")]);
        let found = room.work(Deed::Look, None).await.found;
        let holds = |owner: &OwnerId| owner.as_str().to_owned();
        assert_eq!(found.looked.as_ref().map(holds).as_deref(), Some("mine"));
        let records = found.observed.unwrap().records;
        assert_eq!(records[0].holder.as_str(), holder, "who holds it after the look");
        assert_eq!(room.clay.calls(), calls);
    }
}

#[tokio::test]
async fn what_is_made_for_an_object_that_has_moved_is_held_by_who_makes_it() {
    for (holder, calls) in [
        ("mine", &["east create fleet/one"] as &[&str]),
        ("there", &["east create fleet/one", "east hold image-1 for there"]),
    ] {
        let clay: Arc<Clay> = Arc::default();
        let mut plan = plan(&object("fleet", "one"), Deed::Create { attempt: 1, id: None });
        plan.holder = OwnerId::parse(holder).unwrap();
        let report: Arc<dyn Report> = Arc::<Notes>::default();
        let worked = work(&plan, &clay.store("east"), None, report).await;
        assert_eq!(class(worked), Ok(Done::Created { id: id() }));
        assert_eq!(clay.calls(), calls, "by {holder}");
    }
}

#[tokio::test]
async fn what_goes_clears_away_only_what_this_installation_holds_at_that_moment() {
    let room = Room {
        goes: true,
        ..Room::new()
    };
    let discard = Deed::Discard {
        id: id(),
        attempt: 1,
        why: DiscardReason::Deleted,
    };
    assert_eq!(room.done(discard).await, Ok(Done::Discarded));
    assert_eq!(room.done(Deed::Relinquish { id: id() }).await, Ok(Done::Relinquished));
    let calls = [
        "east discard image-1 of mine if held by mine",
        "east relinquish image-1 of mine if held by mine",
    ];
    assert_eq!(room.clay.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_can_take_nothing_over_goes_well_within_seconds_and_says_so() {
    let room = Room::new();
    let look = || room.work(Deed::Look, None);
    assert_eq!(look().await.found.held, None, "there is nothing");
    room.clay.show(["one", "two"].map(elsewhere));
    for (act, held) in [
        (Act::Answer, true),
        (Act::Fail(ErrorClass::Permission, None), false),
        (Act::Hang, false),
    ] {
        room.clay.act("east hold", act);
        let begun = Instant::now();
        let worked = look().await;
        assert!(
            begun.elapsed() < 2 * HOLDING,
            "{act:?}: one does not wait for the other"
        );
        assert_eq!(worked.found.held, Some(held), "{act:?}");
        assert_eq!(worked.found.observed.as_ref().unwrap().records.len(), 2);
        assert_eq!(class(worked), Ok(Done::Looked), "{act:?}");
    }
    let mut mine = elsewhere("one");
    mine.holder = OwnerId::parse("mine").unwrap();
    room.clay.show([mine]);
    assert_eq!(look().await.found.held, None, "it is held here");
}

#[tokio::test(start_paused = true)]
async fn a_look_takes_nothing_over_where_that_failed_before_or_no_time_is_left() {
    let mut room = Room::new();
    room.clay.show([elsewhere("one")]);
    room.clay.act("east observe", Act::Take(PROMPT));
    let late = room.work(Deed::Look, None).await;
    room.clay.act("east observe", Act::Answer);
    room.holds = false;
    let told = room.work(Deed::Look, None).await;
    for (worked, held) in [(late, Some(false)), (told, None)] {
        assert_eq!(worked.found.held, held);
        assert_eq!(class(worked), Ok(Done::Looked));
    }
    assert_eq!(room.clay.calls(), ["east observe fleet/one"; 2]);
}

#[tokio::test]
async fn whatever_reaches_a_cloud_says_what_the_cloud_can_do() {
    let room = Room::new();
    let worked = room.work(Deed::Look, None).await;
    assert!(worked.found.observed.is_some());
    assert!(worked.found.abilities.unwrap().server_side);
    room.clay.act("east", Act::Fail(ErrorClass::Permission, None));
    let worked = room.work(Deed::Look, None).await;
    assert!(worked.found.abilities.is_some());
    assert_eq!(class(worked), Err(FailureClass::Permission));
}

#[tokio::test]
async fn what_has_no_files_is_refused_without_asking_anybody() {
    let room = Room::new();
    let build = Deed::Build { id: id(), attempt: 1 };
    for deed in [transfer(), build, Deed::Probe] {
        assert_eq!(room.done(deed).await, Err(FailureClass::Invalid), "there are no files");
    }
    assert!(room.clay.calls().is_empty());
}

#[tokio::test]
async fn what_is_to_be_staged_is_staged_and_told_as_sent() {
    let room = Room::new();
    let staged = Deed::Transfer {
        id: id(),
        attempt: 1,
        staged: true,
    };
    let worked = room.work(staged, Some(&Disk::of(IMAGE).files())).await;
    assert_eq!(worked.outcome, Ok(Done::Sent));
    let calls = room.clay.calls();
    assert!(
        calls.first().is_some_and(|call| call.starts_with("east stage")),
        "{calls:?}"
    );
}

#[tokio::test]
async fn a_probe_asks_the_source_its_sums_and_then_the_cloud() {
    let room = Room::new();
    let digest = digest_of(IMAGE);
    let sums = format!("{}  node.img\n", digest.hex());
    let files = with_sums(IMAGE, Disk::of(sums));
    let worked = room.work(Deed::Probe, Some(&files)).await;
    let source = Source {
        size: Some(5),
        ranges: true,
        digest: Some(planning::image::Pinned {
            algorithm: Algorithm::Sha256,
            hex: digest.hex().to_owned(),
        }),
        packed: false,
        warnings: vec!["5 bytes are to come".to_owned()],
    };
    assert_eq!(worked.found.source, Some(source));
    assert_eq!(class(worked), Ok(Done::Probed));
    let missing = Files {
        image: Arc::new(NoDisk(ErrorClass::SourceGone)),
        sums: None,
        tag_is_digest: false,
    };
    assert_eq!(
        class(room.work(Deed::Probe, Some(&missing)).await),
        Err(FailureClass::SourceGone)
    );
    assert_eq!(room.clay.calls().len(), 1, "no room is asked for for what is not there");
}

#[tokio::test]
async fn a_packed_file_that_a_cloud_is_to_fetch_is_known_before_it_does() {
    const PACKED: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\0";
    let mut room = Room::new();
    for (is_fetched, compression, bytes, packed) in [
        (true, Compression::Auto, PACKED, true),
        (true, Compression::Auto, IMAGE, false),
        (true, Compression::None, PACKED, false),
        (false, Compression::Auto, PACKED, false),
    ] {
        room.content = ContentSpec {
            compression,
            is_fetched,
            ..ContentSpec::default()
        };
        let worked = room.work(Deed::Probe, Some(&Disk::of(bytes).files())).await;
        assert_eq!(worked.found.source.map(|source| source.packed), Some(packed));
    }
    room.content = ContentSpec {
        is_fetched: true,
        ..ContentSpec::default()
    };
    let page = Disk::of(&b"<!doctype html>"[..]).files();
    assert_eq!(
        class(room.work(Deed::Probe, Some(&page)).await),
        Err(FailureClass::SourceNotAnImage)
    );
}

#[tokio::test]
async fn sums_that_do_not_help_are_told_apart() {
    let room = Room::new();
    let foreign = format!("{}  other.img\n", "0".repeat(64));
    let huge = vec![b'a'; provider_plugin::sums::LARGEST + 1];
    let cases = [
        (with_sums(IMAGE, Disk::of(foreign)), FailureClass::DigestUnknown),
        (with_sums(IMAGE, Disk::of(huge)), FailureClass::DigestUnknown),
        (
            with_sums(IMAGE, NoDisk(ErrorClass::SourceGone)),
            FailureClass::SourceGone,
        ),
    ];
    for (files, expected) in cases {
        for deed in [Deed::Probe, transfer()] {
            assert_eq!(class(room.work(deed, Some(&files)).await), Err(expected));
        }
    }
    assert!(room.clay.calls().is_empty(), "nothing is sent, and no room asked for");
}

#[tokio::test(start_paused = true)]
async fn sums_that_do_not_come_are_waited_for_a_minute() {
    let room = Room::new();
    let stuck = Disk {
        stops_after: 3,
        ..Disk::of("a file of sums")
    };
    let files = with_sums(IMAGE, stuck);
    assert_eq!(
        class(room.work(transfer(), Some(&files)).await),
        Err(FailureClass::SourceBroken)
    );
}

/// A file that its source knows by this digest.
fn known_by(bytes: &'static [u8], digest: &Pinned) -> Files {
    let disk = Disk {
        tag: digest.to_string(),
        ..Disk::of(bytes)
    };
    Files {
        tag_is_digest: true,
        ..disk.files()
    }
}

#[tokio::test]
async fn a_digest_by_which_the_source_knows_the_file_is_demanded_of_its_bytes() {
    let room = Room::new();
    let digest = digest_of(IMAGE);
    let worked = room.work(Deed::Probe, Some(&known_by(IMAGE, &digest))).await;
    let told = worked.found.source.and_then(|source| source.digest);
    assert_eq!(told.map(|told| told.hex), Some(digest.hex().to_owned()));
    let sent = room.work(transfer(), Some(&known_by(IMAGE, &digest))).await;
    assert_eq!(class(sent), Ok(Done::Sent));
    let other = room.work(transfer(), Some(&known_by(OTHER, &digest))).await;
    assert_eq!(class(other), Err(FailureClass::SourceMismatch));
}

#[tokio::test]
async fn a_source_that_knows_another_file_than_the_one_that_is_meant_is_not_read() {
    let mut room = Room::new();
    let (meant, found) = (digest_of(IMAGE), digest_of(OTHER));
    let files = known_by(OTHER, &found);
    for (pinned, remembered, words) in [
        (Some(meant.clone()), None, "is demanded"),
        (None, Some(meant.clone()), "pin the one that is meant"),
    ] {
        room.content.pinned = pinned;
        room.content.remembered = remembered;
        for deed in [Deed::Probe, transfer()] {
            let failure = room.work(deed, Some(&files)).await.outcome.unwrap_err().failure;
            assert_eq!(failure.class, FailureClass::SourceMismatch);
            for part in [words, meant.hex(), found.hex()] {
                assert!(failure.message.contains(part), "{}", failure.message);
            }
        }
    }
    assert!(room.clay.calls().is_empty(), "nothing is sent, and no room asked for");
    // What is pinned now counts, and not what was trusted once.
    room.content.pinned = Some(found);
    assert_eq!(class(room.work(transfer(), Some(&files)).await), Ok(Done::Sent));
}

#[tokio::test]
async fn a_digest_of_the_spec_counts_and_sums_are_not_read_then() {
    let mut room = Room::new();
    room.content.pinned = Some(digest_of(IMAGE));
    let files = with_sums(IMAGE, NoDisk(ErrorClass::SourceGone));
    let worked = room.work(Deed::Probe, Some(&files)).await;
    assert_eq!(worked.found.source.unwrap().digest, None, "the spec says it already");
    assert_eq!(class(room.work(transfer(), Some(&files)).await), Ok(Done::Sent));
}

#[tokio::test]
async fn what_is_sent_is_sealed_and_other_bytes_are_not() {
    let mut room = Room::new();
    let disk = |bytes: &'static [u8]| Disk::of(bytes).files();
    assert_eq!(class(room.work(transfer(), Some(&disk(IMAGE))).await), Ok(Done::Sent));
    let seals = room.notes.seals.lock().unwrap().clone();
    let [seal] = seals.as_slice() else {
        panic!("there are {} seals", seals.len());
    };
    assert_eq!((seal.attempt, seal.bytes), (1, 5));
    assert_eq!(seal.source_digest, digest_of(IMAGE).to_string());
    room.content = ContentSpec {
        remembered: Some(digest_of(IMAGE)),
        compression: Compression::None,
        ..ContentSpec::default()
    };
    let mismatch = Err(FailureClass::SourceMismatch);
    assert_eq!(class(room.work(transfer(), Some(&disk(OTHER))).await), mismatch);
    let sums = format!("{}  node.img\n", "0".repeat(64));
    room.content = ContentSpec::default();
    let files = with_sums(IMAGE, Disk::of(sums));
    assert_eq!(class(room.work(transfer(), Some(&files)).await), mismatch);
    assert_eq!(room.notes.seals.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_image_that_is_read_back_is_digested_both_ways() {
    let room = Room::new();
    let read = || Deed::ReadBack { id: id(), attempt: 1 };
    let worked = room.work(read(), None).await;
    let Some(ReadBack::Found { sha256, sha512, bytes }) = worked.found.read_back else {
        panic!("nothing was read");
    };
    assert_eq!(sha256, digest_of(b"an image").hex());
    assert_eq!((sha512.len(), bytes), (128, 8));
    let last = room.notes.last.lock().unwrap().unwrap();
    assert_eq!((last.sent, last.stage), (8, Stage::ReadingBack));
    for (refusal, is_refused) in [
        (ErrorClass::Unsupported, true),
        (ErrorClass::Permission, true),
        (ErrorClass::Invalid, true),
        (ErrorClass::Unavailable, false),
        (ErrorClass::Gone, false),
    ] {
        room.clay.act("east", Act::Fail(refusal, None));
        let worked = room.work(read(), None).await;
        assert!(worked.outcome.is_err());
        assert_eq!(
            worked.found.read_back == Some(ReadBack::Refused),
            is_refused,
            "{refusal}"
        );
    }
}
