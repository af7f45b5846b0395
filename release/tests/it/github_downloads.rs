//! Bytes of GitHub on their way into the store, held against the digests that GitHub reports.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use release::{
    Digest, ErrorClass, Release,
    source::{GithubSource, ReleaseSource},
    store::{Origin, Store, StoreError},
};
use tempfile::TempDir;

use crate::{
    fixture::{TAG, good_release, tag},
    github_source::{source, with_stored_release},
    source_contract::files_of,
    store_downloads::{store, there, unfinished},
    stub::Stub,
};

const CLASS: &str = "docker-harbor-1-34-cluster-class-v1.tgz";
const VALUES: &str = "cluster-addon-values.yaml";

/// A release on GitHub, and a store for it.
struct World {
    released: BTreeMap<String, Vec<u8>>,
    digest: Digest,
    /// What the host of the files gives, whatever GitHub says.
    stored: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    source: GithubSource,
    directory: PathBuf,
    store: Store,
    _servers: [Stub; 2],
    root: TempDir,
}

impl World {
    async fn new() -> Self {
        let root = TempDir::new().unwrap();
        let released = good_release(root.path(), TAG);
        let (api, host, stored) = with_stored_release(&released).await;
        let directory = root.path().join("store");
        Self {
            digest: Release::open(&released, &tag(TAG)).unwrap().digest,
            released: files_of(&released),
            stored,
            source: source(&api),
            store: store(&directory).await,
            directory,
            _servers: [api, host],
            root,
        }
    }

    fn host_gives(&self, file: &str, content: &[u8]) {
        self.stored.lock().unwrap().insert(file.to_owned(), content.to_vec());
    }

    /// A folder of what the host gives.
    fn written(&self) -> PathBuf {
        let folder = self.root.path().join("given");
        fs::create_dir_all(&folder).unwrap();
        for (name, content) in self.stored.lock().unwrap().iter() {
            fs::write(folder.join(name), content).unwrap();
        }
        folder
    }

    async fn get(&self) -> Result<Arc<Release>, StoreError> {
        let origin = Origin {
            id: Digest::of(b"github"),
            name: "octo/stacks".to_owned(),
            source: Arc::new(self.source.clone()),
        };
        let resolved = self.source.resolve(&tag(TAG)).await.unwrap();
        self.store.get(&resolved, &origin).await
    }

    async fn assert_nothing_is_kept(&self, of: &str) {
        assert_eq!(there(&self.directory), BTreeMap::new(), "{of}");
        assert_eq!(unfinished(&self.directory), Vec::<PathBuf>::new(), "{of}");
        assert_eq!(self.store.usage().bytes, 0, "{of}");
        let found = self.store.find(&tag(TAG), self.digest).await.unwrap();
        assert!(found.is_none(), "{of}");
    }
}

/// Contents that would do as well: as long as the real ones, and nothing is wrong with them but their digest.
fn other_contents(released: &BTreeMap<String, Vec<u8>>) -> [(&'static str, Vec<u8>); 2] {
    let mut chart = released[CLASS].clone();
    // Which system a gzip file was made on changes nothing of what is in it (RFC 1952, 2.3).
    chart[9] ^= 1;
    [(VALUES, b"things: |\n".to_vec()), (CLASS, chart)]
}

#[tokio::test]
async fn file_of_other_bytes_than_the_digest_that_github_reports_is_refused_and_nothing_of_its_release_is_kept() {
    let world = World::new().await;
    for (file, other) in other_contents(&world.released) {
        world.host_gives(file, &other);
        let opened = Release::open(&world.written(), &tag(TAG)).expect("a release in itself");
        assert_ne!(opened.digest, world.digest, "{file}");

        let error = world.get().await.expect_err(file);
        let (promised, given) = (Digest::of(&world.released[file]), Digest::of(&other));
        let words = format!(
            "{TAG}: {file}: the source promised {promised} and gives {given}; it is asked again, and if it stays so, the source or \
             something on the way changes files"
        );
        assert_eq!(error.to_string(), words);
        // Who does it on the way may stop.
        assert_eq!(error.class(), ErrorClass::Transient, "{file}");
        assert_eq!(error.reason(), "SourceGaveOtherBytes", "{file}");
        world.assert_nothing_is_kept(file).await;

        world.host_gives(file, &world.released[file]);
    }
    let kept = world.get().await.expect("all files are what GitHub says");
    assert_eq!(kept.digest, world.digest);
    assert_eq!(
        there(&world.directory),
        BTreeMap::from([(world.digest.hex(), world.released)])
    );
}
