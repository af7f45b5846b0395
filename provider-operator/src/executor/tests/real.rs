//! The executor with counterparts that are no stand-ins: a directory, and a Keystone and a Glance over real connections.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{Executor, OpView, Order};
use super::bench::{Bench, eventually};
use crate::identity::Connection;
use crate::objects::ObjectId;
use crate::source::Files;
use crate::stand_ins::{Anywhere, Disk, object, plan};
use http::Method;
use openstack_lab::disk;
use openstack_lab::fake::{Fake, FakeOptions};
use planning::image::{Deed, Done, Failure, FailureClass, StopReason};
use provider_filestore::FileStores;
use provider_openstack::OpenStack;
use provider_plugin::{Format, Identity, Provider, RecordState};
use serde_json::json;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// One object's image in one place.
struct Work {
    bench: Bench,
    object: ObjectId,
    connection: Arc<Connection>,
    is_qcow2: bool,
}

impl Work {
    fn begin(&self, deed: Deed, files: Option<Files>) {
        let mut plan = plan(&self.object, deed);
        if self.is_qcow2 {
            let options = json!({ "disk_format": "qcow2", "container_format": "bare" });
            plan.image.options = options.as_object().unwrap().clone();
            plan.image.format = Some(Format::Qcow2);
        }
        self.bench.executor.begin(Order {
            plan,
            connection: Arc::clone(&self.connection),
            files,
            job: None,
        });
    }

    /// Waits for the end and forgets it.
    async fn end(&self) -> (Result<Done, Failure>, OpView) {
        let outcome = self.bench.end(&self.object).await;
        let view = self.bench.view(&self.object);
        self.bench.executor.forget(&self.object);
        (outcome, view)
    }

    async fn done(&self, deed: Deed, files: Option<Files>) -> Result<Done, Failure> {
        self.begin(deed, files);
        self.end().await.0
    }

    async fn created(&self) -> String {
        let deed = Deed::Create { attempt: 1, id: None };
        let Ok(Done::Created { id }) = self.done(deed, None).await else {
            panic!("no record was made");
        };
        id
    }

    /// What has become of the one record, with its digest as the cloud tells it.
    async fn record(&self) -> (RecordState, Option<String>) {
        self.begin(Deed::Look, None);
        let (outcome, view) = self.end().await;
        assert_eq!(outcome, Ok(Done::Looked));
        let records = view.found.observed.unwrap().records;
        let [record] = records.as_slice() else {
            panic!("there are {} records", records.len());
        };
        (record.state.clone(), record.sha512.clone())
    }

    /// Waits until the record takes bytes again: a write that a disk had begun ends, and a cloud notices that nobody is there any more.
    async fn let_go(&self) {
        let end = Instant::now() + Duration::from_mins(1);
        while self.record().await.0 != RecordState::Empty {
            assert!(Instant::now() < end, "the record is still held");
        }
    }

    /// Sends half of a file whose source stops there, and ends that: within a second, or five of a machine that has much else to do.
    async fn sent_half(&self, id: &str, file: &[u8]) {
        let half = Disk {
            stops_after: file.len() / 2,
            ..Disk::of(file.to_vec())
        };
        self.begin(transfer(id), Some(half.files()));
        let sent = || {
            self.bench
                .view(&self.object)
                .progress
                .map_or(0, |progress| progress.sent)
        };
        eventually("bytes on their way", || sent() > MIB as u64 / 2).await;
        let told = Instant::now();
        self.bench.executor.stop(&self.object, StopReason::Changed);
        let (outcome, _) = self.end().await;
        assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
        let class = FailureClass::Stopped {
            why: StopReason::Changed,
        };
        assert_eq!(outcome.unwrap_err().class, class);
    }
}

fn transfer(id: &str) -> Deed {
    Deed::Transfer {
        id: id.to_owned(),
        attempt: 1,
        staged: false,
    }
}

fn publish(id: &str) -> Deed {
    Deed::Publish {
        id: id.to_owned(),
        attempt: 1,
        verified: format!("sha256:{}", "0".repeat(64)),
    }
}

fn connection(provider: impl Provider + 'static, name: &str, clouds: Option<String>) -> Arc<Connection> {
    let data: BTreeMap<_, _> = clouds
        .map(|clouds| ("clouds.yaml".to_owned(), clouds.into()))
        .into_iter()
        .collect();
    let identity = Identity {
        name: name.to_owned(),
        data,
        version: "uid/1".to_owned(),
    };
    Arc::new(Connection::new(Arc::new(provider), identity, Arc::new(Anywhere)).unwrap())
}

fn directory() -> (TempDir, Work) {
    let folder = tempfile::tempdir().unwrap();
    let option = format!("default={}", folder.path().display());
    let work = Work {
        bench: Bench::new(),
        object: object("fleet", "node"),
        connection: connection(FileStores::parse([option.as_str()]).unwrap(), "default", None),
        is_qcow2: false,
    };
    (folder, work)
}

async fn cloud() -> (Fake, Work) {
    let fake = Fake::start(FakeOptions::default()).await.unwrap();
    let work = Work {
        bench: Bench::new(),
        object: object("fleet", "node"),
        connection: connection(OpenStack, "demo", Some(fake.site().clouds_yaml(None))),
        is_qcow2: true,
    };
    (fake, work)
}

/// Everything below a directory, with the size of each file.
fn files(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                return files(&path);
            }
            let length = fs::metadata(&path).unwrap().len();
            BTreeMap::from([(path, length)])
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_quiet_after_a_stop_and_the_rest_of_the_image_comes_into_it_later() {
    let (folder, work) = directory();
    let file = disk::raw(1, 8 * MIB);
    let id = work.created().await;
    work.sent_half(&id, &file).await;
    work.let_go().await;
    let after = files(folder.path());
    assert_eq!(work.record().await.0, RecordState::Empty);
    assert_eq!(files(folder.path()), after);
    let sent = work.done(transfer(&id), Some(Disk::of(file.clone()).files())).await;
    assert_eq!(sent, Ok(Done::Sent));
    assert_eq!(work.done(publish(&id), None).await, Ok(Done::Published));
    assert!(fs::read(folder.path().join("node")).unwrap() == file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_is_quiet_after_a_stop_and_takes_the_image_later() {
    let (fake, work) = cloud().await;
    let file = disk::qcow2(1);
    let id = work.created().await;
    work.sent_half(&id, &file).await;
    eventually("the end of the connection", || {
        fake.image(&id).unwrap()["status"] == "queued"
    })
    .await;
    let uploads = || {
        let requests = fake.requests().into_iter().filter(|asked| asked.method == Method::PUT);
        requests.map(|asked| asked.received).collect::<Vec<_>>()
    };
    let (asked, after) = (fake.requests().len(), uploads());
    assert_eq!(after.len(), 1);
    let (state, _) = work.record().await;
    assert_eq!(state, RecordState::Empty);
    assert_eq!(uploads(), after);
    let looked = fake.requests().split_off(asked);
    assert!(looked.iter().all(|asked| asked.method == Method::GET), "{looked:?}");
    assert_eq!(
        work.done(transfer(&id), Some(Disk::of(file).files())).await,
        Ok(Done::Sent)
    );
    assert_eq!(work.done(publish(&id), None).await, Ok(Done::Published));
    assert_eq!(fake.image(&id).unwrap()["status"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_in_status_before_the_cloud_has_it_and_is_what_the_cloud_has() {
    let (_fake, work) = cloud().await;
    let file = disk::qcow2(2);
    let id = work.created().await;
    let sent = work.done(transfer(&id), Some(Disk::of(file.clone()).files())).await;
    assert_eq!(sent, Ok(Done::Sent));
    let (state, sha512) = work.record().await;
    assert_eq!(state, RecordState::Whole);
    let transfer = work.bench.cluster.transfer("node");
    let sealed = &transfer["sealed"];
    assert_eq!(sealed["sha512"], json!(sha512.unwrap()));
    assert_eq!(
        (&sealed["attempt"], &sealed["sizeBytes"]),
        (&json!(1), &json!(file.len()))
    );
    assert_eq!(
        (&transfer["sentBytes"], &transfer["holder"]),
        (&json!(file.len()), &json!("operator-0"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_seal_ends_the_transfer_before_its_last_byte() {
    let (folder, in_directory) = directory();
    let (fake, in_cloud) = cloud().await;
    let file = disk::qcow2(3);
    for work in [&in_directory, &in_cloud] {
        let id = work.created().await;
        work.bench.cluster.refuse_seals([409]);
        let failure = work
            .done(transfer(&id), Some(Disk::of(file.clone()).files()))
            .await
            .unwrap_err();
        assert_eq!(failure.class, FailureClass::Sealing, "{failure:?}");
        work.let_go().await;
        assert!(work.bench.cluster.transfer("node")["sealed"].is_null());
    }
    let longest = files(folder.path()).into_values().max();
    assert!(longest.unwrap() < file.len() as u64);
    let received = fake.requests().iter().map(|asked| asked.received).max();
    assert!(received.unwrap() < file.len() as u64);
}
