//! A cache that is full, and release objects that come and go.

use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use release::source::DirectorySource;
use release::store::{Origin, StoreOptions};
use sourcing::{Connector, DownloadArgs, UsualSource};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::*;
use crate::clock::{Clock, Steady};
use crate::every_call::{FIRST, RELEASES, SECOND};
use crate::stand_ins::Cluster;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    download: DownloadArgs,
}

/// A cache with both releases, and their digests.
pub(in crate::supply) async fn filled(cache: &TempDir) -> [Digest; 2] {
    let store = Store::open(StoreOptions::new(cache.path().to_owned(), 1 << 30))
        .await
        .unwrap();
    let source = Arc::new(DirectorySource::new(RELEASES.path()));
    let mut digests = Vec::new();
    for tag in [FIRST, SECOND] {
        let release = source.open(&tag.parse().unwrap()).await.unwrap();
        let origin = Origin {
            id: release.digest,
            name: "a directory".to_owned(),
            source: Arc::clone(&source) as Arc<dyn release::source::ReleaseSource>,
        };
        let resolved = release::source::ReleaseSource::resolve(source.as_ref(), &tag.parse().unwrap())
            .await
            .unwrap();
        digests.push(store.get(&resolved, &origin).await.unwrap().digest);
    }
    digests.try_into().unwrap()
}

pub(in crate::supply) fn supply(cache: &TempDir) -> Supply {
    operator_kit::client::install_crypto();
    let cache = format!("--cache-dir={}", cache.path().display());
    let flags = Flags::parse_from(["operator", &cache, "--cache-max-bytes=500000"]);
    let network = flags.download.network().unwrap();
    let client = Cluster::new().client();
    let connector = Connector::new(client, network, UsualSource::Directory, RELEASES.path().to_owned());
    let clock = Clock::start(Steady::start());
    Supply::new(Arc::new(connector), &flags.download, clock, Arc::new(|_: &str| ()))
}

pub(in crate::supply) async fn eventually_has(store: &Store, count: u64) {
    let end = Instant::now() + Duration::from_mins(1);
    while store.usage().releases as u64 != count {
        assert!(Instant::now() < end, "{:?}", store.usage());
        sleep(Duration::from_millis(5)).await;
    }
}

/// With releases that were read before, which needs a runtime of its own.
pub(in crate::supply) fn on_a_runtime(test: impl Future<Output = ()>) {
    LazyLock::force(&RELEASES);
    Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn a_full_cache_keeps_what_release_objects_need_and_nothing_else() {
    on_a_runtime(async {
        let cache = TempDir::new().unwrap();
        let [first, second] = filled(&cache).await;
        let supply = supply(&cache);
        let (store, both) = (
            supply.0.store().await.unwrap(),
            Needed::from([
                (FIRST.to_owned(), BTreeSet::from([first])),
                (SECOND.to_owned(), BTreeSet::from([second])),
            ]),
        );
        assert_eq!(
            store.usage().releases,
            2,
            "nothing goes before anybody said what is needed"
        );
        supply.keep(&both);
        eventually_has(store, 2).await;
        supply.keep(&Needed::from([(SECOND.to_owned(), BTreeSet::from([second]))]));
        eventually_has(store, 1).await;
        assert!(store.find(&SECOND.parse().unwrap(), second).await.unwrap().is_some());
        assert!(store.find(&FIRST.parse().unwrap(), first).await.unwrap().is_none());
    });
}

#[test]
fn a_cache_that_is_opened_later_is_told_what_is_needed() {
    on_a_runtime(async {
        let cache = TempDir::new().unwrap();
        let [_, second] = filled(&cache).await;
        let supply = supply(&cache);
        supply.keep(&Needed::from([(SECOND.to_owned(), BTreeSet::from([second]))]));
        let store = supply.0.store().await.unwrap();
        eventually_has(store, 1).await;
    });
}
