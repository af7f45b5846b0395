//! What people read after every step of a history: it lints clean, says whether to wait or to act, and keeps what is kept.

use crds::conditions::{ConditionType, is_true, lint};
use crds::providers::Provider;
use planning::image::{Kept, Seen, Situation, Step, Wanted, tell};

use super::World;

impl World {
    /// Tells the step of a process; who leads writes it.
    pub(super) fn tell_people(&mut self, who: usize, wanted: &Wanted, seen: &Seen, step: &Step, kept: &Kept) {
        let now = self.now();
        let operator = &self.operators[who];
        let situation = Situation {
            provider: Provider::OpenStack,
            wanted,
            kept: &operator.cached.kept,
            seen,
            op: operator.op.as_ref(),
            step,
            before: &self.status,
        };
        let status = tell(&situation, now).status;
        let observed = status.observed_generation.unwrap_or_default();
        // A process that sleeps may know of an earlier spec than the one that was told of.
        let flaws = lint(&status.conditions, wanted.generation.max(observed), observed);
        if !flaws.is_empty() {
            let flaws = format!("{flaws:?} after {step:?}: {status:#?}");
            self.violations.push(format!("what is told lints clean: {flaws}"));
        }
        let read = Kept {
            sealed: kept.sealed.clone(),
            ..Kept::of_status(&status)
        };
        if read != *kept {
            let lost = format!("{read:?} instead of {kept:?}");
            self.violations.push(format!("what is kept can be read again: {lost}"));
        }
        if who == self.leader && self.asleep != Some(who) && status != self.status {
            self.told += 1;
            self.status = status;
        }
    }

    /// What is told wrongly when all is over.
    pub(crate) fn wrongly_told(&self) -> Option<String> {
        let says = |type_| is_true(&self.status.conditions, type_);
        let is_right = match self.last.as_ref()? {
            Step::Rest { .. } => self.status.ready && says(ConditionType::Ready),
            Step::Hold(_) => !self.status.ready && says(ConditionType::Stalled),
            Step::Await(_) => !self.status.ready && says(ConditionType::Reconciling),
            _ => true,
        };
        (!is_right && !self.object.gone).then(|| format!("after {:?} it is told {:#?}", self.last, self.status))
    }
}
