//! What the process remembers of a ClusterAddon itself between reconciles. All of it can be lost: then it is read, rendered and evaluated again.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use planning::addon::StageKey;
use tokio::sync::Mutex;

use super::charts::ChartMemory;
use crate::objects::{Memory, lock};

/// Memory of one ClusterAddon, beside that of its objects.
#[derive(Default)]
pub(crate) struct AddonMemory {
    /// Of its charts. Held across requests, by one reconcile at a time.
    pub(super) charts: Arc<Mutex<ChartMemory>>,
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
    /// The last time that somebody asked for a look.
    requested_at: Option<String>,
}

impl Memory<AddonMemory> {
    /// Who asks for a look wants to see what becomes of it now: waits after failures and fights end. A wish that is taken back asks for nothing. Gives whether
    /// there is one that was not heard before.
    pub(super) async fn hear(&self, requested_at: Option<&String>) -> bool {
        let charts = {
            let mut own = lock(&self.own);
            let is_new = requested_at.is_some() && requested_at != own.requested_at.as_ref();
            own.requested_at = requested_at.cloned();
            if !is_new {
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
    async fn who_asks_for_a_look_is_heard_once() {
        let memory: Memory<AddonMemory> = Memory::default();
        let asked = |at: &str| Some(at.to_owned());
        assert!(!memory.hear(None).await);
        assert!(memory.hear(asked("1").as_ref()).await);
        assert!(!memory.hear(asked("1").as_ref()).await);
        assert!(!memory.hear(None).await, "a wish that is taken back asks for nothing");
        assert!(memory.hear(asked("2").as_ref()).await);
    }
}
