//! Images of other projects, and clouds that others share: who is found, and who is held to account for whom.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use openstack_lab::fake::Fake;
use provider_openstack::{OpenStack, identity::image_id};
use provider_plugin::{Created, ErrorClass, Foreign, Identity, ImageId, ImageSpec, ImageStore, Provider, Reach};
use serde_json::{Value, json};

use crate::fixture::{fake, glance, image, made, store};

/// Images of others that have the name of ours, wherever they lie.
async fn others(fake: &Fake) -> Vec<Foreign> {
    let mut image = image("ubuntu");
    image.subject.look_for_others = true;
    image.subject.reach = Reach::Everybody;
    let observed = store(fake.site(), "openstack").observe(&image.subject, &image).await;
    observed.unwrap().others
}

#[tokio::test]
async fn an_image_that_another_project_lets_everybody_use_is_found_by_its_name() {
    let fake = fake().await;
    let theirs = glance(fake.site(), "other");
    let community = made(&theirs, json!({ "name": "ubuntu", "visibility": "community" })).await;
    made(&theirs, json!({ "name": "ubuntu", "visibility": "private" })).await;
    made(&theirs, json!({ "name": "debian", "visibility": "community" })).await;
    let [found] = others(&fake).await.try_into().unwrap();
    assert_eq!(
        (found.id, found.is_of_our_project, found.is_of_community),
        (community, false, true)
    );
}

#[tokio::test]
async fn only_what_another_project_gives_to_everybody_is_told_as_that() {
    let fake = fake().await;
    let own = glance(fake.site(), "openstack");
    made(&own, json!({ "name": "ubuntu", "visibility": "community" })).await;
    made(&own, json!({ "name": "ubuntu" })).await;
    let admin = glance(fake.site(), "admin");
    made(&admin, json!({ "name": "ubuntu", "visibility": "public" })).await;
    let others = others(&fake).await;
    assert_eq!(others.len(), 3);
    assert!(others.iter().all(|other| !other.is_of_community), "{others:?}");
}

#[tokio::test]
async fn what_others_put_under_a_name_is_not_even_listed_where_it_would_not_be_used() {
    let fake = fake().await;
    let own = made(&glance(fake.site(), "openstack"), json!({ "name": "ubuntu" })).await;
    let admin = glance(fake.site(), "admin");
    let public = made(&admin, json!({ "name": "ubuntu", "visibility": "public" })).await;
    let theirs = glance(fake.site(), "other");
    made(&theirs, json!({ "name": "ubuntu", "visibility": "community" })).await;
    let mut image = image("ubuntu");
    image.subject.look_for_others = true;
    let store = store(fake.site(), "openstack");
    for (reach, expected) in [(Reach::BesideOurs, vec![&own]), (Reach::Shown, vec![&own, &public])] {
        image.subject.reach = reach;
        let others = store.observe(&image.subject, &image).await.unwrap().others;
        let found: BTreeSet<&ImageId> = others.iter().map(|other| &other.id).collect();
        assert_eq!(found, BTreeSet::from_iter(expected), "{reach:?}");
    }
    assert_eq!(fake.count(&Method::GET, "visibility=community"), 0);
}

#[tokio::test]
async fn what_everybody_may_fill_the_list_with_hides_no_other_image_and_not_the_one_that_is_used() {
    let fake = fake().await;
    let own = made(&glance(fake.site(), "openstack"), json!({ "name": "ubuntu" })).await;
    let theirs = glance(fake.site(), "other");
    let used = made(&theirs, json!({ "name": "ubuntu", "visibility": "community" })).await;
    let store = store(fake.site(), "openstack");
    let mut image = image("ubuntu");
    image.subject.look_for_others = true;
    image.subject.reach = Reach::Everybody;
    // More than is read of an answer.
    let long = "x".repeat((1 << 20) + 1);
    for (status, body) in [
        (StatusCode::OK, long.as_str()),
        (StatusCode::INTERNAL_SERVER_ERROR, "no"),
    ] {
        fake.relent();
        fake.answer(Method::GET, "visibility=community", status, &[], body, usize::MAX);
        for (recorded, expected) in [(None, vec![&own]), (Some(&used), vec![&own, &used])] {
            image.subject.recorded = recorded.cloned();
            let others = store.observe(&image.subject, &image).await.unwrap().others;
            let found: BTreeSet<&ImageId> = others.iter().map(|other| &other.id).collect();
            assert_eq!(found, BTreeSet::from_iter(expected), "{status} {recorded:?}");
        }
    }
}

/// The id that an attempt of ours is given, and an image with it and all marks of ours in this cloud, which everybody may use.
async fn marked_as_ours(fake: &Fake, cloud: &str, image: &ImageSpec, (id, marked): (u32, u32)) -> ImageId {
    let subject = &image.subject;
    let id = image_id(&fake.project_id("demo"), &subject.owner, &subject.key, id);
    let fields = json!({
        "id": id.0, "name": subject.name, "visibility": "community", "cs_owner": subject.owner.as_str(),
        "cs_object": subject.object, "cs_key": subject.key.as_str(), "cs_attempt": marked.to_string(),
        "cs_verified": "sha256:1",
    });
    assert_eq!(made(&glance(fake.site(), cloud), fields).await, id);
    id
}

#[tokio::test]
async fn an_image_of_another_project_under_our_id_is_not_ours_whatever_marks_it_has() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let theirs = marked_as_ours(&fake, "other", &image, (1, 1)).await;
    let before = fake.image(&theirs.0);
    assert_eq!(
        store.create(&image, 1).await.unwrap(),
        Created::Taken,
        "another attempt follows"
    );
    let owner = image.subject.owner.clone();
    let refused = [
        store.publish(&theirs, &image, "sha256:1").await.unwrap_err().class,
        store.amend(&theirs, &image).await.unwrap_err().class,
        store.hold(&theirs, &owner, &owner).await.unwrap_err().class,
        store.relinquish(&theirs, &owner, None).await.unwrap_err().class,
        store
            .discard(&theirs, &image.subject.marked(1))
            .await
            .unwrap_err()
            .class,
    ];
    assert_eq!(refused, [ErrorClass::NotOurs; 5]);
    let hint = || Some(theirs.clone());
    for (recorded, made, attempt, only_recorded) in [
        (hint(), None, None, false),
        (hint(), None, None, true),
        (None, hint(), None, false),
        (None, None, Some(1), false),
    ] {
        image.subject.recorded = recorded;
        image.subject.made = made;
        image.subject.attempt = attempt;
        image.subject.only_recorded = only_recorded;
        let records = store.observe(&image.subject, &image).await.unwrap().records;
        assert_eq!(records, [], "{:?}", image.subject);
    }
    assert_eq!(fake.image(&theirs.0), before);
    // Where somebody asks for it, it is told as what it is.
    image.subject.adopt = hint();
    let [found] = store
        .observe(&image.subject, &image)
        .await
        .unwrap()
        .others
        .try_into()
        .unwrap();
    assert!(found.is_of_community && found.id == theirs, "{found:?}");
    assert!(matches!(store.create(&image, 2).await.unwrap(), Created::New(_)));
}

#[tokio::test]
async fn under_the_id_of_an_attempt_none_but_that_attempt_is_found() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let ours = marked_as_ours(&fake, "openstack", &image, (1, 1)).await;
    marked_as_ours(&fake, "openstack", &image, (2, 7)).await;
    let nothing = json!({ "images": [] }).to_string();
    let json = [("content-type", "application/json")];
    fake.answer(Method::GET, "os_hidden=", StatusCode::OK, &json, &nothing, usize::MAX);
    for (attempt, expected) in [(1, Some(&ours)), (2, None)] {
        image.subject.attempt = Some(attempt);
        let records = store.observe(&image.subject, &image).await.unwrap().records;
        let found: Vec<_> = records.iter().map(|record| &record.id).collect();
        assert_eq!(found, Vec::from_iter(expected), "{attempt}");
    }
    assert_eq!(store.create(&image, 1).await.unwrap(), Created::Ours(ours));
    assert_eq!(store.create(&image, 2).await.unwrap(), Created::Taken);
}

#[tokio::test]
async fn an_image_of_an_earlier_content_is_found_beside_the_one_that_was_made_last() {
    let fake = fake().await;
    let (store, mut image) = (store(fake.site(), "openstack"), image("ubuntu"));
    let earlier = marked_as_ours(&fake, "openstack", &image, (1, 1)).await;
    let last = marked_as_ours(&fake, "openstack", &image, (2, 2)).await;
    let nothing = json!({ "images": [] }).to_string();
    let json = [("content-type", "application/json")];
    fake.answer(Method::GET, "os_hidden=", StatusCode::OK, &json, &nothing, usize::MAX);
    image.subject.recorded = Some(earlier.clone());
    image.subject.made = Some(last.clone());
    let records = store.observe(&image.subject, &image).await.unwrap().records;
    let found: Vec<_> = records.iter().map(|record| &record.id).collect();
    assert_eq!(found, [&earlier, &last]);
}

#[tokio::test]
async fn a_cloud_that_knows_no_such_images_shows_the_others() {
    let fake = fake().await;
    let own = made(&glance(fake.site(), "openstack"), json!({ "name": "ubuntu" })).await;
    let words = "Invalid visibility value: community";
    fake.answer(
        Method::GET,
        "visibility=community",
        StatusCode::BAD_REQUEST,
        &[],
        words,
        1,
    );
    let [found] = others(&fake).await.try_into().unwrap();
    assert_eq!(found.id, own);
    assert_eq!(fake.count(&Method::GET, "visibility=community"), 1);
}

/// How a cloud with these fields in `clouds.yaml` is called.
fn called(fields: &Value) -> String {
    let mut entry = json!({ "auth": {
        "auth_url": "https://keystone.example:5000/v3", "username": "u", "password": "p", "user_domain_name": "Default",
        "project_id": "demo",
    } });
    let fields = fields.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(fields);
    // JSON is YAML.
    let yaml = json!({ "clouds": { "openstack": entry } }).to_string();
    let identity = Identity {
        name: "openstack".into(),
        data: [("clouds.yaml".into(), yaml.into())].into(),
        version: "1".into(),
    };
    OpenStack.cloud_of(&identity).unwrap().0
}

#[test]
fn who_has_his_images_elsewhere_shares_no_cloud_with_those_who_have_not() {
    assert_eq!(called(&json!({})), "keystone.example:5000");
    let elsewhere = called(&json!({ "image_endpoint_override": "https://mine.example/images" }));
    assert_eq!(elsewhere, "keystone.example:5000 with images at mine.example");
    let port = called(&json!({ "image_endpoint_override": "https://keystone.example:9292" }));
    assert_eq!(port, "keystone.example:5000 with images at keystone.example:9292");
    let same = called(&json!({ "image_endpoint_override": "https://keystone.example:5000/images" }));
    assert_eq!(same, "keystone.example:5000");
}
