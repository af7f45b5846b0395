//! What was cut off is gone on with where the disk has confirmed it, and only when it is the beginning of the same file.

use std::sync::Arc;

use futures::future::{self, Either};
use provider_plugin::{
    Algorithm, ContentPlan, ErrorClass, Hasher, ImageSpec, ImageStore, Pinned, RecordState, suite::ScriptedSource,
};

use super::lab::{Lab, MIB, disk_image, operate, send};
use crate::{
    FileStore,
    faults::{Fault, Faults},
};

const NAME: &str = "node-image-v2";

fn lab() -> Lab {
    Lab::with(disk_image(6 * MIB), 1 << 18)
}

/// A record with a part of about half of the image, because its transfer was dropped there.
async fn cut_off(lab: &Lab, store: &FileStore, image: &ImageSpec) {
    store.create(image, 1).await.unwrap();
    let source = Arc::new(lab.source().hanging_at(3 * MIB as u64));
    let sending = Box::pin(send(store, image, 1, &source, ContentPlan::default()));
    match future::select(sending, Box::pin(source.hangs())).await {
        Either::Left((sent, _)) => panic!("a transfer from a source that hangs ended: {sent:?}"),
        Either::Right(((), sending)) => drop(sending),
    }
}

fn demanding(bytes: &[u8]) -> ContentPlan {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    ContentPlan {
        pinned: Some(hasher.finish()),
        ..ContentPlan::default()
    }
}

#[tokio::test]
async fn a_transfer_goes_on_where_another_life_was_cut_off() {
    let lab = lab();
    let image = lab.spec(NAME);
    cut_off(&lab, &lab.open(), &image).await;
    let source = Arc::new(lab.source());
    operate(&lab.open(), &image, &source).await.unwrap();
    lab.has_published(NAME);
    let from = source.opened();
    assert!(
        from.len() == 1 && (2 * MIB as u64..=3 * MIB as u64).contains(&from[0]),
        "{from:?}"
    );
    assert_eq!(source.given(), lab.bytes.len() as u64 - from[0]);
}

#[tokio::test]
async fn the_beginning_of_another_file_is_not_gone_on_with() {
    let lab = lab();
    let image = lab.spec(NAME);
    cut_off(&lab, &lab.open(), &image).await;
    let source = Arc::new(lab.source().saying(|probe| probe.tag = Some("\"2\"".to_owned())));
    operate(&lab.open(), &image, &source).await.unwrap();
    lab.has_published(NAME);
    assert_eq!(source.opened(), [0]);
}

#[tokio::test]
async fn bytes_that_the_disk_did_not_confirm_are_not_gone_on_with() {
    let lab = Lab::with(disk_image(6 * MIB), 64 * MIB as u64);
    let image = lab.spec(NAME);
    cut_off(&lab, &lab.open(), &image).await;
    let source = Arc::new(lab.source());
    operate(&lab.open(), &image, &source).await.unwrap();
    lab.has_published(NAME);
    assert_eq!(source.opened(), [0]);
}

#[tokio::test]
async fn a_part_that_was_spoilt_is_thrown_away_once_it_is_noticed() {
    let lab = lab();
    let image = lab.spec(NAME);
    let plan = demanding(&lab.bytes);
    // A transfer with the digest that is demanded breaks, and keeps what it has.
    let store = lab.open();
    store.create(&image, 1).await.unwrap();
    let broken = lab
        .source()
        .breaking_every(3 * MIB as u64)
        .with_fault(ErrorClass::SourceGone, None);
    let error = send(&store, &image, 1, &Arc::new(broken), plan.clone())
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceGone);

    let part = lab
        .files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|word| word == "part"));
    let part = part.expect("a part");
    let mut spoilt = std::fs::read(&part).unwrap();
    spoilt[1000] ^= 1;
    std::fs::write(&part, spoilt).unwrap();
    let source = Arc::new(lab.source());
    let error = send(&store, &image, 1, &source, plan.clone()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceMismatch);
    assert!(source.opened()[0] > 0, "{:?}", source.opened());

    let source = Arc::new(lab.source());
    send(&store, &image, 1, &source, plan).await.unwrap();
    assert_eq!(source.opened(), [0]);
    operate(&store, &image, &source).await.unwrap();
    lab.has_published(NAME);
}

#[tokio::test]
async fn a_part_is_empty_with_its_size_and_receiving_while_it_is_written() {
    let lab = lab();
    let (store, image) = (lab.open(), lab.spec(NAME));
    store.create(&image, 1).await.unwrap();
    let source = Arc::new(lab.source().hanging_at(3 * MIB as u64));
    let mut sending = Box::pin(send(&store, &image, 1, &source, ContentPlan::default()));
    let hung = future::select(&mut sending, Box::pin(source.hangs())).await;
    assert!(matches!(hung, Either::Right(_)));
    drop(hung);
    let seen = lab.open().observe(&image.subject, &image).await.unwrap();
    assert_eq!(seen.records[0].state, RecordState::Receiving);
    source.let_go();
    sending.await.unwrap();
    let seen = lab.open().observe(&image.subject, &image).await.unwrap();
    assert_eq!(seen.records[0].state, RecordState::Whole);
    let digest: Option<Pinned> = Pinned::new(Algorithm::Sha512, seen.records[0].sha512.as_ref().unwrap());
    let mut hasher = Hasher::new(Algorithm::Sha512);
    hasher.update(&lab.bytes);
    assert_eq!(digest, Some(hasher.finish()));
}

#[tokio::test]
async fn what_finds_no_room_gives_back_what_it_took() {
    let mut given_back = 0;
    for call in 1.. {
        let lab = Lab::with(disk_image(300_000), 100_000);
        let image = lab.spec(NAME);
        lab.open().create(&image, 1).await.unwrap();
        let faults = Arc::<Faults>::default();
        faults.plan(call, Fault::Halves);
        let (store, source) = (lab.breaking(&faults), Arc::new(lab.source()));
        let sent = send(&store, &image, 1, &source, ContentPlan::default()).await;
        if faults.calls() < call {
            break;
        }
        if sent.is_err_and(|error| error.class == ErrorClass::Quota) {
            let is_part = |path: &std::path::PathBuf| path.extension().is_some_and(|word| word == "part");
            let part = lab.files().into_iter().find(is_part);
            let left = part.map_or(0, |part| std::fs::metadata(part).unwrap().len());
            assert!(
                [0, lab.bytes.len() as u64].contains(&left),
                "{left} bytes at call {call}"
            );
            given_back += usize::from(left == 0);
        }
    }
    assert!(given_back > 3, "{given_back} times");
}

#[tokio::test]
async fn an_image_whose_bytes_were_cut_is_dead_and_made_again() {
    let lab = lab();
    let (store, image, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    operate(&store, &image, &source).await.unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(lab.path().join(NAME))
        .unwrap()
        .set_len(5)
        .unwrap();
    let seen = store.observe(&image.subject, &image).await.unwrap();
    assert_eq!(seen.records[0].state, RecordState::Dead);
    operate(&store, &image, &source).await.unwrap();
    lab.has_published(NAME);
}

#[tokio::test]
async fn a_source_that_hides_its_size_is_stored_from_the_start() {
    let lab = lab();
    let (store, image) = (lab.open(), lab.spec(NAME));
    let source: ScriptedSource = lab.source().saying(|probe| probe.size = None);
    operate(&store, &image, &Arc::new(source)).await.unwrap();
    lab.has_published(NAME);
}
