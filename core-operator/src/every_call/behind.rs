//! What the operator does while a watch is behind or does not list, and what is not kept as it was written: it goes on, and asks for nothing in a loop.

use std::time::Duration;

use http::Method;
use operator_kit::client::install_crypto;
use serde_json::{Value, json};
use tokio::time::sleep;

use operator_kit::in_memory::Write;

use super::kinds::PROVIDER_KIND;
use super::{BESIDES, LONG, begin, operated, stack, template, until};
use operator_kit::in_memory::{MOST, Server};

const TAG: &str = "docker-harbor-1-34-v1";
const RELEASE: &str = "ClusterStackRelease";
const IMAGE: &str = "DockerClusterTemplate";

/// Goes a way with a stack of these versions, which are ready.
fn after_installing<T>(versions: &[&str], journey: impl AsyncFnOnce(&Server) -> T) -> T {
    install_crypto();
    let server = begin(None);
    let end = operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(versions));
        sleep(LONG).await;
        assert_eq!(server.find(RELEASE, TAG)["status"]["ready"], true);
        journey(&server).await
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
    end
}

/// The message of a condition.
fn told(object: &Value, condition: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|found| found["type"] == condition);
    let message = found.and_then(|found| found["message"].as_str());
    message.unwrap_or_default().to_owned()
}

#[test]
fn a_release_that_is_not_kept_as_written_is_written_ever_more_seldom_and_the_stack_says_why() {
    install_crypto();
    let server = begin(None);
    server.forget_fields(RELEASE, &["/spec/policy", "/spec/source"]);
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        let said = told(&server.find("ClusterStack", "harbor"), "Ready");
        assert!(said.contains("bring the CRDs of this operator up to date"), "{said}");
        assert_eq!(server.find(RELEASE, TAG)["status"]["ready"], true);

        server.forget_fields(RELEASE, &[]);
        sleep(2 * LONG).await;
        assert!(server.find(RELEASE, TAG)["spec"]["policy"].is_object());
        assert_eq!(told(&server.find("ClusterStack", "harbor"), "Ready"), "");
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn a_provider_s_object_is_taken_once_while_the_watch_does_not_show_it() {
    after_installing(&["v1"], async |server| {
        server.merge(PROVIDER_KIND, TAG, &json!({ "metadata": { "ownerReferences": null } }));
        server.stall(PROVIDER_KIND);
        sleep(LONG).await;
        let owner = &server.find(PROVIDER_KIND, TAG)["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], server.find(RELEASE, TAG)["metadata"]["uid"]);
    });
}

#[test]
fn a_provider_s_object_that_went_before_it_was_taken_does_not_come_back_as_a_husk() {
    after_installing(&["v1"], async |server| {
        server.merge(PROVIDER_KIND, TAG, &json!({ "metadata": { "ownerReferences": null } }));
        server.stall(PROVIDER_KIND);
        server.delete(PROVIDER_KIND, TAG);
        sleep(LONG).await;
        assert_eq!(server.find(PROVIDER_KIND, TAG), Value::Null);
    });
}

#[test]
fn an_object_that_lost_its_label_is_put_back_while_the_watch_still_shows_it() {
    after_installing(&["v1"], async |server| {
        let image = format!("{TAG}-cluster");
        server.merge(
            IMAGE,
            &image,
            &json!({ "spec": { "template": { "spec": { "image": "theirs" } } } }),
        );
        server.stall(IMAGE);
        server.merge(IMAGE, &image, &json!({ "metadata": { "labels": null } }));
        sleep(LONG).await;
        let live = server.find(IMAGE, &image);
        assert_eq!(live["spec"]["template"]["spec"]["image"], "ours");
        assert!(live["metadata"]["labels"].is_object(), "{live:#}");
    });
}

#[test]
fn an_object_that_goes_before_its_creation_is_answered_is_made_again() {
    install_crypto();
    let server = begin(None);
    let image = format!("{TAG}-cluster");
    server.hold(Method::PATCH, IMAGE, Duration::from_secs(1));
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        until(|| !server.find(IMAGE, &image).is_null()).await;
        server.delete(IMAGE, &image);
        sleep(LONG).await;
        assert_eq!(server.find(RELEASE, TAG)["status"]["ready"], true);
        assert!(!server.find(IMAGE, &image).is_null());
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn an_object_that_goes_as_often_as_it_is_made_is_left_alone_and_the_release_says_why() {
    install_crypto();
    let server = begin(None);
    let image = format!("{TAG}-cluster");
    server.hold(Method::PATCH, IMAGE, Duration::from_secs(1));
    let mut made = 0;
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        let rival = async {
            loop {
                until(|| !server.find(IMAGE, &image).is_null()).await;
                server.delete(IMAGE, &image);
                made += 1;
            }
        };
        tokio::select! {
            () = rival => {}
            () = sleep(LONG) => {}
        }
        let status = server.find(RELEASE, TAG)["status"].to_string();
        assert!(status.contains("the object was deleted; put back 3 times"), "{status}");
    });
    assert_eq!(made, 4);
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn a_deletion_that_a_policy_calls_a_conflict_is_tried_ever_more_seldom_and_the_release_says_why() {
    after_installing(&["v1"], async |server| {
        server.refuse(Method::DELETE, IMAGE, Some("in use by the harbour master"));
        server.delete("ClusterStack", "harbor");
        sleep(LONG).await;
        let status = server.find(RELEASE, TAG)["status"].to_string();
        assert!(status.contains("in use by the harbour master"), "{status}");

        server.refuse(Method::DELETE, IMAGE, None);
        sleep(2 * LONG).await;
        assert_eq!(server.find(RELEASE, TAG), Value::Null);
    });
}

#[test]
fn a_deletion_of_a_release_that_a_policy_calls_a_conflict_is_tried_ever_more_seldom_and_the_stack_says_why() {
    after_installing(&["v1", "v2"], async |server| {
        server.refuse(Method::DELETE, RELEASE, Some("in use by the harbour master"));
        server.apply(&stack(&["v2"]));
        sleep(LONG).await;
        let status = server.find("ClusterStack", "harbor")["status"].to_string();
        assert!(status.contains("in use by the harbour master"), "{status}");

        server.refuse(Method::DELETE, RELEASE, None);
        sleep(2 * LONG).await;
        assert_eq!(server.find(RELEASE, TAG), Value::Null);
    });
}

#[test]
fn an_object_that_changes_faster_than_it_is_read_is_asked_for_ever_more_seldom_and_goes_when_it_rests() {
    after_installing(&["v1"], async |server| {
        let image = format!("{TAG}-cluster");
        server.hold(Method::GET, IMAGE, Duration::from_secs(1));
        let before = server.calls();
        server.delete("ClusterStack", "harbor");
        for changes in 0..300 {
            let mut object = server.find(IMAGE, &image);
            object["status"] = json!({ "changes": changes });
            server.write(IMAGE, &image, &Write::Status(&object));
            sleep(Duration::from_millis(500)).await;
        }
        let calls = server.calls() - before;
        assert!(calls < 2 * BESIDES, "{calls} calls");
        let status = server.find(RELEASE, TAG)["status"].to_string();
        assert!(status.contains("it changes faster than it is read"), "{status}");
        sleep(2 * LONG).await;
        assert_eq!(server.find(RELEASE, TAG), Value::Null);
    });
}

#[test]
fn a_release_that_is_gone_is_deleted_once_while_the_watch_still_shows_it() {
    after_installing(&["v1", "v2"], async |server| {
        server.stall(RELEASE);
        server.merge(RELEASE, TAG, &json!({ "metadata": { "finalizers": null } }));
        server.delete(RELEASE, TAG);
        server.apply(&stack(&["v2"]));
        sleep(LONG).await;
        let status = &server.find("ClusterStack", "harbor")["status"];
        assert_eq!(status["summary"].as_array().map(Vec::len), Some(1), "{status:#}");
    });
}

#[test]
fn objects_are_repaired_while_a_provider_cannot_be_listed_and_the_release_says_why() {
    let server = after_installing(&["v1"], async |server| server.clone());
    server.deny(PROVIDER_KIND, false);
    server.delete("ClusterClass", TAG);
    operated(&server, async |_| sleep(LONG).await);
    assert!(!server.find("ClusterClass", TAG).is_null());
    let said = told(&server.find(RELEASE, TAG), "ProviderClusterStackReleaseReady");
    assert!(said.contains(&format!("nobody may list {PROVIDER_KIND}")), "{said}");
    let said = told(
        &server.find("ClusterStack", "harbor"),
        "ProviderClusterStackReleasesSynced",
    );
    assert!(said.contains(&format!("nobody may list {PROVIDER_KIND}")), "{said}");
}

#[test]
fn a_kind_whose_objects_cannot_be_listed_is_told_in_the_words_of_the_api_server() {
    install_crypto();
    let server = begin(None);
    server.deny(IMAGE, false);
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
    });
    let said = told(&server.find(RELEASE, TAG), "HelmChartApplied");
    assert!(said.contains(&format!("nobody may list {IMAGE}")), "{said}");
}

#[test]
fn objects_whose_label_is_not_kept_are_applied_ever_more_seldom_and_the_release_says_why() {
    install_crypto();
    let server = begin(None);
    server.forget_fields(IMAGE, &["/metadata/labels"]);
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        let said = told(&server.find(RELEASE, TAG), "HelmChartApplied");
        assert!(said.contains("stop the policy that changes its labels"), "{said}");

        server.forget_fields(IMAGE, &[]);
        sleep(2 * LONG).await;
        assert_eq!(server.find(RELEASE, TAG)["status"]["ready"], true);
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn a_release_whose_mark_is_not_kept_is_marked_ever_more_seldom_and_nothing_of_it_is_made() {
    install_crypto();
    for field in [&["/metadata/finalizers"], &["/metadata/annotations"]] {
        let server = begin(None);
        server.forget_fields(RELEASE, field);
        operated(&server, async |_| {
            server.apply(&template("small"));
            server.apply(&stack(&["v1"]));
            sleep(LONG).await;
            assert!(server.find("ClusterClass", TAG).is_null(), "without {field:?}");

            server.forget_fields(RELEASE, &[]);
            sleep(2 * LONG).await;
            assert_eq!(
                server.find(RELEASE, TAG)["status"]["ready"],
                true,
                "with {field:?} again"
            );
        });
        assert!(server.calls() < MOST, "the operator asks for ever: {field:?}");
    }
}

#[test]
fn who_keeps_writing_a_provider_s_object_is_not_fought_for_ever() {
    after_installing(&["v1"], async |server| {
        let theirs = || server.merge(PROVIDER_KIND, TAG, &json!({ "spec": { "size": "theirs" } }));
        let size = || server.find(PROVIDER_KIND, TAG)["spec"]["size"].clone();
        let said = || {
            told(
                &server.find("ClusterStack", "harbor"),
                "ProviderClusterStackReleasesSynced",
            )
        };
        for _ in 0..3 {
            theirs();
            sleep(Duration::from_secs(20)).await;
            assert_eq!(size(), "small");
        }
        theirs();
        sleep(Duration::from_mins(1)).await;
        assert_eq!(size(), "theirs");
        assert!(said().contains("put back 3 times in ten minutes"), "{}", said());
        sleep(Duration::from_mins(10)).await;
        assert_eq!((size(), said()), (json!("small"), String::new()), "it is tried again");
    });
}

#[test]
fn what_a_provider_says_of_its_object_is_no_change_that_was_put_back() {
    after_installing(&["v1"], async |server| {
        server.stall(PROVIDER_KIND);
        server.apply(&template("large"));
        for done in 1..6 {
            let mut object = server.find(PROVIDER_KIND, TAG);
            object["status"]["progress"] = json!({ "done": done });
            server.write(PROVIDER_KIND, TAG, &Write::Status(&object));
            sleep(Duration::from_secs(10)).await;
            assert_eq!(server.find(PROVIDER_KIND, TAG)["spec"]["size"], "large");
            let said = told(
                &server.find("ClusterStack", "harbor"),
                "ProviderClusterStackReleasesSynced",
            );
            assert!(!said.contains("put back"), "{said}");
        }
    });
}
