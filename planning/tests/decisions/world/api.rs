//! The modelled API server: everything that is stored, identities, garbage collection.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::{ClusterStackSpec, ClusterStackStatus};
use crds::cluster_stack_release::{ClusterStackReleaseSpec, ClusterStackReleaseStatus};
use planning::object_key::{GroupKind, ObjectKey};
use planning::release::ProviderProgress;
use serde_json::Value;

use super::live::{Body, Conflict, Live};

/// The namespace of all stacks and releases of the model.
pub(crate) const NAMESPACE: &str = "stacks";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackObject {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) spec: ClusterStackSpec,
    pub(crate) status: ClusterStackStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReleaseObject {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Name and identity of the ClusterStack in the owner references.
    pub(crate) owner: Option<(String, String)>,
    pub(crate) finalizer: bool,
    pub(crate) deleting: bool,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) group_kinds: BTreeSet<GroupKind>,
    pub(crate) spec: ClusterStackReleaseSpec,
    pub(crate) status: ClusterStackReleaseStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderRelease {
    pub(crate) spec: Value,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Identity of the controlling owner.
    pub(crate) controller: Option<String>,
    pub(crate) ready: bool,
    pub(crate) message: Option<String>,
    pub(crate) progress: Option<ProviderProgress>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Api {
    /// The last identity or resource version that was given out.
    pub(crate) counter: u64,
    pub(crate) served: BTreeSet<GroupKind>,
    pub(crate) stacks: BTreeMap<String, StackObject>,
    pub(crate) releases: BTreeMap<String, ReleaseObject>,
    pub(crate) templates: BTreeMap<String, Value>,
    pub(crate) providers: BTreeMap<String, ProviderRelease>,
    pub(crate) objects: BTreeMap<ObjectKey, Live>,
    /// Clusters (`namespace/name`), with the namespace and name of their class.
    pub(crate) clusters: BTreeMap<String, (String, String)>,
}

impl Api {
    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(crate) fn uid(&mut self) -> String {
        format!("uid-{}", self.next())
    }

    /// Server-side apply of an object of any kind; creates it when it is not there. Gives the object back.
    pub(crate) fn apply(&mut self, key: &ObjectKey, body: &Body, manager: &str, force: bool) -> Result<Live, String> {
        if !self.served.contains(&key.group_kind()) {
            return Err(format!("no matches for kind {}", key.kind));
        }
        let dry = self
            .dry_run(key, body, manager, force)
            .map_err(|conflict| refusal(&conflict))?;
        let stored = self.objects.get(key);
        if stored == Some(&dry) {
            return Ok(dry);
        }
        let generation = stored.map_or(1, |stored| stored.generation + u64::from(stored.differs_in_spec(&dry)));
        let uid = match stored {
            Some(stored) => stored.uid.clone(),
            None => self.uid(),
        };
        let applied = Live {
            uid,
            generation,
            resource_version: self.next(),
            ..dry
        };
        self.objects.insert(key.clone(), applied.clone());
        Ok(applied)
    }

    /// What an apply would lead to; nothing is stored.
    pub(crate) fn dry_run(&self, key: &ObjectKey, body: &Body, manager: &str, force: bool) -> Result<Live, Conflict> {
        let mut live = self
            .objects
            .get(key)
            .cloned()
            .unwrap_or_else(|| Live::new(String::new(), 0));
        live.apply(body, manager, force)?;
        Ok(live)
    }

    /// Changes an object by a function, as some other client would.
    pub(crate) fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Live)) {
        let resource_version = self.next();
        if let Some(live) = self.objects.get_mut(key) {
            let before = live.clone();
            change(live);
            live.generation += u64::from(before.differs_in_spec(live));
            live.resource_version = resource_version;
        }
    }

    /// Deletes an object if it is still as it was read.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str, version: &str) {
        let as_read = |live: &&Live| live.uid == uid && live.resource_version.to_string() == version;
        match self.objects.get(key).filter(as_read) {
            None => {}
            Some(live) if live.finalizer => self.change(key, |live| live.deleting = true),
            Some(_) => drop(self.objects.remove(key)),
        }
    }

    /// Deletes a release object; its finalizer keeps it.
    pub(crate) fn delete_release(&mut self, tag: &str) {
        if let Some(release) = self.releases.get_mut(tag) {
            if release.finalizer {
                release.deleting = true;
            } else {
                self.releases.remove(tag);
            }
        }
    }

    /// Deletes what has an owner that is no more.
    pub(crate) fn collect_garbage(&mut self) {
        let stacks: BTreeSet<String> = self.stacks.values().map(|stack| stack.uid.clone()).collect();
        let orphans: Vec<String> = self
            .releases
            .iter()
            .filter(|(_, release)| release.owner.as_ref().is_some_and(|(_, uid)| !stacks.contains(uid)))
            .map(|(tag, _)| tag.clone())
            .collect();
        for tag in orphans {
            self.delete_release(&tag);
        }
        let releases: BTreeSet<&String> = self.releases.values().map(|release| &release.uid).collect();
        self.providers.retain(|_, provider| {
            provider
                .controller
                .as_ref()
                .is_none_or(|uid| !uid.starts_with("uid-") || releases.contains(uid))
        });
    }

    /// The Clusters that use the class of a release.
    pub(crate) fn users_of(&self, tag: &str) -> BTreeSet<String> {
        self.clusters
            .iter()
            .filter(|(_, (namespace, class))| {
                namespace == NAMESPACE
                    && class
                        .parse::<crds::names::ClassName>()
                        .is_ok_and(|class| class.release_tag().to_string() == tag)
            })
            .map(|(cluster, _)| cluster.clone())
            .collect()
    }
}

fn refusal(conflict: &Conflict) -> String {
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    format!(
        "conflict with {} over {}",
        list(&conflict.managers),
        list(&conflict.fields)
    )
}
