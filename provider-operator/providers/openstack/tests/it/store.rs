//! The images of a cloud as the operator asks for them.

use std::collections::BTreeSet;

use futures::{StreamExt, future};
use http::{Method, StatusCode};
use openstack_lab::{
    disk,
    facts::Origin,
    fake::{Fake, FakeOptions},
};
use provider_openstack::{OpenStack, OpenStackStore};
use provider_plugin::{
    Created, Discarded, ErrorClass, Identity, ImageId, ImageSpec, ImageStore, Observed, Provider, RecordState,
};
use serde_json::{Value, json};

use crate::fixture::{Disk, Notes, eventually, fake, fake_with, image, loopback, made, status, store};

async fn create(store: &OpenStackStore, image: &ImageSpec, attempt: u32) -> ImageId {
    match store.create(image, attempt).await.unwrap() {
        Created::New(id) => id,
        other => panic!("it was not made: {other:?}"),
    }
}

/// An image that has its bytes.
async fn whole(store: &OpenStackStore, image: &ImageSpec) -> ImageId {
    let id = create(store, image, 1).await;
    let content = Disk::of(disk::qcow2(1)).content();
    store.transfer(&id, image, content, &Notes::default()).await.unwrap();
    id
}

async fn observe(store: &OpenStackStore, image: &ImageSpec) -> Observed {
    store.observe(&image.subject, image).await.unwrap()
}

async fn state(store: &OpenStackStore, image: &ImageSpec) -> RecordState {
    let observed = observe(store, image).await;
    let [record] = observed.records.try_into().unwrap();
    record.state
}

fn told(fake: &Fake, id: &ImageId) -> Value {
    fake.image(&id.0).unwrap()
}

#[tokio::test]
async fn an_image_is_made_sent_published_and_seen() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let properties = json!({ "hw_disk_bus": "virtio" });
    image.options.insert("properties".into(), properties);
    image.options.insert("protected".into(), true.into());
    let id = whole(&store, &image).await;
    assert_eq!(told(&fake, &id)["os_hidden"], true, "until it is published");
    for _ in 0..2 {
        store.publish(&id, &image, "sha256:1").await.unwrap();
    }
    assert_eq!(fake.count(&Method::PATCH, &id.0), 1, "once more is no write");
    let observed = observe(&store, &image).await;
    let [record] = observed.records.try_into().unwrap();
    assert_eq!(
        (record.state, record.shown, record.attempt),
        (RecordState::Whole, true, 1)
    );
    assert_eq!(record.verified.as_deref(), Some("sha256:1"));
    assert_eq!(record.size, Some(disk::qcow2(1).len() as u64));
    assert_eq!(record.drift, []);
    let shown = told(&fake, &id);
    assert_eq!(
        (&shown["protected"], &shown["os_hidden"], &shown["hw_disk_bus"]),
        (&json!(true), &json!(false), &json!("virtio"))
    );
}

#[tokio::test]
async fn an_image_that_is_noted_down_is_seen_by_one_request_where_that_is_enough() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = whole(&store, &image).await;
    store.publish(&id, &image, "sha256:1").await.unwrap();
    let asked = || fake.count(&Method::GET, "/v2/images");
    let all = observe(&store, &image).await;
    image.subject.recorded = Some(id.clone());
    let before = asked();
    assert_eq!(observe(&store, &image).await, all);
    assert_eq!(asked(), before + 2, "hidden ones and others");
    image.subject.only_recorded = true;
    let before = asked();
    assert_eq!(observe(&store, &image).await, all);
    assert_eq!(asked(), before + 1);
    // What is not there any more, or not this object's, is no reason to overlook what is.
    let second = create(&store, &image, 2).await;
    store.discard(&id, &image.subject.marked(1)).await.unwrap();
    let stranger = made(store.glance(), json!({})).await;
    for recorded in [id, stranger] {
        image.subject.recorded = Some(recorded);
        let [record] = observe(&store, &image).await.records.try_into().unwrap();
        assert_eq!(record.id, second);
    }
}

#[tokio::test]
async fn a_record_that_no_list_shows_is_found_by_the_attempt_that_was_noted_down() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    image.chosen_id = Some(ImageId("5e1ec7ed-0000-4000-8000-000000000001".to_owned()));
    let ids = [create(&store, &image, 1).await, create(&store, &image, 2).await];
    assert_eq!(Some(&ids[0]), image.chosen_id.as_ref());
    let nothing = json!({ "images": [] }).to_string();
    let json = [("content-type", "application/json")];
    fake.answer(Method::GET, "os_hidden=", StatusCode::OK, &json, &nothing, 100);
    for (attempt, found) in [
        (None, None),
        (Some(1), Some(&ids[0])),
        (Some(2), Some(&ids[1])),
        (Some(3), None),
    ] {
        image.subject.attempt = attempt;
        let records = observe(&store, &image).await.records;
        let records: Vec<_> = records.iter().map(|record| &record.id).collect();
        assert_eq!(records, Vec::from_iter(found), "{attempt:?}");
    }
}

#[tokio::test]
async fn one_of_many_makes_an_image_and_the_others_find_it() {
    let fake = fake().await;
    let image = image("ubuntu");
    let stores: Vec<_> = (0..8).map(|_| store(fake.site(), "openstack")).collect();
    let made = future::try_join_all(stores.iter().map(|store| store.create(&image, 1)))
        .await
        .unwrap();
    let new = made.iter().filter(|made| matches!(made, Created::New(_))).count();
    let ours = made.iter().filter(|made| matches!(made, Created::Ours(_))).count();
    assert_eq!((new, ours, fake.ids().len()), (1, 7, 1));
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_found_by_its_id() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    fake.lose_answer(Method::POST, "/v2/images", 1);
    let error = store.create(&image, 1).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown, "{error}");
    let [id] = fake.ids().try_into().unwrap();
    assert_eq!(store.create(&image, 1).await.unwrap(), Created::Ours(ImageId(id)));
}

#[tokio::test]
async fn an_id_that_is_taken_burns_the_attempt_and_no_other() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    assert_eq!(
        store.discard(&id, &image.subject.marked(1)).await.unwrap(),
        Discarded::Gone
    );
    assert_eq!(store.create(&image, 1).await.unwrap(), Created::Taken);
    let second = create(&store, &image, 2).await;
    assert_ne!(second, id);
    let stranger = made(store.glance(), json!({})).await;
    image.chosen_id = Some(stranger.clone());
    assert_eq!(store.create(&image, 1).await.unwrap(), Created::Taken);
    image.chosen_id = Some(ImageId("2c2a1b6e-0000-4000-8000-000000000001".into()));
    assert_eq!(create(&store, &image, 1).await, image.chosen_id.clone().unwrap());
    assert_ne!(
        create(&store, &image, 3).await,
        image.chosen_id.unwrap(),
        "the choice is for the first attempt"
    );
}

#[tokio::test]
async fn a_cloud_that_hides_nothing_is_served_and_told() {
    let fake = fake_with(FakeOptions {
        knows_hidden: false,
        ..FakeOptions::default()
    })
    .await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = whole(&store, &image).await;
    let preflight = store.preflight(&image, None).await.unwrap();
    assert!(preflight.warnings[0].contains("no hidden images"), "{preflight:?}");
    create(&store, &image, 2).await;
    assert_eq!(fake.count(&Method::POST, "/v2/images"), 3, "found out once");
    assert_eq!(store.owned(&image.subject.owner).await.unwrap().len(), 2);
    assert_eq!(told(&fake, &id)["os_hidden"], false);
}

#[tokio::test]
async fn what_happens_in_the_cloud_is_seen() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    assert_eq!(state(&store, &image).await, RecordState::Empty);
    let content = Disk::of(disk::qcow2(1)).content();
    store.transfer(&id, &image, content, &Notes::default()).await.unwrap();
    fake.deactivate(&id.0);
    assert_eq!(state(&store, &image).await, RecordState::Withdrawn);
    fake.reactivate(&id.0);
    assert_eq!(state(&store, &image).await, RecordState::Whole);
    fake.kill(&id.0);
    assert_eq!(state(&store, &image).await, RecordState::Dead);
    fake.delay_deletion(&id.0);
    assert_eq!(state(&store, &image).await, RecordState::Going);
    assert_eq!(
        store.discard(&id, &image.subject.marked(1)).await.unwrap(),
        Discarded::Going
    );
    fake.remove(&id.0);
    assert_eq!(observe(&store, &image).await, Observed::default());
    assert_eq!(
        store.discard(&id, &image.subject.marked(1)).await.unwrap(),
        Discarded::WasGone
    );
}

#[tokio::test]
async fn a_cloud_that_dies_in_an_upload_leaves_an_image_that_is_receiving() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    let disk = Disk {
        piece: disk::qcow2(1).into(),
        pieces: 2,
        stops_after: 1,
        knows_size: true,
    };
    let notes = Notes::default();
    let crash = async {
        eventually("the upload", || status(&fake, &id) == "saving").await;
        fake.crash();
    };
    let (sent, ()) = tokio::join!(store.transfer(&id, &image, disk.content(), &notes), crash);
    assert_eq!(sent.unwrap_err().class, ErrorClass::Unknown);
    assert_eq!(state(&store, &image).await, RecordState::Receiving);
    assert_eq!(notes.0.lock().unwrap().len(), 0, "nothing was sealed");
    assert_eq!(
        store.discard(&id, &image.subject.marked(1)).await.unwrap(),
        Discarded::Gone
    );
}

#[tokio::test]
async fn a_refused_image_is_spoilt() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    let content = Disk::of(disk::raw(1, 1 << 20)).content();
    let error = store
        .transfer(&id, &image, content, &Notes::default())
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    assert!(matches!(state(&store, &image).await, RecordState::Spoilt { .. }));
}

#[tokio::test]
async fn imports_are_seen_from_their_beginning_to_their_end() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let origin = Origin::start(disk::qcow2(1)).await.unwrap();
    let id = create(&store, &image, 1).await;
    fake.hold_imports(true);
    store.import(&id, &image, &origin.url("/disk")).await.unwrap();
    assert!(matches!(state(&store, &image).await, RecordState::Importing { .. }));
    let again = store.import(&id, &image, &origin.url("/disk")).await.unwrap_err();
    assert_eq!(again.class, ErrorClass::State, "{again}");
    fake.hold_imports(false);
    eventually("the import", || status(&fake, &id) == "active").await;
    assert_eq!(state(&store, &image).await, RecordState::Whole);
}

#[tokio::test]
async fn an_import_that_fails_spoils_its_record() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let origin = Origin::start(disk::qcow2(1)).await.unwrap();
    let id = create(&store, &image, 1).await;
    let filtered = store.import(&id, &image, "http://10.0.0.1/x").await.unwrap_err();
    assert_eq!(filtered.class, ErrorClass::Invalid, "{filtered}");
    store.import(&id, &image, &origin.url("/missing")).await.unwrap();
    let has_failed = || told(&fake, &id)["os_glance_failed_import"] == "store-a";
    eventually("the failure", has_failed).await;
    let RecordState::Spoilt { why } = state(&store, &image).await else {
        panic!("it is not spoilt");
    };
    assert!(why.contains("store-a"), "{why}");
}

#[tokio::test]
async fn a_cloud_that_fetches_nothing_says_so_before_anything_changes() {
    let fake = fake_with(FakeOptions {
        methods: vec!["glance-direct".into()],
        ..FakeOptions::default()
    })
    .await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    let error = store.import(&id, &image, "http://127.0.0.1/x").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported, "{error}");
    assert!(told(&fake, &id)["cs_import"].is_null());
}

#[tokio::test]
async fn a_cloud_that_announces_imports_and_has_none_is_one_that_fetches_nothing() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    fake.answer(Method::POST, "/import", StatusCode::NOT_FOUND, &[], "no such page", 1);
    let error = store.import(&id, &image, "http://127.0.0.1/x").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported, "{error}");
    assert!(told(&fake, &id)["cs_import"].is_null(), "it is waited for");
    fake.answer(Method::POST, "/import", StatusCode::NOT_FOUND, &[], "no such page", 1);
    let content = Disk::of(disk::qcow2(3)).content();
    let error = store.stage(&id, &image, content, &Notes::default()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported, "{error}");
}

#[tokio::test]
async fn what_is_staged_becomes_an_image_with_the_bytes_that_were_sent() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    assert!(store.capabilities().staged);
    let id = create(&store, &image, 1).await;
    let content = Disk::of(disk::qcow2(3)).content();
    let sent = store.stage(&id, &image, content, &Notes::default()).await.unwrap();
    eventually("the image", || told(&fake, &id)["status"] == "active").await;
    assert_eq!(state(&store, &image).await, RecordState::Whole);
    assert_eq!(told(&fake, &id)["os_hash_value"], sent.sums.sha512.as_str());
    let puts = |part: &str| fake.count(&Method::PUT, part);
    assert_eq!((puts("/stage"), puts("/file")), (1, 0));
}

#[tokio::test]
async fn a_cloud_without_a_stage_says_so_before_anything_is_sent() {
    let fake = fake_with(FakeOptions {
        methods: vec!["web-download".into()],
        ..FakeOptions::default()
    })
    .await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = create(&store, &image, 1).await;
    let content = Disk::of(disk::qcow2(3)).content();
    let error = store.stage(&id, &image, content, &Notes::default()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported, "{error}");
    assert_eq!(fake.count(&Method::PUT, "/stage"), 0);
    assert!(!store.capabilities().staged, "nobody tries that again");
}

#[tokio::test]
async fn images_of_others_are_seen_where_they_are_asked_for() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let admin = crate::fixture::glance(fake.site(), "admin");
    let public = made(&admin, json!({ "name": "ubuntu", "visibility": "public" })).await;
    let own = made(store.glance(), json!({ "name": "ubuntu" })).await;
    let other = made(store.glance(), json!({ "name": "debian" })).await;
    assert_eq!(observe(&store, &image).await.others, []);
    image.subject.look_for_others = true;
    let others = observe(&store, &image).await.others;
    let ids: BTreeSet<_> = others.iter().map(|other| other.id.clone()).collect();
    assert_eq!(ids, BTreeSet::from([public.clone(), own.clone()]));
    let of = |id: &ImageId| others.iter().find(|other| other.id == *id).unwrap();
    assert!(!of(&public).is_of_our_project && of(&own).is_of_our_project && !of(&own).is_usable);
    image.subject.look_for_others = false;
    image.subject.adopt = Some(other.clone());
    let [adopted] = observe(&store, &image).await.others.try_into().unwrap();
    assert_eq!(adopted.id, other);
}

#[tokio::test]
async fn what_has_no_room_is_refused_before_anything_is_made() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "tiny"), image("ubuntu"));
    store.preflight(&image, Some(8 << 20)).await.unwrap();
    let error = store.preflight(&image, Some(9 << 20)).await.unwrap_err();
    assert_eq!(
        (error.class, error.quota.unwrap().requested),
        (ErrorClass::Quota, Some(9))
    );
    image.stores = vec!["store-b".into()];
    store.preflight(&image, None).await.unwrap();
    image.stores = vec!["store-c".into()];
    let error = store.preflight(&image, None).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.to_string().contains("store-a, store-b"), "{error}");
    fake.answer(Method::GET, "/v2/info/", StatusCode::NOT_FOUND, &[], "", 2);
    let error = store.preflight(&image, None).await.unwrap_err();
    assert!(error.to_string().contains("but one store"), "{error}");
    image.stores.clear();
    // An old cloud says nothing of room.
    store.preflight(&image, Some(9 << 20)).await.unwrap();
    assert!(fake.ids().is_empty());
}

#[tokio::test]
async fn strangers_are_never_touched() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let owner = &image.subject.owner;
    let mut strangers = vec![made(store.glance(), json!({ "cs_owner": "others" })).await];
    strangers.push(made(store.glance(), json!({ "name": "ubuntu", "protected": true })).await);
    for stranger in &strangers {
        let before = told(&fake, stranger);
        let refused = [
            store
                .discard(stranger, &image.subject.marked(1))
                .await
                .unwrap_err()
                .class,
            store.relinquish(stranger, owner, None).await.unwrap_err().class,
            store.publish(stranger, &image, "sha256:1").await.unwrap_err().class,
            store.amend(stranger, &image).await.unwrap_err().class,
            store
                .import(stranger, &image, "http://127.0.0.1/x")
                .await
                .unwrap_err()
                .class,
        ];
        assert_eq!(refused, [ErrorClass::NotOurs; 5]);
        assert_eq!(told(&fake, stranger), before);
    }
    assert!(store.owned(owner).await.unwrap().is_empty());
}

#[tokio::test]
async fn protected_ones_of_ours_are_deleted_and_those_in_use_told() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    image.options.insert("protected".into(), true.into());
    let id = whole(&store, &image).await;
    store.publish(&id, &image, "sha256:1").await.unwrap();
    assert_eq!(told(&fake, &id)["protected"], true);
    fake.answer(Method::DELETE, &id.0, StatusCode::CONFLICT, &[], "Image is in use", 1);
    let error = store.discard(&id, &image.subject.marked(1)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::InUse, "{error}");
    assert_eq!(
        store.discard(&id, &image.subject.marked(1)).await.unwrap(),
        Discarded::Gone
    );
    assert!(fake.ids().is_empty());
}

#[tokio::test]
async fn what_was_let_go_of_is_nobodys_and_stays_as_it_is() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = whole(&store, &image).await;
    store.publish(&id, &image, "sha256:1").await.unwrap();
    store.relinquish(&id, &image.subject.owner, None).await.unwrap();
    let left = told(&fake, &id);
    assert_eq!(
        (&left["status"], &left["name"], &left["tags"]),
        (&json!("active"), &json!("ubuntu"), &json!([]))
    );
    assert!(!left.to_string().contains("cs_"), "{left}");
    assert_eq!(observe(&store, &image).await, Observed::default());
    assert!(store.owned(&image.subject.owner).await.unwrap().is_empty());
}

#[tokio::test]
async fn options_that_changed_are_seen_and_amended() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = whole(&store, &image).await;
    store.publish(&id, &image, "sha256:1").await.unwrap();
    image.options.insert("min_disk".into(), 20.into());
    image
        .options
        .insert("properties".into(), json!({ "hw_disk_bus": "scsi" }));
    image.options.insert("tags".into(), json!(["capi"]));
    let observed = observe(&store, &image).await;
    let fields: Vec<_> = observed.records[0]
        .drift
        .iter()
        .map(|drift| drift.field.as_str())
        .collect();
    assert_eq!(fields, ["hw_disk_bus", "min_disk", "tags"]);
    store.amend(&id, &image).await.unwrap();
    assert_eq!(observe(&store, &image).await.records[0].drift, []);
    store.amend(&id, &image).await.unwrap();
    assert_eq!(fake.count(&Method::PATCH, &id.0), 2, "what is as wanted is not written");
}

#[tokio::test]
async fn an_image_whose_options_make_no_sense_any_more_is_seen_and_deleted() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let id = whole(&store, &image).await;
    image.options.insert("min_disk".into(), "much".into());
    assert!(store.create(&image, 2).await.is_err(), "nothing can be made of them");
    let observed = observe(&store, &image).await;
    let [record] = observed.records.as_slice() else {
        panic!("{observed:?}");
    };
    assert_eq!((&record.id, record.drift.len()), (&id, 0));
    store.discard(&id, &image.subject.marked(1)).await.unwrap();
    assert!(fake.ids().is_empty());
}

#[tokio::test]
async fn all_of_an_owner_are_listed_hidden_or_not() {
    let fake = fake().await;
    let store = store(fake.site(), "openstack");
    for name in ["c", "a", "b"] {
        let image = image(name);
        let id = whole(&store, &image).await;
        if name == "b" {
            store.publish(&id, &image, "sha256:1").await.unwrap();
        }
        create(&store, &image, 2).await;
    }
    let owned = store.owned(&image("a").subject.owner).await.unwrap();
    let told: Vec<_> = owned
        .iter()
        .map(|owned| (owned.object.as_str(), owned.attempt, owned.verified))
        .collect();
    let expected = [
        ("fleet/a", 1, false),
        ("fleet/a", 2, false),
        ("fleet/b", 1, true),
        ("fleet/b", 2, false),
        ("fleet/c", 1, false),
        ("fleet/c", 2, false),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_image_can_be_read_back() {
    let fake = fake().await;
    let (store, image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let empty = create(&store, &image, 2).await;
    assert_eq!(store.read_back(&empty).await.err().unwrap().class, ErrorClass::State);
    let id = whole(&store, &image).await;
    let mut stream = store.read_back(&id).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend(piece.unwrap());
    }
    assert_eq!(bytes, disk::qcow2(1));
    fake.deactivate(&id.0);
    assert_eq!(store.read_back(&id).await.err().unwrap().class, ErrorClass::Permission);
}

#[tokio::test]
async fn a_secret_becomes_a_store() {
    let fake = fake_with(FakeOptions {
        tls: true,
        ..FakeOptions::default()
    })
    .await;
    let yaml = fake.site().clouds_yaml(None);
    let ca = fake.site().ca.clone().unwrap();
    let mut identity = Identity {
        name: "openstack".into(),
        data: [("clouds.yaml".into(), yaml.into()), ("cacert".into(), ca.into())].into(),
        version: "1".into(),
    };
    let image = image("ubuntu");
    let store = OpenStack.connect(&identity, loopback()).await.unwrap();
    assert_eq!(
        store.observe(&image.subject, &image).await.unwrap(),
        Observed::default()
    );
    let name = OpenStack.cloud_of(&identity).unwrap().0;
    assert!(name.starts_with("127.0.0.1:"), "{name}");
    OpenStack.check(&image).unwrap();
    identity.data.remove("clouds.yaml");
    let error = OpenStack.connect(&identity, loopback()).await.err().unwrap();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.to_string().contains("no key clouds.yaml"), "{error}");
}
