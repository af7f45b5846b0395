//! Images on their way to the cloud.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, StatusCode};
use openstack_lab::{disk, fake::Fake};
use provider_openstack::glance::Glance;
use provider_plugin::{
    CloudError, Content, ContentPlan, ErrorClass, Format, ImageId, ImageSource, Opened, Probe, Progress, Report, Seal,
    SealError, Sent, SourceError,
};
use serde_json::json;

use crate::fixture::{Disk, eventually, fake, glance, made, status};

async fn send(glance: &Glance, id: &ImageId, disk: Disk) -> Result<Sent, CloudError> {
    let body = disk.content().open().await.unwrap();
    glance.upload(id, None, body).await
}

/// A disk that comes by pieces of a MiB, and stops.
fn stopping(stops_after: usize) -> Disk {
    Disk {
        piece: disk::raw(1, 1 << 20).into(),
        pieces: 16,
        stops_after,
        knows_size: true,
    }
}

async fn an_image(fake: &Fake, format: &str) -> (Glance, ImageId) {
    let glance = glance(fake.site(), "openstack");
    let id = made(&glance, json!({ "disk_format": format })).await;
    (glance, id)
}

#[tokio::test]
async fn content_length_is_sent_and_the_hash_is_that_of_the_bytes() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "qcow2").await;
    let disk = disk::qcow2(5);
    let sent = send(&glance, &id, Disk::of(disk.clone())).await.unwrap();
    assert_eq!(sent.bytes, disk.len() as u64);
    let image = fake.image(&id.0).unwrap();
    assert_eq!(image["status"], "active");
    assert_eq!(image["os_hash_value"], sent.sums.sha512.as_str());
    let requests = fake.requests();
    let put = requests.iter().find(|asked| asked.method == Method::PUT).unwrap();
    assert_eq!((put.content_length, put.chunked), (Some(disk.len() as u64), false));
}

#[tokio::test]
async fn only_a_body_of_unknown_length_is_chunked() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "qcow2").await;
    let disk = Disk {
        knows_size: false,
        ..Disk::of(disk::qcow2(5))
    };
    send(&glance, &id, disk).await.unwrap();
    let requests = fake.requests();
    let put = requests.iter().find(|asked| asked.method == Method::PUT).unwrap();
    assert_eq!((put.content_length, put.chunked), (None, true));
    assert_eq!(status(&fake, &id), "active");
}

#[tokio::test]
async fn a_body_of_unknown_length_ends_where_the_project_has_no_room_for_more() {
    let fake = fake().await;
    let glance = glance(fake.site(), "tiny");
    let id = made(&glance, json!({ "disk_format": "raw" })).await;
    let disk = Disk {
        knows_size: false,
        ..stopping(usize::MAX)
    };
    let error = send(&glance, &id, disk).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Quota, "{error}");
    let quota = error.quota.unwrap();
    assert_eq!((quota.limit, quota.used), (Some(8), Some(0)));
    eventually("the end of the upload", || status(&fake, &id) == "queued").await;
}

#[tokio::test]
async fn a_dropped_upload_leaves_an_empty_image_that_can_be_sent_again() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    let is_saving = eventually("the upload", || status(&fake, &id) == "saving");
    tokio::select! {
        sent = send(&glance, &id, stopping(8)) => panic!("half an image was sent: {sent:?}"),
        () = is_saving => {}
    }
    let dropped = std::time::Instant::now();
    eventually("the end of the upload", || status(&fake, &id) == "queued").await;
    // Milliseconds, on a machine that has nothing else to do.
    assert!(dropped.elapsed() < Duration::from_secs(5), "{:?}", dropped.elapsed());
    assert!(fake.image(&id.0).unwrap()["checksum"].is_null());
    send(&glance, &id, stopping(usize::MAX)).await.unwrap();
    assert_eq!(status(&fake, &id), "active");
}

/// What comes of an upload once nothing moves in it any more.
async fn stalled(fake: &Fake, glance: &Glance, id: &ImageId, disk: Disk, is_begun: impl Fn() -> bool) -> CloudError {
    let upload = send(glance, id, disk);
    tokio::pin!(upload);
    tokio::select! {
        sent = &mut upload => panic!("it should stall: {sent:?}"),
        () = eventually("the upload", is_begun) => {}
    }
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let error = upload.await.unwrap_err();
    assert!(begun.elapsed() <= Duration::from_mins(1), "{:?}", begun.elapsed());
    tokio::time::resume();
    fake.relent();
    error
}

#[tokio::test]
async fn a_source_that_stalls_is_told_as_the_source() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    let error = stalled(&fake, &glance, &id, stopping(4), || status(&fake, &id) == "saving").await;
    assert_eq!(error.class, ErrorClass::SourceBroken, "{error}");
    eventually("the end of the upload", || status(&fake, &id) == "queued").await;
}

#[tokio::test]
async fn a_cloud_that_takes_nothing_is_told_as_the_cloud() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    fake.hang(Method::PUT, "/file", 1);
    let disk = Disk {
        pieces: 64,
        ..stopping(usize::MAX)
    };
    let error = stalled(&fake, &glance, &id, disk, || fake.count(&Method::PUT, "/file") == 1).await;
    assert_eq!(error.class, ErrorClass::Unavailable, "{error}");
}

/// A disk whose second half comes drop by drop: the cloud gets nothing for minutes, because what it gets is a MiB at least. The clock leaps while drops
/// are waited for and at no other time: beside a real socket it would leap over all that the cloud is given to answer in.
#[derive(Debug)]
struct Dripping;

const DROPS: usize = 40;
const DROP: usize = 1024;
const AT_ONCE: usize = 4 << 20;

#[async_trait]
impl ImageSource for Dripping {
    fn place(&self) -> &'static str {
        "https://images.example/drops"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some((AT_ONCE + DROPS * DROP) as u64),
            ..Probe::default()
        })
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        let all = Bytes::from(disk::raw(1, AT_ONCE + DROPS * DROP));
        let drops = stream::iter(0..DROPS).then(move |drop| {
            let drop = all.slice(AT_ONCE + drop * DROP..AT_ONCE + (drop + 1) * DROP);
            async move {
                tokio::time::pause();
                tokio::time::sleep(Duration::from_secs(25)).await;
                tokio::time::resume();
                Ok(drop)
            }
        });
        let at_once = Bytes::from(disk::raw(1, AT_ONCE + DROPS * DROP)).slice(..AT_ONCE);
        Ok(Opened::FromStart(stream::iter([Ok(at_once)]).chain(drops).boxed()))
    }
}

/// Takes every seal, of a transfer that nobody waits for.
#[derive(Debug)]
struct Alone;

#[async_trait]
impl Report for Alone {
    fn progress(&self, _: Progress) {}

    fn others_wait(&self) -> bool {
        false
    }

    async fn seal(&self, _: &Seal) -> Result<(), SealError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_source_that_pauses_is_waited_for_as_long_as_it_gives_something() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    let plan = ContentPlan {
        attempt: 1,
        ..ContentPlan::default()
    };
    let probe = Dripping.probe().await.unwrap();
    let content = Content::new(Arc::new(Dripping), probe, plan, Arc::new(Alone));
    let begun = tokio::time::Instant::now();
    let sent = glance.upload(&id, None, content.open().await.unwrap()).await.unwrap();
    assert!(begun.elapsed() > Duration::from_mins(10), "{:?}", begun.elapsed());
    assert_eq!(sent.bytes, (AT_ONCE + DROPS * DROP) as u64);
}

#[tokio::test]
async fn a_cloud_that_has_all_bytes_has_a_quarter_of_an_hour_to_confirm() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    fake.hang(Method::PUT, "/file", 1);
    let upload = send(&glance, &id, Disk::of(disk::raw(1, 64 << 10)));
    tokio::pin!(upload);
    tokio::select! {
        sent = &mut upload => panic!("nobody has confirmed it: {sent:?}"),
        () = eventually("the upload", || fake.count(&Method::PUT, "/file") == 1) => {}
    }
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let error = upload.await.unwrap_err();
    assert!(begun.elapsed() >= Duration::from_mins(14), "{:?}", begun.elapsed());
    assert_eq!(error.class, ErrorClass::Unavailable, "{error}");
    assert!(error.to_string().contains("did not confirm"), "{error}");
    tokio::time::resume();
    fake.relent();
}

#[tokio::test]
async fn an_answer_before_the_body_is_found_out_whether_or_not_it_arrives() {
    let fake = fake().await;
    let tiny = glance(fake.site(), "tiny");
    let id = made(&tiny, json!({ "disk_format": "raw" })).await;
    let error = send(&tiny, &id, stopping(usize::MAX)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Quota, "{error}");
    let quota = error.quota.unwrap();
    assert_eq!((quota.limit, quota.used, quota.requested), (Some(8), Some(0), Some(16)));
}

#[tokio::test]
async fn a_token_that_is_refused_before_a_body_costs_one_try() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    fake.revoke_tokens();
    let error = send(&glance, &id, stopping(usize::MAX)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown, "{error}");
    send(&glance, &id, stopping(usize::MAX)).await.unwrap();
    fake.revoke_tokens();
    fake.revoke_credential("openstack");
    let error = send(&glance, &id, stopping(usize::MAX)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Credentials, "{error}");
}

#[tokio::test]
async fn an_image_that_was_deleted_meanwhile_is_gone() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    fake.lose_answer(Method::PUT, "/file", 1);
    let upload = send(&glance, &id, stopping(usize::MAX));
    let deletion = async {
        eventually("the upload", || status(&fake, &id) != "queued").await;
        fake.remove(&id.0);
    };
    let (sent, ()) = tokio::join!(upload, deletion);
    assert_eq!(sent.unwrap_err().class, ErrorClass::Gone);
}

#[tokio::test]
async fn answers_to_a_whole_body_have_their_class() {
    let fake = fake().await;
    let (glance, id) = an_image(&fake, "raw").await;
    for (answer, class) in [
        (StatusCode::CONFLICT, ErrorClass::State),
        (StatusCode::GONE, ErrorClass::Gone),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorClass::Invalid),
        (StatusCode::SERVICE_UNAVAILABLE, ErrorClass::Unavailable),
    ] {
        fake.answer(Method::PUT, "/file", answer, &[], "", 1);
        let disk = Disk::of(disk::raw(1, 1 << 20));
        assert_eq!(send(&glance, &id, disk).await.unwrap_err().class, class, "{answer}");
    }
    let spoilt = made(&glance, json!({})).await;
    let error = send(&glance, &spoilt, Disk::of(disk::raw(1, 1 << 20)))
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.to_string().contains("does not match stream data raw"), "{error}");
}

#[tokio::test]
async fn what_is_no_such_image_is_found_before_it_is_sent() {
    let content = Disk::of(b"<html>not a disk</html>".repeat(100)).content_of(Some(Format::Qcow2));
    let error = content.open().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceNotAnImage, "{error}");
}
