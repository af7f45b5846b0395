//! What the real Glance refuses for good, or until somebody changes something: in which words that is told, what ends it, and that it is asked no more than once
//! meanwhile.

use anyhow::{Context, Result, ensure};
use crds::{
    labels,
    providers::{image_status::NodeImageStatus, openstack::OpenStackNodeImageRelease},
};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, SECRET, Stage, message_of, on_a_narrow_stage, on_a_stage_of_a_reader, on_stage, small},
};
use http::{Method, StatusCode};
use kube::ResourceExt;
use openstack_lab::{
    Limits, Login, Site, disk,
    proxy::Passed,
    source::{Article, sha512},
};
use serde_json::{Value, json};

/// Most tags of an image and most properties, as Glance has it when nobody says otherwise.
const MOST: usize = 128;
/// Our own tag, and our own properties.
const OUR_TAGS: usize = 1;
const OUR_PROPERTIES: usize = 8;
/// What is said with every right that is missing.
const ASK_OR_ASK_FOR_LESS: &str = "give the project or user the right, or ask for less";

fn tags(count: usize) -> Value {
    (0..count).map(|number| format!("tag-{number}")).collect()
}

fn properties(count: usize) -> Value {
    let properties = (0..count).map(|number| (format!("key_{number}"), json!("value")));
    Value::Object(properties.collect())
}

async fn want(stage: &Stage<'_>, name: &str, options: Value) -> Result<()> {
    let image = json!({ "image": { "createOpts": options } });
    stage.want(name, DISK, image).await
}

/// Waits until an image is refused in words that have all of these; what it is called in the logs of the cloud that refused it.
async fn refused(stage: &Stage<'_>, name: &str, words: &[&str]) -> Result<Option<String>> {
    let status = stage.not_ready(name, "ImageRefused").await?;
    let message = message_of(&status);
    for words in words {
        ensure!(message.contains(words), "{name}: {words:?} is not in {message:?}");
    }
    let failure = status.last_failure.context("a failure")?;
    ensure!(failure.reason == "ImageRefused", "{name}: {failure:?}");
    Ok(failure.request_id)
}

/// As the services of OpenStack make them.
fn is_request_id(id: &str) -> bool {
    let word = id.strip_prefix("req-").unwrap_or_default();
    word.len() == 36 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

#[test]
fn what_glance_does_not_take_is_asked_once_told_in_its_words_and_ended_by_another_wish() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        want(stage, "no-format", json!({ "disk_format": "floppy" })).await?;
        // Nobody but the cloud looks into such disks.
        want(stage, "other-format", json!({ "disk_format": "iso" })).await?;
        stage.operate().await?;
        let format = refused(
            stage,
            "no-format",
            &["400", "floppy", "change what the cloud does not take"],
        )
        .await?;
        let words = [
            "415",
            "Image disk_format iso does not match stream data qcow2",
            "correct createOpts.disk_format",
            "require_image_format_match",
            "gpt_safety_checks_nonfatal",
        ];
        let content = refused(stage, "other-format", &words).await?;
        for id in [&format, &content] {
            ensure!(id.as_deref().is_some_and(is_request_id), "{id:?}");
        }
        ensure!(format != content, "two requests are called {format:?}");
        // What it got it keeps, and so its record is of no use any more.
        stage.cloud.holds(&[]).await?;
        let count = |method, part| stage.proxy.count(&method, part);
        let asked = [count(Method::POST, "/v2/images"), count(Method::PUT, "/file")];
        ensure!(asked == [2, 1], "{asked:?}: {:?}", stage.proxy.passed());

        for name in ["no-format", "other-format"] {
            want(stage, name, json!({ "disk_format": "qcow2" })).await?;
        }
        Ok(vec![stage.id("no-format").await?, stage.id("other-format").await?])
    })
}

#[test]
fn as_many_tags_and_properties_as_glance_takes_are_taken_and_one_more_is_told() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        let (most_tags, most_properties) = (MOST - OUR_TAGS, MOST - OUR_PROPERTIES);
        let most = json!({ "tags": tags(most_tags), "properties": properties(most_properties) });
        want(stage, "most", most).await?;
        want(stage, "tags", json!({ "tags": tags(most_tags + 1) })).await?;
        want(
            stage,
            "properties",
            json!({ "properties": properties(most_properties + 1) }),
        )
        .await?;
        stage.operate().await?;
        let id = stage.id("most").await?;
        let image = stage.cloud.image(&id).await?;
        let known = image["tags"].as_array().map(Vec::len);
        ensure!(known == Some(MOST), "it has {known:?} tags");
        let fields = image.as_object().context("an image")?;
        let known = fields.keys().filter(|key| key.starts_with("key_")).count();
        ensure!(known == most_properties, "it has {known} properties");

        for (name, words) in [
            ("tags", "createOpts.tags may have 127 tags"),
            ("properties", "createOpts.properties may have 120 properties"),
        ] {
            let message = message_of(&stage.not_ready(name, "InvalidSpec").await?);
            ensure!(message.contains(words), "{name}: {message:?}");
        }
        let made = stage.proxy.count(&Method::POST, "/v2/images");
        ensure!(made == 1, "{made} records were made");
        for name in ["tags", "properties"] {
            stage.delete(name).await?;
        }
        Ok(vec![id])
    })
}

#[test]
fn a_bound_of_images_or_of_what_is_staged_is_told_as_what_it_is() -> Result<()> {
    let limits = Limits {
        stage_total: 8,
        count_total: 2,
        ..Limits::WIDE
    };
    on_a_narrow_stage(limits, async |stage| {
        let other = stage.cloud.queued("other").await?;
        stage
            .source
            .put("/large", Article::of(disk::qcow2_of(1, 32 << 20, 16 << 20)));
        stage.source.put(DISK, Article::of(small(1)));
        let staged = json!({ "transfer": { "via": "Staged" } });
        stage.want("staged", "/large", staged).await?;
        stage.operate().await?;
        let told = message_of(&stage.not_ready("staged", "QuotaExceeded").await?);
        ensure!(told.contains("image_stage_total: limit 8, used 0, wanted 16"), "{told}");
        let staged = stage.cloud.one().await?;
        stage.cloud.becomes(&staged, "queued").await?;

        stage.want("second", DISK, json!({})).await?;
        let told = message_of(&stage.not_ready("second", "QuotaExceeded").await?);
        ensure!(told.contains("image_count_total: limit 2, used 2, wanted 1"), "{told}");
        stage.cloud.delete(&other).await?;
        stage.look_again("second", "there is room").await?;
        let second = stage.id("second").await?;
        stage.delete("staged").await?;
        Ok(vec![second])
    })
}

#[test]
fn a_better_secret_is_noticed_where_a_role_was_missing_whatever_paths_it_names() -> Result<()> {
    on_a_stage_of_a_reader(async |stage, known| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let status = stage.not_ready("ubuntu", "PermissionDenied").await?;
        let told = message_of(&status);
        ensure!(told.contains("403") && told.contains(ASK_OR_ASK_FOR_LESS), "{told}");
        let failure = status.last_failure.context("a failure")?;
        ensure!(failure.request_id.as_deref().is_some_and(is_request_id), "{failure:?}");
        stage.cloud.holds(&[]).await?;

        let login = known.clouds.values().next().context("a login")?;
        if let Login::ApplicationCredential { secret, .. } = login {
            stage.keep_secret(secret);
        }
        let known = Site {
            clouds: known.clouds.clone(),
            ..stage.proxy.site().clone()
        };
        let mut better = identity(SECRET, &known);
        // As files say it that come from a machine of somebody.
        let yaml = better["stringData"]["clouds.yaml"].as_str().context("a file")?;
        let path = "  interface: public\n    cacert: /etc/ssl/certs/ours.pem";
        let named = yaml.replace("  interface: public", path);
        ensure!(named != yaml, "{yaml}");
        better["stringData"]["clouds.yaml"] = named.into();
        stage.journey.apply(better).await?;
        let id = stage.id("ubuntu").await?;
        let object = stage.journey.api::<OpenStackNodeImageRelease>().get("ubuntu").await?;
        let is_untouched =
            object.metadata.generation == Some(1) && !object.annotations().contains_key(labels::REQUESTED_AT);
        ensure!(is_untouched, "somebody edited it: {:?}", object.metadata);
        // Whoever only looks would see it, and could not delete it.
        stage.delete("ubuntu").await?;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["status"] == 404, "{image}");
        Ok(Vec::new())
    })
}

#[test]
fn who_may_not_make_an_image_public_is_told_so_before_anything_is_sent_until_it_is_to_be_private() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        want(stage, "ubuntu", json!({ "visibility": "public" })).await?;
        stage.operate().await?;
        let status = stage.not_ready("ubuntu", "PermissionDenied").await?;
        let told = message_of(&status);
        for words in ["403", "publicize_image", ASK_OR_ASK_FOR_LESS] {
            ensure!(told.contains(words), "{words:?} is not in {told:?}");
        }
        let failure = status.last_failure.context("a failure")?;
        let is_told = failure.reason == "PermissionDenied"
            && failure.remedy.as_deref() == Some(ASK_OR_ASK_FOR_LESS)
            && failure.request_id.as_deref().is_some_and(is_request_id);
        ensure!(is_told, "{failure:?}");
        stage.cloud.holds(&[]).await?;
        let asked = || {
            [(Method::POST, "/v2/images"), (Method::PUT, "/file")]
                .map(|(method, part)| stage.proxy.count(&method, part))
        };
        ensure!(asked() == [1, 0], "{:?}", stage.proxy.passed());

        want(stage, "ubuntu", json!({ "visibility": "private" })).await?;
        let id = stage.id("ubuntu").await?;
        let image = stage.cloud.image(&id).await?;
        let is_it = image["status"] == "active"
            && image["visibility"] == "private"
            && image["os_hash_value"] == sha512(&disk).as_str();
        ensure!(is_it, "{image}");
        ensure!(asked() == [2, 1], "{:?}", stage.proxy.passed());
        Ok(vec![id])
    })
}

/// Whether it is told that the image is private in the cloud and should be public.
fn tells_of_privacy(status: &NodeImageStatus) -> bool {
    let verified = status.conditions.iter().find(|condition| condition.type_ == "Verified");
    verified.is_some_and(|verified| {
        let message = verified.message.as_deref().unwrap_or_default();
        verified.reason.as_deref() == Some("ImageDiffers")
            && message.contains("visibility is private and should be public")
    })
}

#[test]
fn an_image_that_may_not_become_public_stays_usable_and_tells_so_until_it_is_to_be_private() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        want(stage, "ubuntu", json!({ "visibility": "private" })).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;

        want(stage, "ubuntu", json!({ "visibility": "public" })).await?;
        let refused = || -> usize {
            let is_refused =
                |passed: &&Passed| passed.method == Method::PATCH && passed.status == Some(StatusCode::FORBIDDEN);
            stage.proxy.passed().iter().filter(is_refused).count()
        };
        eventually(SOON, "the cloud to refuse", async || {
            ensure!(refused() > 0, "{:?}", stage.proxy.passed());
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let is_told = |status: &NodeImageStatus| status.ready && tells_of_privacy(status);
        stage.until("ubuntu", "ready and told of as private", is_told).await?;
        let image = stage.cloud.image(&id).await?;
        let is_as_before =
            image["status"] == "active" && image["os_hidden"] == false && image["visibility"] == "private";
        ensure!(is_as_before, "{image}");

        want(stage, "ubuntu", json!({ "visibility": "private" })).await?;
        let is_over = |status: &NodeImageStatus| status.ready && !tells_of_privacy(status);
        let status = stage.until("ubuntu", "ready and as it should be", is_over).await?;
        ensure!(
            status.image.is_some_and(|image| image.id == id),
            "another image took its place"
        );
        ensure!(refused() == 1, "it was asked over and over: {:?}", stage.proxy.passed());
        Ok(vec![id])
    })
}
