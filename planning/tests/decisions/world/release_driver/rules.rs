//! What holds whatever happens to a release: each breach is a line in the journal that ends the test.

use crds::conditions::{ConditionType, MESSAGE_BYTES, is_true, lint};
use crds::labels;
use planning::object_key::ObjectKey;
use planning::objects::{Belongs, key_of};
use planning::release::{ReleaseObserved, ReleasePlan};

use crate::world::World;
use crate::world::api::ReleaseObject;
use crate::world::live::{Live, label};
use crate::world::marks::{belongs, mark};

impl World {
    /// What is true of every plan.
    pub(super) fn check_release_plan(&mut self, observed: &ReleaseObserved, plan: &ReleasePlan) {
        let status = &plan.status;
        for flaw in lint(
            &status.conditions,
            observed.generation,
            status.observed_generation.unwrap_or_default(),
        ) {
            self.journal
                .violation(format!("conditions of {}: {flaw}", observed.tag));
        }
        if !status.resources.is_sorted_by_key(key_of) {
            self.journal
                .violation(format!("the inventory of {} is not sorted", observed.tag));
        }
        if status.resources.iter().any(|row| row.error.len() > MESSAGE_BYTES) {
            self.journal
                .violation(format!("the inventory of {} has too long an error", observed.tag));
        }
        let ready = is_true(&status.conditions, ConditionType::Ready);
        if ready != status.ready {
            self.journal.violation(format!(
                "status.ready of {} is {} and its condition Ready is {ready}",
                observed.tag, status.ready
            ));
        }
    }

    /// Before an object is applied.
    pub(super) fn check_application(&mut self, tag: &str, key: &ObjectKey, force: bool) {
        let recorded = self
            .api
            .releases
            .get(tag)
            .is_some_and(|release| release.status.resources.iter().any(|row| key_of(row) == *key));
        if !recorded {
            self.journal
                .violation(format!("{key} was applied before the inventory of {tag} named it"));
        }
        if let Some(live) = self.api.objects.get(key).filter(|_| force)
            && belongs(tag, live) != Belongs::Us
            && self.is_held(key, live)
        {
            self.journal
                .violation(format!("{key} was forced though it is not of {tag}"));
        }
    }

    pub(super) fn check_deletion(&mut self, tag: &str, key: &ObjectKey, uid: &str) {
        let Some(live) = self.api.objects.get(key).filter(|live| live.uid == uid) else {
            return;
        };
        let kept = live.is_kept();
        let somebody_elses = match belongs(tag, live) {
            Belongs::Us | Belongs::Predecessor => false,
            Belongs::OtherOwner => self.is_held(key, live),
            Belongs::Stranger | Belongs::Nobody => true,
        };
        if somebody_elses {
            self.journal
                .violation(format!("{key} was deleted though it is not of {tag}"));
        }
        if kept || matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition") {
            self.journal
                .violation(format!("{key} was deleted though it has to be kept"));
        }
        let Some(release) = self.api.releases.get(tag) else {
            return;
        };
        if release.deleting && !self.api.users_of(tag).is_empty() {
            self.journal
                .violation(format!("{key} was deleted while a Cluster uses {tag}"));
        }
        if !release.deleting && self.store.get(tag).is_some_and(|files| files.objects.contains_key(key)) {
            self.journal
                .violation(format!("{key} was deleted though {tag} renders it"));
        }
    }

    /// Before the last trace of a release goes.
    pub(super) fn check_end(&mut self, tag: &str) {
        let left: Vec<String> = self
            .api
            .objects
            .iter()
            .filter(|(_, live)| live.value(&label(labels::PART_OF)) == Some(&mark(tag)) && !live.is_kept())
            .filter(|(key, _)| !matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition"))
            .filter(|(key, _)| !self.is_shared(tag, key))
            .map(|(key, _)| key.to_string())
            .collect();
        if !left.is_empty() {
            self.journal
                .violation(format!("{tag} was let go while {} are there", left.join(", ")));
        }
    }

    /// Whether another release that stays names an object, or carries it.
    fn is_shared(&self, tag: &str, key: &ObjectKey) -> bool {
        let stays = |other: &String, release: &ReleaseObject| other != tag && !release.deleting;
        self.api.releases.iter().any(|(other, release)| {
            stays(other, release) && release.status.resources.iter().any(|row| key_of(row) == *key)
        })
    }

    /// Whether the mark on an object is that of a release that stays and knows of it.
    fn is_held(&self, key: &ObjectKey, live: &Live) -> bool {
        let part_of = live.value(&label(labels::PART_OF));
        self.api.releases.iter().any(|(other, release)| {
            let names_it = || release.status.resources.iter().any(|row| key_of(row) == *key);
            !release.deleting && part_of == Some(&mark(other)) && names_it()
        })
    }
}
