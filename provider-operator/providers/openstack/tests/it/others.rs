//! Images of other projects: who is found.

use http::{Method, StatusCode};
use openstack_lab::fake::Fake;
use provider_plugin::{Foreign, ImageStore};
use serde_json::json;

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
    assert_eq!((found.id, found.is_of_our_project), (community, false));
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
