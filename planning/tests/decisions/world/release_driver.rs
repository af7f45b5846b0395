//! Observes one ClusterStackRelease, performs its plan and remembers what it learned.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::provider_kind;
use crds::conditions::{MESSAGE_BYTES, lint};
use crds::labels;
use jiff::Timestamp;
use planning::digest::digest_of_everything;
use planning::next::Next;
use planning::object_key::{GroupKind, ObjectKey, ObjectRef};
use planning::release::{
    ApplyReason, Assets, Attempt, Belongs, Drifted, Failure, HealthSeen, Holder, Intent, ObjectMemory, ObjectObserved,
    Provider, Read, ReleaseAction, ReleaseObserved, ReleasePlan, Rendering, Seen, Verified, key_of,
};
use planning::waves::wave_of;

use super::api::{NAMESPACE, ReleaseObject};
use super::faults::Outcome;
use super::journal::{of_release, release_card};
use super::live::{Body, Live, label};
use super::{Files, Flaw, Record, Remembered, World};

/// Rounds of plan, execute and observe in one reconcile.
const ROUNDS: usize = 3;

/// What a reconcile has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Whether anything was done.
    pub(crate) busy: bool,
    pub(crate) next: Next,
}

impl Activity {
    /// Ended before the plan did; the object is looked at again at once.
    pub(crate) fn over() -> Self {
        Self {
            busy: true,
            next: Next::Now,
        }
    }
}

/// What is to be done with the marks that every object of a release carries.
pub(crate) fn marked(tag: &str, body: &Body) -> Body {
    let mut body = body.clone();
    body.insert(label(labels::INSTANCE), labels::INSTANCE_OWNED.to_owned());
    body.insert(label(labels::PART_OF), mark(tag));
    body
}

fn mark(tag: &str) -> String {
    labels::part_of("ClusterStackRelease", NAMESPACE, tag)
}

/// Stands for a digest; nobody looks inside.
fn body_digest(body: &Body) -> String {
    format!("{body:?}")
}

/// Other bytes than the pinned ones are not rendered.
fn is_moved(assets: &Assets, release: &ReleaseObject) -> bool {
    match (assets, &release.status.assets) {
        (Assets::Ready { digest, .. }, Some(pinned)) => *digest != pinned.digest,
        _ => false,
    }
}

fn has_generation(key: &ObjectKey) -> bool {
    !matches!(key.kind.as_str(), "ConfigMap" | "Secret")
}

fn version(key: &ObjectKey) -> String {
    if key.group.ends_with("cluster.x-k8s.io") {
        "v1beta1"
    } else {
        "v1"
    }
    .to_owned()
}

impl World {
    pub(crate) fn reconcile_release(&mut self, tag: &str) -> Activity {
        let mut busy = false;
        for _ in 0..ROUNDS {
            let Some(plan) = self.decide_release(tag) else {
                return Activity::over();
            };
            if plan.steps.is_empty() {
                break;
            }
            busy = true;
            if !self.perform_release_plan(tag, &plan) {
                return Activity::over();
            }
        }
        let Some(plan) = self.decide_release(tag) else {
            return Activity::over();
        };
        if !plan.steps.is_empty() {
            return Activity::over();
        }
        busy |= self.write_release_status(tag, &plan);
        Activity { busy, next: plan.next }
    }

    /// The plan for what is there now; `None` when the release is gone.
    fn decide_release(&mut self, tag: &str) -> Option<ReleasePlan> {
        let observed = self.observe_release(tag)?;
        let plan = planning::release::plan(&observed, self.now);
        self.check_release_plan(&observed, &plan);
        if self.recording {
            self.recorded.push(Record::Release(Box::new(observed), self.now));
        }
        Some(plan)
    }

    pub(crate) fn observe_release(&mut self, tag: &str) -> Option<ReleaseObserved> {
        let release = self.api.releases.get(tag)?.clone();
        let assets = self.assets(tag, &release);
        let rendering = self.rendering(tag, &release, &assets);
        let objects = self.objects_of(tag, &release, &rendering);
        Some(ReleaseObserved {
            tag: tag.to_owned(),
            namespace: NAMESPACE.to_owned(),
            uid: release.uid.clone(),
            generation: release.generation,
            deleting: release.deleting,
            finalizer: release.finalizer,
            group_kinds: release.group_kinds.clone(),
            unlisted: BTreeSet::new(),
            paused: release.annotations.contains_key(labels::PAUSED),
            requested_at: release.annotations.get(labels::REQUESTED_AT).cloned(),
            approved_prune: release.annotations.get(labels::APPROVE_PRUNE).cloned(),
            used_by: (release.deleting && self.has_listed()).then(|| self.api.users_of(tag)),
            provider: self.provider(&release),
            spec: release.spec,
            status: release.status,
            assets,
            rendering,
            objects,
        })
    }

    fn assets(&mut self, tag: &str, release: &ReleaseObject) -> Assets {
        if release.deleting || release.annotations.contains_key(labels::PAUSED) {
            return Assets::NotRead;
        }
        if self.source.outage.is_none()
            && let Some(files) = self.source.releases.get(tag)
        {
            self.store.insert(tag.to_owned(), files.clone());
        }
        match self.store.get(tag) {
            None => Assets::Missing {
                message: self
                    .source
                    .outage
                    .clone()
                    .unwrap_or_else(|| format!("there is no release {tag} at the source")),
            },
            Some(Files {
                flaw: Some(Flaw::Files(message)),
                ..
            }) => Assets::Broken {
                message: message.clone(),
            },
            Some(files) => Assets::Ready {
                digest: digest_of_everything(&(tag, files.revision)),
                source: "the modelled source".to_owned(),
                kubernetes_version: files.kubernetes_version.clone(),
            },
        }
    }

    fn rendering(&self, tag: &str, release: &ReleaseObject, assets: &Assets) -> Rendering {
        let (Assets::Ready { .. }, Some(files), false) = (assets, self.store.get(tag), release.deleting) else {
            return Rendering::NotRendered;
        };
        if is_moved(assets, release) {
            return Rendering::NotRendered;
        }
        if let Some(Flaw::Chart(message)) = &files.flaw {
            return Rendering::Failed {
                message: message.clone(),
            };
        }
        let intent = |key: &ObjectKey, body: &Body| Intent {
            object: ObjectRef {
                version: version(key),
                key: key.clone(),
            },
            digest: body_digest(body),
            wave: wave_of(&key.group_kind()),
        };
        Rendering::Rendered {
            intents: files
                .objects
                .iter()
                .map(|(key, body)| (key.clone(), intent(key, body)))
                .collect(),
        }
    }

    fn provider(&self, release: &ReleaseObject) -> Provider {
        let Some(reference) = &release.spec.provider_ref else {
            return Provider::NotWanted;
        };
        let Some(kind) = provider_kind(reference) else {
            return Provider::Foreign;
        };
        let group_kind = GroupKind::new(crds::PROVIDER_GROUP, kind);
        if !self.api.served.contains(&group_kind) {
            return Provider::KindMissing {
                kind: group_kind.to_string(),
            };
        }
        if !self.has_listed() {
            return Provider::NotListed;
        }
        let name = reference.name.clone().unwrap_or_default();
        self.api
            .providers
            .get(&name)
            .map_or(Provider::Missing, |provider| Provider::Found {
                ready: provider.ready,
                controlled: provider.controller.as_ref() == Some(&release.uid),
                foreign_controller: provider
                    .controller
                    .clone()
                    .filter(|controller| *controller != release.uid),
                phase: None,
                message: provider.message.clone(),
            })
    }

    fn objects_of(
        &mut self,
        tag: &str,
        release: &ReleaseObject,
        rendering: &Rendering,
    ) -> BTreeMap<ObjectKey, ObjectObserved> {
        let mut keys: BTreeSet<ObjectKey> = release.status.resources.iter().map(key_of).collect();
        if let Rendering::Rendered { intents } = rendering {
            keys.extend(intents.keys().cloned());
        }
        let listed = self.has_listed();
        let ours = mark(tag);
        let is_ours = |live: &Live| live.is_marked() && live.value(&label(labels::PART_OF)) == Some(&ours);
        keys.extend(
            self.api
                .objects
                .iter()
                .filter(|(_, live)| listed && is_ours(live))
                .map(|(key, _)| key.clone()),
        );
        let mut objects = BTreeMap::new();
        for key in keys {
            let served = self.api.served.contains(&key.group_kind());
            let live = self.api.objects.get(&key).filter(|live| listed && live.is_marked());
            let seen = live.map(|live| Seen {
                uid: live.uid.clone(),
                trigger: live.trigger(has_generation(&key)),
                resource_version: live.resource_version.to_string(),
                ours: is_ours(live),
                deleting: live.deleting,
            });
            let shown = live.map(|live| live.resource_version);
            let remembered = self.process.objects.entry((tag.to_owned(), key.clone())).or_default();
            if remembered.read_at != shown {
                // The watch has told of a change.
                remembered.memory.read = None;
                remembered.read_at = shown;
            }
            let memory = remembered.memory.clone();
            objects.insert(
                key.clone(),
                ObjectObserved {
                    version: version(&key),
                    served,
                    watched: listed,
                    seen,
                    memory,
                    ..ObjectObserved::default()
                },
            );
        }
        self.share(tag, rendering, &mut objects);
        objects
    }

    /// Other releases that stay and name the same objects, or hold them.
    fn share(&self, tag: &str, rendering: &Rendering, objects: &mut BTreeMap<ObjectKey, ObjectObserved>) {
        let others = self
            .api
            .releases
            .iter()
            .filter(|(other, release)| *other != tag && !release.deleting);
        for (other, release) in others {
            for (key, object) in objects.iter_mut() {
                let row = release.status.resources.iter().find(|row| key_of(row) == *key);
                let wanted = matches!(rendering, Rendering::Rendered { intents } if intents.contains_key(key));
                if row.is_some() && !wanted {
                    object.shared_with.insert(other.clone());
                }
                let live = self.api.objects.get(key);
                let marked = live.is_some_and(|live| live.value(&label(labels::PART_OF)) == Some(&mark(other)));
                if marked && (row.is_some() || release.status.observed_generation.is_none()) {
                    object.holder = Some(Holder {
                        release: other.clone(),
                        digest: row.map(|row| row.digest.clone()).unwrap_or_default(),
                    });
                }
            }
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

    /// Whether the process lives on.
    fn perform_release_plan(&mut self, tag: &str, plan: &ReleasePlan) -> bool {
        for step in &plan.steps {
            let mut failed = false;
            for action in &step.actions {
                let outcome = self.perform_release_action(tag, action);
                let words = match &outcome {
                    Outcome::Failed(words) => format!(" — failed: {words}"),
                    Outcome::Done(()) | Outcome::Crashed => String::new(),
                };
                if outcome == Outcome::Crashed {
                    return false;
                }
                self.journal.say(format!("{tag}: {}{words}", of_release(action)));
                failed |= outcome != Outcome::Done(());
            }
            if failed && step.gate {
                break;
            }
        }
        true
    }

    fn perform_release_action(&mut self, tag: &str, action: &ReleaseAction) -> Outcome<()> {
        match action {
            ReleaseAction::Mark { group_kinds } => self.change_release(tag, |release| {
                release.finalizer = true;
                release.group_kinds.clone_from(group_kinds);
            }),
            ReleaseAction::RecordInventory { status } => {
                self.change_release(tag, |release| release.status = (**status).clone())
            }
            ReleaseAction::RemoveFinalizer => self.remove_finalizer(tag),
            ReleaseAction::ControlProvider => self.write(None, |api| {
                let uid = api.releases.get(tag).map(|release| release.uid.clone());
                if let Some(provider) = api.providers.get_mut(tag) {
                    provider.controller = uid;
                }
                Ok(())
            }),
            ReleaseAction::Apply { key, why, force } => self.apply_object(tag, key, *why, *force),
            ReleaseAction::Check { key } => self.check_object(tag, key),
            ReleaseAction::Read { key } => self.read_object(tag, key),
            ReleaseAction::TakeOver { key } => self.take_over(tag, key),
            ReleaseAction::Delete { key, uid } => self.delete_object(tag, key, uid),
        }
    }

    fn change_release(&mut self, tag: &str, change: impl FnOnce(&mut ReleaseObject)) -> Outcome<()> {
        self.write(None, |api| {
            let release = api.releases.get_mut(tag).ok_or("not found")?;
            change(release);
            Ok(())
        })
    }

    fn remove_finalizer(&mut self, tag: &str) -> Outcome<()> {
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
        let outcome = self.write(None, |api| {
            api.releases.remove(tag);
            Ok(())
        });
        self.process.objects.retain(|(of, _), _| of != tag);
        outcome
    }

    fn body(&self, tag: &str, key: &ObjectKey) -> Body {
        self.store
            .get(tag)
            .and_then(|files| files.objects.get(key))
            .cloned()
            .unwrap_or_default()
    }

    fn memory(&mut self, tag: &str, key: &ObjectKey) -> &mut ObjectMemory {
        &mut self
            .process
            .objects
            .entry((tag.to_owned(), key.clone()))
            .or_default()
            .memory
    }

    fn apply_object(&mut self, tag: &str, key: &ObjectKey, why: ApplyReason, force: bool) -> Outcome<()> {
        let body = self.body(tag, key);
        let intent = body_digest(&body);
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
        let full = marked(tag, &body);
        let outcome = self.write(Some(key), |api| api.apply(key, &full, labels::FIELD_MANAGER, force));
        let now = self.now;
        match outcome {
            Outcome::Done(live) => {
                let memory = self.memory(tag, key);
                memory.verified = Some(Verified {
                    intent,
                    trigger: live.trigger(has_generation(key)),
                });
                memory.drifted = None;
                memory.failure = None;
                memory.foreign_manager = None;
                memory.health = Some(health(&live, now));
                if matches!(why, ApplyReason::Correct | ApplyReason::Adopt) {
                    memory.reversals.push(now);
                }
                self.process
                    .objects
                    .entry((tag.to_owned(), key.clone()))
                    .or_default()
                    .read_at = Some(live.resource_version);
                self.memory(tag, key).read = None;
                Outcome::Done(())
            }
            Outcome::Failed(words) => self.fail(tag, key, Attempt::Intent { digest: intent }, words),
            Outcome::Crashed => Outcome::Crashed,
        }
    }

    fn fail(&mut self, tag: &str, key: &ObjectKey, tried: Attempt, message: String) -> Outcome<()> {
        let at = self.now;
        let memory = self.memory(tag, key);
        let attempts = memory
            .failure
            .as_ref()
            .filter(|failure| failure.tried == tried)
            .map_or(0, |failure| failure.attempts)
            + 1;
        memory.read = None;
        memory.failure = Some(Failure {
            tried,
            message: message.clone(),
            attempts,
            at,
        });
        Outcome::Failed(message)
    }

    fn check_object(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let body = self.body(tag, key);
        let intent = body_digest(&body);
        let live = match self.look(tag, key) {
            Ok(Some(live)) => live,
            Ok(None) => {
                self.memory(tag, key).read = Some(Read::Absent);
                return Outcome::Done(());
            }
            Err(outcome) => return outcome,
        };
        let Ok(dry) = self.api.dry_run(key, &marked(tag, &body), labels::FIELD_MANAGER, true) else {
            return Outcome::Done(());
        };
        let fields = live.differences(&dry);
        let managers: BTreeSet<String> = fields
            .iter()
            .filter_map(|field| live.fields.get(field))
            .flat_map(|field| field.managers.clone())
            .filter(|manager| manager != labels::FIELD_MANAGER)
            .collect();
        let now = self.now;
        let trigger = live.trigger(has_generation(key));
        let memory = self.memory(tag, key);
        memory.failure = None;
        memory.health = Some(health(&live, now));
        if fields.is_empty() {
            memory.verified = Some(Verified { intent, trigger });
            memory.drifted = None;
            memory.foreign_manager = None;
        } else {
            memory.verified = None;
            memory.foreign_manager = managers.first().cloned();
            memory.drifted = Some(Drifted {
                intent,
                trigger,
                fields,
                managers: managers.into_iter().collect(),
            });
        }
        Outcome::Done(())
    }

    /// Reads an object, or remembers the API server's words.
    fn look(&mut self, tag: &str, key: &ObjectKey) -> Result<Option<Live>, Outcome<()>> {
        if let Some(words) = self.faults.unreadable.get(&key.to_string()).cloned() {
            return Err(self.fail(tag, key, Attempt::Look, words));
        }
        let memory = self.memory(tag, key);
        memory.failure.take_if(|failure| failure.tried == Attempt::Look);
        Ok(self.api.objects.get(key).cloned())
    }

    fn read_object(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let live = match self.look(tag, key) {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        let now = self.now;
        let read = live.as_ref().map_or(Read::Absent, |live| Read::Found {
            uid: live.uid.clone(),
            belongs: belongs(tag, live),
            keep: live.is_kept(),
            deleting: live.deleting,
            at: now,
        });
        let memory = self.memory(tag, key);
        if read == Read::Absent {
            memory.verified = None;
        }
        memory.read = Some(read);
        memory.health = live.as_ref().map(|live| health(live, now));
        Outcome::Done(())
    }

    fn take_over(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let outcome = self.write(Some(key), |api| {
            api.change(key, |live| {
                for field in live.fields.values_mut() {
                    if field.managers.remove(labels::PREDECESSOR_FIELD_MANAGER) {
                        field.managers.insert(labels::FIELD_MANAGER.to_owned());
                    }
                }
            });
            Ok(())
        });
        match outcome {
            Outcome::Failed(words) => {
                let digest = body_digest(&self.body(tag, key));
                self.fail(tag, key, Attempt::Intent { digest }, words)
            }
            done => {
                self.memory(tag, key).read = None;
                done
            }
        }
    }

    fn delete_object(&mut self, tag: &str, key: &ObjectKey, uid: &str) -> Outcome<()> {
        self.check_deletion(tag, key, uid);
        match self.write(Some(key), |api| api.delete(key, uid)) {
            Outcome::Failed(words) => self.fail(tag, key, Attempt::Deletion, words),
            Outcome::Done(()) => {
                let Remembered { memory, .. } = self.process.objects.entry((tag.to_owned(), key.clone())).or_default();
                memory.failure = None;
                memory.read = None;
                Outcome::Done(())
            }
            Outcome::Crashed => Outcome::Crashed,
        }
    }

    fn check_deletion(&mut self, tag: &str, key: &ObjectKey, uid: &str) {
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

    fn write_release_status(&mut self, tag: &str, plan: &ReleasePlan) -> bool {
        let Some(release) = self.api.releases.get(tag) else {
            return false;
        };
        let card = release_card(&plan.status);
        if release.status == plan.status {
            // Perhaps written with the inventory, and not told then.
            self.journal.status(tag, &card);
            return false;
        }
        let status = plan.status.clone();
        if self.change_release(tag, |release| release.status = status) == Outcome::Done(()) {
            self.journal.status(tag, &card);
        }
        true
    }

    /// What is true of every plan.
    fn check_release_plan(&mut self, observed: &ReleaseObserved, plan: &ReleasePlan) {
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
        let ready = crds::conditions::is_true(&status.conditions, crds::conditions::ConditionType::Ready);
        if ready != status.ready {
            self.journal.violation(format!(
                "status.ready of {} is {} and its condition Ready is {ready}",
                observed.tag, status.ready
            ));
        }
    }
}

fn health(live: &Live, at: Timestamp) -> HealthSeen {
    let (state, message) = live.health.clone();
    HealthSeen {
        state,
        message,
        resource_version: live.resource_version.to_string(),
        at,
    }
}

/// Whose an object is.
pub(crate) fn belongs(tag: &str, live: &Live) -> Belongs {
    match live.value(&label(labels::PART_OF)) {
        Some(part_of) if part_of == mark(tag) => Belongs::Us,
        Some(part_of) if labels::is_part_of(part_of) => Belongs::OtherOwner,
        Some(_) => Belongs::Stranger,
        None if live.is_managed_by(labels::FIELD_MANAGER) => Belongs::Us,
        None if live.is_managed_by(labels::PREDECESSOR_FIELD_MANAGER) => Belongs::Predecessor,
        None => Belongs::Nobody,
    }
}
