//! Observes one ClusterStack and performs its plan.

use std::collections::BTreeMap;

use crds::cluster_stack_release::{ClusterStackReleaseStatus, provider_kind};
use crds::conditions::lint;
use crds::labels;
use planning::next::Next;
use planning::object_key::GroupKind;
use planning::stack::{
    ActionFailure, ListedRelease, Listing, Owner, ProviderObject, ProviderTemplate, ReleaseView, StackAction,
    StackObserved, StackPlan, release_kind,
};

use super::api::{NAMESPACE, ProviderRelease, ReleaseObject, StackObject};
use super::faults::Outcome;
use super::journal::{of_stack, stack_card};
use super::schedule::Activity;
use super::{Record, World};

impl World {
    pub(crate) fn reconcile_stack(&mut self, name: &str) -> Activity {
        let Some(plan) = self.decide_stack(name) else {
            return Activity {
                busy: false,
                next: Next::Await,
            };
        };
        for action in &plan.actions {
            let outcome = self.perform_stack_action(name, action);
            let words = match &outcome {
                Outcome::Failed(words) => format!(" — failed: {words}"),
                Outcome::Done(()) | Outcome::Crashed => String::new(),
            };
            if outcome == Outcome::Crashed {
                return Activity::over();
            }
            self.journal.say(format!("{name}: {}{words}", of_stack(action)));
            self.remember(name, action, outcome);
        }
        let acted = !plan.actions.is_empty();
        let Some(plan) = self.decide_stack(name) else {
            return Activity::over();
        };
        let written = self.write_stack_status(name, &plan);
        Activity {
            busy: written || acted,
            next: plan.next,
        }
    }

    fn remember(&mut self, name: &str, action: &StackAction, outcome: Outcome<()>) {
        let at = self.now;
        let failures = self.process.failures.entry(name.to_owned()).or_default();
        let attempts = failures.remove(&action.subject()).map_or(0, |failure| failure.attempts) + 1;
        if let Outcome::Failed(message) = outcome {
            let failure = ActionFailure { message, attempts, at };
            failures.insert(action.subject(), failure);
        }
    }

    /// The plan for what is there now; `None` when the stack is gone.
    fn decide_stack(&mut self, name: &str) -> Option<StackPlan> {
        let observed = self.observe_stack(name)?;
        let plan = planning::stack::plan(&observed, self.now);
        self.check_stack_plan(&observed, &plan);
        if self.recording {
            self.recorded.push(Record::Stack(Box::new(observed), self.now));
        }
        Some(plan)
    }

    pub(crate) fn observe_stack(&self, name: &str) -> Option<StackObserved> {
        let stack = self.api.stacks.get(name)?;
        let known = self.has_listed();
        let used_by = self
            .api
            .releases
            .keys()
            .map(|tag| (tag.clone(), self.api.users_of(tag)))
            .collect();
        Some(StackObserved {
            name: name.to_owned(),
            namespace: NAMESPACE.to_owned(),
            uid: stack.uid.clone(),
            generation: stack.generation,
            deleting: false,
            paused: stack.annotations.contains_key(labels::PAUSED),
            requested_at: stack.annotations.get(labels::REQUESTED_AT).cloned(),
            approved_prune: stack.annotations.get(labels::APPROVE_PRUNE).cloned(),
            approved_orphans: None,
            leftovers: None,
            labels: stack.labels.clone(),
            annotations: stack.annotations.clone(),
            spec: stack.spec.clone(),
            status: stack.status.clone(),
            status_written_at: self.process.status_written_at.get(name).copied(),
            source: "directory /releases".to_owned(),
            listing: if known { self.listing() } else { Listing::NotAsked },
            releases: self
                .api
                .releases
                .iter()
                .map(|(tag, release)| (tag.clone(), view(name, stack, release)))
                .collect(),
            used_by: known.then_some(used_by),
            template: self.template(stack),
            failures: self.process.failures.get(name).cloned().unwrap_or_default(),
            // The world shows at once what was written.
            applied: BTreeMap::new(),
            provider_objects: self
                .api
                .providers
                .iter()
                .map(|(name, provider)| (name.clone(), shown(provider)))
                .collect(),
        })
    }

    fn listing(&self) -> Listing {
        if let Some(message) = &self.source.outage {
            return Listing::Unavailable {
                message: message.clone(),
                outage: None,
            };
        }
        let listed = |(tag, files): (&String, &super::Files)| {
            Some(ListedRelease {
                tag: tag.parse().ok()?,
                published_at: files.published_at,
                digest: None,
                kubernetes_version: None,
            })
        };
        let releases: Vec<ListedRelease> = self.source.releases.iter().filter_map(listed).collect();
        Listing::Known {
            foreign: self.source.releases.len() - releases.len(),
            releases,
        }
    }

    fn template(&self, stack: &StackObject) -> ProviderTemplate {
        if stack.spec.no_provider {
            return ProviderTemplate::NotWanted;
        }
        let Some(reference) = &stack.spec.provider_ref else {
            return ProviderTemplate::NotWanted;
        };
        let Some(kind) = provider_kind(reference).filter(|kind| release_kind(kind).is_some()) else {
            return ProviderTemplate::NotWanted;
        };
        let group_kind = GroupKind::new(crds::PROVIDER_GROUP, kind);
        if !self.api.served.contains(&group_kind) {
            return ProviderTemplate::KindMissing {
                kind: group_kind.to_string(),
            };
        }
        if !self.has_listed() {
            return ProviderTemplate::NotListed(self.unlisted());
        }
        match self.api.templates.get(reference.name.as_deref().unwrap_or_default()) {
            None => ProviderTemplate::Missing,
            Some(template) => ProviderTemplate::Found {
                template: template.clone(),
            },
        }
    }

    fn perform_stack_action(&mut self, name: &str, action: &StackAction) -> Outcome<()> {
        if let Some(words) = self.faults.refused.get(&action.subject()) {
            return Outcome::Failed(words.clone());
        }
        match action {
            StackAction::CreateRelease { tag, spec, .. } => self.write(None, |api| {
                let owner = api.stacks.get(name).map(|stack| (name.to_owned(), stack.uid.clone()));
                if api.releases.contains_key(tag) {
                    return Err("already exists".to_owned());
                }
                let release = ReleaseObject {
                    uid: api.uid(),
                    generation: 1,
                    owner,
                    finalizer: true,
                    deleting: false,
                    annotations: BTreeMap::new(),
                    group_kinds: std::collections::BTreeSet::new(),
                    spec: (**spec).clone(),
                    status: ClusterStackReleaseStatus::default(),
                };
                api.releases.insert(tag.clone(), release);
                Ok(())
            }),
            StackAction::UpdateRelease { tag, spec, adopt, .. } => self.write(None, |api| {
                let owner = api.stacks.get(name).map(|stack| (name.to_owned(), stack.uid.clone()));
                let release = api.releases.get_mut(tag).ok_or("not found")?;
                release.generation += i64::from(release.spec != **spec);
                release.spec = (**spec).clone();
                if *adopt {
                    release.owner = owner;
                }
                Ok(())
            }),
            StackAction::DeleteRelease { tag, uid } => self.delete_release(tag, uid),
            // The Go operator was never in this world.
            StackAction::DeleteOrphan { .. } => Outcome::Done(()),
            StackAction::ApplyProviderObject {
                reference,
                release_uid,
                spec,
                labels,
                annotations,
                ..
            } => {
                let target = reference.name.clone().unwrap_or_default();
                self.write(None, |api| {
                    let provider = api.providers.entry(target).or_insert_with(|| ProviderRelease {
                        spec: spec.clone(),
                        labels: BTreeMap::new(),
                        annotations: BTreeMap::new(),
                        controller: None,
                        ready: false,
                        message: None,
                        progress: None,
                    });
                    provider.spec = spec.clone();
                    provider.labels.clone_from(labels);
                    provider.annotations.clone_from(annotations);
                    provider.controller.get_or_insert_with(|| release_uid.clone());
                    Ok(())
                })
            }
        }
    }

    fn delete_release(&mut self, tag: &str, uid: &str) -> Outcome<()> {
        let users = self.api.users_of(tag);
        if !users.is_empty() {
            self.journal
                .violation(format!("release {tag} was deleted while Clusters use it"));
        }
        self.write(None, |api| {
            if api.releases.get(tag).is_some_and(|release| release.uid != uid) {
                return Err("the UID in the precondition does not match".to_owned());
            }
            api.delete_release(tag);
            Ok(())
        })
    }

    fn write_stack_status(&mut self, name: &str, plan: &StackPlan) -> bool {
        let Some(stack) = self.api.stacks.get(name) else {
            return false;
        };
        if !plan.status_due || stack.status == plan.status {
            return false;
        }
        let card = stack_card(&plan.status);
        let status = plan.status.clone();
        let written = self.write(None, |api| {
            api.stacks.get_mut(name).ok_or("not found")?.status = status;
            Ok(())
        });
        if written == Outcome::Done(()) {
            self.process.status_written_at.insert(name.to_owned(), self.now);
            self.journal.status(name, &card);
        }
        true
    }

    /// What is true of every plan.
    fn check_stack_plan(&mut self, observed: &StackObserved, plan: &StackPlan) {
        let status = &plan.status;
        for flaw in lint(
            &status.conditions,
            observed.generation,
            status.observed_generation.unwrap_or_default(),
        ) {
            self.journal
                .violation(format!("conditions of {}: {flaw}", observed.name));
        }
        if !plan.waiting.is_sorted() {
            self.journal
                .violation(format!("the reasons of {} are not sorted", observed.name));
        }
    }
}

fn view(name: &str, stack: &StackObject, release: &ReleaseObject) -> ReleaseView {
    let owner = match &release.owner {
        None => Owner::Nobody,
        Some((_, uid)) if *uid == stack.uid => Owner::Us,
        Some((owner, _)) if owner == name => Owner::FormerSelf,
        Some((owner, _)) => Owner::Other { name: owner.clone() },
    };
    ReleaseView {
        uid: release.uid.clone(),
        owner,
        deleting: release.deleting,
        watch_filter: None,
        spec: release.spec.clone(),
        ready: release.status.ready,
        kubernetes_version: release.status.kubernetes_version.clone(),
        digest: release.status.assets.as_ref().map(|assets| assets.digest.clone()),
        source: release.status.assets.as_ref().map(|assets| assets.source.clone()),
        conditions: release.status.conditions.clone(),
    }
}

fn shown(provider: &ProviderRelease) -> ProviderObject {
    ProviderObject {
        spec: provider.spec.clone(),
        labels: provider.labels.clone(),
        annotations: provider.annotations.clone(),
        deleting: false,
        foreign: false,
        managers: Vec::new(),
    }
}
