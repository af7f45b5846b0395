//! What a follower remembers of the releases of its source.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crds::names::ReleaseTag;
use planning::outage::Outage;
use release::source::ListedRelease;
use release::{Digest, ErrorClass, Evidence, Release};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use super::super::is_recent;
use super::showing::Showing;

/// How many identities of a tag are remembered: a source may say another one each time, for the same files.
const IDENTITIES: usize = 4;

/// The releases that somebody wants.
pub(in crate::sources) type Wanted = HashMap<ReleaseTag, Wants>;

/// What somebody wants of a release.
#[derive(Debug, Default)]
pub(in crate::sources) struct Wants {
    /// The digests that it was pinned to.
    pub(in crate::sources) pinned: HashSet<Digest>,
    /// The namespaces that want it verified.
    pub(in crate::sources) verifying: HashSet<String>,
}

/// What is in the way of a release.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    pub(super) class: ErrorClass,
    pub(super) message: String,
    /// How long it has been in the way, whatever it was.
    pub(super) outage: Outage,
}

/// A release that is being brought.
struct Coming {
    /// What was in the way when it was tried last, if something was.
    obstacle: Option<Obstacle>,
    /// Somebody wants it tried now.
    requested: Arc<Notify>,
    /// What ends the download with this value.
    _download: DropGuard,
}

/// A search for signatures.
struct Search {
    /// What was in the way when it was tried last, if something was.
    trouble: Option<String>,
    /// Somebody wants it tried now.
    requested: Arc<Notify>,
    /// What ends it with this value.
    _end: DropGuard,
}

/// One tag. Several ClusterStackReleases can be pinned to several digests of it.
struct Entry {
    /// When somebody wanted it last.
    wanted: Instant,
    /// What is in the store.
    here: BTreeMap<Digest, Arc<Release>>,
    /// What the source had under the tag when it was asked last.
    offered: Option<Digest>,
    coming: Option<Coming>,
    shown: BTreeMap<Digest, Showing>,
    search: Option<Search>,
    /// The turn in which it was last held against what the source has.
    compared: u64,
    /// Whether somebody wants that done now.
    is_requested: bool,
}

impl Entry {
    fn new() -> Self {
        Self {
            wanted: Instant::now(),
            here: BTreeMap::new(),
            offered: None,
            coming: None,
            shown: BTreeMap::new(),
            search: None,
            compared: 0,
            is_requested: false,
        }
    }

    /// Whether something that the source has shown was not good enough.
    fn is_refused(&self) -> bool {
        self.shown.values().any(Showing::is_refused)
    }

    fn request(&self) {
        let download = self.coming.as_ref().map(|coming| &coming.requested);
        let search = self.search.as_ref().map(|search| &search.requested);
        download
            .into_iter()
            .chain(search)
            .for_each(|requested| requested.notify_one());
    }
}

/// How many tags a source is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Questions {
    /// Of those that differ from what the list says.
    pub(super) differing: usize,
    /// Of those of which the list does not tell enough.
    pub(super) untold: usize,
    /// Of those whose signatures are not good enough, of which no list tells.
    pub(super) refused: usize,
}

/// The releases that somebody asked for.
#[derive(Default)]
pub(super) struct Memory {
    entries: HashMap<ReleaseTag, Entry>,
    turn: u64,
    /// Of each tag the last identities, and what they turned out to be.
    identified: HashMap<ReleaseTag, VecDeque<(Digest, Digest)>>,
}

impl Memory {
    /// The release of this digest, if it is known to be here.
    pub(super) fn here(&self, tag: &ReleaseTag, digest: Digest) -> Option<Arc<Release>> {
        self.entries.get(tag)?.here.get(&digest).cloned()
    }

    /// Somebody wants a release; what the source had under the tag when it was asked last.
    pub(super) fn want(&mut self, tag: &ReleaseTag) -> Option<Digest> {
        let entry = self.entries.get_mut(tag)?;
        entry.wanted = Instant::now();
        entry.offered
    }

    /// What the source had under the tag when it was asked last.
    pub(super) fn offered(&self, tag: &ReleaseTag) -> Option<Digest> {
        self.entries.get(tag)?.offered
    }

    /// Whether a release is being brought.
    pub(super) fn is_coming(&self, tag: &ReleaseTag) -> bool {
        self.entries.get(tag).is_some_and(|entry| entry.coming.is_some())
    }

    /// What is in the way of a release that is being brought, if something is.
    pub(super) fn obstacle(&self, tag: &ReleaseTag) -> Option<Obstacle> {
        self.entries.get(tag)?.coming.as_ref()?.obstacle.clone()
    }

    /// A download begins, which is told when somebody wants it tried now.
    pub(super) fn begin(&mut self, tag: &ReleaseTag, requested: Arc<Notify>, download: DropGuard) {
        self.entries.entry(tag.clone()).or_insert_with(Entry::new).coming = Some(Coming {
            obstacle: None,
            requested,
            _download: download,
        });
    }

    /// A release is here.
    pub(super) fn keep(&mut self, tag: &ReleaseTag, files: Arc<Release>) {
        let entry = self.entries.entry(tag.clone()).or_insert_with(Entry::new);
        entry.here.insert(files.digest, files);
    }

    /// A download has ended.
    pub(super) fn arrive(&mut self, tag: &ReleaseTag, files: Arc<Release>) {
        let entry = self.entries.entry(tag.clone()).or_insert_with(Entry::new);
        entry.coming = None;
        entry.here.insert(files.digest, files);
    }

    /// Something is in the way of a download.
    pub(super) fn meet(&mut self, tag: &ReleaseTag, obstacle: Obstacle) {
        if let Some(coming) = self.entries.get_mut(tag).and_then(|entry| entry.coming.as_mut()) {
            coming.obstacle = Some(obstacle);
        }
    }

    /// Whether the source has shown that it has nothing for a release.
    pub(super) fn is_shown_nothing(&self, tag: &ReleaseTag, digest: Digest) -> bool {
        let shown = self.entries.get(tag).and_then(|entry| entry.shown.get(&digest));
        shown.is_some_and(|shown| shown.is_nothing)
    }

    /// What counts when the source shows this, besides what was kept, if that is news.
    pub(super) fn united(
        &self,
        tag: &ReleaseTag,
        digest: Digest,
        kept: &Evidence,
        shown: &Evidence,
    ) -> Option<Evidence> {
        let before = self.entries.get(tag)?.shown.get(&digest);
        before.unwrap_or(&Showing::default()).united(kept, shown)
    }

    /// Notes that the source has shown something for a release, or nothing, now or before the process started.
    pub(super) fn show(&mut self, tag: &ReleaseTag, digest: Digest, is_nothing: bool, is_fresh: bool) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.shown.entry(digest).or_default().note(is_nothing, is_fresh);
        }
    }

    /// Nobody knows any more that the source has nothing for a release: what it shows could not be kept.
    pub(super) fn doubt_nothing(&mut self, tag: &ReleaseTag, digest: Digest) {
        if let Some(shown) = self.entries.get_mut(tag).and_then(|entry| entry.shown.get_mut(&digest)) {
            shown.is_nothing = false;
        }
    }

    /// Notes what a namespace thinks of what was shown; whether it is a refusal of what the source may have better by now.
    pub(super) fn judge(&mut self, tag: &ReleaseTag, digest: Digest, namespace: &str, is_refusal: bool) -> bool {
        let shown = self.entries.get_mut(tag).and_then(|entry| entry.shown.get_mut(&digest));
        shown.is_some_and(|shown| shown.judge(namespace, is_refusal))
    }

    /// Whether what was shown for a release is not good enough for somebody.
    pub(super) fn is_refused(&self, tag: &ReleaseTag, digest: Digest) -> bool {
        let shown = self.entries.get(tag).and_then(|entry| entry.shown.get(&digest));
        shown.is_some_and(Showing::is_refused)
    }

    /// Whether signatures are being looked for.
    pub(super) fn is_searching(&self, tag: &ReleaseTag) -> bool {
        self.entries.get(tag).is_some_and(|entry| entry.search.is_some())
    }

    /// What is in the way of a search for signatures, if something is.
    pub(super) fn search_trouble(&self, tag: &ReleaseTag) -> Option<String> {
        self.entries.get(tag)?.search.as_ref()?.trouble.clone()
    }

    /// A search for signatures begins, which is told when somebody wants it tried now.
    pub(super) fn begin_search(&mut self, tag: &ReleaseTag, requested: Arc<Notify>, end: DropGuard) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.search = Some(Search {
                trouble: None,
                requested,
                _end: end,
            });
        }
    }

    /// Something is in the way of a search for signatures.
    pub(super) fn trouble_search(&mut self, tag: &ReleaseTag, message: String) {
        if let Some(search) = self.entries.get_mut(tag).and_then(|entry| entry.search.as_mut()) {
            search.trouble = Some(message);
        }
    }

    /// A search for signatures has ended.
    pub(super) fn end_search(&mut self, tag: &ReleaseTag) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.search = None;
        }
    }

    /// Somebody wants to see now what becomes of a release: what failed before is tried again. A request that comes while it is being tried
    /// is for one try more, if that one fails.
    pub(super) fn request(&self, tag: &ReleaseTag) {
        self.entries.get(tag).into_iter().for_each(Entry::request);
    }

    /// The same for all releases, and for what the source has under their tags by now.
    pub(super) fn request_all(&mut self) {
        for entry in self.entries.values_mut() {
            entry.request();
            entry.is_requested = true;
        }
    }

    /// The tags that the source has to be asked for, to know whether they were moved: those of which something is here and the list says that
    /// it is another or does not say, and those whose signatures are not good enough, each in its turn; and all that somebody requested.
    pub(super) fn questions(&mut self, listed: &[ListedRelease], most: Questions) -> Vec<ReleaseTag> {
        let (mut differing, mut untold, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut requested = Vec::new();
        for (tag, entry) in &mut self.entries {
            if entry.here.is_empty() {
                continue;
            }
            let Some(listed) = find(listed, tag) else { continue };
            if entry.is_requested {
                requested.push((entry.compared, tag.clone()));
            }
            if entry.is_refused() {
                refused.push((entry.compared, tag.clone()));
            }
            let Some(identity) = listed.identity else {
                untold.push((entry.compared, tag.clone()));
                continue;
            };
            let identified = || find_identity(self.identified.get(tag)?, identity);
            let told = listed.digest.or_else(identified);
            if entry.offered.is_none() {
                // After a start: nobody looked at the source, and it has what is here.
                entry.offered = told.filter(|told| entry.here.contains_key(told));
            }
            if told.is_none() || told != entry.offered {
                differing.push((entry.compared, tag.clone()));
            }
        }
        let in_turn = |mut tags: Vec<(u64, ReleaseTag)>, most| {
            tags.sort();
            tags.truncate(most);
            tags
        };
        let chosen = [
            in_turn(differing, most.differing),
            in_turn(untold, most.untold),
            in_turn(refused, most.refused),
            requested,
        ];
        let chosen: BTreeSet<_> = chosen.into_iter().flatten().collect();
        chosen.into_iter().map(|(_, tag)| tag).collect()
    }

    /// The source is being asked for a tag, which was its turn; whether that was requested. A request that comes from now on is another one.
    pub(super) fn begin_comparison(&mut self, tag: &ReleaseTag) -> bool {
        self.turn += 1;
        self.entries.get_mut(tag).is_some_and(|entry| {
            entry.compared = self.turn;
            std::mem::take(&mut entry.is_requested)
        })
    }

    /// A request for a tag was not answered: it stands.
    pub(super) fn request_comparison(&mut self, tag: &ReleaseTag) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.is_requested = true;
        }
    }

    /// Notes what the source has under a tag; whether that is news.
    pub(super) fn offer(&mut self, tag: &ReleaseTag, offered: Digest) -> bool {
        match self.entries.get_mut(tag) {
            Some(entry) => entry.offered.replace(offered) != Some(offered),
            None => false,
        }
    }

    /// Forgets a release of this digest; whether it was here.
    pub(super) fn forget(&mut self, tag: &ReleaseTag, digest: Digest) -> bool {
        let entry = self.entries.get_mut(tag);
        entry.is_some_and(|entry| entry.here.remove(&digest).is_some())
    }

    /// Forgets all other releases, but for those that somebody wanted lately; their downloads end. Of these it forgets what other namespaces
    /// think, and what was under the tag before and is pinned by nobody: a source may move a tag as often as it likes.
    pub(super) fn retain(&mut self, tags: &Wanted) {
        self.entries
            .retain(|tag, entry| tags.contains_key(tag) || is_recent(entry.wanted));
        for (tag, entry) in &mut self.entries {
            let Some(wants) = tags.get(tag) else { continue };
            let offered = entry.offered;
            // What was pinned since is found in the store.
            let is_of_use = |digest: &Digest| offered == Some(*digest) || wants.pinned.contains(digest);
            entry.here.retain(|digest, _| is_of_use(digest));
            entry.shown.retain(|digest, _| is_of_use(digest));
            entry
                .shown
                .values_mut()
                .for_each(|shown| shown.retain(&wants.verifying));
        }
        let entries = &self.entries;
        self.identified.retain(|tag, _| entries.contains_key(tag));
    }

    pub(super) fn identify(&mut self, tag: &ReleaseTag, identity: Digest, digest: Digest) {
        let known = self.identified.entry(tag.clone()).or_default();
        known.retain(|(before, _)| *before != identity);
        known.push_back((identity, digest));
        if known.len() > IDENTITIES {
            known.pop_front();
        }
    }

    pub(super) fn identified(&self, tag: &ReleaseTag, identity: Digest) -> Option<Digest> {
        find_identity(self.identified.get(tag)?, identity)
    }
}

fn find_identity(known: &VecDeque<(Digest, Digest)>, identity: Digest) -> Option<Digest> {
    let found = known.iter().find(|(known, _)| *known == identity);
    found.map(|(_, digest)| *digest)
}

/// A release in a list, which is sorted.
fn find<'a>(listed: &'a [ListedRelease], tag: &ReleaseTag) -> Option<&'a ListedRelease> {
    let index = listed.binary_search_by(|listed| listed.tag.cmp(tag)).ok()?;
    listed.get(index)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn download_that_somebody_wanted_lately_goes_on_however_long_ago_it_began() {
        let (mut memory, end) = (Memory::default(), CancellationToken::new());
        let tag: ReleaseTag = "docker-harbor-1-34-v1".parse().unwrap();
        memory.begin(&tag, Arc::default(), end.clone().drop_guard());
        time::advance(Duration::from_hours(1)).await;
        memory.want(&tag);
        // As it was listed before.
        memory.retain(&Wanted::new());
        assert!(memory.is_coming(&tag) && !end.is_cancelled());
        time::advance(Duration::from_hours(1)).await;
        memory.retain(&Wanted::new());
        assert!(end.is_cancelled());
    }

    #[test]
    fn of_identities_without_end_the_last_are_remembered() {
        let mut memory = Memory::default();
        let tag: ReleaseTag = "docker-harbor-1-34-v1".parse().unwrap();
        let identity = |number: usize| Digest::of(number.to_string().as_bytes());
        let digest = Digest::of(b"files");
        for number in 0..3 * IDENTITIES {
            memory.identify(&tag, identity(number), digest);
        }
        let known = |number: &usize| memory.identified(&tag, identity(*number)) == Some(digest);
        let known: Vec<usize> = (0..3 * IDENTITIES).filter(known).collect();
        assert_eq!(known, [8, 9, 10, 11]);
    }
}
