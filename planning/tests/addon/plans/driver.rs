//! The driver of the model: it performs plans as their types say, and may be ended before every write.

use crds::cluster_addon::ClusterAddonStatus;
use crds::labels;
use crds::resource::Health;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use planning::addon::{AddonAction, AddonPlan, plan};
use planning::object_key::ObjectKey;
use planning::objects::{Action, ApplyReason, Attempt, Drifted, Failure, HealthSeen, ObjectAction, Read, Verified};

use super::cluster::{Live, is_kept};
use super::world::World;

/// Rounds of plan, execute and observe in one reconcile.
const ROUNDS: usize = 3;

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    /// The process is gone.
    Ended,
}

impl World {
    /// One reconcile; the plan that it ended with, unless the process or the ClusterAddon is gone.
    pub(crate) fn reconcile(&mut self) -> Option<AddonPlan> {
        for _ in 0..ROUNDS {
            let plan = self.decide()?;
            if plan.steps.is_empty() {
                if plan.status != self.status() && self.write_status(&plan.status) == Outcome::Ended {
                    return None;
                }
                return Some(plan);
            }
            if !self.perform(&plan) {
                return None;
            }
        }
        self.decide()
    }

    pub(crate) fn decide(&mut self) -> Option<AddonPlan> {
        let observed = self.observe()?;
        let plan = plan(&observed, self.now());
        self.check_plan(&observed, &plan);
        Some(plan)
    }

    /// Whether the process lives on.
    fn perform(&mut self, plan: &AddonPlan) -> bool {
        for step in &plan.steps {
            let mut failed = false;
            for action in &step.actions {
                let outcome = match action {
                    Action::Object(action) => self.perform_on_object(plan, action),
                    Action::Own(action) => self.perform_on_owner(action),
                };
                if outcome == Outcome::Ended {
                    return false;
                }
                failed |= outcome == Outcome::Failed;
            }
            if failed && step.gate {
                break;
            }
        }
        true
    }

    /// Counts a write; whether the process is ended before it.
    fn is_ended(&mut self) -> bool {
        match &mut self.crash {
            Some(0) => {
                self.restart();
                true
            }
            crash => {
                if let Some(left) = crash {
                    *left -= 1;
                }
                self.writes += 1;
                false
            }
        }
    }

    fn write_status(&mut self, status: &ClusterAddonStatus) -> Outcome {
        if self.is_ended() {
            return Outcome::Ended;
        }
        self.journal.push("status".to_owned());
        if let Some(addon) = &mut self.addon {
            // As the API server gives it back.
            let stored = serde_json::to_value(status).expect("JSON");
            addon.status = Some(serde_json::from_value(stored).expect("a status"));
        }
        self.status_written_at = Some(self.now());
        Outcome::Done
    }

    fn perform_on_owner(&mut self, action: &AddonAction) -> Outcome {
        if let AddonAction::RecordInventory { status } = action {
            return self.write_status(status);
        }
        if self.is_ended() {
            return Outcome::Ended;
        }
        let Some(addon) = &mut self.addon else {
            return Outcome::Failed;
        };
        match action {
            AddonAction::SetOwner { name, uid } => {
                self.journal.push("owner".to_owned());
                addon.metadata.owner_references = Some(vec![OwnerReference {
                    kind: "Cluster".to_owned(),
                    name: name.clone(),
                    uid: uid.clone(),
                    ..OwnerReference::default()
                }]);
            }
            AddonAction::Mark { group_kinds } => {
                self.journal.push("mark".to_owned());
                self.finalizer = true;
                self.group_kinds = Some(group_kinds.clone());
                let annotations = addon.metadata.annotations.get_or_insert_default();
                annotations.insert(labels::CONTAINS_GROUP_KINDS.to_owned(), String::new());
            }
            AddonAction::SetMarks { marks } => {
                self.journal.push("marks".to_owned());
                addon.metadata.annotations.get_or_insert_default().extend(marks.clone());
            }
            AddonAction::RecordMemo { memo, anew } => {
                self.journal.push(if *anew { "memo anew" } else { "memo" }.to_owned());
                self.memo = Some(memo.clone());
            }
            AddonAction::RecordInventory { .. } => {}
            AddonAction::Delete { .. } => {
                self.journal.push("delete".to_owned());
                self.is_addon_deleted = true;
            }
            AddonAction::RemoveFinalizer => {
                self.journal.push("let go".to_owned());
                self.finalizer = false;
                self.addon = None;
            }
        }
        Outcome::Done
    }

    fn perform_on_object(&mut self, plan: &AddonPlan, action: &ObjectAction) -> Outcome {
        match action {
            ObjectAction::Apply { key, why, force } => self.apply(plan, key, *why, *force),
            ObjectAction::Check { key } => self.check(plan, key),
            ObjectAction::Read { key } => self.read(key),
            ObjectAction::TakeOver { .. } => Outcome::Done,
            ObjectAction::Delete {
                key,
                uid,
                resource_version,
            } => {
                if self.is_ended() {
                    return Outcome::Ended;
                }
                self.check_deletion(key);
                self.journal.push(format!("delete {key}"));
                self.cluster.delete(key, uid, resource_version);
                let (memory, _) = self.memory.entry(key.clone()).or_default();
                memory.read = None;
                memory.verified = None;
                memory.drifted = None;
                Outcome::Done
            }
        }
    }

    /// What is to be applied, and the chart that it comes from.
    fn wanted(&mut self, plan: &AddonPlan, key: &ObjectKey) -> (String, String) {
        let chart = plan
            .charts
            .get(key)
            .expect("the plan says which chart is meant")
            .clone();
        let contents = self.contents(&chart).expect("the chart is rendered");
        let content = contents.get(key).expect("it asks for the object").clone();
        (chart, content)
    }

    fn apply(&mut self, plan: &AddonPlan, key: &ObjectKey, why: ApplyReason, force: bool) -> Outcome {
        if self.is_ended() {
            return Outcome::Ended;
        }
        self.check_application(key);
        if why == ApplyReason::Announced && self.cluster.objects.contains_key(key) {
            self.read(key);
            return Outcome::Failed;
        }
        let (chart, content) = self.wanted(plan, key);
        self.journal.push(format!("apply {key} of {chart}"));
        let now = self.now();
        let applied = self.cluster.apply(key, &content, &chart, force);
        let (memory, read_at) = self.memory.entry(key.clone()).or_default();
        memory.read = None;
        match applied {
            Ok(live) => {
                memory.verified = Some(Verified {
                    intent: content,
                    trigger: live.trigger(),
                    owned: true,
                });
                memory.drifted = None;
                memory.failure = None;
                memory.health = Some(healthy(&live, now));
                *read_at = Some(live.version);
                if why == ApplyReason::Correct {
                    memory.reversals.push(now);
                }
                Outcome::Done
            }
            Err(message) => {
                let tried = Attempt::Intent { digest: content };
                let last = memory.failure.as_ref().filter(|failure| failure.tried == tried);
                let attempts = last.map_or(0, |failure| failure.attempts) + 1;
                memory.failure = Some(Failure {
                    tried,
                    message,
                    loses_data: false,
                    attempts,
                    at: now,
                });
                Outcome::Failed
            }
        }
    }

    /// Compares an object with what is asked for.
    fn check(&mut self, plan: &AddonPlan, key: &ObjectKey) -> Outcome {
        let (_, intent) = self.wanted(plan, key);
        let now = self.now();
        let live = self.cluster.objects.get(key).cloned();
        let (memory, _) = self.memory.entry(key.clone()).or_default();
        memory.verified = None;
        memory.drifted = None;
        let before = memory.health.take();
        memory.health = live.as_ref().map(|live| healthy(live, now).after(before.as_ref()));
        match live {
            None => memory.read = Some(Read::Absent),
            Some(live) if live.content == intent => {
                memory.verified = Some(Verified {
                    intent,
                    trigger: live.trigger(),
                    owned: true,
                });
            }
            Some(live) => {
                memory.drifted = Some(Drifted {
                    intent,
                    trigger: live.trigger(),
                    fields: vec!["/data".to_owned()],
                    managers: vec!["somebody".to_owned()],
                });
            }
        }
        Outcome::Done
    }

    fn read(&mut self, key: &ObjectKey) -> Outcome {
        let now = self.now();
        let live = self.cluster.objects.get(key).filter(|_| self.cluster.serves(key));
        let read = live.map_or(Read::Absent, |live| Read::Found {
            uid: live.uid.to_string(),
            resource_version: live.version.to_string(),
            belongs: live.belongs(),
            keep: is_kept(key),
            deleting: false,
            at: now,
        });
        let health = live.map(|live| healthy(live, now));
        let (memory, _) = self.memory.entry(key.clone()).or_default();
        memory.read = Some(read);
        let before = memory.health.take();
        memory.health = health.map(|health| health.after(before.as_ref()));
        Outcome::Done
    }
}

fn healthy(live: &Live, at: Timestamp) -> HealthSeen {
    HealthSeen {
        state: Health::Current,
        message: String::new(),
        resource_version: live.version.to_string(),
        at,
        reads: 0,
    }
}
