//! kill -9 of the provider operator while it fills a directory with an image: in the middle of the bytes, and at its writes to the API server, between which it
//! makes the image, confirms its bytes, publishes it and takes it away. Nobody ever reads half an image under its name.

use std::{
    fs,
    future::pending,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::providers::filestore::FileStoreNodeImageRelease;
use e2e::{
    FaultProxy, Journey, Operator, Point, eventually,
    journey::{SOON, journey},
    lanes::side_by_side,
    provider_operator::{Destination, ProviderOptions},
    stage::API_VERSION,
};
use openstack_lab::{
    disk,
    source::{Article, Source, sha256},
};
use serde_json::{Value, json};

/// The object.
const OBJECT: &str = "ubuntu";
/// The file.
const NAME: &str = "ubuntu.raw";
/// Where the source has it.
const PATH: &str = "/disk.raw";
/// After so many bytes the disk confirms them.
const CONFIRMED: usize = 16 << 20;
/// Where the source stands still: some bytes are not confirmed.
const HELD: usize = 20 << 20;
const LARGE: usize = 24 << 20;
const SMALL: usize = 1 << 20;
/// How many journeys keep two cores busy.
const LANES: usize = 4;
/// Longer than any journey takes.
const DEADLINE: Duration = Duration::from_mins(10);

/// A directory, and a source of images for it.
struct Place<'a> {
    journey: &'a Journey,
    source: Source,
    directory: PathBuf,
}

impl<'a> Place<'a> {
    async fn of(journey: &'a Journey) -> Result<Self> {
        Ok(Self {
            journey,
            source: Source::start().await?,
            directory: journey.folder().join("images"),
        })
    }

    async fn options(&self) -> Result<ProviderOptions> {
        ProviderOptions::of(self.journey, Destination::FileStore(self.directory.clone())).await
    }

    async fn operate(&self) -> Result<Operator> {
        self.options().await?.start(self.journey.lab())
    }

    /// Asks for the image at the usual path of the source.
    async fn want(&self) -> Result<()> {
        let image = json!({ "url": self.source.url(PATH), "name": NAME, "format": "raw" });
        let object = json!({
            "apiVersion": API_VERSION, "kind": "FileStoreNodeImageRelease",
            "metadata": { "name": OBJECT }, "spec": { "image": image },
        });
        self.journey.apply(object).await.map(drop)
    }

    /// Waits until the image is ready; then it is in the directory, with its digest beside it.
    async fn has(&self, disk: &[u8]) -> Result<()> {
        let is_ready = |object: &FileStoreNodeImageRelease| object.status.as_ref().is_some_and(|status| status.ready);
        self.journey.until(OBJECT, "ready", is_ready).await?;
        ensure!(fs::read(self.directory.join(NAME))? == disk, "it is another image");
        let sums = fs::read_to_string(self.directory.join(format!("{NAME}.sha256")))?;
        let digest = sha256(disk);
        let digest = digest.trim_start_matches("sha256:");
        ensure!(sums == format!("{digest}  {NAME}\n"), "{sums}");
        Ok(())
    }

    /// Deletes the object, and returns when nothing is left of its image.
    async fn empty(&self) -> Result<()> {
        self.journey.delete::<FileStoreNodeImageRelease>(OBJECT).await?;
        self.journey.gone::<FileStoreNodeImageRelease>(OBJECT).await?;
        eventually(SOON, "the directory to be empty", async || {
            let left = files(&self.directory)?;
            ensure!(left.is_empty(), "{left:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// All of the image is under its name, or nothing is.
    fn shows_all_or_nothing(&self, disk: &[u8]) -> Result<()> {
        let path = self.directory.join(NAME);
        let is_whole = !path.exists() || fs::read(path)? == disk;
        ensure!(is_whole, "half an image is published");
        Ok(())
    }

    /// Waits until the disk has confirmed a part of the image.
    async fn confirmed(&self) -> Result<()> {
        eventually(SOON, "the disk to confirm bytes", async || {
            let files = files(&self.directory)?;
            let state = files
                .iter()
                .find(|path| path.extension().is_some_and(|kind| kind == "state"));
            let state = fs::read(state.with_context(|| format!("{files:?}"))?)?;
            let state: Value = serde_json::from_slice(&state)?;
            let synced = state["synced"].as_u64().unwrap_or_default();
            ensure!(synced >= u64::try_from(CONFIRMED)?, "{state}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}

/// All files in a folder, however deep.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
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

/// A process is killed when it has a part of an image, and `meanwhile` happens before the next one begins, which has to bring the disk that this returns.
fn killed_half_way(meanwhile: impl FnOnce(&Source, Vec<u8>) -> Vec<u8>, goes_on: bool) -> Result<()> {
    journey(async |journey| {
        let place = Place::of(journey).await?;
        let first = disk::raw(1, LARGE);
        place.source.put(PATH, Article::of(first.clone()).held_at(HELD));
        place.want().await?;
        let operator = place.operate().await?;
        place.confirmed().await?;
        operator.kill().await?;
        ensure!(!place.directory.join(NAME).exists(), "half an image is published");

        let wanted = meanwhile(&place.source, first);
        place.source.let_go();
        let _next = place.operate().await?;
        place.has(&wanted).await?;
        let visits = place.source.visits();
        let reads: Vec<usize> = visits
            .iter()
            .filter(|visit| visit.reads)
            .map(|visit| visit.from.unwrap_or_default())
            .collect();
        let is_so = matches!(reads.as_slice(), [0, .., from] if (*from >= CONFIRMED) == goes_on);
        ensure!(is_so, "it was read from {reads:?}");
        place.empty().await
    })
}

#[test]
fn a_part_that_a_killed_process_leaves_is_gone_on_with() -> Result<()> {
    killed_half_way(|_, disk| disk, true)
}

#[test]
fn a_part_that_a_killed_process_leaves_is_given_up_when_the_source_has_another_file() -> Result<()> {
    let another = |source: &Source, _| {
        let disk = disk::raw(2, LARGE);
        source.put(PATH, Article::of(disk.clone()));
        disk
    };
    killed_half_way(another, false)
}

/// An image comes and goes.
async fn travel(place: &Place<'_>, disk: &[u8]) -> Result<()> {
    place.source.put(PATH, Article::of(disk.to_vec()));
    place.want().await?;
    place.has(disk).await?;
    place.empty().await
}

/// How many writes to the API server a journey without a crash has.
fn survey(disk: &[u8]) -> Result<usize> {
    let mut writes = 0;
    journey(async |journey| {
        let place = Place::of(journey).await?;
        let api = FaultProxy::start(journey.control_plane()).await?;
        let options = place.options().await?.by_way_of(&api).await?;
        let _operator = options.start(journey.lab())?;
        travel(&place, disk).await?;
        writes = api.writes().len();
        Ok(())
    })?;
    Ok(writes)
}

/// The journey with one crash at a write; whether that came.
fn disturbed(n: usize, point: Point, disk: &[u8]) -> Result<bool> {
    let mut came = false;
    journey(async |journey| {
        let place = Place::of(journey).await?;
        let api = FaultProxy::start(journey.control_plane()).await?;
        let strike = api.strike_at(n, point);
        let options = place.options().await?.by_way_of(&api).await?;
        let operator = options.start(journey.lab())?;
        let dying = async {
            let struck = strike.wait(DEADLINE).await?;
            operator.kill().await?;
            came = true;
            place.shows_all_or_nothing(disk)?;
            drop(struck);
            let _next = options.start(journey.lab())?;
            pending::<Result<()>>().await
        };
        tokio::select! {
            outcome = travel(&place, disk) => outcome,
            outcome = dying => outcome,
        }
    })?;
    Ok(came)
}

#[test]
fn a_kill_at_any_write_on_the_way_of_an_image_into_a_directory_leads_to_the_same_end() -> Result<()> {
    const POINTS: [Point; 2] = [Point::BeforeForwarding, Point::AfterCommit];
    let disk = disk::raw(1, SMALL);
    let writes = survey(&disk)?;
    ensure!(writes >= 5, "there are {writes} writes");
    let blows: Vec<_> = (1..=writes).map(|n| (n, POINTS[n % POINTS.len()])).collect();
    let name = |(n, point): &(usize, Point)| format!("into_a_directory_{n}_{point:?}");
    let outcomes = side_by_side(LANES, blows, name, |(n, point)| {
        disturbed(n, point, &disk).with_context(|| format!("write {n} {point:?}"))
    })?;
    let came: Vec<bool> = outcomes.into_iter().collect::<Result<_>>()?;
    let missed = came.iter().filter(|came| !**came).count();
    eprintln!("{writes} journeys; {missed} had no such write");
    ensure!(
        missed * 10 <= writes,
        "{missed} of {writes} journeys were not disturbed"
    );
    Ok(())
}
