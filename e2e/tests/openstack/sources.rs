//! Sources that are not what they should be, on Glance itself: other bytes, less, more, a page, and files of digests of every kind. Whatever a source does, nothing
//! that is not the image is ever shown, and an image that can be had is had in the end.

use anyhow::{Context, Result, ensure};
use e2e::stage::{Stage, message_of, on_a_fake, on_stage, reason_of, small};
use http::Method;
use openstack_lab::source::{Article, Visit, sha256, sha512};
use serde_json::{Value, json};

/// A file of digests, as `sha256sum` writes it.
fn sums(disk: &[u8], name: &str) -> Article {
    let digest = sha256(disk);
    let text = format!("{}  {name}\n", digest.trim_start_matches("sha256:"));
    Article::of(text)
}

fn is_of(digests: &str, name: &str, stage: &Stage<'_>) -> Value {
    json!({ "image": { "sums": { "url": stage.source.url(digests), "name": name } } })
}

#[test]
fn files_of_digests_are_heeded_and_refused_when_they_do_not_say_what_is_meant() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put("/node.qcow2", Article::of(disk.clone()));
        stage.source.put("/right", sums(&disk, "node.qcow2"));
        stage.source.put("/wrong", sums(&small(2), "node.qcow2"));
        stage.source.put("/foreign", sums(&disk, "other.qcow2"));
        stage
            .source
            .put("/page", Article::page("<html><body>log in</body></html>"));
        for digests in ["right", "wrong", "foreign", "page"] {
            let path = format!("/{digests}");
            let changes = is_of(&path, "node.qcow2", stage);
            stage.want(digests, "/node.qcow2", changes).await?;
        }
        stage.operate().await?;
        let status = stage.ready("right").await?;
        let image = status.image.context("an image")?;
        ensure!(image.source_digest == Some(sha256(&disk)), "{image:?}");
        for (name, reason) in [
            ("wrong", "SourceMismatch"),
            ("foreign", "DigestUnknown"),
            ("page", "DigestUnknown"),
        ] {
            let message = message_of(&stage.not_ready(name, reason).await?);
            ensure!(
                name == "wrong" || message.matches("; ").count() == 1,
                "{name}: {message}"
            );
            stage.delete(name).await?;
        }
        Ok(vec![image.id])
    })
}

#[test]
fn what_is_no_image_or_another_one_is_never_shown() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put("/disk", Article::of(disk.clone()));
        stage
            .source
            .put("/page", Article::page("<html><body>log in</body></html>"));
        let other = json!({ "image": { "digest": sha256(&small(2)) } });
        stage.want("other", "/disk", other).await?;
        stage.want("page", "/page", json!({})).await?;
        stage.operate().await?;
        let message = message_of(&stage.not_ready("page", "SourceNotAnImage").await?);
        ensure!(message.contains("a web page"), "{message}");
        let message = message_of(&stage.not_ready("other", "SourceMismatch").await?);
        ensure!(
            message.contains(&sha256(&disk)) && message.contains(&sha256(&small(2))),
            "{message}"
        );
        stage.is_active(&[]).await?;
        for name in ["page", "other"] {
            stage.delete(name).await?;
        }
        Ok(Vec::new())
    })
}

#[test]
fn a_source_that_gives_less_or_more_or_something_else_than_it_said_is_not_believed() -> Result<()> {
    on_stage(async |stage| {
        let (first, second) = (small(1), small(2));
        let half = first.len() / 2;
        // Its bytes break off behind where they are held, and go on as those of another file.
        let changing = Article::of(first.clone()).held_at(half / 2).breaking_every(half);
        stage.source.put("/changed", changing);
        stage.source.put("/shorter", Article::of(first.clone()).ending_at(half));
        stage.source.put("/longer", Article::of(first.clone()).announcing(half));
        for name in ["changed", "shorter", "longer"] {
            stage.want(name, &format!("/{name}"), json!({})).await?;
        }
        stage.operate().await?;
        stage.reads("/changed", 1).await?;
        stage.source.put("/changed", Article::of(second.clone()));
        stage.source.let_go();
        stage.reads("/shorter", 2).await?;
        stage.reads("/longer", 1).await?;
        stage.not_ready("longer", "SourceChanged").await?;
        stage.is_active(&["changed"]).await?;
        for name in ["shorter", "longer"] {
            stage.source.put(&format!("/{name}"), Article::of(first.clone()));
        }
        let mut left = Vec::new();
        for (name, disk) in [("changed", &second), ("shorter", &first), ("longer", &first)] {
            let id = stage.id(name).await?;
            let image = stage.cloud.image(&id).await?;
            ensure!(image["os_hash_value"] == sha512(disk).as_str(), "{name}: {image}");
            left.push(id);
        }
        // What was shorter was gone on with, and the others began again.
        let visits = stage.source.visits();
        let begun = |path: &str| {
            let is_begun = |visit: &&Visit| visit.reads && visit.path == path && visit.from.is_none();
            visits.iter().filter(is_begun).count()
        };
        ensure!(begun("/shorter") == 1, "{visits:?}");
        ensure!(begun("/changed") == 2 && begun("/longer") >= 2, "{visits:?}");
        Ok(left)
    })
}

/// Only the fake converts: what a real one needs for that is another program, and its operator's wish.
#[test]
fn what_a_cloud_converts_at_the_users_wish_is_ready_by_what_was_sent_and_says_so() -> Result<()> {
    on_a_fake(async |stage, fake| {
        fake.convert_imports();
        let disk = small(1);
        stage.source.put("/disk", Article::of(disk.clone()));
        let staged = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "Staged" } });
        stage.want("ubuntu", "/disk", staged).await?;
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(reason_of(&status).as_deref() == Some("TransferOnly"), "{status:?}");
        ensure!(
            message_of(&status).contains("raw of the qcow2 that was sent"),
            "{status:?}"
        );
        let image = status.image.clone().context("an image")?;
        ensure!(
            (image.disk_format.as_deref(), image.source_digest.clone()) == (Some("raw"), Some(sha256(&disk))),
            "{status:?}"
        );
        ensure!(
            image.sha512.as_ref().is_some_and(|digest| *digest != sha512(&disk)),
            "it was not converted"
        );
        let sent = ["/stage", "/file"].map(|place| fake.count(&Method::PUT, place));
        ensure!(sent == [1, 0], "{sent:?}");
        Ok(vec![image.id])
    })
}
