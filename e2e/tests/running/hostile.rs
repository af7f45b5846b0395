//! Sources that want time, memory or a way inside from the operator that reads them: each is refused for a reason that its stack tells, none takes
//! more than its bounds, and the stack beside them does not notice.

use std::{io::Write, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Journey, eventually,
    hostile_server::{HostileServer, Reply, head},
    journey::{SOON, journey, status},
    operator::sources_of_this_machine,
    releases::harbor_tag,
    usage::Usage,
    web::IndexServer,
};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

/// The slowest of them are given up after a minute.
const PATIENCE: Duration = Duration::from_mins(3);

/// The most that the operator may ever have resident, in MiB, all of them at once: a build for debugging, whose limit for an index is 16 MiB.
const MOST_MEMORY: f64 = 160.0;

/// Where a cloud tells the secrets of a machine.
const METADATA_SERVICE: &str = "http://169.254.169.254/latest/meta-data/";

/// A stack, and how its source is refused.
struct Attack {
    /// What the stack is called.
    name: &'static str,
    source: Value,
    /// Part of what the stack says.
    words: &'static str,
    /// As long as there is an attack.
    server: HostileServer,
}

impl Attack {
    async fn on_index(
        name: &'static str,
        words: &'static str,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let server = HostileServer::start(reply).await?;
        let source = json!({ "http": { "url": format!("http://{}/stacks/", server.place()) } });
        Ok(Self {
            name,
            source,
            words,
            server,
        })
    }

    async fn on_github(
        name: &'static str,
        words: &'static str,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let server = HostileServer::start(reply).await?;
        let api = format!("http://{}", server.place());
        let source = json!({ "github": { "owner": "kaas", "repository": "stacks", "apiUrl": api } });
        Ok(Self {
            name,
            source,
            words,
            server,
        })
    }

    async fn on_registry(words: &'static str, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let server = HostileServer::start(reply).await?;
        let source = json!({ "oci": { "repository": format!("{}/kaas/stacks", server.place()), "plainHttp": true } });
        Ok(Self {
            name: "pages-of-a-registry",
            source,
            words,
            server,
        })
    }
}

fn ok(lines: &[&str]) -> Vec<u8> {
    head("200 OK", lines)
}

/// The number behind a name in a query, or 1.
fn number(target: &str, name: &str) -> usize {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.into_iter().find(|(key, _)| *key == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(1)
}

/// A page of releases, behind which there is always another.
fn page_of_github(target: &str) -> Reply {
    let page = number(target, "page");
    let releases = (0..100).map(|index| {
        let id = page * 100 + index;
        json!({
            "id": id, "tag_name": format!("other-{id}"), "target_commitish": "main", "name": null, "body": null, "draft": false,
            "prerelease": false, "created_at": "2026-02-27T19:35:32Z", "published_at": "2026-02-28T08:00:00Z",
            "author": { "login": "octocat", "id": 1 }, "assets": [],
        })
    });
    let body = releases.collect::<Value>().to_string();
    let link = format!(
        "link: <https://api.github.com/repositories/1/releases?per_page=100&page={}>; rel=\"next\"",
        page + 1
    );
    Reply::answer("200 OK", &["content-type: application/json", &link], body.as_bytes())
}

/// As many releases as there is room for in an answer that is still read: half a million.
fn dense_page() -> Vec<u8> {
    const ROOM: usize = 16 << 20;
    let release = br#"{"tag_name":"a","assets":[]},"#;
    let releases = release.repeat(ROOM / release.len() - 1);
    [b"[", releases.as_slice(), br#"{"tag_name":"a"}]"#].concat()
}

/// A page of a few tags, behind which there is always another.
fn page_of_a_registry(target: &str) -> Reply {
    let last = number(target, "last");
    let tags: Vec<String> = (last..last + 100).map(|tag| format!("other-{tag}")).collect();
    let body = json!({ "name": "kaas/stacks", "tags": tags }).to_string();
    let link = format!(
        "link: </v2/kaas/stacks/tags/list?n=100&last={}>; rel=\"next\"",
        last + 100
    );
    Reply::answer("200 OK", &["content-type: application/json", &link], body.as_bytes())
}

/// A gibibyte of zeros, compressed.
fn bomb() -> Result<Vec<u8>> {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..1024 {
        bomb.write_all(&zeros)?;
    }
    Ok(bomb.finish()?)
}

/// Whoever asks such a source for its releases gets none.
async fn on_lists() -> Result<Vec<Attack>> {
    let (bomb, dense) = (bomb()?, dense_page());
    let circle = |target: &str| {
        let next = format!("location: /stacks/index.json?{}", target.len());
        Reply::answer("302 Found", &[&next], b"")
    };
    let release = |index: usize| format!("{{\"tag\":\"other-{index}\",\"files\":[]}},");
    let releases: String = (0..1000).map(release).collect();
    let beginning = r#"{"apiVersion":"index.clusterstack.x-k8s.io/v1alpha1","releases":["#;
    Ok(vec![
        Attack::on_index("list-without-end", "has more than", move |_| {
            Reply::Floods([ok(&[]), beginning.into()].concat(), releases.clone().into_bytes())
        })
        .await?,
        Attack::on_index("head-without-end", "no usable answer from", |_| {
            Reply::Floods(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-More: and more\r\n".repeat(1000))
        })
        .await?,
        Attack::on_index("circle", "sends on more than 5 times", circle).await?,
        Attack::on_index("metadata-service", "169.254.169.254", |_| {
            Reply::answer("302 Found", &[&format!("location: {METADATA_SERVICE}")], b"")
        })
        .await?,
        Attack::on_index("bomb", "is encoded, which was not asked for", move |_| {
            Reply::answer("200 OK", &["content-encoding: gzip"], &bomb)
        })
        .await?,
        Attack::on_index("terabyte", "has more than", |_| {
            Reply::Floods(ok(&["content-length: 1099511627776"]), vec![b' '; 1 << 16])
        })
        .await?,
        Attack::on_index("less-than-promised", "broke off", |_| {
            Reply::Says([ok(&["content-length: 1000"]), beginning.into()].concat())
        })
        .await?,
        Attack::on_index("dripping-head", "within 30 seconds", |_| {
            Reply::Drips(b"HTTP/1.1 200 OK\r\nX-Drop: ".to_vec())
        })
        .await?,
        Attack::on_index("dripping-list", "within 60 seconds", |_| Reply::Drips(ok(&[]))).await?,
        Attack::on_index("silence", "within 30 seconds", |_| Reply::Silence).await?,
        Attack::on_github("pages-of-github", "has more than", page_of_github).await?,
        Attack::on_github("dense-page", "more than the 100 entries of a page", move |_| {
            Reply::answer("200 OK", &["content-type: application/json"], &dense)
        })
        .await?,
        Attack::on_registry("tags", page_of_a_registry).await?,
    ])
}

/// Whoever takes the release with this version from such a source gets none: its index is good, and the file of it is not. The index promises so many
/// bytes.
async fn on_file(
    (name, version): (&'static str, &'static str),
    promised: u64,
    words: &'static str,
    file: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<(Attack, &'static str)> {
    let tag = harbor_tag(version);
    let index = json!({
        "apiVersion": "index.clusterstack.x-k8s.io/v1alpha1",
        "releases": [{ "tag": tag, "files": [
            { "name": "metadata.yaml", "size": promised, "sha256": "0".repeat(64) },
        ] }],
    });
    let attack = Attack::on_index(name, words, move |target| {
        if target.contains("metadata.yaml") {
            return file();
        }
        Reply::answer(
            "200 OK",
            &["content-type: application/json"],
            index.to_string().as_bytes(),
        )
    });
    Ok((attack.await?, version))
}

async fn on_files() -> Result<Vec<(Attack, &'static str)>> {
    Ok(vec![
        on_file(
            ("file-without-end", "v11"),
            1000,
            "promised 1000 bytes and gives",
            || Reply::Floods(ok(&[]), vec![b'x'; 1 << 16]),
        )
        .await?,
        on_file(("other-file", "v12"), 3, "the source promised", || {
            Reply::answer("200 OK", &[], b"bad")
        })
        .await?,
        on_file(
            ("terabyte-promised", "v13"),
            1 << 40,
            "has 1099511627776 bytes, more than the",
            || Reply::Floods(ok(&["content-length: 1099511627776"]), vec![b'x'; 1 << 16]),
        )
        .await?,
        on_file(("dripping-file", "v14"), 1000, "bytes a second", || {
            Reply::Drips(ok(&[]))
        })
        .await?,
        on_file(("file-inside", "v15"), 1000, "169.254.169.254", || {
            Reply::answer("302 Found", &[&format!("location: {METADATA_SERVICE}")], b"")
        })
        .await?,
    ])
}

/// A release whose chart unpacks to more than there may be, on a server that does nothing else.
async fn archive_bomb(journey: &Journey, version: &str) -> Result<IndexServer> {
    let server = IndexServer::start().await?;
    let tag = journey.releases.publish_harbor("v1", version)?;
    let folder = journey.releases.folder_of(&tag);
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let zeros = vec![0; 5 << 20];
    for index in 0..30 {
        let mut header = tar::Header::new_gnu();
        header.set_size(zeros.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("chart/{index}"), &zeros[..])?;
    }
    let archive = archive.into_inner()?.finish()?;
    let chart = std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let chart = chart
        .into_iter()
        .find(|path| path.to_string_lossy().contains("cluster-class"));
    std::fs::write(chart.context("a release has a class chart")?, archive)?;
    server.publish(&folder)?;
    journey.releases.unpublish(&tag)?;
    Ok(server)
}

/// Everything that a stack says.
fn told_by_stack(stack: &ClusterStack) -> String {
    let conditions = stack.status.as_ref().map(|status| status.conditions.clone());
    let messages = conditions
        .into_iter()
        .flatten()
        .filter_map(|condition| condition.message);
    messages.collect::<Vec<_>>().join("\n")
}

/// Everything that a release says.
fn told_by_release(release: &ClusterStackRelease) -> String {
    let conditions = status(release).conditions.into_iter();
    conditions
        .filter_map(|condition| condition.message)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Waits until the words are told.
async fn refused(what: &str, words: &str, told: impl AsyncFn() -> Result<String>) -> Result<()> {
    eventually(PATIENCE, format!("{what} to be refused: {words:?}"), async || {
        let told = told().await?;
        ensure!(told.contains(words), "{told:?}");
        Ok(())
    })
    .await
}

#[test]
fn hostile_sources_of_every_sort_are_refused_within_bounds_while_another_stack_becomes_usable() -> Result<()> {
    journey(async |journey| {
        let (lists, files) = (on_lists().await?, on_files().await?);
        let exploding = archive_bomb(journey, "v16").await?;
        let good = IndexServer::start().await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        good.publish(&journey.releases.folder_of(&tag))?;
        journey.releases.unpublish(&tag)?;
        let cache = journey.folder().join("cache");
        journey.options.flags.extend(sources_of_this_machine(&cache));
        journey.operate().await?;

        for attack in &lists {
            let spec = json!({ "autoSubscribe": true, "source": attack.source });
            journey.stack(attack.name, spec).await?;
        }
        for (attack, version) in &files {
            let spec = json!({ "versions": [version], "source": attack.source });
            journey.stack(attack.name, spec).await?;
        }
        let spec = json!({ "versions": ["v16"], "source": exploding.source() });
        journey.stack("archive-bomb", spec).await?;
        let slow = || lists.iter().chain(files.iter().map(|(attack, _)| attack));
        let slow = || slow().filter(|attack| attack.name.starts_with("dripping") || attack.name == "silence");
        eventually(SOON, "the slow ones to be waited for", async || {
            let waited = slow().filter(|attack| attack.server.holding() > 0).count();
            ensure!(waited == slow().count(), "{waited}");
            Ok(())
        })
        .await?;
        journey
            .stack("good", json!({ "versions": ["v1"], "source": good.source() }))
            .await?;
        journey.usable("good", "v1").await?;

        for attack in &lists {
            let told = async || Ok(told_by_stack(&journey.api::<ClusterStack>().get(attack.name).await?));
            refused(attack.name, attack.words, told).await?;
        }
        let releases = files.iter().map(|(attack, version)| (*version, attack.words));
        for (version, words) in releases.chain([("v16", "unpacks to more than")]) {
            let tag = harbor_tag(version);
            let told = async || {
                let release = journey.api::<ClusterStackRelease>().get(&tag).await?;
                ensure!(!status(&release).ready, "{tag} is ready");
                Ok(told_by_release(&release))
            };
            refused(&tag, words, told).await?;
        }
        let operator = journey.operator()?;
        operator.check()?;
        let usage = Usage::of(operator.process_id().context("it runs")?)?;
        ensure!(usage.peak_mib < MOST_MEMORY, "{usage:?}");
        Ok(())
    })
}
