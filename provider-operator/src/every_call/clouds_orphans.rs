//! Images in a cloud that no object is for, with identities that change or may not do everything: with a cloud over real sockets, and so with the real clock
//! but for where it is told to leap.

use std::cell::Cell;
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use openstack_lab::client::whole;
use openstack_lab::facts::Visitor;
use openstack_lab::fake::{Fake, FakeOptions};
use provider_plugin::OwnerId;
use serde_json::json;
use tempfile::TempDir;

use super::images::real;
use super::secrets::{FLAGS, after, image, is_ready, played, secret, until};
use super::{args, begin};
use crate::sweeper::list;

/// As long as two searches for orphans lie apart at most.
const BETWEEN_SEARCHES: Duration = Duration::from_mins(67);

/// An image in the cloud that was begun for an object of this installation that is not there.
async fn leave_behind(fake: &Fake) {
    let visitor = Visitor::new(fake.site()).await.expect("a visitor");
    let member = visitor.tenant("demo").await.expect("a login");
    let body = json!({
        "name": "gone", "disk_format": "qcow2", "container_format": "bare", "os_hidden": true,
        "cs_owner": "here", "cs_object": "fleet/gone", "cs_key": "a".repeat(64), "cs_attempt": "1",
    });
    let kind = Some("application/json");
    let reply = member
        .call(Method::POST, "/images", kind, whole(body.to_string()))
        .await;
    let reply = reply.expect("an answer");
    assert!(reply.status.is_success(), "{} {}", reply.status, reply.text());
}

#[test]
fn an_orphan_goes_though_the_secret_is_written_more_often_than_anybody_searches() {
    played(async |server, fake| {
        until(server, is_ready).await;
        leave_behind(fake).await;
        assert_eq!(fake.ids().len(), 2);
        let written = Cell::new(0);
        after(BETWEEN_SEARCHES, || {
            written.set(written.get() + 1);
            let annotations = json!({ "rotated": written.get().to_string() });
            server.merge(
                "Secret",
                "cloud",
                &json!({ "metadata": { "annotations": annotations } }),
            );
            (fake.ids().len() == 1).then_some(())
        })
        .await;
    });
}

#[test]
fn what_one_identity_may_not_delete_is_deleted_by_another_one_that_sees_it() {
    let (server, store, cache) = (
        begin(None),
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    );
    let told = real().block_on(async {
        let fake = Fake::start(FakeOptions::default()).await.expect("a cloud");
        leave_behind(&fake).await;
        for name in ["cloud", "other"] {
            let (mut secret, mut image) = (secret(&fake), image("https://images.example/u"));
            for object in [&mut secret, &mut image] {
                object["metadata"]["name"] = name.into();
                server.apply(object);
            }
            server.merge(
                super::secrets::IMAGE,
                name,
                &json!({ "spec": { "identityRef": { "name": name } } }),
            );
        }
        fake.answer(
            Method::DELETE,
            "/images/",
            StatusCode::FORBIDDEN,
            &[],
            "only to read",
            1,
        );
        let args = args(&FLAGS, store.path(), cache.path());
        let owner = OwnerId::parse("here").expect("an owner");
        let now = Timestamp::now() + SignedDuration::from_hours(2);
        let told = list(&args, &server.client(), &owner, true, now).await.expect("a list");
        assert_eq!(fake.ids(), Vec::<String>::new(), "{told:?}");
        assert_eq!(fake.count(&Method::DELETE, "/images/"), 2);
        told
    });
    assert_eq!((told.orphans, told.troubles.len()), (0, 0), "{told:?}");
}
