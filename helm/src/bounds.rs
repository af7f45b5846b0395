//! How large a value may become and how deeply it may nest. These bounds are ours, not Go's, and far beyond what charts need: what breaks
//! one is an error of its own, never an answer that Helm would not give.

use std::cell::Cell;

/// How deeply values and documents may nest. Far below what the stack of any thread takes; Go stops at 10,000 or never.
pub(crate) const MAX_DEPTH: usize = 250;

/// How many parts a list or a document may have, and how many parts of a value one function may copy.
pub(crate) const MAX_ITEMS: usize = 500_000;

/// How many bytes one text may have.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// How many parts one function may look at.
const MAX_VISITS: usize = 5_000_000;

/// A value is beyond a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// It nests too deeply.
    #[error("value nests deeper than {MAX_DEPTH} levels, or contains itself")]
    Depth,
    /// It is a list, or unfolds to a tree, of too many parts.
    #[error("value has more than {MAX_ITEMS} parts")]
    Items,
    /// It is a text of too many bytes.
    #[error("result is larger than {MAX_BYTES} bytes")]
    Bytes,
    /// A function would look at too much.
    #[error("values take more than {MAX_VISITS} steps to compare")]
    Visits,
    /// A function would do more than the render has steps left for.
    #[error("function takes more steps than are left")]
    Steps,
}

impl From<BoundError> for String {
    fn from(error: BoundError) -> Self {
        error.to_string()
    }
}

/// Checks the size of a text before it is made.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), BoundError> {
    if bytes > MAX_BYTES {
        Err(BoundError::Bytes)
    } else {
        Ok(())
    }
}

/// Checks the length of a list.
pub(crate) fn check_items(items: usize) -> Result<(), BoundError> {
    if items > MAX_ITEMS {
        Err(BoundError::Items)
    } else {
        Ok(())
    }
}

thread_local! {
    /// What functions did on this thread that their arguments and results do not show.
    static WORK: Cell<u64> = const { Cell::new(0) };
    /// How much of it the render has left.
    static ALLOWED: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Notes work of about that many steps of a template.
pub(crate) fn note_work(steps: u64) {
    WORK.set(WORK.get().saturating_add(steps));
}

/// Says how many steps the next functions on this thread may take before [`spend`] stops them.
pub(crate) fn allow_work(steps: u64) {
    ALLOWED.set(steps);
}

/// Notes work before it is done. For functions whose work may be far more than a render has steps left: an error ends them in time.
pub(crate) fn spend(steps: u64) -> Result<(), BoundError> {
    note_work(steps);
    if WORK.get() > ALLOWED.get() {
        Err(BoundError::Steps)
    } else {
        Ok(())
    }
}

/// The work noted since the last call. Templates run on one thread, so it is theirs.
pub(crate) fn take_work() -> u64 {
    WORK.take()
}

/// How many parts a walk looks at in about the time of a step.
const VISITS_PER_STEP: usize = 16;

/// A walk through values, which may share parts and so unfold to far more than they take.
pub(crate) struct Walk {
    limit: usize,
    left: usize,
    exhausted: BoundError,
}

impl Walk {
    /// A walk that only looks.
    pub(crate) const fn looking() -> Self {
        Self {
            limit: MAX_VISITS,
            left: MAX_VISITS,
            exhausted: BoundError::Visits,
        }
    }

    /// A walk that copies what it finds.
    pub(crate) const fn copying() -> Self {
        Self {
            limit: MAX_ITEMS,
            left: MAX_ITEMS,
            exhausted: BoundError::Items,
        }
    }

    /// Goes to one more part, that many levels down.
    pub(crate) fn visit(&mut self, depth: usize) -> Result<(), BoundError> {
        if depth > MAX_DEPTH {
            return Err(BoundError::Depth);
        }
        self.left = self.left.checked_sub(1).ok_or(self.exhausted)?;
        Ok(())
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        note_work(((self.limit - self.left) / VISITS_PER_STEP) as u64);
    }
}
