//! The node image of a release comes from its source into the place where its provider keeps images, and goes with the release: both operators as processes,
//! and the image in a directory.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionStatus},
    labels,
    providers::filestore::FileStoreNodeImageRelease,
};
use e2e::{
    Journey, Operator, eventually,
    journey::{SOON, status},
    provider_operator::{Destination, ProviderOptions},
    releases::StackSource,
    web::{WebServer, sha256},
};
use http::{Response, StatusCode};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use super::journey;

const STACK: &str = "harbor";
/// The name that the image has in the directory: that of the page about node images.
const IMAGE: &str = "ubuntu-2404-kube-v1.34.0.raw";
/// That page.
const PAGE: &str = include_str!("../../../docs/how-to/node-images.md");
/// Where the operator of that page serves images.
const SERVER: &str = "http://images.example.com:8088";
/// So that it comes in more than one piece.
const BYTES: usize = 3 << 20;

#[test]
fn a_release_is_usable_once_its_node_image_is_there_and_takes_it_along_when_it_goes() -> Result<()> {
    journey(async |journey| {
        let image = image();
        let server = serve(image.clone()).await?;
        let tag = journey.releases.publish_stack(&stack(&server, &image)?.path(), "v1")?;
        journey.operate().await?;
        apply(journey).await?;
        journey
            .until_release(&tag, "waiting for its provider", |release| {
                let waits = |condition: &Condition| {
                    condition.type_ == "ProviderClusterStackReleaseReady" && condition.status == ConditionStatus::False
                };
                status(release).conditions.iter().any(waits)
            })
            .await?;

        let mut provider = provider_operator(journey).await?;
        provider.ready().await?;
        journey.release_ready(&tag).await?;
        let stored = fs::read(images(journey).join(IMAGE)).context("the image is not in the directory")?;
        ensure!(stored == image, "the image in the directory is another one");
        let [url, checksum] = addresses_of_metal3()?;
        let (status, given) = provider.images(&url).await?;
        ensure!(
            status == StatusCode::OK && given == image,
            "{url} has {status} and another image"
        );
        let (status, sums) = provider.images(&checksum).await?;
        let wanted = format!("{}  {IMAGE}\n", sha256(&image));
        ensure!(
            status == StatusCode::OK && sums == wanted,
            "{checksum} has {status}: {sums:?}"
        );

        provider.kill().await?;
        let asked = server.visits().len();
        let mut provider = provider_operator(journey).await?;
        provider.ready().await?;
        journey.release_ready(&tag).await?;
        ensure!(
            server.visits().len() == asked,
            "an image that is there was asked for again: {:?}",
            server.visits()
        );

        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        nothing_is_left(journey).await
    })
}

/// The paths of an image and of its digest, as the page tells a `Metal3MachineTemplate` of them.
fn addresses_of_metal3() -> Result<[String; 2]> {
    let mut parts = PAGE.split("```yaml\n").filter_map(|part| part.split("```").next());
    let part = parts.find(|part| part.contains("kind: Metal3MachineTemplate"));
    let template: Value = serde_yaml::from_str(part.context("the page has no Metal3MachineTemplate")?)?;
    let image = &template["spec"]["template"]["spec"]["image"];
    ensure!(
        image["checksumType"] == "sha256" && image["format"] == "raw",
        "another kind of image: {image}"
    );
    let path = |field: &str| -> Result<String> {
        let url = image[field].as_str().with_context(|| format!("no {field}"))?;
        let path = url
            .strip_prefix(SERVER)
            .with_context(|| format!("{url} is elsewhere"))?;
        Ok(path.to_owned())
    };
    Ok([path("url")?, path("checksum")?])
}

fn image() -> Bytes {
    // Begins as a disk does that can be booted from, so that nobody takes it for something else.
    let disk = [0xEB, 0x63, 0x90].into_iter();
    let noise = (0..BYTES).map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]);
    disk.chain(noise).collect()
}

/// A server that has the image at one address and nothing elsewhere.
async fn serve(image: Bytes) -> Result<WebServer> {
    WebServer::start(move |request| {
        let (status, body) = match request.uri().path() {
            "/disk.raw" => (StatusCode::OK, image.clone()),
            _ => (StatusCode::NOT_FOUND, Bytes::new()),
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        answer
    })
    .await
}

/// Our own stack with an image for its nodes.
fn stack(server: &WebServer, image: &Bytes) -> Result<StackSource> {
    stack_with(server, IMAGE, &sha256(image))
}

/// The same with an image of this name, which must have this digest.
fn stack_with(server: &WebServer, name: &str, digest: &str) -> Result<StackSource> {
    let source = StackSource::harbor("v1")?;
    let url = server.url("127.0.0.1");
    source.write(
        "node-images.yaml",
        &format!(
            "apiVersion: node-images.clusterstack.x-k8s.io/v1alpha1\n\
             fileStoreNodeImages:\n\
             - url: {url}/disk.raw\n  \
               name: {name}\n  \
               digest: sha256:{digest}\n"
        ),
    )?;
    Ok(source)
}

/// Two releases of one stack whose nodes boot from the same image, and the server that has it.
pub(super) async fn two_releases_of_one_image(journey: &Journey) -> Result<(WebServer, [String; 2])> {
    let image = image();
    let server = serve(image.clone()).await?;
    let stack = stack(&server, &image)?;
    let tags = ["v1", "v2"].map(|version| journey.releases.publish_stack(&stack.path(), version));
    let [first, second] = tags;
    let tags = [first?, second?];
    journey.releases.edit(&tags[1], |folder| {
        let file = folder.join("metadata.yaml");
        let text = fs::read_to_string(&file).context("failed to read the metadata")?;
        ensure!(text.contains("nodeImage: v2"), "{text}");
        fs::write(&file, text.replace("nodeImage: v2", "nodeImage: v1")).context("failed to write the metadata")
    })?;
    Ok((server, tags))
}

/// Two releases of one stack, and the objects of their images: one comes, and one is not what its release says. And the server that has both.
pub(super) async fn two_images_one_of_them_wrong(journey: &Journey) -> Result<(WebServer, [(String, String); 2])> {
    let image = image();
    let server = serve(image.clone()).await?;
    let good = stack(&server, &image)?;
    let wrong = stack_with(&server, "wrong-node", &sha256(b"something else"))?;
    let first = journey.releases.publish_stack(&good.path(), "v1")?;
    let second = journey.releases.publish_stack(&wrong.path(), "v2")?;
    let object = |name: &str, version: &str| format!("docker-harbor-1-34-{name}-{version}");
    Ok((
        server,
        [(first, object(IMAGE, "v1")), (second, object("wrong-node", "v2"))],
    ))
}

/// A script that takes the image out of its directory, and has its object looked at.
pub(super) fn breaking(journey: &Journey) -> String {
    let kubectl = format!(
        "{} kubectl --namespace \"$NAMESPACE\"",
        journey.lab().controlplane.display()
    );
    format!(
        "set -e\nexport HOME={}\nrm {}\n{kubectl} annotate filestorenodeimagereleases --all {}=now\n",
        journey.folder().display(),
        images(journey).join(IMAGE).display(),
        labels::REQUESTED_AT
    )
}

/// The stack in its first version, whose images come into the directory.
pub(super) async fn apply(journey: &Journey) -> Result<()> {
    const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1alpha1";
    const TEMPLATE: &str = "FileStoreClusterStackReleaseTemplate";
    journey
        .apply(json!({
            "apiVersion": API_VERSION, "kind": TEMPLATE,
            "metadata": { "name": "images" }, "spec": { "template": { "spec": {} } },
        }))
        .await?;
    let provider = json!({ "apiVersion": API_VERSION, "kind": TEMPLATE, "name": "images" });
    journey
        .stack(
            STACK,
            json!({ "versions": ["v1"], "noProvider": false, "providerRef": provider }),
        )
        .await
}

/// Where the provider keeps images.
pub(super) fn images(journey: &Journey) -> PathBuf {
    journey.folder().join("images")
}

/// A provider operator of the journey's namespace, as its user would start one.
pub(super) async fn provider_operator(journey: &Journey) -> Result<Operator> {
    let mut options = ProviderOptions::of(journey, Destination::FileStore(images(journey))).await?;
    options.flags.push("--serve-filestore=127.0.0.1:0".into());
    options.start(journey.lab())
}

/// No object of an image, and nothing in the directory that people see or that the provider would send again.
pub(super) async fn nothing_is_left(journey: &Journey) -> Result<()> {
    let objects: Api<FileStoreNodeImageRelease> = journey.api();
    eventually(SOON, "the image to be gone", async || {
        let listed = objects
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let files = files(&images(journey)).map_err(|error| error.to_string())?;
        if listed.items.is_empty() && files.is_empty() {
            Ok(())
        } else {
            Err(format!("{} objects, {files:?}", listed.items.len()))
        }
    })
    .await
}

/// All files in a folder, however deep.
pub(super) fn files(folder: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
