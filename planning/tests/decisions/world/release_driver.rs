//! Drives one ClusterStackRelease: observes it, performs its plan, writes its status.

mod objects;
mod observe;
mod rules;

use planning::objects::{Action, ObjectAction};
use planning::release::{ReleaseAction, ReleasePlan};

use super::api::ReleaseObject;
use super::faults::Outcome;
use super::journal::{of_release, release_card};
use super::schedule::Activity;
use super::{Record, World};

/// Rounds of plan, execute and observe in one reconcile.
const ROUNDS: usize = 3;

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

    fn perform_release_action(&mut self, tag: &str, action: &Action<ReleaseAction>) -> Outcome<()> {
        match action {
            Action::Object(action) => self.perform_object_action(tag, action),
            Action::Own(action) => self.perform_own_action(tag, action),
        }
    }

    fn perform_own_action(&mut self, tag: &str, action: &ReleaseAction) -> Outcome<()> {
        match action {
            ReleaseAction::Mark { group_kinds } => self.change_release(tag, |release| {
                release.finalizer = true;
                release.group_kinds.clone_from(group_kinds);
            }),
            ReleaseAction::RecordInventory { status } => {
                self.change_release(tag, |release| release.status = (**status).clone())
            }
            ReleaseAction::RemoveFinalizer => self.remove_finalizer(tag),
            ReleaseAction::ControlProvider { .. } => self.write(None, |api| {
                let uid = api.releases.get(tag).map(|release| release.uid.clone());
                if let Some(provider) = api.providers.get_mut(tag) {
                    provider.controller = uid;
                }
                Ok(())
            }),
        }
    }

    fn perform_object_action(&mut self, tag: &str, action: &ObjectAction) -> Outcome<()> {
        match action {
            ObjectAction::Apply { key, why, force } => self.apply_object(tag, key, *why, *force),
            ObjectAction::Check { key } => self.check_object(tag, key),
            ObjectAction::Read { key } => self.read_object(tag, key),
            ObjectAction::TakeOver { key } => self.take_over(tag, key),
            ObjectAction::Delete {
                key,
                uid,
                resource_version,
            } => self.delete_object(tag, key, (uid, resource_version)),
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
        self.check_end(tag);
        let outcome = self.write(None, |api| {
            api.releases.remove(tag);
            Ok(())
        });
        self.process.objects.retain(|(of, _), _| of != tag);
        self.process.release_status_written_at.remove(tag);
        outcome
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
            self.process.release_status_written_at.insert(tag.to_owned(), self.now);
            self.journal.status(tag, &card);
        }
        true
    }
}
