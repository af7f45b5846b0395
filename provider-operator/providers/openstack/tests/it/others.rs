//! Images of other projects, and clouds that others share: who is found, and who is held to account for whom.

use http::{Method, StatusCode};
use openstack_lab::fake::Fake;
use provider_openstack::OpenStack;
use provider_plugin::{Foreign, Identity, ImageStore, Provider};
use serde_json::{Value, json};

use crate::fixture::{fake, glance, image, made, store};

/// Images of others that have the name of ours.
async fn others(fake: &Fake) -> Vec<Foreign> {
    let mut image = image("ubuntu");
    image.subject.look_for_others = true;
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
    made(&admin, json!({ "name": "ubuntu", "visibility": "public" })).await;
    let theirs = glance(fake.site(), "other");
    made(&theirs, json!({ "name": "ubuntu", "visibility": "community" })).await;
    let mut image = image("ubuntu");
    image.subject.look_for_others = true;
    image.subject.only_beside_ours = true;
    let store = store(fake.site(), "openstack");
    let observed = store.observe(&image.subject, &image).await.unwrap();
    let [found] = observed.others.try_into().unwrap();
    assert_eq!(found.id, own);
    assert_eq!(fake.count(&Method::GET, "visibility=community"), 0);
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
