//! A source in memory that can fail in every way that remote ones do.

use std::{
    collections::BTreeMap,
    fs,
    future::ready,
    io::{self, Cursor},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use crds::names::ReleaseTag;
use release::{
    Digest, Release,
    source::{Content, ListedRelease, Listing, ReleaseSource, RemoteFile, Resolved, SourceError, SourceFuture},
    store::Origin,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, ReadBuf, repeat},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    fixture::{TAG, tag, write_release},
    source_contract::{assert_keeps_the_contract, files_of},
};

/// What happens when a file is fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The source says no.
    NoAnswer,
    /// Zeros follow the content, for ever.
    Endless,
    /// The connection breaks after so many bytes.
    ResetAfter(usize),
    /// The content ends after so many bytes, as if it were whole.
    EndAfter(usize),
    /// Nothing comes after so many bytes, and no error either.
    StallAfter(usize),
    /// Nobody gets anything until [`ScriptedSource::open_gate`].
    Gate,
    /// Other bytes than those that were promised.
    OtherBytes,
}

/// What the source tells of a file before it is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Size and digest.
    Everything,
    /// Nothing.
    Nothing,
}

/// One release in memory.
pub(crate) struct ScriptedSource {
    pub(crate) tag: ReleaseTag,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    faults: Mutex<BTreeMap<String, Fault>>,
    promise: Promise,
    gate: Arc<Semaphore>,
    fetches: AtomicUsize,
    /// One permit for each read that found nothing to give.
    waiting: Arc<Semaphore>,
}

/// The deadline only ends a test that has failed.
const SOON: Duration = Duration::from_mins(1);

impl ScriptedSource {
    pub(crate) fn new(promise: Promise) -> Arc<Self> {
        Self::of(TAG, promise)
    }

    /// The good release of this tag.
    pub(crate) fn of(text: &str, promise: Promise) -> Arc<Self> {
        let root = TempDir::new().unwrap();
        write_release(&root.path().join("release"), &tag(text));
        Arc::new(Self {
            tag: tag(text),
            files: Mutex::new(files_of(&root.path().join("release"))),
            faults: Mutex::default(),
            promise,
            gate: Arc::new(Semaphore::new(0)),
            fetches: AtomicUsize::default(),
            waiting: Arc::new(Semaphore::new(0)),
        })
    }

    pub(crate) fn origin(self: &Arc<Self>) -> Origin {
        self.named("scripted")
    }

    pub(crate) fn named(self: &Arc<Self>, name: &str) -> Origin {
        Origin {
            id: Digest::of(name.as_bytes()),
            name: name.to_owned(),
            source: Arc::clone(self) as Arc<dyn ReleaseSource>,
        }
    }

    /// What the release is from now on.
    pub(crate) fn put(&self, file: &str, content: &[u8]) {
        self.files.lock().unwrap().insert(file.to_owned(), content.to_vec());
    }

    pub(crate) fn fails(&self, file: &str, fault: Fault) {
        self.faults.lock().unwrap().insert(file.to_owned(), fault);
    }

    pub(crate) fn mend(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub(crate) fn open_gate(&self) {
        self.gate.close();
    }

    /// How many files were asked for.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Until somebody waits for bytes that do not come.
    pub(crate) async fn is_waited_for(&self) {
        let waiting = timeout(SOON, self.waiting.acquire()).await;
        waiting.expect("somebody waits for bytes").unwrap().forget();
    }

    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.files.lock().unwrap().clone()
    }

    /// The digest that the release has.
    pub(crate) fn digest(&self) -> Digest {
        let root = TempDir::new().unwrap();
        for (name, content) in self.files() {
            fs::write(root.path().join(name), content).unwrap();
        }
        Release::open(root.path(), &self.tag).unwrap().digest
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> u64 {
        self.files().values().map(|content| content.len() as u64).sum()
    }

    pub(crate) fn resolved(&self) -> Resolved {
        let told = self.promise == Promise::Everything;
        let files = self.files().into_iter().map(|(name, content)| RemoteFile {
            size: told.then_some(content.len() as u64),
            sha256: told.then(|| Digest::of(&content)),
            // What an asset's number in an API is: another one for other bytes.
            location: format!("assets/{}", Digest::of(&content).hex()),
            name,
        });
        Resolved::new(self.tag.clone(), files).unwrap()
    }

    fn content(&self, name: &str) -> Result<Content, SourceError> {
        let content = self.files()[name].clone();
        let some = |count: usize| Cursor::new(content[..count].to_vec());
        let nothing = || Silence(Arc::clone(&self.waiting));
        let fault = self.faults.lock().unwrap().get(name).copied();
        Ok(match fault {
            None | Some(Fault::Gate) => Box::pin(Cursor::new(content)),
            Some(Fault::NoAnswer) => return Err(SourceError::TimedOut { after: SOON }),
            Some(Fault::Endless) => Box::pin(Cursor::new(content).chain(repeat(0))),
            Some(Fault::ResetAfter(count)) => Box::pin(some(count).chain(Broken)),
            Some(Fault::EndAfter(count)) => Box::pin(some(count)),
            Some(Fault::StallAfter(count)) => Box::pin(some(count).chain(nothing())),
            Some(Fault::OtherBytes) => Box::pin(Cursor::new(content.iter().map(|byte| !byte).collect::<Vec<_>>())),
        })
    }
}

impl ReleaseSource for ScriptedSource {
    fn list(&self) -> SourceFuture<'_, Listing> {
        let listed = ListedRelease {
            tag: self.tag.clone(),
            published_at: None,
            identity: None,
            digest: None,
        };
        Box::pin(ready(Ok(Listing {
            releases: vec![listed],
            foreign: Vec::new(),
        })))
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        let missing = || SourceError::MissingRelease { tag: tag.clone() };
        Box::pin(ready((*tag == self.tag).then(|| self.resolved()).ok_or_else(missing)))
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(async move {
            self.fetches.fetch_add(1, Ordering::SeqCst);
            if matches!(self.faults.lock().unwrap().get(&file.name), Some(Fault::Gate)) {
                self.waiting.add_permits(1);
            } else {
                return self.content(&file.name);
            }
            // Closed is open.
            let _ = self.gate.acquire().await;
            self.content(&file.name)
        })
    }
}

/// Never gives a byte.
struct Silence(Arc<Semaphore>);

impl AsyncRead for Silence {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.add_permits(1);
        Poll::Pending
    }
}

/// A connection that was reset.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

#[tokio::test]
async fn scripted_source_without_faults_keeps_the_contract_of_sources() {
    for promise in [Promise::Everything, Promise::Nothing] {
        let source = ScriptedSource::new(promise);
        let root = TempDir::new().unwrap();
        for (name, content) in source.files() {
            fs::write(root.path().join(name), content).unwrap();
        }
        assert_keeps_the_contract(&*source, root.path()).await;
    }
}
