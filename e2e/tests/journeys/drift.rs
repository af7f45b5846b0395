//! Somebody changes what we applied.

use anyhow::{Context, Result};
use crds::{ClusterStackRelease, labels, resource::SyncStatus};
use e2e::{
    Journey, eventually,
    journey::{SOON, USER, status},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{apply::publish_with, journey};

fn classes(journey: &Journey) -> Api<DynamicObject> {
    journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass")
}

fn templates(journey: &Journey) -> Api<DynamicObject> {
    journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate")
}

const IMAGE: &str = "/spec/template/spec/customImage";

fn image(object: &DynamicObject) -> Option<String> {
    object.data.pointer(IMAGE).and_then(Value::as_str).map(str::to_owned)
}

/// A stack with one ready release and this drift policy; the answer is its tag.
async fn installed(journey: &mut Journey, drift: &str) -> Result<String> {
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    journey.operate().await?;
    journey
        .stack("harbor", json!({ "versions": ["v1"], "drift": drift }))
        .await?;
    journey.release_ready(&tag).await?;
    Ok(tag)
}

/// Changes a field as a user with force, as `kubectl edit` does.
async fn set_image(journey: &Journey, name: &str, image: &str) -> Result<()> {
    let patch = json!({ "spec": { "template": { "spec": { "customImage": image } } } });
    let params = PatchParams {
        field_manager: Some(USER.to_owned()),
        ..PatchParams::default()
    };
    templates(journey).patch(name, &params, &Patch::Merge(patch)).await?;
    Ok(())
}

#[test]
fn a12_f3_what_was_deleted_changed_or_unlabelled_comes_back() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Correct").await?;
        let class = classes(journey).get(&tag).await?;
        classes(journey).delete(&tag, &DeleteParams::default()).await?;
        let back = eventually(SOON, "the class to be back", async || {
            let now = classes(journey).get(&tag).await?;
            anyhow::ensure!(now.metadata.uid != class.metadata.uid, "it is the old one");
            Ok::<_, anyhow::Error>(now)
        })
        .await?;
        assert_eq!(back.data, class.data);

        let worker = format!("{tag}-worker");
        let original = image(&templates(journey).get(&worker).await?).context("an image")?;
        set_image(journey, &worker, "registry.example.com/somebody:else").await?;
        eventually(SOON, "the image to be back", async || {
            let found = image(&templates(journey).get(&worker).await?);
            anyhow::ensure!(found.as_deref() == Some(&original), "{found:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;

        let unlabelled = json!({ "metadata": { "labels": { labels::PART_OF: null, labels::INSTANCE: null } } });
        templates(journey)
            .patch(&worker, &PatchParams::default(), &Patch::Merge(unlabelled))
            .await?;
        eventually(SOON, "the labels to be back", async || {
            let found = templates(journey)
                .get(&worker)
                .await?
                .metadata
                .labels
                .unwrap_or_default();
            anyhow::ensure!(
                found.contains_key(labels::PART_OF) && found.contains_key(labels::INSTANCE),
                "{found:?}"
            );
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let release = journey.release_ready(&tag).await?;
        assert!(
            status(&release)
                .resources
                .iter()
                .all(|row| row.status == Some(SyncStatus::Synced)),
            "{release:#?}"
        );
        Ok(())
    })
}

#[test]
fn a12_what_happens_while_the_operator_is_down_is_noticed_when_it_is_back() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Correct").await?;
        journey.kill_operator().await?;
        let worker = format!("{tag}-worker");
        classes(journey).delete(&tag, &DeleteParams::default()).await?;
        set_image(journey, &worker, "registry.example.com/somebody:else").await?;
        journey.operate().await?;
        eventually(SOON, "both to be back", async || {
            let found = image(&templates(journey).get(&worker).await?);
            anyhow::ensure!(
                found.as_deref() != Some("registry.example.com/somebody:else"),
                "{found:?}"
            );
            classes(journey).get(&tag).await?;
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let log = journey.operator()?.log().to_owned();
        eventually(SOON, "the log to tell what was put back", async || {
            let log = std::fs::read_to_string(&log)?;
            let told: Vec<_> = log.lines().filter(|line| line.contains("drift corrected")).collect();
            let names = |words: &[&str]| told.iter().any(|line| words.iter().all(|word| line.contains(word)));
            anyhow::ensure!(
                names(&[&worker, IMAGE, USER]) && names(&["ClusterClass", &tag]),
                "{told:#?}"
            );
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}

#[test]
fn a12_with_warn_the_difference_is_told_with_field_and_manager_and_left() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Warn").await?;
        let worker = format!("{tag}-worker");
        set_image(journey, &worker, "registry.example.com/somebody:else").await?;
        let told = |release: &ClusterStackRelease| {
            status(release).resources.iter().any(|row| {
                row.name == worker
                    && row.kind == "DockerMachineTemplate"
                    && row.error.contains(IMAGE)
                    && row.error.contains(USER)
            })
        };
        let release = journey.until_release(&tag, "told what differs", told).await?;
        assert!(
            status(&release).ready,
            "a difference that is wanted to be left makes nothing unusable"
        );
        assert_eq!(
            image(&templates(journey).get(&worker).await?).as_deref(),
            Some("registry.example.com/somebody:else")
        );
        // The policy changes, and the difference goes.
        journey
            .stack("harbor", json!({ "versions": ["v1"], "drift": "Correct" }))
            .await?;
        eventually(SOON, "the image to be back", async || {
            let found = image(&templates(journey).get(&worker).await?);
            anyhow::ensure!(
                found.as_deref() != Some("registry.example.com/somebody:else"),
                "{found:?}"
            );
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}

#[test]
fn a12_with_ignore_nobody_looks() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Ignore").await?;
        let worker = format!("{tag}-worker");
        let mark = journey.mark().await?;
        set_image(journey, &worker, "registry.example.com/somebody:else").await?;
        // Answered after the change was seen or not at all.
        let release = journey.ask_release(&tag, "now").await?;
        assert!(status(&release).ready);
        assert!(
            status(&release).resources.iter().all(|row| row.error.is_empty()),
            "{release:#?}"
        );
        assert_eq!(
            image(&templates(journey).get(&worker).await?).as_deref(),
            Some("registry.example.com/somebody:else")
        );
        let touched = journey.requests_since(mark).await?.filter(|event| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.resource == "dockermachinetemplates")
                && event.verb != "watch"
        });
        assert!(touched.is_empty(), "{touched:#?}");
        Ok(())
    })
}

#[test]
fn a12_after_three_reversals_the_other_side_is_named_and_left_alone() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Correct").await?;
        let worker = format!("{tag}-worker");
        let contested = |release: &ClusterStackRelease| {
            let status = status(release);
            let row = status
                .resources
                .iter()
                .find(|row| row.name == worker && row.kind == "DockerMachineTemplate");
            row.is_some_and(|row| row.error.contains("put back 3 times") && row.error.contains(USER))
        };
        for round in 1..=3 {
            let foreign = format!("registry.example.com/somebody:else{round}");
            set_image(journey, &worker, &foreign).await?;
            eventually(SOON, "the image to be back", async || {
                let found = image(&templates(journey).get(&worker).await?);
                anyhow::ensure!(found.as_deref() != Some(foreign.as_str()), "{found:?}");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        set_image(journey, &worker, "registry.example.com/somebody:wins").await?;
        let release = journey.until_release(&tag, "contested", contested).await?;
        let reasons: Vec<_> = status(&release)
            .conditions
            .iter()
            .filter_map(|condition| condition.reason.clone())
            .collect();
        assert!(reasons.iter().any(|reason| reason == "Contested"), "{reasons:?}");
        assert_eq!(
            image(&templates(journey).get(&worker).await?).as_deref(),
            Some("registry.example.com/somebody:wins")
        );
        Ok(())
    })
}

#[test]
fn a12_an_object_without_a_generation_is_looked_after_too() -> Result<()> {
    journey(async |journey| {
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata: { color: ours }\n";
        let tag = publish_with(journey, template)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let maps = journey.objects("v1", "ConfigMap");
        let patch = json!({ "data": { "color": "theirs", "size": "theirs too" } });
        maps.patch("settings", &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        eventually(SOON, "our field to be back beside theirs", async || {
            let data = maps.get("settings").await?.data["data"].clone();
            anyhow::ensure!(data == json!({ "color": "ours", "size": "theirs too" }), "{data}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}

#[test]
fn labels_and_annotations_of_others_cost_a_look_and_no_write() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Correct").await?;
        let mark = journey.mark().await?;
        let patch =
            json!({ "metadata": { "labels": { "example.com/a": "b" }, "annotations": { "example.com/c": "d" } } });
        let patched = classes(journey)
            .patch(&tag, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        eventually(SOON, "a dry run of the class", async || {
            let events = journey.requests_since(mark).await?;
            let looked = events.iter().any(|event| event.dry_run && event.verb == "patch");
            anyhow::ensure!(looked, "{events:#?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        journey.ask_release(&tag, "now").await?;
        assert_eq!(
            classes(journey).get(&tag).await?.resource_version(),
            patched.resource_version()
        );
        // The answer to the request is the only write.
        let writes = journey.requests_since(mark).await?.writes();
        assert!(
            writes.iter().all(|event| event.request_uri.contains("/status")),
            "{writes:#?}"
        );
        Ok(())
    })
}

#[test]
fn a12_with_warn_what_was_deleted_is_told_and_not_made_again() -> Result<()> {
    journey(async |journey| {
        let tag = installed(journey, "Warn").await?;
        classes(journey).delete(&tag, &DeleteParams::default()).await?;
        let told = |release: &ClusterStackRelease| {
            let status = status(release);
            let row = status.resources.iter().find(|row| row.kind == "ClusterClass");
            !status.ready && row.is_some_and(|row| row.error.contains("was deleted"))
        };
        journey
            .until_release(&tag, "told that the class was deleted", told)
            .await?;
        assert!(classes(journey).get_opt(&tag).await?.is_none());
        journey
            .stack("harbor", json!({ "versions": ["v1"], "drift": "Correct" }))
            .await?;
        journey.release_ready(&tag).await?;
        classes(journey).get(&tag).await?;
        Ok(())
    })
}
