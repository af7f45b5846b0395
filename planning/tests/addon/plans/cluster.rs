//! The modelled workload cluster: its objects, as far as their owners matter.

use std::collections::BTreeMap;

use planning::object_key::ObjectKey;
use planning::objects::Belongs;

use super::releases::{CRD, KEPT, REFUSED};

/// An object in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    pub(crate) uid: u64,
    pub(crate) version: u64,
    /// What it holds; digests of intents are their content.
    pub(crate) content: String,
    /// Whether it carries our mark.
    pub(crate) is_ours: bool,
    /// The chart that it says it comes from.
    pub(crate) chart: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cluster {
    counter: u64,
    pub(crate) objects: BTreeMap<ObjectKey, Live>,
}

impl Cluster {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Whether the API server serves the kind of an object: that of the model's own once its CRD is there.
    pub(crate) fn serves(&self, key: &ObjectKey) -> bool {
        let crd: ObjectKey = CRD.parse().expect("a key");
        key.group != "example.org" || self.objects.contains_key(&crd)
    }

    pub(crate) fn apply(&mut self, key: &ObjectKey, content: &str, chart: &str, force: bool) -> Result<Live, String> {
        if content == REFUSED {
            return Err("the webhook says no".to_owned());
        }
        if !self.serves(key) {
            return Err("no matches for kind".to_owned());
        }
        if self.objects.get(key).is_some_and(|live| !live.is_ours) && !force {
            return Err("conflict with somebody".to_owned());
        }
        let version = self.next();
        let uid = self.objects.get(key).map_or(version, |live| live.uid);
        let live = Live {
            uid,
            version,
            content: content.to_owned(),
            is_ours: true,
            chart: chart.to_owned(),
        };
        self.objects.insert(key.clone(), live.clone());
        Ok(live)
    }

    /// Deletes an object if it is still as it was read.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str, version: &str) {
        let is_as_read = |live: &&Live| live.uid.to_string() == uid && live.version.to_string() == version;
        if self.objects.get(key).is_some_and(|live| is_as_read(&live)) {
            self.remove(key);
        }
    }

    /// Deletes an object; those of a kind go with their CRD.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        if key.kind == "CustomResourceDefinition" {
            self.objects.retain(|key, _| key.group != "example.org");
        }
    }

    /// Somebody changes what an object holds.
    pub(crate) fn edit(&mut self, key: &ObjectKey) {
        let version = self.next();
        if let Some(live) = self.objects.get_mut(key) {
            "edited".clone_into(&mut live.content);
            live.version = version;
        }
    }

    /// Somebody makes an object of his own.
    pub(crate) fn plant(&mut self, key: &ObjectKey) {
        let version = self.next();
        let live = Live {
            uid: version,
            version,
            content: "theirs".to_owned(),
            is_ours: false,
            chart: String::new(),
        };
        self.objects.insert(key.clone(), live);
    }
}

impl Live {
    pub(crate) fn belongs(&self) -> Belongs {
        if self.is_ours { Belongs::Us } else { Belongs::Nobody }
    }

    /// What a change of it would change.
    pub(crate) fn trigger(&self) -> String {
        format!("{} {}", self.uid, self.version)
    }
}

/// Whether an object says that it has to stay.
pub(crate) fn is_kept(key: &ObjectKey) -> bool {
    key.to_string() == KEPT
}

/// Whether an object is never deleted by us.
pub(crate) fn stays(key: &ObjectKey) -> bool {
    is_kept(key) || matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition")
}
