//! What the watch of CRDs has shown. Pure.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};

use crate::discovery::Discovery;
use crate::failure::Lasting;
use crate::shallow::Shallow;

pub(super) type Crd = Shallow<PartialObjectMeta<CustomResourceDefinition>>;
pub(super) type CrdEvent = Event<Crd>;

/// Most CRDs that are remembered: no API server works well with so many.
pub(super) const MOST: usize = 10_000;

/// Bytes of the name and the version of one that is no CRD's: theirs have at most 253.
const LARGEST: usize = 1 << 10;

/// Why CRDs are not remembered.
pub(super) const TOO_MANY: &str =
    "the API server shows more than 10000 of them, or one with too long a name; look whether it is one";

/// The CRDs that are there, with the resourceVersion of the last sight.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) known: HashMap<String, String>,
    pub(super) listed: Option<HashMap<String, String>>,
    /// The first list is what discovery shows anyway.
    pub(super) started: bool,
    /// Why there has been no list yet, where the API server has said why.
    pub(super) trouble: Option<Lasting>,
}

impl Sights {
    /// Whether all CRDs have been listed, and discovery is up to date for this group and shows every one of it.
    pub(super) fn shown_by(&self, discovery: &Discovery, group: &str) -> bool {
        let of_group = |name: &&String| group_of(name) == Some(group);
        self.started
            && !discovery.is_stale_for(group)
            && self
                .known
                .keys()
                .filter(of_group)
                .all(|name| discovery_agrees(discovery, self, name))
    }

    /// Whether this CRD is one too many.
    pub(super) fn have_no_room_for(&self, event: &CrdEvent) -> bool {
        let (crd, known) = match event {
            Event::InitApply(crd) => (crd, self.listed.as_ref()),
            Event::Apply(crd) => (crd, Some(&self.known)),
            Event::Delete(crd) => (crd, None),
            Event::Init | Event::InitDone => return false,
        };
        let (name, version) = identity(&crd.metadata);
        let is_new = |known: &HashMap<String, String>| !known.contains_key(&name);
        name.len() + version.len() > LARGEST || known.is_some_and(|known| known.len() >= MOST && is_new(known))
    }

    /// What is known is not all there is.
    pub(super) fn give_up(&mut self) {
        *self = Self {
            trouble: Some(Lasting::saying(TOO_MANY.to_owned())),
            ..Self::default()
        };
    }

    /// The watch was interrupted. A list that came stands.
    pub(super) fn fail(&mut self, error: &watcher::Error) {
        if !self.started {
            self.trouble = Some(Lasting::of_watch(error, self.trouble.take()));
        }
    }

    /// The names that changed with this event.
    pub(super) fn take(&mut self, event: CrdEvent) -> BTreeSet<String> {
        match event {
            Event::Init => self.listed = Some(HashMap::new()),
            Event::InitApply(crd) => {
                let (name, version) = identity(&crd.metadata);
                self.listed.get_or_insert_default().insert(name, version);
            }
            Event::InitDone => return self.replace(),
            Event::Apply(crd) => {
                let (name, version) = identity(&crd.metadata);
                if self.known.get(&name) != Some(&version) {
                    self.known.insert(name.clone(), version);
                    return BTreeSet::from([name]);
                }
            }
            Event::Delete(crd) => {
                let (name, _) = identity(&crd.metadata);
                self.known.remove(&name);
                return BTreeSet::from([name]);
            }
        }
        BTreeSet::new()
    }

    fn replace(&mut self) -> BTreeSet<String> {
        let before = std::mem::replace(&mut self.known, self.listed.take().unwrap_or_default());
        self.trouble = None;
        if !std::mem::replace(&mut self.started, true) {
            return BTreeSet::new();
        }
        let names = before.keys().chain(self.known.keys());
        names
            .filter(|name| before.get(*name) != self.known.get(*name))
            .cloned()
            .collect()
    }
}

fn identity(metadata: &ObjectMeta) -> (String, String) {
    (
        metadata.name.clone().unwrap_or_default(),
        metadata.resource_version.clone().unwrap_or_default(),
    )
}

/// The group of a CRD, which is a part of its name.
pub(super) fn group_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, group)| group)
}

pub(super) fn discovery_agrees(discovery: &Discovery, sights: &Sights, name: &str) -> bool {
    let Some((plural, group)) = name.split_once('.') else {
        return true;
    };
    discovery.knows_resource(plural, group) == sights.known.contains_key(name)
}
