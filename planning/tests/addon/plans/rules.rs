//! What holds whatever happens.

use crds::cluster_addon::{StageAction, StagePhase};
use crds::conditions::{ConditionType, MESSAGE_BYTES, is_true, lint};
use planning::addon::Marks;
use planning::addon::{AddonObserved, AddonPlan, Connection, Hook, Kind, kind, plan, stages};
use planning::object_key::ObjectKey;
use planning::objects::{Step, key_of};

use super::cluster::stays;
use super::world::World;

impl World {
    /// What is true of every plan.
    pub(super) fn check_plan(&self, observed: &AddonObserved, made: &AddonPlan) {
        let told = || format!("{made:#?}\nof {observed:#?}");
        let status = &made.status;
        let seen = status.observed_generation.unwrap_or_default();
        if !status.conditions.is_empty() {
            assert_eq!(lint(&status.conditions, observed.generation, seen), [], "{}", told());
        }
        assert_eq!(
            is_true(&status.conditions, ConditionType::Ready),
            status.ready,
            "{}",
            told()
        );
        assert!(status.resources.is_sorted_by_key(key_of), "{}", told());
        let texts = status.stages.iter().filter_map(|row| row.message.as_ref());
        assert!(texts.into_iter().all(|text| text.len() <= MESSAGE_BYTES));
        assert!(status.resources.iter().all(|row| row.error.len() <= MESSAGE_BYTES));
        self.check_rows(made, &told);
        self.check_reach(observed, made, &told);
        check_replay(observed, made, self);
    }

    /// Everything that waits says why, since when, and until when.
    fn check_rows(&self, made: &AddonPlan, told: &dyn Fn() -> String) {
        for row in &made.status.stages {
            assert!(row.hook.as_deref().and_then(Hook::named).is_some(), "{}", told());
            assert!(row.since.is_some(), "{}", told());
            let is_open = !matches!(row.phase, StagePhase::Done | StagePhase::Pending);
            if is_open {
                assert!(
                    row.reason.is_some() && row.message.is_some() && row.deadline.is_some(),
                    "{}",
                    told()
                );
            }
            assert!(!row.passed_over || row.phase != StagePhase::Done, "{}", told());
        }
        let is_complete = made.status.ready || !made.waiting.is_empty() || !made.steps.is_empty();
        let is_over = self.is_gone || self.is_addon_deleted || self.deleting.is_some();
        let is_at_work = made.status.stages.iter().any(|row| row.reason.is_some());
        assert!(is_complete || is_over || is_at_work, "nothing says why: {}", told());
    }

    /// Nothing is written to a cluster that does not answer, or while it is not known what it shall have.
    fn check_reach(&self, observed: &AddonObserved, made: &AddonPlan, told: &dyn Fn() -> String) {
        let is_reached = observed.connection == Connection::Healthy && self.reached.is_some();
        if !is_reached || self.target().is_none() {
            let mut actions = made.steps.iter().flat_map(Step::on_objects);
            assert!(actions.next().is_none(), "{}", told());
        }
        let named = |key: &ObjectKey| made.status.resources.iter().any(|row| key_of(row) == *key);
        let there = self.cluster.objects.iter().filter(|(_, live)| live.is_ours);
        if observed.cluster.is_some()
            && is_reached
            && self.is_listed
            && made.steps.is_empty()
            && self.target().is_some()
        {
            for (key, _) in there {
                assert!(named(key) || stays(key), "{key} is forgotten: {}", told());
            }
        }
    }

    /// Before an object is applied.
    pub(super) fn check_application(&self, key: &ObjectKey) {
        let status = self.status();
        let row = status.resources.iter().find(|row| key_of(row) == *key);
        assert!(row.is_some(), "{key} is applied before the inventory names it");
        assert!(self.finalizer, "{key} is applied before the finalizer is there");
        let kinds = self.group_kinds.as_ref();
        assert!(
            kinds.is_some_and(|kinds| kinds.contains(&key.group_kind())),
            "{key} is applied unmarked"
        );
        assert!(
            self.drawn.is_none() || self.memo == self.drawn,
            "{key} is made of what nobody keeps"
        );
        assert_eq!(status.target, self.target().map(|target| target.recorded()));
    }

    /// Before an object is deleted.
    pub(super) fn check_deletion(&mut self, key: &ObjectKey) {
        let live = self.cluster.objects.get(key).cloned();
        assert!(live.is_none_or(|live| live.is_ours), "{key} is somebody else's");
        assert!(!stays(key), "{key} has to be kept");
        let (Some(cluster), Some(target), Some(addon)) = (self.cluster_seen(), self.target(), &self.addon) else {
            unreachable!("nothing is deleted while it is not known what the cluster shall have");
        };
        let kind = kind(&cluster, &Marks::of(addon), &target);
        if kind == Kind::Deletion {
            let stages = stages(kind, &self.release().stages);
            assert!(stages.iter().any(|stage| stage.key.action == StageAction::Delete));
            return;
        }
        assert!(
            !self.staying().contains(key),
            "{key} is deleted, and a chart that stays asks for it"
        );
    }
}

/// The same facts, written and read again, give the same plan, bit by bit.
fn check_replay(observed: &AddonObserved, made: &AddonPlan, world: &World) {
    let text = serde_json::to_string(observed).expect("JSON");
    let read: AddonObserved = serde_json::from_str(&text).expect("what was written");
    assert_eq!(read, *observed);
    let again = plan(&read, world.now());
    let text = |plan: &AddonPlan| serde_json::to_string(plan).expect("JSON");
    assert_eq!(text(&again), text(made));
    let plan: AddonPlan = serde_json::from_str(&text(made)).expect("what was written");
    assert_eq!(plan, *made);
}
