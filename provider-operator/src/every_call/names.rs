//! What others put under the name of an image of ours: with a cloud over real sockets, and so with the real clock.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::secrets::{IMAGE, is_ready, played, until};

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
