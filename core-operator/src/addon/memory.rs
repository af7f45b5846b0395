//! What the process remembers of a ClusterAddon itself between reconciles. All of it can be lost: then it is read, rendered and evaluated again.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use planning::addon::StageKey;
use tokio::sync::Mutex;

use super::charts::ChartMemory;
use super::served::Checks;
use crate::objects::{Memory, lock};
use crate::wishes::Wishes;

/// Memory of one ClusterAddon, beside that of its objects.
#[derive(Default)]
pub(crate) struct AddonMemory {
    /// Of its charts. Held across requests, by one reconcile at a time.
    pub(super) charts: Arc<Mutex<ChartMemory>>,
    /// Of the schemas that its cluster publishes. Held as that of its charts.
    pub(super) checks: Arc<Mutex<Checks>>,
    /// The uid of its Cluster, once that is followed.
    pub(super) cluster: Option<String>,
    /// The stages that plans asked to have evaluated since the status was written last: what one waits for may only be seen when that of another is known.
    pub(super) evaluated: BTreeSet<StageKey>,
    /// Whether the control plane was initialised when it was looked at last.
    pub(super) was_initialized: bool,
    /// When its status was last written.
    pub(super) status_written_at: Option<Timestamp>,
    /// How often in a row something about it was refused.
    pub(super) refusals: u32,
    /// The last wishes that were heard.
    wishes: Wishes,
}

impl Memory<AddonMemory> {
    /// Who asks for something wants to see what becomes of it now: waits after failures and fights end. Gives whether there is a wish that was not heard
    /// before.
    pub(super) async fn hear(&self, wishes: Wishes) -> bool {
        let charts = {
            let mut own = lock(&self.own);
            if !own.wishes.hear(wishes) {
                return false;
            }
            Arc::clone(&own.charts)
        };
        charts.lock().await.try_again();
        lock(&self.objects).try_again();
        true
    }

    /// Notes which stages a plan waits for the conditions of; whether there are some that nobody has evaluated yet.
    pub(super) fn is_to_evaluate(&self, waiting: BTreeSet<StageKey>) -> bool {
        let mut own = lock(&self.own);
        let has_more = !waiting.is_subset(&own.evaluated);
        own.evaluated.extend(waiting);
        has_more
    }

    /// Whether the control plane is initialised for the first time since anybody remembers.
    pub(super) fn is_initialized_now(&self, is_initialized: bool) -> bool {
        let was = std::mem::replace(&mut lock(&self.own).was_initialized, is_initialized);
        is_initialized && !was
    }
}

#[cfg(test)]
mod tests {
    use crds::cluster_addon::StageAction;
    use operator_kit::object::ObjectKey;
    use planning::addon::Hook;

    use super::*;

    fn stages(indices: &[usize]) -> BTreeSet<StageKey> {
        let stage = |index: &usize| StageKey {
            hook: Hook::AfterControlPlaneInitialized,
            index: *index,
            name: "network".to_owned(),
            action: StageAction::Apply,
        };
        indices.iter().map(stage).collect()
    }

    #[test]
    fn stages_that_a_plan_waits_for_are_evaluated_before_it_waits_and_only_once_in_a_look() {
        let memory: Memory<AddonMemory> = Memory::default();
        assert!(!memory.is_to_evaluate(stages(&[])), "nothing waits");
        assert!(memory.is_to_evaluate(stages(&[1])));
        assert!(!memory.is_to_evaluate(stages(&[1])), "else the look would never end");
        // That one holds may be what lets the next one be seen, and none is forgotten for another.
        assert!(memory.is_to_evaluate(stages(&[2])));
        assert!(!memory.is_to_evaluate(stages(&[1, 2])));
        assert!(memory.is_to_evaluate(stages(&[2, 3])));
        assert_eq!(lock(&memory.own).evaluated, stages(&[1, 2, 3]));
    }

    #[tokio::test]
    async fn a_wish_ends_waits_once() {
        let key = ObjectKey::new("", "Secret", "kube-system", "a");
        let memory: Memory<AddonMemory> = Memory::default();
        for (wish, ends) in [
            (Wishes::test(None, None), false),
            (Wishes::test(Some("1"), None), true),
            (Wishes::test(Some("1"), None), false),
            (Wishes::test(Some("1"), Some("sha256:a")), true),
            (Wishes::test(Some("1"), Some("sha256:a")), false),
            (Wishes::test(None, None), false),
            (Wishes::test(Some("2"), None), true),
        ] {
            lock(&memory.objects).of(&key).reversals.push(Timestamp::UNIX_EPOCH);
            assert_eq!(memory.hear(wish.clone()).await, ends, "{wish:?}");
            assert_eq!(lock(&memory.objects).of(&key).reversals.is_empty(), ends, "{wish:?}");
        }
    }
}
