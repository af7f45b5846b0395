//! What must never happen, whatever goes wrong.

use std::collections::BTreeMap;

use planning::image::{Deed, DiscardReason, ImagePolicy, Step};

use super::World;
use super::cloud::{Status, sha256, sha512};
use super::object::{Object, published};
use crate::table::ends;

impl World {
    fn broken(&mut self, rule: &str, how: &str) {
        let last = self.log.last().cloned().unwrap_or_default();
        self.violations.push(format!("{rule}: {how}, after {last}"));
    }

    /// Everything that waits says until when, and nothing is told to wait for nothing.
    pub(super) fn watch_step(&mut self, who: usize, step: &Step) {
        let Step::Await(wait) = step else { return };
        if !ends(wait) {
            self.broken("every wait ends", &format!("{wait:?} of {who}"));
        }
    }

    /// Deletions name what status gave up before, and what is shown was written before.
    pub(super) fn watch_deed(&mut self, deed: &Deed, sender: &Object) {
        match deed {
            Deed::Discard { id, attempt, why } => {
                let Some(image) = self.cloud.images.get(id) else { return };
                let Some(mark) = image.mark.clone() else {
                    return self.broken("only ours are deleted", id);
                };
                let kept = &sender.kept;
                let given_up = *attempt < kept.attempt || kept.key.as_ref().is_some_and(|key| *key != mark.key);
                let is_deleted = *why == DiscardReason::Deleted && sender.deleting.is_some();
                if !(given_up && mark.attempt == *attempt || is_deleted) {
                    self.broken("only what status gave up is deleted", id);
                }
            }
            Deed::Publish { id, .. } if sender.kept.publishing.as_ref() != Some(id) => {
                self.broken("only what status names is shown", id);
            }
            Deed::Create { attempt, .. } if *attempt != sender.kept.attempt => {
                self.broken("only what status names is created", &attempt.to_string());
            }
            _ => {}
        }
    }

    /// What must be true of the world between two commands.
    pub(crate) fn check(&mut self) {
        let mut verified: BTreeMap<String, u32> = BTreeMap::new();
        let mut found = Vec::new();
        for (id, stranger) in &self.strangers {
            if self.cloud.images.get(id) != Some(stranger) {
                found.push(("what is not ours stays as it is", id.clone()));
            }
        }
        for (id, image) in &self.cloud.images {
            let Some(mark) = &image.mark else { continue };
            if image.shown && image.verified.is_none() {
                found.push(("nothing is shown that is not verified", id.clone()));
            }
            // What is being deleted is nobody's image any more.
            let Some(digest) = image.verified.as_ref().filter(|_| !image.is_going()) else {
                continue;
            };
            *verified.entry(mark.key.clone()).or_default() += 1;
            let content = image.made_of().unwrap_or_default();
            let digests = [sha256(content), sha512(content)];
            let is_true = digest
                .split_once(':')
                .is_some_and(|(_, hex)| digests.iter().any(|digest| digest == hex));
            let is_promised = !mark.key.contains('-') || content == published(mark.key.chars().next().unwrap_or('a'));
            if !is_true || !is_promised || !matches!(image.status, Status::Active | Status::Deactivated) {
                found.push(("what is verified is what was promised", id.clone()));
            }
        }
        for (key, images) in verified {
            if images > 1 {
                found.push(("one image of a content is verified", key));
            }
        }
        let kept = &self.object.kept;
        if kept.attempt < self.attempt_before {
            found.push(("attempts never fall", kept.attempt.to_string()));
        }
        self.attempt_before = kept.attempt;
        self.may_adopt |= self.object.spec.policy != ImagePolicy::Create || self.object.spec.adopt.is_some();
        let is_adopted = kept.image.as_ref().is_some_and(|image| image.adopted);
        if is_adopted && !self.may_adopt {
            found.push(("nothing is taken over that nobody asked for", "it".to_owned()));
        }
        found.extend(self.beside_each_other());
        for (rule, how) in found {
            self.broken(rule, &how);
        }
    }
}
