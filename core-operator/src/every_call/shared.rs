//! Objects that several releases name: what becomes of one of them concerns all, whosever mark it carries.

use std::sync::LazyLock;
use std::time::Duration;

use crds::labels;
use http::Method;
use operator_kit::client::install_crypto;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use operator_kit::in_memory::Write;

use super::kinds::KINDS;
use super::{LONG, STACK, begin, definition, operated_with, publish, until};
use operator_kit::in_memory::{MOST, Server};

const IMAGE: &str = "Image";
const RELEASE: &str = "ClusterStackRelease";

/// The image of nodes that both stacks have.
const NODES: &str = "nodes";

/// A release of each of two stacks, with the same image.
static RELEASES: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    for name in ["harbor", "ferrol"] {
        let image = "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Image\nmetadata: {name: nodes}\nspec: {managementPolicy: managed}\n";
        let image = ("cluster-class/templates/image.yaml", image);
        let files = STACK.into_iter().chain([image]);
        let files: Vec<_> = files.map(|(path, text)| (path, text.replace("harbor", name))).collect();
        publish(root.path(), &format!("docker-{name}-1-34"), &files, &["v1"]);
    }
    root
});

fn tag(name: &str) -> String {
    format!("docker-{name}-1-34-v1")
}

fn mark(name: &str) -> String {
    labels::part_of(RELEASE, "fleet", &tag(name))
}

fn stack(name: &str, more: &Value) -> Value {
    let mut stack = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": name, "namespace": "fleet" },
        "spec": {
            "provider": "docker", "name": name, "kubernetesVersion": "1.34", "autoSubscribe": false, "noProvider": true,
            "versions": ["v1"],
        },
    });
    for (field, value) in more.as_object().expect("fields") {
        stack["spec"][field] = value.clone();
    }
    stack
}

/// An API server that serves images, and two stacks whose releases are ready: first `harbor`, which has the image, then `ferrol`.
fn after_installing<T>(journey: impl AsyncFnOnce(&Server) -> T) -> T {
    install_crypto();
    let server = begin(None);
    let image = KINDS.iter().find(|kind| kind.kind == IMAGE).expect("the kind");
    server.apply(&definition(image));
    let end = operated(&server, &[], async || {
        for name in ["harbor", "ferrol"] {
            server.apply(&stack(name, &json!({})));
            sleep(LONG).await;
            assert!(is_ready(&server, name), "{:#}", server.find(RELEASE, &tag(name)));
        }
        assert_eq!(holder(&server), mark("harbor"));
        journey(&server).await
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
    end
}

fn operated<T>(server: &Server, flags: &[&str], journey: impl AsyncFnOnce() -> T) -> T {
    operated_with(server, RELEASES.path(), flags, async |_| journey().await)
}

fn is_ready(server: &Server, name: &str) -> bool {
    server.find(RELEASE, &tag(name))["status"]["ready"] == true
}

/// The mark that the image carries.
fn holder(server: &Server) -> Value {
    server.find(IMAGE, NODES)["metadata"]["labels"][labels::PART_OF].clone()
}

/// Says of the image whether it can be used.
fn report(server: &Server, available: bool) {
    let mut image = server.find(IMAGE, NODES);
    let says = |is| if is { "True" } else { "False" };
    image["status"] = json!({ "conditions": [
        { "type": "Available", "status": says(available), "reason": "Told", "message": "by a test" },
        { "type": "Progressing", "status": says(!available), "reason": "Told", "message": "by a test" },
    ] });
    server.write(IMAGE, NODES, &Write::Status(&image));
}

#[test]
fn every_release_that_names_an_object_follows_its_health() {
    after_installing(async |server| {
        for available in [false, true] {
            report(server, available);
            sleep(LONG).await;
            for name in ["harbor", "ferrol"] {
                assert_eq!(is_ready(server, name), available, "{name}");
            }
        }
    });
}

#[test]
fn a_release_makes_an_object_again_that_the_one_whose_mark_it_had_does_not() {
    after_installing(async |server| {
        server.apply(&stack("harbor", &json!({ "drift": "Warn" })));
        sleep(LONG).await;
        server.delete(IMAGE, NODES);
        sleep(LONG).await;
        assert_eq!(holder(server), mark("ferrol"));
        for name in ["harbor", "ferrol"] {
            assert!(is_ready(server, name), "{:#}", server.find(RELEASE, &tag(name)));
        }
    });
}

#[test]
fn an_object_that_goes_while_releases_read_it_is_made_again_by_the_one_that_may() {
    after_installing(async |server| {
        server.apply(&stack("harbor", &json!({ "drift": "Warn" })));
        sleep(LONG).await;
        server.hold(Method::GET, IMAGE, Duration::from_secs(1));
        report(server, false);
        until(|| server.holding() == 2).await;
        server.delete(IMAGE, NODES);
        sleep(LONG).await;
        assert_eq!(holder(server), mark("ferrol"));
    });
}

/// Gives a stack and its release to the operators of this filter.
fn give(server: &Server, name: &str, filter: &str) {
    let label = json!({ "metadata": { "labels": { labels::WATCH_FILTER: filter } } });
    server.merge("ClusterStack", name, &label);
    server.merge(RELEASE, &tag(name), &label);
}

/// Takes a stack and its release away, and leaves the objects.
fn take_away(server: &Server, name: &str) {
    let released = json!({ "metadata": { "finalizers": null } });
    server.merge(RELEASE, &tag(name), &released);
    server.delete("ClusterStack", name);
    assert!(server.find(RELEASE, &tag(name)).is_null());
}

#[test]
fn what_a_release_has_that_this_operator_does_not_see_is_taken_when_that_is_gone_and_not_before() {
    let server = after_installing(async |server| server.clone());
    give(&server, "ferrol", "canary");
    operated(&server, &["--watch-filter=canary"], async || {
        sleep(LONG).await;
        assert_eq!(holder(&server), mark("harbor"));
        take_away(&server, "harbor");
        sleep(2 * LONG).await;
        assert_eq!(holder(&server), mark("ferrol"));
        assert!(is_ready(&server, "ferrol"));
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn what_a_release_has_that_this_operator_does_not_see_stays_when_another_goes_that_applied_it_too() {
    let server = after_installing(async |server| server.clone());
    give(&server, "ferrol", "canary");
    operated(&server, &["--watch-filter=canary"], async || {
        server.delete("ClusterStack", "ferrol");
        sleep(LONG).await;
    });
    assert!(server.find(RELEASE, &tag("ferrol")).is_null());
    assert_eq!(holder(&server), mark("harbor"));
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn an_operator_of_one_namespace_adopts_what_was_left_behind_there_and_lists_releases_nowhere_else() {
    let server = after_installing(async |server| server.clone());
    for name in ["harbor", "ferrol"] {
        take_away(&server, name);
    }
    assert_eq!(holder(&server), mark("harbor"));
    server.deny(RELEASE, true);
    operated(&server, &["--namespace=fleet"], async || {
        server.apply(&stack("ferrol", &json!({})));
        sleep(LONG).await;
        assert_eq!(holder(&server), mark("ferrol"));
        assert!(is_ready(&server, "ferrol"));
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}
