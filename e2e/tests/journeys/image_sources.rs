//! Where node images come from, besides plain files on web servers: files in a real registry, files of the release itself, and packed files of each kind, which
//! arrive unpacked.

use std::fs;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionStatus, ConditionType, find},
    labels,
    providers::{filestore::FileStoreNodeImageRelease, image_status::NodeImageStatus},
};
use e2e::{
    Journey,
    packed::{PACKED, disk},
    registry::{PASSWORD, Registry},
    releases::StackSource,
    web::{WebServer, sha256},
};
use http::{Response, StatusCode};
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{
    journey,
    node_images::{apply, files, images, nothing_is_left, provider_operator},
};

const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1alpha1";
const STACK: &str = "harbor";
/// The repository of the images.
const DISKS: &str = "disks/harbor";
/// The Secret by which Pods pull.
const PULL: &str = "pull";

#[test]
fn packed_images_arrive_unpacked_and_one_of_the_release_itself_too() -> Result<()> {
    journey(async |journey| {
        let server = WebServer::start(|request| {
            let asked = request.uri().path().strip_prefix("/disk.").unwrap_or_default();
            let found = PACKED.iter().find(|(kind, _)| *kind == asked);
            let mut answer = Response::new(found.map_or_else(Bytes::new, |(_, bytes)| Bytes::from_static(bytes)));
            if found.is_none() {
                *answer.status_mut() = StatusCode::NOT_FOUND;
            }
            answer
        })
        .await?;
        let source = StackSource::harbor("v1")?;
        let mut text = "apiVersion: node-images.clusterstack.x-k8s.io/v1alpha1\nfileStoreNodeImages:\n\
                        - url: release:disk.packed\n  name: of-the-release\n"
            .to_owned();
        for (kind, _) in PACKED {
            let url = server.url("127.0.0.1");
            text.extend(["- url: ", &url, "/disk.", kind, "\n  name: was-", kind, "\n"]);
        }
        source.write("node-images.yaml", &text)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        let (_, of_release) = PACKED[1];
        journey.releases.edit(&tag, |folder| {
            fs::write(folder.join("disk.packed"), of_release).context("failed to write a disk")
        })?;
        journey.operate().await?;
        apply(journey).await?;
        let mut provider = provider_operator(journey).await?;
        provider.ready().await?;
        journey.release_ready(&tag).await?;

        let disk = disk()?;
        let names = PACKED.map(|(kind, bytes)| (format!("was-{kind}"), bytes));
        let objects = journey.api::<FileStoreNodeImageRelease>();
        let objects = objects.list(&ListParams::default()).await?.items;
        for (name, packed) in names.into_iter().chain([("of-the-release".to_owned(), of_release)]) {
            let stored = fs::read(images(journey).join(&name)).with_context(|| format!("{name} is not there"))?;
            ensure!(stored == disk, "{name} is not what was packed");
            let object = objects.iter().find(|object| object.spec.image.name == name);
            let status = object.and_then(|object| object.status.clone()).context("an object")?;
            let digest = status.image.and_then(|image| image.source_digest);
            ensure!(
                digest == Some(format!("sha256:{}", sha256(packed))),
                "{name}: {digest:?}"
            );
        }
        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        nothing_is_left(journey).await
    })
}

/// An image that is a layer under the tag `v1`, as `spec.image` has it.
fn layer(registry: &Registry, name: &str, rest: &str) -> Value {
    json!({
        "url": format!("oci://{}{rest}", registry.repository(DISKS)), "name": name, "caSecretRef": { "name": "registry" },
    })
}

async fn want(journey: &Journey, image: Value) -> Result<()> {
    let object = json!({
        "apiVersion": API_VERSION, "kind": "FileStoreNodeImageRelease",
        "metadata": { "name": image["name"] }, "spec": { "image": image },
    });
    journey.apply(object).await.map(drop)
}

async fn until(
    journey: &Journey,
    name: &str,
    what: &str,
    holds: impl Fn(&NodeImageStatus) -> bool,
) -> Result<NodeImageStatus> {
    let found = journey
        .until(name, what, |object: &FileStoreNodeImageRelease| {
            object.status.as_ref().is_some_and(&holds)
        })
        .await?;
    found.status.context("a status")
}

/// Whether it is not ready for this reason, in words that have this part.
fn refused<'words>(reason: &'words str, words: &'words str) -> impl Fn(&NodeImageStatus) -> bool + 'words {
    move |status| {
        find(&status.conditions, ConditionType::Ready).is_some_and(|ready| {
            ready.status == ConditionStatus::False
                && ready.reason.as_deref() == Some(reason)
                && ready.message.as_deref().is_some_and(|message| message.contains(words))
        })
    }
}

/// Puts two files under the tag; the answer is its digest.
fn push(journey: &Journey, registry: &Registry, disk: &[u8]) -> Result<String> {
    let folder = journey.folder().join("disks");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("disk.raw"), disk)?;
    fs::write(folder.join("disk.packed"), PACKED[3].1)?;
    registry.push(&folder, DISKS, "v1")?;
    registry.digest(DISKS, "v1")
}

#[test]
fn an_image_comes_from_a_layer_in_a_registry_and_a_tag_that_was_moved_is_told() -> Result<()> {
    // The provider alone: nobody decides about releases.
    e2e::journey::journey(async |journey| {
        let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
        journey.apply(registry.secret(PASSWORD)?).await?;
        journey.apply(registry.pull_secret(PULL)?).await?;
        let first = disk()?;
        let digest = push(journey, &registry, &first)?;
        let provider = provider_operator(journey).await?;

        let mut by_title = layer(&registry, "by-title", ":v1#disk.raw");
        by_title["credentialsSecretRef"] = json!({ "name": "registry" });
        let mut by_digest = layer(&registry, "by-digest", &format!("@{digest}#disk.packed"));
        by_digest["credentialsSecretRef"] = json!({ "name": PULL });
        let mut unnamed = layer(&registry, "unnamed", ":v1");
        unnamed["credentialsSecretRef"] = json!({ "name": PULL });
        let nobody = layer(&registry, "nobody", ":v1#disk.raw");
        for image in [by_title.clone(), by_digest, unnamed, nobody] {
            want(journey, image).await?;
        }
        for (name, source) in [("by-title", first.as_slice()), ("by-digest", PACKED[3].1)] {
            let status = until(journey, name, "ready", |status| status.ready).await?;
            let told = status.image.and_then(|image| image.source_digest);
            ensure!(told == Some(format!("sha256:{}", sha256(source))), "{name}: {told:?}");
            ensure!(fs::read(images(journey).join(name))? == first, "{name} is another file");
        }
        let which = refused("SourceNotFound", "disk.packed, disk.raw");
        until(journey, "unnamed", "told that a title is wanted", which).await?;
        let denied = refused("SourceNotFound", "give the source credentials");
        until(journey, "nobody", "told that it is not public", denied).await?;

        // Of the image that was trusted nothing is left, and the tag is another file's by now.
        let mut second = first.clone();
        second[5] ^= 1;
        push(journey, &registry, &second)?;
        let lost = until(journey, "by-title", "ready", |status| status.ready).await?;
        let id = lost.image.context("an image")?.id;
        for file in files(&images(journey))? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("by-title") || name.starts_with(&id) {
                fs::remove_file(&file)?;
            }
        }
        journey
            .annotate::<FileStoreNodeImageRelease>("by-title", labels::REQUESTED_AT, Some("it is gone"))
            .await?;
        let words = sha256(&second);
        let moved = refused("SourceMismatch", words.as_str());
        until(journey, "by-title", "told that the tag was moved", moved).await?;
        by_title["digest"] = format!("sha256:{words}").into();
        want(journey, by_title).await?;
        until(journey, "by-title", "ready again", |status| status.ready).await?;
        ensure!(
            fs::read(images(journey).join("by-title"))? == second,
            "it is another file"
        );

        provider.kill().await?;
        let log = fs::read_to_string(journey.folder().join("provider/provider-operator.log"))?;
        ensure!(!log.contains(PASSWORD), "a password is in the log");
        Ok(())
    })
}

/// A registry is also a web server, whose files have their digests for names.
#[test]
fn an_image_comes_by_https_from_whom_its_own_authority_vouches_for_and_from_nobody_else() -> Result<()> {
    e2e::journey::journey(async |journey| {
        let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
        journey.apply(registry.secret(PASSWORD)?).await?;
        let disk = disk()?;
        push(journey, &registry, &disk)?;
        let provider = provider_operator(journey).await?;
        let host = registry.repository("");
        let url = format!("https://{host}v2/{DISKS}/blobs/sha256:{}", sha256(&disk));
        let trusted = json!({ "name": "registry" });
        let vouched = json!({ "url": url, "name": "vouched", "caSecretRef": trusted, "credentialsSecretRef": trusted });
        let unknown = json!({ "url": url, "name": "unknown", "credentialsSecretRef": trusted });
        for image in [vouched, unknown] {
            want(journey, image).await?;
        }
        until(journey, "vouched", "ready", |status| status.ready).await?;
        ensure!(fs::read(images(journey).join("vouched"))? == disk, "it is another file");
        let is_told = |status: &NodeImageStatus| {
            let told = find(&status.conditions, ConditionType::Ready).and_then(|ready| ready.message.as_deref());
            !status.ready && told.is_some_and(|told| told.contains("certificate"))
        };
        until(journey, "unknown", "told of the certificate", is_told).await?;
        provider.kill().await?;
        let log = fs::read_to_string(journey.folder().join("provider/provider-operator.log"))?;
        ensure!(!log.contains(PASSWORD), "a password is in the log");
        Ok(())
    })
}
