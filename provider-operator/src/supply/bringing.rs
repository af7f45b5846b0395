//! Brings one release, however often it takes: from the store, else from its source, and reads which images it asks for.

use std::sync::Arc;
use std::time::Duration;

use crds::release_files::{NODE_IMAGES, NodeImages};
use jiff::Timestamp;
use operator_kit::failure::{chain, chain_without};
use planning::outage::Outage;
use planning::polling::next_poll;
use release::source::{DirectorySource, ReleaseSource, SourceError};
use release::store::{Store, StoreError};
use release::{Admitted, Digest, ErrorClass, Release, Verification, admit};
use sourcing::{ConnectError, Place};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{Hindrance, Opened, PURPOSE, Shared, Supplied, Why, Wish};

/// How often what is here is looked for again where it lies: a directory belongs to somebody else.
const FIRST: Duration = Duration::from_secs(10);

/// Why a release did not come.
struct Trouble {
    why: Why,
    message: String,
    retry_after: Option<Duration>,
}

/// Tries until it is here, or nobody wants it any more.
pub(super) async fn bring(shared: Arc<Shared>, wish: Wish, asked: Arc<Notify>) {
    let (mut since, mut attempts) = (None, 0_u32);
    loop {
        let trouble = match shared.bring_once(&wish).await {
            Ok(supplied) => {
                tracing::debug!(release = %wish.tag, source = supplied.source, "the files of the release are here");
                shared.tell(&wish, Opened::Ready(Arc::new(supplied)));
                return;
            }
            Err(trouble) => trouble,
        };
        attempts = attempts.saturating_add(1);
        let wait = next_poll(FIRST, attempts, trouble.retry_after, u64::from(attempts));
        let now = shared.clock.wall();
        let outage = Outage {
            since: *since.get_or_insert(now),
            attempts,
            next: later(now, wait),
        };
        let hindrance = Hindrance {
            why: trouble.why,
            message: trouble.message,
            outage: Some(outage),
        };
        if !shared.tell(&wish, Opened::Hindered(hindrance)) {
            return;
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = asked.notified() => {}
        }
    }
}

fn later(now: Timestamp, wait: Duration) -> Option<Timestamp> {
    now.checked_add(wait).ok()
}

impl Shared {
    async fn bring_once(&self, wish: &Wish) -> Result<Supplied, Trouble> {
        let (release, source) = self.files(wish).await?;
        if let Some(pinned) = wish.pinned
            && release.digest != pinned
        {
            let message = format!("the source has {} under the tag, and not {pinned}", release.digest);
            return Err(Trouble::new(Why::Differs(release.digest), message));
        }
        // Whose signatures count, the core operator has judged before it pinned the digest.
        let admitted = admit(release, Verification::Off);
        let files = Arc::new(admitted.map_err(|error| Trouble::new(Why::Broken, chain(&error)))?);
        let images = self.images(&files).await?;
        Ok(Supplied { files, images, source })
    }

    /// The release and where it came from.
    async fn files(&self, wish: &Wish) -> Result<(Arc<Release>, String), Trouble> {
        let way = self.connector.connection(&wish.place);
        if let Place::Directory(path) = &wish.place {
            let opened = DirectorySource::new_for(PURPOSE, path).open(&wish.tag).await;
            let release = opened.map_err(|error| Trouble::of_source(&error, chain(&error)))?;
            return Ok((Arc::new(release), way.described()));
        }
        let store = self.store().await?;
        // What another source gave is given to nobody who has not been let in by his own.
        if let Some(pinned) = wish.pinned
            && store.evidence(pinned, way.id()).await?.is_some()
            && let Some(release) = store.find(&wish.tag, pinned).await?
        {
            return Ok((release, way.described()));
        }
        let source = way.connect().await?.source;
        let told = |error: &SourceError, source: &dyn ReleaseSource| {
            Trouble::of_source(error, chain_without(error, |words| source.without_secrets(words)))
        };
        let resolved = source.resolve(&wish.tag).await;
        let resolved = resolved.map_err(|error| told(&error, source.as_ref()))?;
        let origin = way.origin(Arc::clone(&source));
        let release = store.get(&resolved, &origin).await.map_err(|error| {
            let message = chain_without(&error, |words| source.without_secrets(words));
            Trouble {
                message,
                ..Trouble::from(error)
            }
        })?;
        note(store, wish, release.digest, way.id()).await;
        Ok((release, way.described()))
    }

    /// Which images the release asks for.
    async fn images(&self, files: &Arc<Admitted>) -> Result<Option<NodeImages>, Trouble> {
        let Some(file) = files.release().files.iter().find(|file| file.name == NODE_IMAGES) else {
            return Ok(None);
        };
        let (reading, file) = (Arc::clone(files), file.clone());
        let read = self.readings.run(move || reading.read(&file)).await;
        let read = read.map_err(|error| Trouble::new(Why::Unavailable, chain(&error)))?;
        // What is another file by now is read again as a whole.
        let bytes = read.map_err(|error| Trouble::new(Why::Unavailable, chain(&error)))?;
        let images = NodeImages::parse(&bytes)
            .map_err(|error| Trouble::new(Why::Broken, format!("{NODE_IMAGES}: {}", chain(&error))))?;
        Ok(Some(images))
    }
}

/// Notes that this origin has given the release, so that it need not be asked again after a restart. By what it has to show for the release: that is nothing
/// here, because signatures are judged by the core operator; and what was noted before stays.
async fn note(store: &Store, wish: &Wish, release: Digest, origin: Digest) {
    let noted = match store.evidence(release, origin).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => store.vouch(&wish.tag, release, origin, Arc::default()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        tracing::debug!(release = %wish.tag, error = chain(&error), "the source of the release is asked again after a restart");
    }
}

impl Trouble {
    fn new(why: Why, message: String) -> Self {
        Self {
            why,
            message,
            retry_after: None,
        }
    }

    fn of_source(error: &SourceError, message: String) -> Self {
        let why = match (error, error.class()) {
            (SourceError::MissingRelease { .. }, _) | (_, ErrorClass::Waiting) => Why::Missing,
            (_, ErrorClass::Transient) => Why::Unavailable,
            (_, ErrorClass::Terminal) => Why::Broken,
        };
        Self {
            why,
            message,
            retry_after: error.retry_after(),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        let why = match error.class() {
            ErrorClass::Transient => Why::Unavailable,
            ErrorClass::Waiting => Why::Missing,
            ErrorClass::Terminal => Why::Broken,
        };
        Self {
            retry_after: match &error {
                StoreError::Fetch { source, .. } => source.retry_after(),
                _ => None,
            },
            ..Self::new(why, chain(&error))
        }
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        let why = if error.class() == ErrorClass::Transient {
            Why::Unavailable
        } else {
            Why::Unusable
        };
        Self::new(why, chain(&error))
    }
}
