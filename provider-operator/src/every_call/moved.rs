//! Objects go to another management cluster by `clusterctl move`, while the operator works where they leave: what it has made in its cloud is theirs there.

use std::time::Duration;

use crds::labels::{DELETE_FOR_MOVE, PAUSED};
use operator_kit::in_memory::Server;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{FIRST, IMAGE, LONG, RELEASE, begin, files, operated, paused, release};

/// Between two calls of `clusterctl`, so that the operator has done whatever it does.
const BETWEEN: Duration = Duration::from_secs(10);

/// What `clusterctl` does to an object where it leaves, when it is made where it goes to: one annotation takes the place of all, the finalizers are taken
/// away, and it is deleted.
async fn leave(server: &Server, kind: &'static str, name: &str) {
    let there = server.find(kind, name);
    let annotations = there["metadata"]["annotations"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut annotations: Map<String, Value> = annotations.into_iter().map(|(name, _)| (name, Value::Null)).collect();
    annotations.insert(DELETE_FOR_MOVE.to_owned(), json!(""));
    server.merge(kind, name, &json!({ "metadata": { "annotations": annotations } }));
    sleep(BETWEEN).await;
    server.merge(kind, name, &json!({ "metadata": { "finalizers": [] } }));
    sleep(BETWEEN).await;
    server.delete(kind, name);
    sleep(BETWEEN).await;
    assert!(server.find(kind, name).is_null(), "{kind} {name} is held back");
}

/// The name of the one object of an image.
fn image(server: &Server) -> String {
    let mut images = server.objects().into_iter().filter(|(key, _)| key.0 == IMAGE);
    let (key, _) = images.next().expect("an image");
    key.2
}

#[test]
fn what_clusterctl_moves_is_let_go_and_its_image_stays_in_the_cloud() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    operated(&paused(), &server, store.path(), &[], async || {
        server.apply(&release(FIRST));
        sleep(LONG).await;
        let before = files(store.path());
        let name = image(&server);
        assert_eq!(server.find(IMAGE, &name)["status"]["ready"], true);
        // What is owned goes first.
        leave(&server, IMAGE, &name).await;
        leave(&server, RELEASE, FIRST).await;
        sleep(LONG).await;
        let left = server.objects().into_iter().map(|(key, _)| key);
        let left: Vec<_> = left.filter(|key| key.0 == IMAGE || key.0 == RELEASE).collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(files(store.path()), before);
    });
}

/// Another object of the store, so that the operator looks there for what is left behind.
fn bystander() -> Value {
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": { "name": "bystander", "namespace": "fleet", "annotations": { PAUSED: "" } },
        "spec": { "store": "default", "image": { "url": "https://images.example/u", "name": "bystander" } },
    })
}

/// What `clusterctl` makes of an object where it goes to.
fn arriving(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"],
            "labels": metadata["labels"].as_object().cloned().unwrap_or_default(),
            "annotations": metadata["annotations"].as_object().cloned().unwrap_or_default(),
        },
        "spec": object["spec"],
    })
}

#[test]
fn who_deletes_a_copy_leaves_its_image_to_the_installation_that_works_on_it() {
    const THERE: &str = "--installation=there";
    let (here, there, store) = (begin(None), begin(None), TempDir::new().expect("a folder"));
    let copy = operated(&paused(), &here, store.path(), &[], async || {
        here.apply(&release(FIRST));
        sleep(LONG).await;
        arriving(&here.find(IMAGE, &image(&here)))
    });
    let name = copy["metadata"]["name"].as_str().expect("a name").to_owned();
    operated(&paused(), &there, store.path(), &[THERE], async || {
        there.apply(&copy);
        sleep(LONG).await;
    });
    assert_eq!(there.find(IMAGE, &name)["status"]["ready"], true);
    let before = files(store.path());
    assert!(!before.is_empty(), "an image was made");

    here.delete(IMAGE, &name);
    here.delete(RELEASE, FIRST);
    assert!(!here.find(IMAGE, &name).is_null(), "it has the finalizer");
    operated(&paused(), &here, store.path(), &[], async || sleep(LONG).await);
    assert!(here.find(IMAGE, &name).is_null(), "it is held back");
    assert_eq!(files(store.path()), before);
    let told = here.objects().into_iter().filter(|(key, event)| {
        let is_event = key.0 == "Event";
        is_event && event["reason"] == "ImageLeftBehind"
    });
    assert_eq!(told.count(), 1, "it is told");
}

#[test]
fn who_is_left_behind_leaves_alone_what_went_to_another_installation_and_that_one_clears_it_away() {
    const HOURS: Duration = Duration::from_hours(6);
    const THERE: &str = "--installation=there";
    const SWEEPS: &str = "--sweep-verified";
    let (here, there, store) = (begin(None), begin(None), TempDir::new().expect("a folder"));
    let moved = operated(&paused(), &here, store.path(), &[], async || {
        here.apply(&release(FIRST));
        sleep(LONG).await;
        let name = image(&here);
        let moved = arriving(&here.find(IMAGE, &name));
        leave(&here, IMAGE, &name).await;
        leave(&here, RELEASE, FIRST).await;
        moved
    });
    let before = files(store.path());
    assert!(!before.is_empty(), "an image was made");
    let name = moved["metadata"]["name"].as_str().expect("a name").to_owned();
    operated(&paused(), &there, store.path(), &[THERE], async || {
        there.apply(&moved);
        sleep(LONG).await;
    });
    let arrived = there.find(IMAGE, &name);
    assert_eq!(arrived["status"]["ready"], true, "{arrived:#}");

    here.apply(&bystander());
    operated(&paused(), &here, store.path(), &[SWEEPS], async || sleep(HOURS).await);
    assert_eq!(files(store.path()), before);
    let orphans = here.objects().into_iter().filter(|(key, event)| {
        let is_event = key.0 == "Event";
        is_event && event["reason"] == "OrphanFound"
    });
    assert_eq!(orphans.count(), 0, "nothing is told as left behind");

    // Where it is lost together with its object, whoever held it finds it.
    let anew = begin(None);
    anew.apply(&bystander());
    operated(&paused(), &anew, store.path(), &[THERE, SWEEPS], async || {
        sleep(HOURS).await;
    });
    assert!(files(store.path()).is_empty(), "{:?}", files(store.path()));
}
