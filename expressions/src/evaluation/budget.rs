//! What an evaluation may still do.

use std::cell::Cell;

use super::walk::Failure;

/// Steps that are left. Taken before the work, so that what is too much is never begun.
pub(super) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    pub(super) fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes so many steps.
    pub(super) fn take(&self, steps: usize) -> Result<(), Failure> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let left = self.left.get().checked_sub(steps);
        // What was too much once stays so: the way out must not be paid for with what is left.
        self.left.set(left.unwrap_or(0));
        left.map(drop).ok_or(Failure::TooMuch)
    }

    /// Takes the steps for so many bytes.
    pub(super) fn take_bytes(&self, bytes: usize) -> Result<(), Failure> {
        self.take(1 + bytes / 16)
    }
}
