//! Where releases come from: one follower per source, shared by all stacks that name it.
//!
//! A directory is watched and read in place. Everything else is asked from time to time, and what it gives is kept in the store.

mod directory;
mod followed;
mod keys;
mod needs;
mod opened;
mod remote;
mod roots;
#[cfg(test)]
mod tests;
mod verdicts;
mod verification;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::names::ReleaseTag;
use crds::source::Source;
use crds::{ClusterStack, ClusterStackRelease};
use kube::ResourceExt;
use planning::stack::{ListedRelease, Listing};
use release::Digest;
use release::http::Statistics;
use release::source::Notifications;
use release::store::Usage;
use sourcing::{Connector, Place, SourceKind};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::directory::DirectoryFollower;
pub(crate) use self::followed::Followed;
use self::keys::KeyRing;
pub(crate) use self::opened::Opened;
pub(crate) use self::remote::{Cache, CacheOptions};
use self::remote::{RemoteFollower, Wanted, Wish};
use self::verdicts::Verdicts;
use self::verification::Looked;
use crate::tasks::{Task, Tasks};

/// What changed at a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceChange {
    /// The releases that may have other files than before.
    pub(crate) tags: BTreeSet<ReleaseTag>,
    /// The sources of which all releases that are not ready have to be looked at too.
    pub(crate) unready: HashSet<Place>,
    /// The sources of which the list of releases is another one.
    pub(crate) listings: HashSet<Place>,
}

impl SourceChange {
    pub(crate) fn of_tags(tags: BTreeSet<ReleaseTag>) -> Self {
        Self {
            tags,
            unready: HashSet::new(),
            listings: HashSet::new(),
        }
    }

    fn of_tag(tag: &ReleaseTag) -> Self {
        Self::of_tags(BTreeSet::from([tag.clone()]))
    }

    /// The two as one.
    pub(crate) fn and(mut self, mut later: Self) -> Self {
        self.tags.append(&mut later.tags);
        self.unready.extend(later.unready);
        self.listings.extend(later.listings);
        self
    }
}

/// How sources are followed.
pub(crate) struct SourceOptions {
    /// How often a directory is looked at even when the file system reports no change.
    pub(crate) rescan: Duration,
    /// What makes sources of what stacks name.
    pub(crate) connector: Arc<Connector>,
    /// Where releases of remote sources are kept.
    pub(crate) cache: Arc<Cache>,
    /// The trust root of policies that name none, as a file.
    pub(crate) trusted_root: Option<PathBuf>,
    /// Starts those that follow.
    pub(crate) tasks: Tasks,
}

/// All sources that stacks and releases name, and some that they named lately.
pub(crate) struct Sources {
    options: SourceOptions,
    cancel: CancellationToken,
    changes: mpsc::UnboundedSender<SourceChange>,
    notifications: Notifications,
    keys: Arc<KeyRing>,
    verdicts: Verdicts,
    followers: Mutex<HashMap<Place, Following>>,
}

/// A follower, and what ends it together with this value.
struct Following {
    follower: Follower,
    /// When somebody asked for it last.
    used: Instant,
    _end: DropGuard,
}

#[derive(Clone)]
enum Follower {
    Directory(Arc<DirectoryFollower>),
    Remote(Arc<RemoteFollower>),
}

impl Follower {
    fn listing(&self) -> Listing {
        match self {
            Self::Directory(follower) => follower.listing(),
            Self::Remote(follower) => follower.listing(),
        }
    }
}

impl Sources {
    pub(crate) fn new(
        options: SourceOptions,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<SourceChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let keys = KeyRing::new(
            options.connector.client(),
            options.trusted_root.clone(),
            changes.clone(),
            options.tasks.clone(),
            cancel.child_token(),
        );
        let sources = Self {
            keys,
            options,
            cancel,
            verdicts: Verdicts::new(changes.clone()),
            changes,
            notifications: Notifications::default(),
            followers: Mutex::default(),
        };
        (sources, receiver)
    }

    /// What the source of a stack lists. A stack that asks for it anew has it asked at once.
    pub(crate) fn listing_for(&self, stack: &ClusterStack) -> Listing {
        let namespace = stack.namespace().unwrap_or_default();
        let keys = stack.spec.verification.as_ref();
        let keys = keys.and_then(|policy| verification::key_place(policy, &namespace));
        if let (Some(keys), Some(request)) = (keys, wish(stack).requested) {
            self.keys.request(&keys, &stack_key(stack), &request);
        }
        match self.follower(stack.spec.source.as_ref(), &namespace) {
            Ok(follower) => {
                if let Follower::Remote(remote) = &follower {
                    remote.wish(&stack_key(stack), wish(stack));
                }
                follower.listing()
            }
            Err(message) => Listing::Unusable { message },
        }
    }

    /// Whether a stack or release of this namespace has its releases from one of these places.
    pub(crate) fn is_at(&self, source: Option<&Source>, namespace: &str, places: &HashSet<Place>) -> bool {
        !places.is_empty() && self.place(source, namespace).is_ok_and(|place| places.contains(&place))
    }

    /// Whether the source of a release answers and does not have it.
    pub(crate) fn has_withdrawn(&self, release: &ClusterStackRelease) -> bool {
        let namespace = release.namespace().unwrap_or_default();
        let follower = self.follower(release.spec.source.as_ref(), &namespace);
        match (follower, release.name_any().parse()) {
            (Ok(Follower::Directory(follower)), Ok(tag)) => follower.has_withdrawn(&tag),
            (Ok(Follower::Remote(follower)), Ok(tag)) => follower.has_withdrawn(&tag),
            // A name that is no tag is in no source.
            (Ok(follower), Err(_)) => matches!(follower.listing(), Listing::Known { .. }),
            (Err(_), _) => false,
        }
    }

    /// What a source is and where, for people.
    pub(crate) fn described(&self, source: Option<&Source>) -> String {
        self.options.connector.described(source)
    }

    /// The files of a release, if its policy admits them.
    pub(crate) async fn of(&self, release: &ClusterStackRelease) -> Opened {
        let tag: ReleaseTag = match release.name_any().parse() {
            Ok(tag) => tag,
            Err(error) => {
                return Opened::Broken {
                    message: format!("the name is no release tag: {error}"),
                };
            }
        };
        let namespace = release.namespace().unwrap_or_default();
        let is_to_be_verified = verification::policy(release).is_some();
        match self.follower(release.spec.source.as_ref(), &namespace) {
            Ok(Follower::Directory(follower)) => {
                let found = follower.open(&tag).await;
                let (opened, _) = verification::admitted(&self.keys, &self.verdicts, release, &tag, found).await;
                opened
            }
            Ok(Follower::Remote(follower)) => {
                let found = follower.open(&tag, pinned(release), is_to_be_verified).await;
                let digest = match &found {
                    Opened::Ready { files, .. } => Some(files.release.digest),
                    _ => None,
                };
                let (opened, looked) = verification::admitted(&self.keys, &self.verdicts, release, &tag, found).await;
                match (digest, looked) {
                    (Some(digest), Looked::Good) => follower.accepted(&tag, digest, &namespace),
                    (Some(digest), Looked::Bad) => follower.refused(&tag, digest, &namespace),
                    (None, _) | (_, Looked::Nothing) => {}
                }
                opened
            }
            Err(message) => Opened::Missing { message, outage: None },
        }
    }

    /// Has tried now what is in the way of a release, as far as that is with its source.
    pub(crate) fn request(&self, release: &ClusterStackRelease) {
        let namespace = release.namespace().unwrap_or_default();
        let follower = self.follower(release.spec.source.as_ref(), &namespace);
        if let (Ok(Follower::Remote(follower)), Ok(tag)) = (follower, release.name_any().parse()) {
            follower.request(&tag);
        }
    }

    /// Whoever could not read what was handed out says so: it is held against its digest again before anybody gets it.
    pub(crate) fn doubt(&self, tag: &ReleaseTag, digest: Digest) {
        for Following { follower, .. } in lock(&self.followers).values() {
            if let Follower::Remote(follower) = follower {
                follower.doubt(tag, digest);
            }
        }
    }

    /// Ends what nobody needs any more: the followers of other sources, and what they remember of other releases. The usual source stays.
    pub(crate) fn follow_only(&self, stacks: &[Arc<ClusterStack>], releases: &[Arc<ClusterStackRelease>]) {
        let mut named: HashMap<Place, Wanted> = HashMap::new();
        named.extend(self.place(None, "").map(|place| (place, Wanted::new())));
        let mut wished: HashMap<Place, HashMap<String, Wish>> = HashMap::new();
        for stack in stacks {
            let namespace = stack.namespace().unwrap_or_default();
            if let Ok(place) = self.place(stack.spec.source.as_ref(), &namespace) {
                named.entry(place.clone()).or_default();
                wished.entry(place).or_default().insert(stack_key(stack), wish(stack));
            }
        }
        for release in releases {
            let namespace = release.namespace().unwrap_or_default();
            if let (Ok(place), Ok(tag)) = (
                self.place(release.spec.source.as_ref(), &namespace),
                release.name_any().parse(),
            ) {
                let wanted = named.entry(place).or_default().entry(tag).or_default();
                wanted.pinned.extend(pinned(release));
                if verification::policy(release).is_some() {
                    wanted.verifying.insert(namespace);
                }
            }
        }
        let nobody = HashMap::new();
        lock(&self.followers).retain(|place, following| {
            let Some(tags) = named.get(place) else {
                return is_recent(following.used);
            };
            match &following.follower {
                Follower::Directory(follower) => follower.retain(tags),
                Follower::Remote(follower) => follower.retain(tags, wished.get(place).unwrap_or(&nobody)),
            }
            true
        });
        self.keys.retain(&verification::needed(releases));
    }

    /// All sources that are followed, as of now.
    pub(crate) fn followed(&self) -> Vec<Followed> {
        let followers = lock(&self.followers);
        let followed = followers.iter().map(|(place, Following { follower, .. })| {
            let kind = self.options.connector.kind(place);
            match follower {
                Follower::Directory(follower) => Followed::of(kind, &follower.listing(), None),
                Follower::Remote(follower) => Followed::of(kind, &follower.listing(), follower.answered_at()),
            }
        });
        followed.collect()
    }

    /// What was asked of sources of this sort.
    pub(crate) fn statistics(&self, kind: SourceKind) -> Statistics {
        self.options.connector.statistics(kind)
    }

    /// What the store of releases holds and does, once there is one.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.options.cache.usage()
    }

    fn follower(&self, source: Option<&Source>, namespace: &str) -> Result<Follower, String> {
        let place = self.place(source, namespace)?;
        let mut followers = lock(&self.followers);
        if let Some(following) = followers.get_mut(&place) {
            following.used = Instant::now();
            return Ok(following.follower.clone());
        }
        let end = self.cancel.child_token();
        let follower = match &place {
            Place::Directory(path) => {
                let follower = Arc::new(DirectoryFollower::new(path, self.changes.clone()));
                let (rescan, notifications) = (self.options.rescan, self.notifications.clone());
                let begin = Arc::clone(&follower);
                self.options.tasks.start(Task::Source, end.clone(), move || {
                    Arc::clone(&begin).follow(rescan, notifications.clone())
                });
                Follower::Directory(follower)
            }
            Place::Remote { .. } | Place::Usual => {
                let follower = RemoteFollower::new(
                    self.options.connector.connection(&place),
                    Arc::clone(&self.options.cache),
                    self.changes.clone(),
                    self.options.tasks.clone(),
                    end.clone(),
                );
                let begin = Arc::clone(&follower);
                self.options
                    .tasks
                    .start(Task::Source, end.clone(), move || Arc::clone(&begin).follow());
                Follower::Remote(follower)
            }
        };
        let following = Following {
            follower: follower.clone(),
            used: Instant::now(),
            _end: end.drop_guard(),
        };
        followers.insert(place, following);
        Ok(follower)
    }

    fn place(&self, source: Option<&Source>, namespace: &str) -> Result<Place, String> {
        let place = self.options.connector.place(source, namespace);
        place.map_err(|error| error.to_string())
    }
}

/// What a source listed, for a decision.
fn known(listing: release::source::Listing) -> Listing {
    let listed = |listed: release::source::ListedRelease| ListedRelease {
        tag: listed.tag,
        published_at: listed.published_at,
        digest: listed.digest.map(|digest| digest.to_string()),
        kubernetes_version: None,
    };
    Listing::Known {
        foreign: listing.foreign.len(),
        releases: listing.releases.into_iter().map(listed).collect(),
    }
}

/// Whether this is an answer that does not have a release. An answer is sorted.
fn is_without(listing: &Listing, tag: &ReleaseTag) -> bool {
    match listing {
        Listing::Known { releases, .. } => releases.binary_search_by(|listed| listed.tag.cmp(tag)).is_err(),
        _ => false,
    }
}

/// The digest that a release was pinned to.
fn pinned(release: &ClusterStackRelease) -> Option<Digest> {
    let assets = release.status.as_ref()?.assets.as_ref()?;
    assets.digest.parse().ok()
}

fn stack_key(stack: &ClusterStack) -> String {
    format!("{}/{}", stack.namespace().unwrap_or_default(), stack.name_any())
}

fn wish(stack: &ClusterStack) -> Wish {
    let requested = stack.annotations().get(crds::labels::REQUESTED_AT);
    let handled = stack
        .status
        .as_ref()
        .and_then(|status| status.last_handled_reconcile_at.as_ref());
    Wish {
        interval: stack.spec.poll_interval(),
        requested: requested.filter(|requested| Some(*requested) != handled).cloned(),
    }
}

/// Whether something is so new that a list of what is needed may have been made before it.
pub(crate) fn is_recent(since: Instant) -> bool {
    since.elapsed() < Duration::from_mins(1)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
