//! Images of a cloud that somebody does something to behind the operator's back, and nobody says so: it looks by itself now and then. With a cloud over real
//! sockets, and so with the real clock but for where it is told to leap.

use std::time::Duration;

use crds::labels::REQUESTED_AT;
use http::Method;
use openstack_lab::client::whole;
use openstack_lab::facts::Visitor;
use openstack_lab::fake::Fake;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::images::{PATIENCE, PAUSE};
use super::secrets::{IMAGE, after, is_ready, played, until};

/// Longer than between two looks at an image that is as wanted.
const BETWEEN_LOOKS: Duration = Duration::from_mins(12);

/// Changes an image as a member of its project does.
async fn change(fake: &Fake, id: &str, changes: &Value) {
    let visitor = Visitor::new(fake.site()).await.expect("a visitor");
    let member = visitor.tenant("demo").await.expect("a login");
    let kind = Some("application/openstack-images-v2.1-json-patch");
    let path = format!("/images/{id}");
    let reply = member
        .call(Method::PATCH, &path, kind, whole(changes.to_string()))
        .await;
    let reply = reply.expect("an answer");
    assert!(reply.status.is_success(), "{} {}", reply.status, reply.text());
}

/// Waits until the image in the cloud is so.
async fn until_it_is(fake: &Fake, id: &str, is_so: impl Fn(&Value) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let image = fake.image(id).expect("an image");
        if is_so(&image) {
            return;
        }
        assert!(Instant::now() < end, "not so: {image:#}");
        sleep(PAUSE).await;
    }
}

fn is_as_wanted(image: &Value) -> bool {
    image["name"] == "ubuntu" && image["hw_disk_bus"] == "scsi" && image["tags"] == json!(["stackwright"])
}

fn is_deactivated(image: &Value) -> bool {
    let told = image["status"]["conditions"].to_string();
    image["status"]["ready"] == false && told.contains("ImageDeactivated")
}

#[test]
fn what_somebody_does_to_an_image_in_the_cloud_is_noticed_unasked_and_its_options_are_put_back() {
    played(async |server, fake| {
        until(server, is_ready).await;
        let [id] = <[String; 1]>::try_from(fake.ids()).expect("one image");
        until_it_is(fake, &id, is_as_wanted).await;
        let changes = json!([
            { "op": "replace", "path": "/name", "value": "theirs" },
            { "op": "replace", "path": "/hw_disk_bus", "value": "ide" },
            { "op": "replace", "path": "/tags", "value": ["theirs"] },
        ]);
        change(fake, &id, &changes).await;
        after(BETWEEN_LOOKS, || fake.image(&id).filter(is_as_wanted)).await;
        assert!(is_ready(&until(server, is_ready).await));

        fake.deactivate(&id);
        after(BETWEEN_LOOKS, || {
            Some(server.find(IMAGE, "ubuntu")).filter(is_deactivated)
        })
        .await;
        fake.reactivate(&id);
        let image = after(BETWEEN_LOOKS, || Some(server.find(IMAGE, "ubuntu")).filter(is_ready)).await;
        assert_eq!(image["status"]["image"]["id"], id.as_str(), "{image:#}");
        assert_eq!(image["metadata"]["annotations"][REQUESTED_AT], Value::Null, "{image:#}");
        assert_eq!(fake.count(&Method::PUT, "/file"), 1);
    });
}
