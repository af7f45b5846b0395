//! That an image is never held as a whole. Alone in its program, because the memory is that of the process.

#[cfg(test)]
#[path = "it/fixture.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod fixture;

use std::fs;

use openstack_lab::{disk, fake::FakeOptions};
use serde_json::json;

use crate::fixture::{Disk, fake_with, glance, made};

/// Resident memory in KiB: now, and at most so far.
#[cfg(test)]
fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (field("VmRSS:"), field("VmHWM:"))
}

#[tokio::test]
async fn half_a_gibibyte_is_sent_with_little_memory() {
    let fake = fake_with(FakeOptions {
        keep: 0,
        ..FakeOptions::default()
    })
    .await;
    let glance = glance(fake.site(), "openstack");
    let piece = disk::raw(1, 1 << 20);
    let send = async |pieces: usize| {
        let id = made(&glance, json!({ "disk_format": "raw" })).await;
        let disk = Disk {
            piece: piece.clone().into(),
            pieces,
            stops_after: usize::MAX,
            knows_size: true,
        };
        let body = disk.content().open().await.unwrap();
        let sent = glance.upload(&id, None, body).await.unwrap();
        assert_eq!(sent.bytes, (pieces << 20) as u64);
    };
    // What is allocated once, for both the fake and the client.
    send(64).await;
    let (before, _) = resident();
    send(512).await;
    let (_, most) = resident();
    let grown = most.saturating_sub(before);
    assert!(grown < 8 * 1024, "it took {grown} KiB");
}
