//! Watches the metadata of CRDs, keeps discovery honest about them, and tells when what is served changed.
//!
//! The API server's discovery follows a CRD with a delay. So after a change discovery is read until it agrees with what
//! the watch saw, and once more a moment later; each time something differs the listeners are told. Without changes of
//! CRDs nothing is read, unless somebody could not believe that a kind is not served: then discovery is read again, more and
//! more seldom, until it shows every CRD of the group and is up to date for it.

mod edition;
mod sights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::api::Api;
use kube::client::Client;
use kube::runtime::watcher;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub use self::edition::Edition;

use self::edition::Tellings;
use self::sights::{Crd, CrdEvent, MOST, Sights, TOO_MANY, discovery_agrees, group_of};
use crate::discovery::{Discovery, DiscoveryError, Resolved};
use crate::failure::{Lasting, chain, is_unanswered};
use crate::object::GroupKind;
use crate::telemetry::Readiness;
use crate::watch_log::WatchLog;
use crate::watching::watching;

/// What may be served now that was not, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdChange {
    /// The API groups of which that is so: those of CRDs that changed since the last one, those that somebody doubted, and those of which discovery
    /// says something else. It is fresh for them.
    pub groups: Arc<BTreeSet<String>>,
}

/// As the log calls it.
const KIND: &str = "CustomResourceDefinition";

/// A listener that is further behind has missed changes and must look at everything it waits for.
const CHANGES_WAITING: usize = 64;

/// CRDs per page.
const PAGE_SIZE: u32 = 50;

/// When discovery is read after a change. The last rounds are for a CRD whose names the API server has yet to accept; a
/// later change of its status begins anew.
const ROUNDS: [Duration; 7] = [
    Duration::ZERO,
    GAP,
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// Between readings, however many CRDs change: installing Cluster API is hundreds of events.
const GAP: Duration = Duration::from_millis(250);

/// Between readings when all rounds are over and somebody still doubts what discovery says.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A round no earlier than this after the last change is needed even when discovery agrees: a new version of a known CRD
/// does not show in its metadata.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The watch of CRDs.
#[derive(Clone, Debug)]
pub struct CrdWatch {
    changes: broadcast::Sender<CrdChange>,
    sights: watch::Receiver<Sights>,
    /// Groups of kinds whose absence could not be believed.
    doubts: watch::Sender<BTreeSet<String>>,
    /// Why nobody could say of these kinds whether they are served, when it was asked last.
    untold: Arc<Mutex<BTreeMap<GroupKind, Lasting>>>,
    tellings: Tellings,
}

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Discovery has it, in this version before others.
    Served(Resolved),
    /// Discovery has it not, and shows every CRD of its group.
    NotServed,
    /// Discovery has it not and is incomplete, so that there may be objects of it. A [`CrdChange`] follows when it is complete.
    Unsure,
}

impl CrdWatch {
    /// Starts watching; ends with `cancel`. Without the right to, the process is not ready: whether a kind is served would never be sure.
    pub fn start(client: Client, discovery: Discovery, readiness: &Readiness, cancel: CancellationToken) -> Self {
        let log = WatchLog::essential(KIND, readiness);
        Self::telling(log, client, discovery, cancel)
    }

    /// The same in an API server without which the process is ready all the same, such as that of one cluster of many.
    pub fn start_elsewhere(client: Client, discovery: Discovery, cancel: CancellationToken) -> Self {
        Self::telling(WatchLog::new(KIND), client, discovery, cancel)
    }

    fn telling(log: WatchLog, client: Client, discovery: Discovery, cancel: CancellationToken) -> Self {
        let (changes, _) = broadcast::channel(CHANGES_WAITING);
        let (sights, seen) = watch::channel(Sights::default());
        let doubts = watch::Sender::new(BTreeSet::new());
        let tellings = Tellings::begin();
        let watching = Watching {
            discovery,
            changes: changes.clone(),
            sights,
            doubts: doubts.clone(),
            tellings: tellings.clone(),
        };
        tokio::spawn(cancel.run_until_cancelled_owned(Box::pin(watching.run(client, log))));
        Self {
            changes,
            sights: seen,
            doubts,
            untold: Arc::default(),
            tellings,
        }
    }

    /// What is served now. It is another as soon as a [`CrdChange`] is told, which wakes those who listen.
    pub fn edition(&self) -> Edition {
        self.tellings.edition()
    }

    /// Whether kinds of a group may come and go with CRDs: there is a CRD of it, or nobody has listed them yet.
    pub fn may_define(&self, group: &str) -> bool {
        let sights = self.sights.borrow();
        !sights.started || sights.known.keys().any(|name| group_of(name) == Some(group))
    }

    /// What is known of a kind now; does not wait for the list of CRDs. A [`CrdChange`] follows an error, too. One answer of discovery is no proof that a kind is not
    /// served: whoever takes an API server that just starts for "there are no objects" leaves them behind.
    pub async fn serving(&self, discovery: &Discovery, kind: &GroupKind) -> Result<Serving, DiscoveryError> {
        let serving = self.look_up(discovery, kind).await;
        let unsure = match &serving {
            Ok(Serving::Unsure) => self.unsure(discovery, kind),
            Ok(Serving::Served(_) | Serving::NotServed) | Err(_) => None,
        };
        let mut untold = self.untold();
        let before = untold.remove(kind);
        let why = match &serving {
            Err(error) => Some(Lasting::of(error, before)),
            Ok(_) => unsure,
        };
        if let Some(why) = why {
            untold.insert(kind.clone(), why);
        }
        drop(untold);
        serving
    }

    /// Why nobody could say whether a kind is served when it was asked last, where something is amiss.
    pub fn trouble(&self, kind: &GroupKind) -> Option<String> {
        self.untold().get(kind).map(|why| why.words.clone())
    }

    fn untold(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Lasting>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is amiss where discovery answers and has not the kind; nothing while the first list of CRDs is on its way.
    fn unsure(&self, discovery: &Discovery, kind: &GroupKind) -> Option<Lasting> {
        let sights = self.sights.borrow();
        let told = |error: DiscoveryError| Some(Lasting::of(&error, None));
        if discovery.is_stale_for(&kind.group) {
            return told(DiscoveryError::Stale { kind: kind.clone() });
        }
        match &sights.trouble {
            Some(Lasting { words, .. }) => told(DiscoveryError::Unlisted {
                kind: kind.clone(),
                words: words.clone(),
            }),
            None if sights.started => told(DiscoveryError::Incomplete { kind: kind.clone() }),
            None => None,
        }
    }

    async fn look_up(&self, discovery: &Discovery, kind: &GroupKind) -> Result<Serving, DiscoveryError> {
        match discovery.resolve_kind(kind).await {
            Ok(Some(resolved)) => return Ok(Serving::Served(resolved)),
            Ok(None) if self.sights.borrow().shown_by(discovery, &kind.group) => return Ok(Serving::NotServed),
            Ok(None) | Err(DiscoveryError::Stale { .. }) => {}
            Err(
                error @ (DiscoveryError::Read(_)
                | DiscoveryError::Excessive
                | DiscoveryError::Incomplete { .. }
                | DiscoveryError::Unlisted { .. }),
            ) => {
                self.doubt(kind);
                return Err(error);
            }
        }
        self.doubt(kind);
        Ok(Serving::Unsure)
    }

    /// Whoever does not know whether a kind is served hears of it when it is known.
    fn doubt(&self, kind: &GroupKind) {
        self.doubts.send_if_modified(|groups| groups.insert(kind.group.clone()));
    }

    /// The kind in the version that the API server prefers; `None` only where it is sure that there are no objects of it.
    pub async fn resolve_kind(
        &self,
        discovery: &Discovery,
        kind: &GroupKind,
    ) -> Result<Option<Resolved>, DiscoveryError> {
        match self.serving(discovery, kind).await? {
            Serving::Served(resolved) => Ok(Some(resolved)),
            Serving::NotServed => Ok(None),
            Serving::Unsure if discovery.is_stale_for(&kind.group) => Err(DiscoveryError::Stale { kind: kind.clone() }),
            Serving::Unsure => Err(DiscoveryError::Incomplete { kind: kind.clone() }),
        }
    }

    /// Changes from now on. A lagging receiver must take [`broadcast::error::RecvError::Lagged`] as "anything".
    pub fn subscribe(&self) -> broadcast::Receiver<CrdChange> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
impl CrdWatch {
    /// Of an API server without CRDs.
    pub(crate) fn of_none() -> Self {
        let sights = Sights {
            started: true,
            ..Sights::default()
        };
        Self {
            changes: broadcast::channel(CHANGES_WAITING).0,
            sights: watch::channel(sights).1,
            doubts: watch::Sender::new(BTreeSet::new()),
            untold: Arc::default(),
            tellings: Tellings::begin(),
        }
    }
}

struct Watching {
    tellings: Tellings,
    discovery: Discovery,
    changes: broadcast::Sender<CrdChange>,
    sights: watch::Sender<Sights>,
    doubts: watch::Sender<BTreeSet<String>>,
}

impl Watching {
    async fn run(self, client: Client, mut log: WatchLog) {
        let mut doubted = self.doubts.subscribe();
        let api = Api::<Crd>::all(client);
        let mut events = watching(api.clone(), "", PAGE_SIZE).boxed();
        let mut pending = Pending::default();
        while let Some(turn) = next_turn(&mut events, &mut doubted, pending.due()).await {
            match turn {
                Turn::Event(event) => {
                    log.heard(&event);
                    let event = match *event {
                        Ok(event) if pending.names.len() >= MOST || self.sights.borrow().have_no_room_for(&event) => {
                            self.sights.send_modify(Sights::give_up);
                            pending.names.clear();
                            tracing::warn!("unable to follow the CustomResourceDefinitions of a cluster: {TOO_MANY}");
                            let again = watching(api.clone(), "", PAGE_SIZE);
                            events = stream::once(sleep(LONGEST_PAUSE))
                                .flat_map(move |()| stream::empty())
                                .chain(again)
                                .boxed();
                            continue;
                        }
                        Ok(event) => event,
                        Err(error) => {
                            self.sights.send_modify(|sights| sights.fail(&error));
                            continue;
                        }
                    };
                    let mut names = BTreeSet::new();
                    self.sights.send_modify(|sights| names = sights.take(event));
                    if !names.is_empty() {
                        self.discovery.invalidate();
                        pending.add(names, Instant::now());
                    }
                }
                Turn::Doubt => {
                    let mut groups = BTreeSet::new();
                    self.doubts.send_if_modified(|doubts| {
                        groups = std::mem::take(doubts);
                        false
                    });
                    pending.doubt(groups, Instant::now());
                }
                Turn::Read => self.read(&mut pending).await,
            }
        }
    }

    async fn read(&self, pending: &mut Pending) {
        if let Err(error) = self.discovery.refresh().await
            && !is_unanswered(&error)
        {
            tracing::warn!(error = %chain(&error), "failed to read discovery after a CRD changed");
        }
        let mut groups = self.discovery.take_differences();
        let differs = !groups.is_empty();
        let agrees = {
            let sights = self.sights.borrow();
            let mut names = pending.names.iter();
            names.all(|name| discovery_agrees(&self.discovery, &sights, name))
                && pending
                    .groups
                    .iter()
                    .all(|group| sights.shown_by(&self.discovery, group))
        };
        groups.extend(pending.groups.iter().cloned());
        if let Some(names) = pending.round(Instant::now(), differs, agrees) {
            groups.extend(names.iter().filter_map(|name| group_of(name)).map(str::to_owned));
            self.tellings.tell();
            // Nobody listens yet: nobody waits for anything.
            let _ = self.changes.send(CrdChange {
                groups: Arc::new(groups),
            });
        }
    }
}

enum Turn {
    Event(Box<watcher::Result<CrdEvent>>),
    Doubt,
    Read,
}

async fn next_turn<S>(
    events: &mut S,
    doubted: &mut watch::Receiver<BTreeSet<String>>,
    due: Option<Instant>,
) -> Option<Turn>
where
    S: Stream<Item = watcher::Result<CrdEvent>> + Unpin,
{
    let reading = async {
        match due {
            Some(due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // Events first: a burst of CRDs is one reading.
        biased;
        event = events.next() => Some(Turn::Event(Box::new(event?))),
        Ok(()) = doubted.changed() => Some(Turn::Doubt),
        () = reading => Some(Turn::Read),
    }
}

/// Changes that discovery has yet to be read for.
#[derive(Debug, Default)]
struct Pending {
    names: BTreeSet<String>,
    /// Groups that somebody doubts.
    groups: BTreeSet<String>,
    since: Option<Instant>,
    rounds: usize,
    told: bool,
    last_reading: Option<Instant>,
}

impl Pending {
    fn add(&mut self, names: BTreeSet<String>, now: Instant) {
        self.names.extend(names);
        self.since = Some(now);
        self.rounds = 0;
        self.told = false;
    }

    /// What is under way already is not begun anew: a doubt is repeated by everybody who has it.
    fn doubt(&mut self, groups: BTreeSet<String>, now: Instant) {
        self.told &= groups.is_subset(&self.groups);
        self.groups.extend(groups);
        self.since.get_or_insert(now);
    }

    fn due(&self) -> Option<Instant> {
        let due = match ROUNDS.get(self.rounds) {
            Some(round) => self.since? + *round,
            None => self.last_reading? + LONGEST_PAUSE,
        };
        Some(self.last_reading.map_or(due, |last| due.max(last + GAP)))
    }

    /// Notes a reading, and returns the names to tell: at the first reading that agrees, and whenever discovery says
    /// something else than at the reading before.
    fn round(&mut self, now: Instant, differs: bool, agrees: bool) -> Option<BTreeSet<String>> {
        let since = self.since?;
        self.last_reading = Some(now);
        self.rounds += 1;
        let tell = differs || (agrees && !self.told);
        self.told |= tell;
        let names = tell.then(|| self.names.clone());
        let settled = agrees && now.duration_since(since) >= SETTLED_AFTER;
        if settled || (self.rounds >= ROUNDS.len() && self.groups.is_empty()) {
            *self = Self {
                last_reading: self.last_reading,
                ..Self::default()
            };
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;
    use crate::stub::{self, Answer};

    fn crd(name: &str, version: &str) -> Crd {
        let crd = json!({ "metadata": { "name": name, "resourceVersion": version } });
        serde_json::from_value(crd).unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_first_list_is_no_change_and_later_ones_are_compared() {
        let mut sights = Sights::default();
        let mut list = |crds: &[(&str, &str)]| {
            sights.take(Event::Init);
            for (name, version) in crds {
                assert!(sights.take(Event::InitApply(crd(name, version))).is_empty());
            }
            sights.take(Event::InitDone)
        };
        assert_eq!(list(&[("a.io", "1"), ("b.io", "1"), ("c.io", "1")]), names(&[]));
        assert_eq!(
            list(&[("a.io", "1"), ("b.io", "2"), ("d.io", "1")]),
            names(&["b.io", "c.io", "d.io"])
        );
        assert_eq!(sights.take(Event::Apply(crd("a.io", "1"))), names(&[]));
        assert_eq!(sights.take(Event::Apply(crd("a.io", "3"))), names(&["a.io"]));
        assert_eq!(sights.take(Event::Delete(crd("a.io", "3"))), names(&["a.io"]));
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_crds_are_remembered_and_of_more_nobody_knows_all() {
        let pages = Arc::new(AtomicUsize::new(0));
        let asked_for = Arc::clone(&pages);
        let client = stub::client(move |asked| {
            if let Some(answer) = stub::discovery(asked) {
                return answer;
            }
            let page = asked_for.fetch_add(1, Ordering::SeqCst);
            let crds: Vec<Value> = (0..1_000)
                .map(|number| json!({ "metadata": { "name": format!("a{page}-{number}.io"), "resourceVersion": "1" } }))
                .collect();
            (
                200,
                json!({ "metadata": { "resourceVersion": "9", "continue": "more" }, "items": crds }),
            )
        });
        let discovery = Discovery::new(client.clone());
        let crds = CrdWatch::start_elsewhere(client, discovery.clone(), CancellationToken::new());
        let kind = GroupKind::new("example.org", "Lathe");
        sleep(LONGEST_PAUSE / 2).await;
        assert_eq!(
            pages.load(Ordering::SeqCst),
            MOST / 1_000 + 1,
            "it goes on after a pause"
        );
        assert_eq!(crds.serving(&discovery, &kind).await.unwrap(), Serving::Unsure);
        let trouble = crds.trouble(&kind).unwrap();
        assert!(trouble.contains("more than 10000 of them"), "{trouble}");
        sleep(LONGEST_PAUSE).await;
        assert!(pages.load(Ordering::SeqCst) > MOST / 1_000 + 1);
    }

    #[test]
    fn a_crd_whose_name_is_none_is_not_remembered() {
        let sights = Sights::default();
        let has_room = |name: &str| !sights.have_no_room_for(&Event::InitApply(crd(name, "1")));
        assert!(has_room(&"x".repeat(253)) && !has_room(&"x".repeat(2_000)));
    }

    #[test]
    fn discovery_is_read_until_it_agrees_and_once_more_when_settled() {
        let start = Instant::now();
        let mut pending = Pending::default();
        assert_eq!(pending.due(), None);
        pending.add(names(&["a.io"]), start);
        assert_eq!(pending.due(), Some(start));
        assert_eq!(pending.round(start, false, false), None);
        let later = start + ROUNDS[1];
        assert_eq!(pending.due(), Some(later));
        assert_eq!(pending.round(later, true, true), Some(names(&["a.io"])));
        while let Some(due) = pending.due() {
            assert_eq!(pending.round(due, false, true), None);
            assert!(due <= start + SETTLED_AFTER, "reading goes on although all is settled");
        }
    }

    #[test]
    fn a_crd_that_never_becomes_established_is_not_asked_for_for_ever() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.add(names(&["a.io"]), start);
        let mut readings = 0;
        while let Some(due) = pending.due() {
            pending.round(due, false, false);
            readings += 1;
        }
        assert_eq!(readings, ROUNDS.len());
    }

    #[test]
    fn discovery_that_is_doubted_is_read_until_it_is_complete_and_ever_more_seldom() {
        let mut now = Instant::now();
        let mut pending = Pending::default();
        let doubted = names(&["example.org"]);
        pending.doubt(doubted.clone(), now);
        for _ in 0..2 * ROUNDS.len() {
            now = pending.due().expect("a further reading");
            assert_eq!(pending.round(now, false, false), None);
            pending.doubt(doubted.clone(), now);
        }
        assert_eq!(pending.due(), Some(now + LONGEST_PAUSE));
        assert!(pending.round(now + LONGEST_PAUSE, false, true).is_some());
        assert_eq!(pending.due(), None);
    }

    /// An API server with one CRD, whose discovery shows its group from the given reading on.
    fn start(shown_from: usize) -> (CrdWatch, Discovery) {
        let mut readings = 0;
        start_with(move |groups| {
            readings += 1;
            if readings < shown_from {
                groups.clear();
            }
        })
    }

    /// The same, with other groups in each reading of discovery.
    fn start_with(change: impl FnMut(&mut Vec<Value>) + Send + 'static) -> (CrdWatch, Discovery) {
        start_watching(Vec::new(), change)
    }

    /// The same, with events of CRDs that follow the list.
    fn start_watching(
        events: Vec<Value>,
        mut change: impl FnMut(&mut Vec<Value>) + Send + 'static,
    ) -> (CrdWatch, Discovery) {
        let client = stub::client(move |asked| {
            if asked.path.ends_with("customresourcedefinitions") {
                let crd = json!({
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": { "name": "deployments.apps", "resourceVersion": "6" },
                });
                let list = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": { "resourceVersion": "6" }, "items": [crd],
                });
                return if asked.query.contains("watch=true") {
                    Answer::Watch(events.clone())
                } else {
                    (200, list).into()
                };
            }
            let (code, mut answer) = stub::discovery(asked).expect("nothing else is asked");
            if asked.path == "/apis" {
                change(answer["items"].as_array_mut().expect("a list of groups"));
            }
            (code, answer).into()
        });
        let discovery = Discovery::new(client.clone());
        let crds = CrdWatch::start(
            client,
            discovery.clone(),
            &Readiness::default(),
            CancellationToken::new(),
        );
        (crds, discovery)
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_of_discovery_is_no_proof_that_a_kind_is_not_served() {
        let (crds, discovery) = start(5);
        let mut changes = crds.subscribe();
        let kind = GroupKind::new("apps", "Deployment");
        // At first nobody has listed the CRDs, and then discovery contradicts them.
        let mut looks = Vec::new();
        while !matches!(looks.last(), Some(Serving::Served(_))) {
            looks.push(crds.serving(&discovery, &kind).await.expect("discovery answers"));
            if looks.last() == Some(&Serving::Unsure) {
                changes.recv().await.expect("the watch goes on");
            }
        }
        assert!(!looks.contains(&Serving::NotServed), "{looks:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_else_saw_first_is_told_to_those_who_wait() {
        let modified = json!({ "type": "MODIFIED", "object": {
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": { "name": "deployments.apps", "resourceVersion": "7" },
        } });
        let version = Arc::new(AtomicUsize::new(1));
        let served = Arc::clone(&version);
        let (crds, discovery) = start_watching(vec![modified], move |groups| {
            groups[0]["versions"][0]["version"] = json!(format!("v{}", served.load(Ordering::SeqCst)));
        });
        let mut changes = crds.subscribe();
        changes.recv().await.expect("the CRD changed, and discovery shows it");
        version.store(2, Ordering::SeqCst);
        discovery.refresh().await.expect("discovery answers");
        let told = timeout(SETTLED_AFTER * 2, changes.recv()).await;
        let change = told.expect("those who wait for the new version are told");
        assert_eq!(change.expect("the watch goes on").groups, Arc::new(names(&["apps"])));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_of_a_group_whose_crds_all_show_is_not_served() {
        let (crds, discovery) = start(1);
        let mut changes = crds.subscribe();
        let kind = GroupKind::new("apps", "Sandwich");
        while crds.serving(&discovery, &kind).await.expect("discovery answers") == Serving::Unsure {
            changes.recv().await.expect("the watch goes on");
        }
        assert_eq!(crds.serving(&discovery, &kind).await.ok(), Some(Serving::NotServed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_whose_crd_was_deleted_is_not_served_and_doubted_no_longer() {
        let deleted = json!({ "type": "DELETED", "object": {
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": { "name": "deployments.apps", "resourceVersion": "7" },
        } });
        let (crds, discovery) = start_watching(vec![deleted], Vec::clear);
        let mut changes = crds.subscribe();
        let kind = GroupKind::new("apps", "Deployment");
        let settling = async {
            while crds.serving(&discovery, &kind).await.expect("discovery answers") == Serving::Unsure {
                changes.recv().await.expect("the watch goes on");
            }
        };
        let settled = timeout(LONGEST_PAUSE, settling).await;
        settled.expect("what has gone is sure soon");
        assert_eq!(crds.serving(&discovery, &kind).await.ok(), Some(Serving::NotServed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_of_an_api_that_is_away_is_doubted_until_it_is_back() {
        let readings = Arc::new(AtomicUsize::new(0));
        let (crds, discovery) = start_with(move |groups| {
            let resources = if readings.fetch_add(1, Ordering::SeqCst) < 3 {
                json!({ "version": "v1", "freshness": "Stale", "resources": [] })
            } else {
                let gauge = json!({
                    "resource": "gauges", "scope": "Namespaced", "verbs": ["get"],
                    "responseKind": { "group": "", "version": "", "kind": "Gauge" },
                });
                json!({ "version": "v1", "freshness": "Current", "resources": [gauge] })
            };
            let group = json!({ "metadata": { "name": "metrics.example.org" }, "versions": [resources] });
            groups.push(group);
        });
        let mut changes = crds.subscribe();
        let kind = GroupKind::new("metrics.example.org", "Gauge");
        let mut looks = Vec::new();
        while !matches!(looks.last(), Some(Serving::Served(_))) {
            looks.push(crds.serving(&discovery, &kind).await.expect("discovery answers"));
            if looks.last() == Some(&Serving::Unsure) {
                changes.recv().await.expect("the watch goes on");
            }
        }
        assert_eq!(looks.first(), Some(&Serving::Unsure));
        assert!(!looks.contains(&Serving::NotServed), "{looks:?}");
    }

    #[test]
    fn a_change_in_between_begins_anew_and_keeps_the_earlier_names() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.add(names(&["a.io"]), start);
        pending.round(start, false, false);
        let later = start + Duration::from_secs(1);
        pending.add(names(&["b.io"]), later);
        assert_eq!(pending.due(), Some(later));
        assert_eq!(pending.round(later, true, true), Some(names(&["a.io", "b.io"])));
    }

    #[test]
    fn a_burst_of_changes_is_read_at_a_measured_pace() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.add(names(&["a.io"]), start);
        pending.round(start, true, true);
        pending.add(names(&["b.io"]), start + Duration::from_millis(1));
        assert_eq!(pending.due(), Some(start + GAP));
    }
}
