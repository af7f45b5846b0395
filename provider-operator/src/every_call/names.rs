//! What others put under the name of an image of ours: with a cloud over real sockets, and so with the real clock.

use std::sync::Arc;

use crds::labels::REQUESTED_AT;
use http::{Method, StatusCode};
use openstack_lab::fake::Fake;
use operator_kit::in_memory::Server;
use provider_openstack::clouds::{Beside, cloud};
use provider_openstack::glance::{Creation, Glance};
use provider_openstack::identity::image_id;
use provider_openstack::session::Session;
use provider_openstack::transport::Transport;
use provider_plugin::{ContentKey, OwnerId};
use serde_json::{Value, json};

use super::secrets::{IMAGE, is_ready, played, until};
use crate::stand_ins::Anywhere;

/// Part of the list of what is given to everybody: anybody can make it as long as he likes.
const OF_EVERYBODY: &str = "visibility=community";

#[test]
fn an_image_that_is_brought_comes_and_goes_whatever_others_put_under_its_name() {
    played(async |server, fake| {
        until(server, is_ready).await;
        server.delete(IMAGE, "ubuntu");
        until(server, Value::is_null).await;
        assert_eq!(fake.ids(), Vec::<String>::new());
        assert_eq!(fake.count(&Method::GET, OF_EVERYBODY), 0);
    });
}

#[test]
fn an_image_goes_with_its_object_though_nobody_can_tell_what_others_have_under_its_name() {
    played(async |server, fake| {
        until(server, is_ready).await;
        fake.answer(
            Method::GET,
            OF_EVERYBODY,
            StatusCode::INTERNAL_SERVER_ERROR,
            &[],
            "it is too much",
            usize::MAX,
        );
        server.merge(IMAGE, "ubuntu", &json!({ "spec": { "policy": "IfMissing" } }));
        server.delete(IMAGE, "ubuntu");
        until(server, Value::is_null).await;
        assert_eq!(fake.ids(), Vec::<String>::new());
    });
}

/// The id of the image that is ready, once it is another one than this.
async fn follows(server: &Server, before: &str) -> String {
    let is_other = |image: &Value| is_ready(image) && image["status"]["image"]["id"] != before;
    let image = until(server, is_other).await;
    image["status"]["image"]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_image_that_may_be_there_already_is_brought_though_nobody_can_tell_what_others_have_under_its_name() {
    played(async |server, fake| {
        let first = follows(server, "").await;
        let words = "it is too much";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        fake.answer(Method::GET, OF_EVERYBODY, status, &[], words, usize::MAX);
        let url = server.find(IMAGE, "ubuntu")["spec"]["image"]["url"].clone();
        let other = format!("{}?other", url.as_str().expect("a URL"));
        server.merge(
            IMAGE,
            "ubuntu",
            &json!({ "spec": { "policy": "IfMissing", "image": { "url": other } } }),
        );
        let second = follows(server, &first).await;
        assert_eq!(fake.count(&Method::GET, OF_EVERYBODY), 0, "none of them would be used");
        let sha512 = fake.image(&second).expect("an image")["os_hash_value"].clone();
        let digest = format!("sha512:{}", sha512.as_str().expect("a digest"));
        server.merge(IMAGE, "ubuntu", &json!({ "spec": { "image": { "digest": digest } } }));
        follows(server, &second).await;
        assert!(fake.count(&Method::GET, OF_EVERYBODY) > 0);
    });
}

#[test]
fn on_a_cloud_whose_lists_show_nothing_the_image_of_an_earlier_content_is_cleared_away() {
    played(async |server, fake| {
        let first = follows(server, "").await;
        let nothing = json!({ "images": [] }).to_string();
        let json = [("content-type", "application/json")];
        fake.answer(Method::GET, "os_hidden=", StatusCode::OK, &json, &nothing, usize::MAX);
        let sha512 = fake.image(&first).expect("an image")["os_hash_value"].clone();
        let digest = format!("sha512:{}", sha512.as_str().expect("a digest"));
        server.merge(IMAGE, "ubuntu", &json!({ "spec": { "image": { "digest": digest } } }));
        let second = follows(server, &first).await;
        until(server, |_| fake.ids() == [second.clone()]).await;
    });
}

/// The image service, as another project of the cloud sees it.
fn neighbour(fake: &Fake) -> Glance {
    let yaml = fake.site().clouds_yaml(None);
    let cloud = cloud(yaml.as_bytes(), "other", Beside::default()).expect("a cloud");
    let transport = Transport::new(&cloud.tls, Arc::new(Anywhere)).expect("a transport");
    Glance::new(Arc::new(Session::new(cloud, transport)))
}

#[test]
fn whoever_takes_the_next_id_beforehand_and_marks_his_image_as_ours_is_passed_over() {
    played(async |server, fake| {
        let first = follows(server, "").await;
        let image = fake.image(&first).expect("an image");
        let (owner, key) = (image["cs_owner"].as_str(), image["cs_key"].as_str());
        let owner = owner.and_then(OwnerId::parse).expect("an owner");
        let key = key.and_then(ContentKey::parse).expect("a key");
        let project = fake.project_id("demo");
        let next = image_id(&project, &owner, &key, 2).0;
        let theirs = json!({
            "id": next, "name": "ubuntu", "visibility": "community", "disk_format": "qcow2", "container_format": "bare",
            "cs_owner": image["cs_owner"], "cs_object": image["cs_object"], "cs_key": image["cs_key"], "cs_attempt": "2",
            "cs_verified": image["cs_verified"],
        });
        let made = neighbour(fake).create(&theirs).await.expect("an image");
        assert!(matches!(made, Creation::Made(_)), "{made:?}");
        let before = fake.image(&next);
        fake.remove(&first);
        server.merge(
            IMAGE,
            "ubuntu",
            &json!({ "metadata": { "annotations": { REQUESTED_AT: "now" } } }),
        );
        let second = follows(server, &first).await;
        assert_ne!(second, next);
        assert_eq!(fake.image(&second).expect("an image")["owner"], project.as_str());
        assert_eq!(fake.image(&next), before);
    });
}
