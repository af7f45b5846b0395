//! What may befall each call of an import, of a stage, of reading back, of changing and of deleting, on its way to the cloud or back: whatever it is, the
//! image is there in the end, once, and goes when nobody wants it.

use anyhow::{Context, Result, ensure};
use crds::providers::{
    image_status::{ImagePhase, NodeImageStatus},
    openstack::OpenStackNodeImageRelease,
};
use e2e::{
    eventually,
    journey::SOON,
    stage::{DISK, Stage, on_stage, small},
};
use http::Method;
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::{Article, sha256, sha512},
};
use serde_json::json;

/// Where the source has what stands still half-way.
const HELD: &str = "/held.qcow2";

/// An image, and what befalls the calls for it.
struct Case {
    name: &'static str,
    via: &'static str,
    /// Methods, and what follows the id.
    troubles: Vec<(Method, &'static str, Trouble)>,
    /// How often the cloud was asked to import the first.
    imports: usize,
}

impl Case {
    /// The id of the first attempt, chosen so that the proxy knows it.
    fn id(number: usize) -> String {
        format!("0ea1b0ad-0000-4000-8000-{number:012}")
    }
}

/// Without an answer nobody knows whether it was done: cut before, within and after it.
fn cases() -> Vec<Case> {
    let case = |name, via, troubles, imports| Case {
        name,
        via,
        troubles,
        imports,
    };
    let (get, patch, post, put) = (Method::GET, Method::PATCH, Method::POST, Method::PUT);
    let cut = Trouble::CutRequest;
    vec![
        case(
            "mark-cut",
            "ServerSide",
            vec![(patch.clone(), "", cut(3)), (patch.clone(), "", Trouble::Sever)],
            1,
        ),
        case("mark-lost", "ServerSide", vec![(patch, "", Trouble::LoseAnswer)], 1),
        // The cloud, asked whether it knows of an import, does not say at once.
        case(
            "import-cut",
            "ServerSide",
            vec![
                (post.clone(), "/import", cut(5)),
                (get.clone(), "/tasks", Trouble::CutAnswer(3)),
                (post.clone(), "/import", Trouble::Sever),
                (get.clone(), "/tasks", Trouble::Sever),
            ],
            3,
        ),
        case(
            "import-lost",
            "ServerSide",
            vec![(post.clone(), "/import", Trouble::LoseAnswer)],
            1,
        ),
        case(
            "read-back-cut",
            "ServerSide",
            vec![
                (get.clone(), "/file", Trouble::Sever),
                (get.clone(), "/file", Trouble::CutAnswer(100_000)),
                (get, "/file", Trouble::LoseAnswer),
            ],
            1,
        ),
        case("stage-cut", "Staged", vec![(put, "/stage", cut(100_000))], 1),
        case("direct-lost", "Staged", vec![(post, "/import", Trouble::LoseAnswer)], 1),
    ]
}

/// Asks for it, and has happen what is to.
async fn want(stage: &Stage<'_>, number: usize, case: &Case, digest: &str) -> Result<()> {
    let id = Case::id(number);
    for (method, part, trouble) in &case.troubles {
        let part = format!("/images/{id}{part}");
        stage.proxy.meet(method.clone(), &part, 1, trouble.clone());
    }
    let image = json!({ "digest": digest, "createOpts": { "id": id } });
    let changes = json!({ "image": image, "transfer": { "via": case.via } });
    stage.want(case.name, DISK, changes).await
}

/// The requests that were about an image.
fn about(stage: &Stage<'_>, id: &str) -> Vec<Passed> {
    let mut passed = stage.proxy.passed();
    passed.retain(|passed| passed.target.contains(id));
    passed
}

/// It is there, as it must be, after all that was to happen; its id.
async fn is_there(stage: &Stage<'_>, number: usize, case: &Case, disk: &[u8]) -> Result<String> {
    let name = case.name;
    let status = stage.ready(name).await?;
    ensure!(status.attempt == Some(1), "{name}: {status:?}");
    let id = status.image.context("a ready image has an id")?.id;
    ensure!(id == Case::id(number), "{name} is {id}");
    let image = stage.cloud.image(&id).await?;
    let is_it = image["os_hash_value"] == sha512(disk).as_str()
        && image["cs_verified"] == sha256(disk).as_str()
        && image["os_hidden"] == false;
    ensure!(is_it, "{name}: {image}");
    let passed = about(stage, &id);
    let met = passed.iter().filter(|passed| passed.trouble.is_some()).count();
    ensure!(met == case.troubles.len(), "{name}: {passed:?}");
    let imports = passed
        .iter()
        .filter(|passed| passed.target.ends_with("/import"))
        .count();
    ensure!(
        imports == case.imports,
        "{name} was to be imported {imports} times: {passed:?}"
    );
    Ok(id)
}

/// Deletes what is there, on ways that are as bad.
async fn all_go(stage: &Stage<'_>, images: &[(&str, String)]) -> Result<()> {
    let troubles = [
        vec![Trouble::Sever],
        vec![Trouble::LoseAnswer],
        vec![Trouble::Sever, Trouble::Sever, Trouble::LoseAnswer],
    ];
    let before = stage.proxy.met();
    let mut count = 0;
    for ((name, id), troubles) in images.iter().zip(troubles.iter().cycle()) {
        for trouble in troubles {
            stage
                .proxy
                .meet(Method::DELETE, &format!("/images/{id}"), 1, trouble.clone());
        }
        count += troubles.len();
        stage.journey.delete::<OpenStackNodeImageRelease>(name).await?;
    }
    for (name, _) in images {
        stage.journey.gone::<OpenStackNodeImageRelease>(name).await?;
    }
    let met = stage.proxy.met() - before;
    ensure!(met == count, "{met} of {count} came: {:?}", stage.proxy.passed());
    Ok(())
}

#[test]
fn whatever_befalls_a_call_the_image_is_there_once_and_goes() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        // Whoever of them asks first.
        for part in ["/info/import", "/info/usage", "/info/import"] {
            stage.proxy.meet(Method::GET, part, 1, Trouble::CutAnswer(5));
            stage.proxy.meet(Method::GET, part, 1, Trouble::Sever);
        }
        let cases = cases();
        for (number, case) in cases.iter().enumerate() {
            want(stage, number, case, &sha256(&disk)).await?;
        }
        stage.operate().await?;
        let mut images = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            images.push((case.name, is_there(stage, number, case, &disk).await?));
        }
        let ids: Vec<String> = images.iter().map(|(_, id)| id.clone()).collect();
        stage.cloud.holds(&ids).await?;
        all_go(stage, &images).await?;
        Ok(Vec::new())
    })
}

#[test]
fn what_is_changed_while_an_image_is_sent_is_so_in_the_end() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage
            .source
            .put(HELD, Article::of(disk.clone()).held_at(disk.len() / 2));
        let options = |disk: u64| json!({ "image": { "createOpts": { "min_disk": disk, "tags": ["nodes"] } } });
        stage.want("ubuntu", HELD, options(1)).await?;
        stage.operate().await?;
        let id = stage.cloud.one().await?;
        stage.cloud.becomes(&id, "saving").await?;

        // The cloud says yes, and forgets it when it has all bytes.
        stage.cloud.set(&id, "name", "theirs").await?;
        stage.want("ubuntu", HELD, options(9)).await?;
        let is_sent = |status: &NodeImageStatus| status.phase == Some(ImagePhase::Transferring);
        stage
            .until("ubuntu", "sent, though other options are wanted", is_sent)
            .await?;
        let patches = || stage.proxy.count(&Method::PATCH, &id);
        ensure!(
            patches() == 0,
            "what is changed now is undone: {:?}",
            stage.proxy.passed()
        );
        stage.source.let_go();

        ensure!(stage.id("ubuntu").await? == id, "it is another image");
        eventually(SOON, "the image as it is wanted now", async || {
            let image = stage.cloud.image(&id).await?;
            let is_it = image["min_disk"] == 9
                && image["name"] == "ubuntu"
                && image["tags"].to_string().contains("nodes")
                && image["os_hash_value"] == sha512(&disk).as_str();
            ensure!(is_it, "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was sent again");
        Ok(vec![id])
    })
}
