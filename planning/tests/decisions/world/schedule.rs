//! Lets every driver run until nothing happens any more, also not by time alone.

use jiff::{SignedDuration, Timestamp};
use planning::next::Next;

use super::World;

/// Passes that the model allows before it is sure that it will never be quiet.
const PASSES: usize = 500;

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

impl World {
    /// Runs all drivers, in a fixed order, until a pass does nothing; then lets time go on to the next instant that a plan has asked for, at most as
    /// far as `horizon`, and so on.
    ///
    /// # Panics
    /// When it does not end.
    pub(crate) fn settle(&mut self, horizon: SignedDuration) {
        let end = self.now.saturating_add(horizon).expect("an instant");
        for _ in 0..PASSES {
            let (busy, next) = self.pass();
            if busy {
                self.now = self
                    .now
                    .saturating_add(SignedDuration::from_secs(1))
                    .expect("an instant");
                continue;
            }
            match next {
                Some(at) if at <= end => self.now = at.max(self.now),
                _ => return,
            }
        }
        panic!("the world does not become quiet:\n{}", self.journal.take().join("\n"));
    }

    /// Lets this much time go by.
    pub(crate) fn wait(&mut self, duration: SignedDuration) {
        let end = self.now.saturating_add(duration).expect("an instant");
        self.settle(duration);
        self.now = self.now.max(end);
    }

    /// One reconcile of everything; whether anything was done, and when time alone will change a decision.
    pub(crate) fn pass(&mut self) -> (bool, Option<Timestamp>) {
        let mut busy = false;
        let mut next = Next::Await;
        let stacks: Vec<String> = self.api.stacks.keys().cloned().collect();
        for name in stacks {
            let activity = self.reconcile_stack(&name);
            busy |= activity.busy;
            next = next.sooner(activity.next);
        }
        self.api.collect_garbage();
        let releases: Vec<String> = self.api.releases.keys().cloned().collect();
        for tag in releases {
            let activity = self.reconcile_release(&tag);
            busy |= activity.busy;
            next = next.sooner(activity.next);
        }
        self.api.collect_garbage();
        // The first answers of the source and of the watches have come in the meantime.
        busy |= self.slow_caches && !std::mem::replace(&mut self.process.asked, true);
        match next {
            Next::At(at) => (busy, Some(at)),
            Next::Now => (true, None),
            Next::Await => (busy, None),
        }
    }
}
