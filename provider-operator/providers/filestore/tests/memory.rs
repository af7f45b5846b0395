//! That many images on their way take little memory. Alone in its program, because the memory is that of the process.

use std::fs;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt, stream};
use provider_filestore::FileStore;
use provider_plugin::{
    Content, ContentKey, ContentPlan, Created, ImageSource, ImageSpec, ImageStore, Opened, OwnerId, Probe, Progress,
    Reach, Report, Seal, SealError, SourceError, Subject,
};

const MIB: usize = 1 << 20;
/// Images at once.
const IMAGES: usize = 20;
/// MiB of each.
const PIECES: usize = 50;
/// MiB that all of them together may take: what waits in the buffers of each, and the threads that write.
const MOST: u64 = 100;

/// Resident memory in MiB: now, and at most so far.
#[cfg(test)]
fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (field("VmRSS:") / 1024, field("VmHWM:") / 1024)
}

/// The same MiB again and again, each time in memory of its own, as from a network.
#[derive(Debug)]
struct Disk(Bytes, usize);

#[async_trait]
impl ImageSource for Disk {
    fn place(&self) -> &'static str {
        "https://images.example/disk"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some((self.0.len() * self.1) as u64),
            ..Probe::default()
        })
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        let piece = self.0.clone();
        let pieces = stream::iter((0..self.1).map(move |_| Ok(Bytes::copy_from_slice(&piece))));
        Ok(Opened::FromStart(pieces.boxed()))
    }
}

struct Silent;

#[async_trait]
impl Report for Silent {
    fn progress(&self, _: Progress) {}

    async fn seal(&self, _: &Seal) -> Result<(), SealError> {
        Ok(())
    }
}

#[cfg(test)]
fn image(number: usize) -> ImageSpec {
    ImageSpec {
        subject: Subject {
            owner: OwnerId::parse("mine").unwrap(),
            object: format!("fleet/{number}"),
            key: ContentKey::parse(&format!("{number:0>2}{}", "0".repeat(62))).unwrap(),
            name: format!("disk-{number}"),
            recorded: None,
            made: None,
            attempt: None,
            adopt: None,
            look_for_others: false,
            reach: Reach::default(),
            only_recorded: false,
        },
        options: serde_json::Map::new(),
        format: None,
        source_digest: None,
        chosen_id: None,
        stores: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_images_at_once_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path().to_owned());
    let piece: Bytes = (0..MIB).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
    let send = async |number: usize, pieces: usize| {
        let image = image(number);
        let Created::New(id) = store.create(&image, 1).await.unwrap() else {
            panic!("the record was there");
        };
        let source = Disk(piece.clone(), pieces);
        let probe = source.probe().await.unwrap();
        let plan = ContentPlan {
            attempt: 1,
            ..ContentPlan::default()
        };
        let content = Content::new(Arc::new(source), probe, plan, Arc::new(Silent));
        let sent = store.transfer(&id, &image, content, &Silent).await.unwrap();
        assert_eq!(sent.bytes, (pieces * MIB) as u64);
    };
    // What is allocated once.
    send(99, 2).await;
    let (before, _) = resident();
    join_all((0..IMAGES).map(|number| send(number, PIECES))).await;
    let (_, most) = resident();
    let grown = most.saturating_sub(before);
    assert!(grown < MOST, "it took {grown} MiB");
}
