//! Images of a cloud that a Secret opens, where the Secret or the right to read it is missing: with a cloud over real sockets, and so with the real clock but
//! for where it is told to leap.

use std::time::Duration;

use k8s_openapi::ByteString;
use openstack_lab::disk;
use openstack_lab::fake::{Fake, FakeOptions};
use operator_kit::in_memory::Server;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{self, Instant};

use super::images::{PAUSE, Web, real, until_of};
use super::{begin, operated};

pub(super) const IMAGE: &str = "OpenStackNodeImageRelease";

pub(super) const FLAGS: [&str; 4] = [
    "--providers=openstack",
    "--allow-plain-http",
    "--allow-source-network=127.0.0.0/8",
    "--allow-cloud-network=127.0.0.0/8",
];

/// As long as a Secret that was read is believed, or one that cannot be read is let be.
const REMEMBERED: Duration = Duration::from_secs(61);

pub(super) fn image(url: &str) -> Value {
    let options = json!({
        "name": "ubuntu", "disk_format": "qcow2", "container_format": "bare", "properties": { "hw_disk_bus": "scsi" },
    });
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": { "name": "ubuntu", "namespace": "fleet" },
        "spec": {
            "identityRef": { "kind": "Secret", "name": "cloud" }, "image": { "url": url, "createOpts": options },
            "transfer": { "via": "Upload" },
        },
    })
}

pub(super) fn secret(fake: &Fake) -> Value {
    let clouds = ByteString(fake.site().clouds_yaml(None).into_bytes());
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloud", "namespace": "fleet" },
        "data": { "clouds.yaml": clouds },
    })
}

/// Nobody waits for as long as that takes.
async fn leap(span: Duration) {
    time::pause();
    time::advance(span).await;
    time::resume();
}

/// What is found once this span has gone by. It goes by more than once where it must: whoever had not yet begun to wait when it leapt has all of its wait
/// before it.
pub(super) async fn after<T>(span: Duration, find: impl Fn() -> Option<T>) -> T {
    for _ in 0..20 {
        leap(span).await;
        let rest = Instant::now() + Duration::from_secs(3);
        while Instant::now() < rest {
            if let Some(found) = find() {
                return found;
            }
            time::sleep(PAUSE).await;
        }
    }
    panic!("it did not come in twenty times {span:?}");
}

/// Goes this way with a cloud and an image that is to come into it.
pub(super) fn played(journey: impl AsyncFnOnce(&Server, &Fake)) {
    let (server, store, runtime) = (begin(None), TempDir::new().expect("a folder"), real());
    let web = Web::with(disk::qcow2(1));
    let fake = runtime.block_on(Fake::start(FakeOptions::default())).expect("a cloud");
    server.apply(&secret(&fake));
    operated(&runtime, &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url));
        journey(&server, &fake).await;
    });
}

pub(super) async fn until(server: &Server, is_so: impl Fn(&Value) -> bool) -> Value {
    until_of(server, IMAGE, is_so).await
}

pub(super) fn is_ready(image: &Value) -> bool {
    image["status"]["ready"] == true
}

#[test]
fn an_image_goes_with_its_object_though_the_secret_went_first() {
    played(async |server, fake| {
        until(server, is_ready).await;
        assert_eq!(fake.ids().len(), 1);
        server.delete("Secret", "cloud");
        leap(REMEMBERED).await;
        server.delete(IMAGE, "ubuntu");
        until(server, Value::is_null).await;
        assert_eq!(fake.ids(), Vec::<String>::new());
    });
}

#[test]
fn an_image_goes_with_its_object_though_the_right_to_read_the_secret_went_first() {
    played(async |server, fake| {
        until(server, is_ready).await;
        server.refuse_secrets("GET");
        leap(REMEMBERED).await;
        server.delete(IMAGE, "ubuntu");
        until(server, Value::is_null).await;
        assert_eq!(fake.ids(), Vec::<String>::new());
    });
}

#[test]
fn what_was_given_up_stays_so_where_another_process_cannot_read_the_secret_at_first() {
    let (server, store, runtime) = (begin(None), TempDir::new().expect("a folder"), real());
    let web = Web::with(disk::qcow2(1));
    let fake = runtime.block_on(Fake::start(FakeOptions::default())).expect("a cloud");
    server.apply(&secret(&fake));
    let mut image = image(&web.url);
    image["spec"]["image"]["digest"] = json!(format!("sha256:{}", "00".repeat(32)));
    let halted = operated(&runtime, &server, store.path(), &FLAGS, async || {
        server.apply(&image);
        until(&server, |image| !image["status"]["halted"].is_null()).await["status"]["halted"].clone()
    });
    assert_eq!(halted["reason"], "SourceMismatch", "{halted:#}");
    server.refuse_secrets("GET");
    let told = |image: &Value| image["status"]["conditions"].to_string().contains("PermissionDenied");
    let refused = operated(&runtime, &server, store.path(), &FLAGS, async || {
        until(&server, told).await
    });
    assert_eq!(refused["status"]["halted"], halted);
}

#[test]
fn a_right_to_read_secrets_that_is_missing_is_asked_for_and_missed_no_longer_than_it_is() {
    let (server, store, runtime) = (begin(None), TempDir::new().expect("a folder"), real());
    let web = Web::with(disk::qcow2(1));
    let fake = runtime.block_on(Fake::start(FakeOptions::default())).expect("a cloud");
    server.apply(&secret(&fake));
    server.refuse_secrets("GET");
    operated(&runtime, &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url));
        let says_so = |image: &Value| image["status"]["conditions"].to_string().contains("PermissionDenied");
        let refused = until(&server, says_so).await;
        let told = refused["status"]["conditions"].to_string();
        assert!(
            told.contains("give it the role clusterstack-provider-operator-secrets in this namespace"),
            "{told}"
        );
        assert!(
            !told.contains("CloudUnavailable") && !told.contains("denied the request"),
            "{told}"
        );
        server.refuse_secrets("nothing any more");
        after(REMEMBERED, || is_ready(&server.find(IMAGE, "ubuntu")).then_some(())).await;
    });
}
