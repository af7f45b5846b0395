//! Images in a directory that no object is for: what a whole operator makes of them within hours, and what somebody is told who asks for the list.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crds::labels;
use crds::providers::Provider as Name;
use jiff::{SignedDuration, Timestamp};
use operator_kit::in_memory::Server;
use provider_plugin::{Content, ContentPlan, Created, Identity, ImageSource, ImageSpec, ImageStore, OwnerId, Pinned};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{FIRST, IMAGE, RELEASES, args, begin, counted, operated, paused, release};
use crate::registry::Registry;
use crate::stand_ins::{Anywhere, Disk, Notes, image, object};
use crate::sweeper::{Left, list};

/// The name of the installation that the operators of these tests have.
const HERE: &str = "here";
const THERE: &str = "there";

const HOUR: Duration = Duration::from_hours(1);

/// The directory as one installation has it.
struct Images {
    store: Arc<dyn ImageStore>,
    owner: OwnerId,
}

impl Images {
    async fn of(owner: &str, directory: &Path) -> Self {
        let cache = TempDir::new().expect("a folder");
        let registry: Registry = args(&[], directory, cache.path()).registry(None).expect("a provider");
        let provider = registry.get(Name::FileStore).expect("it is compiled in");
        let identity = Identity {
            name: "default".to_owned(),
            data: std::collections::BTreeMap::new(),
            version: String::new(),
        };
        Self {
            store: provider.connect(&identity, Arc::new(Anywhere)).await.expect("a store"),
            owner: OwnerId::parse(owner).expect("an owner"),
        }
    }

    fn image(&self, name: &str) -> ImageSpec {
        let mut image = image(&object("fleet", name));
        image.subject.owner = self.owner.clone();
        image
    }

    /// An image that was begun for an object of this name.
    async fn begun(&self, name: &str) -> provider_plugin::ImageId {
        match self.store.create(&self.image(name), 1).await.expect("a record") {
            Created::New(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// One that was finished.
    async fn verified(&self, name: &str) {
        let (id, image) = (self.begun(name).await, self.image(name));
        let (disk, notes) = (Arc::new(Disk::of(vec![0xEB; 4096])), Arc::new(Notes::default()));
        let probe = disk.probe().await.expect("a disk");
        let plan = ContentPlan {
            attempt: 1,
            ..ContentPlan::default()
        };
        let content = Content::new(disk, probe, plan, Arc::clone(&notes) as _);
        let sent = self.store.transfer(&id, &image, content, notes.as_ref()).await;
        let source: Pinned = sent.expect("it is sent").sums.source;
        let published = self.store.publish(&id, &image, &source.to_string()).await;
        published.expect("it is shown");
    }

    /// The objects that the images there are for, without `fleet/` and without that of the release.
    async fn names(&self) -> Vec<String> {
        let owned = self.store.owned(&self.owner).await.expect("a list");
        let names = owned
            .iter()
            .map(|image| image.object.trim_start_matches("fleet/").to_owned());
        names.filter(|name| !name.contains("harbor")).collect()
    }
}

/// Works for so long beside a release that has an image of its own, and says what is left of images of an installation.
fn left_after(server: &Server, directory: &Path, flags: &[&str], time: Duration, owner: &str) -> Vec<String> {
    server.apply(&release(FIRST));
    operated(&paused(), server, directory, flags, async || {
        sleep(time).await;
        Images::of(owner, directory).await.names().await
    })
}

fn with_images(images: impl AsyncFnOnce(&Path)) -> TempDir {
    LazyLock::force(&RELEASES);
    let directory = TempDir::new().expect("a folder");
    paused().block_on(images(directory.path()));
    directory
}

async fn one_of_each(directory: &Path) {
    let images = Images::of(HERE, directory).await;
    images.begun("begun").await;
    images.verified("verified").await;
}

#[test]
fn two_sightings_and_an_hour() {
    let directory = with_images(one_of_each);
    let server = begin(None);
    let early = left_after(&server, directory.path(), &[], HOUR + HOUR / 4, HERE);
    assert_eq!(
        early,
        ["begun", "verified"],
        "it was seen once at most, whatever its age"
    );
    let late = left_after(&server, directory.path(), &[], 5 * HOUR, HERE);
    assert_eq!(late, ["verified"]);
    let events = server.objects().into_iter().filter(|(key, _)| key.0 == "Event");
    let reasons: Vec<String> = events
        .map(|(_, event)| event["reason"].as_str().unwrap_or_default().to_owned())
        .collect();
    for (reason, count) in [("OrphanFound", 2), ("OrphanDeleted", 1)] {
        let told = reasons.iter().filter(|told| *told == reason).count();
        assert_eq!(told, count, "{reason} in {reasons:?}");
    }
    assert!(left_after(&server, directory.path(), &["--sweep-verified"], 5 * HOUR, HERE).is_empty());
}

#[test]
fn a_search_counts_what_it_found_and_left() {
    let directory = with_images(one_of_each);
    let server = begin(None);
    let after = |flags: &[&str], time| {
        server.apply(&release(FIRST));
        counted(&paused(), &server, directory.path(), flags, async || sleep(time).await).1
    };
    let cloud = directory.path().display();
    let of = |verified: bool, count: u64| {
        let labels = format!("provider=\"filestore\",cloud=\"{cloud}\",verified=\"{verified}\"");
        format!("stackwright_provider_orphans{{{labels}}} {count}\n")
    };
    let page = after(&[], HOUR + HOUR / 4);
    assert!(page.contains(&of(true, 1)) && page.contains(&of(false, 1)), "{page}");
    let page = after(&[], 5 * HOUR);
    assert!(page.contains(&of(true, 1)) && page.contains(&of(false, 0)), "{page}");
    let page = after(&["--sweep-verified"], 5 * HOUR);
    assert!(page.contains(&of(true, 0)) && page.contains(&of(false, 0)), "{page}");
}

#[test]
fn never_another_installations() {
    let directory = with_images(async |directory| {
        let images = Images::of(THERE, directory).await;
        images.begun("begun").await;
        images.verified("verified").await;
    });
    let left = left_after(&begin(None), directory.path(), &["--sweep-verified"], 6 * HOUR, THERE);
    assert_eq!(left, ["begun", "verified"]);
}

#[test]
fn moved_installation_keeps_its_images() {
    let directory = with_images(async |directory| Images::of(THERE, directory).await.verified("moved").await);
    let server = begin(None);
    server.apply(&json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": {
            "name": "moved", "namespace": "fleet",
            "annotations": { labels::IMAGE_OWNER: THERE, labels::PAUSED: "" },
        },
        "spec": { "store": "default", "image": { "url": "https://images.example/moved", "name": "moved" } },
    }));
    let left = left_after(&server, directory.path(), &["--sweep-verified"], 6 * HOUR, THERE);
    assert_eq!(left, ["moved"]);
}

#[test]
fn an_object_that_is_there_has_its_images_whatever_the_filter_of_the_operator() {
    let directory = with_images(async |directory| {
        let images = Images::of(HERE, directory).await;
        images.begun("elsewhere").await;
        images.begun("nobodys").await;
    });
    let server = begin(None);
    let labelled = json!({ labels::WATCH_FILTER: "blue" });
    for (name, labels) in [("elsewhere", json!({})), ("here", labelled)] {
        server.apply(&json!({
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
            "metadata": { "name": name, "namespace": "fleet", "labels": labels, "annotations": { labels::PAUSED: "" } },
            "spec": { "store": "default", "image": { "url": "https://images.example/u", "name": name } },
        }));
    }
    let left = left_after(&server, directory.path(), &["--watch-filter=blue"], 6 * HOUR, HERE);
    assert_eq!(left, ["elsewhere"]);
}

#[test]
fn an_incomplete_list_deletes_nothing() {
    let directory = with_images(one_of_each);
    let server = begin(None);
    server.apply(&release(FIRST));
    let left = operated(
        &paused(),
        &server,
        directory.path(),
        &["--sweep-verified"],
        async || {
            sleep(Duration::from_mins(5)).await;
            server.deny(IMAGE, true);
            sleep(6 * HOUR).await;
            Images::of(HERE, directory.path()).await.names().await
        },
    );
    assert_eq!(left, ["begun", "verified"]);
    let refused = listed(&server, directory.path(), true).expect_err("nobody knows what is an orphan");
    assert!(
        format!("{refused:#}").contains("failed to list all objects"),
        "{refused:#}"
    );
}

/// What somebody is told who asks for the list two hours from now.
fn listed(server: &Server, directory: &Path, is_deleting: bool) -> anyhow::Result<Left> {
    let cache = TempDir::new().expect("a folder");
    let args = args(&[], directory, cache.path());
    let owner = OwnerId::parse(HERE).expect("an owner");
    let now = Timestamp::now() + SignedDuration::from_hours(2);
    paused().block_on(async { list(&args, &server.client(), &owner, is_deleting, now).await })
}

#[test]
fn listing_deletes_nothing() {
    let directory = with_images(one_of_each);
    let names = || paused().block_on(async { Images::of(HERE, directory.path()).await.names().await });
    let server = begin(None);
    left_after(&server, directory.path(), &[], Duration::from_mins(5), HERE);
    let told = listed(&server, directory.path(), false).expect("a list");
    assert_eq!((told.orphans, told.troubles.len()), (2, 0), "{told:?}");
    for words in [
        "fleet/begun #1",
        "fleet/verified #1",
        "nothing was deleted",
        "--delete 1 of them",
    ] {
        assert!(told.text.contains(words), "{words}: {}", told.text);
    }
    assert_eq!(names(), ["begun", "verified"]);
    let told = listed(&server, directory.path(), true).expect("a list");
    assert_eq!(
        (told.orphans, names()),
        (1, vec!["verified".to_owned()]),
        "{}",
        told.text
    );
    assert!(told.text.contains("1 deleted, 1 left"), "{}", told.text);
}
