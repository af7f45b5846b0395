//! How large a value may become and how deeply it may nest. These bounds are ours, not Go's, and far beyond what charts need: what breaks
//! one is an error of its own, never an answer that Helm would not give.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deeply values and documents may nest. Far below what the stack of any thread takes; Go stops at 10,000 or never.
pub(crate) const MAX_DEPTH: usize = 250;

/// How many parts a list or a document may have, and how many parts of a value one function may copy.
pub(crate) const MAX_ITEMS: usize = 500_000;

/// How many bytes one text may have.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// How much memory one document may take.
const MAX_DOCUMENT: usize = 48 << 20;

/// How much memory the values or the documents of one render, or those of one chart, may take together. Estimated, and not exceeded by
/// a tenth of it by any real chart.
pub(crate) const MAX_HELD: usize = 128 << 20;

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
    /// What is kept until the end of a render, or of loading a chart, takes too much memory.
    #[error("values and documents take more than {MAX_HELD} bytes")]
    Held,
    /// A document takes too much memory.
    #[error("document takes more than {MAX_DOCUMENT} bytes")]
    Document,
    /// Somebody raised the flag of the render.
    #[error("the render was cancelled")]
    Cancelled,
}

impl From<BoundError> for String {
    fn from(error: BoundError) -> Self {
        error.to_string()
    }
}

/// Checks the size of a text before it is made.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), BoundError> {
    if bytes > MAX_BYTES {
        Err(beyond(BoundError::Bytes))
    } else {
        Ok(())
    }
}

/// Checks the length of a list.
pub(crate) fn check_items(items: usize) -> Result<(), BoundError> {
    if items > MAX_ITEMS {
        Err(beyond(BoundError::Items))
    } else {
        Ok(())
    }
}

/// Checks what one document takes.
pub(crate) fn check_document(bytes: usize) -> Result<(), BoundError> {
    if bytes > MAX_DOCUMENT {
        Err(beyond(BoundError::Document))
    } else {
        Ok(())
    }
}

thread_local! {
    /// What functions did on this thread that their arguments and results do not show.
    static WORK: Cell<u64> = const { Cell::new(0) };
    /// How much of it the render has left.
    static ALLOWED: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Bytes that what is kept takes.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// Whether an error said that something is beyond a bound of ours.
    static MET: Cell<bool> = const { Cell::new(false) };
    /// Whether the render is to end.
    static CANCELLED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Begins a phase of a render on this thread: so many steps for all of it, memory anew, and the flag that ends it.
pub(crate) fn begin(steps: u64, cancelled: &Arc<AtomicBool>) {
    WORK.set(0);
    ALLOWED.set(steps);
    HELD.set(0);
    MET.set(false);
    CANCELLED.set(Some(Arc::clone(cancelled)));
}

/// Notes that an error says what Helm would not, because Helm has no such bound. On its way the error may become a text.
pub(crate) fn beyond<E>(error: E) -> E {
    MET.set(true);
    error
}

/// Whether such an error was made since the phase began.
pub(crate) fn is_met() -> bool {
    MET.get()
}

/// Work that is no part of what this thread does otherwise. What was noted before is there again when it is dropped.
pub(crate) struct Apart {
    work: u64,
    allowed: u64,
    held: usize,
    met: bool,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Apart {
    /// That many steps of its own, until a flag is raised.
    pub(crate) fn within(steps: u64, cancelled: Option<Arc<AtomicBool>>) -> Self {
        Self {
            work: WORK.replace(0),
            allowed: ALLOWED.replace(steps),
            held: HELD.replace(0),
            met: MET.replace(false),
            cancelled: CANCELLED.replace(cancelled),
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        WORK.set(self.work);
        ALLOWED.set(self.allowed);
        HELD.set(self.held);
        MET.set(self.met);
        CANCELLED.set(self.cancelled.take());
    }
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
        return Err(beyond(BoundError::Steps));
    }
    let is_raised = |flag: &Option<Arc<AtomicBool>>| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    if CANCELLED.with_borrow(is_raised) {
        return Err(BoundError::Cancelled);
    }
    Ok(())
}

/// Notes memory that is kept until the end of the phase, and work of about the time that it takes to fill it. [`check`] tells the rest.
pub(crate) fn note_held(bytes: usize) {
    HELD.set(HELD.get().saturating_add(bytes));
    note_work((bytes / BYTES_PER_STEP) as u64);
}

/// Whether all that was noted is within the bounds.
pub(crate) fn check() -> Result<(), BoundError> {
    if HELD.get() > MAX_HELD {
        return Err(beyond(BoundError::Held));
    }
    spend(0)
}

/// Notes memory that is kept until the end of the phase, before it is taken.
pub(crate) fn hold(bytes: usize) -> Result<(), BoundError> {
    note_held(bytes);
    check()
}

/// Notes the memory that a document takes, or will take when somebody asks for it.
pub(crate) fn hold_document(bytes: usize) -> Result<(), BoundError> {
    check_document(bytes)?;
    hold(bytes)
}

/// The work noted so far.
pub(crate) fn work() -> u64 {
    WORK.get()
}

/// The work noted since the last call. Templates run on one thread, so it is theirs.
pub(crate) fn take_work() -> u64 {
    WORK.take()
}

/// How many parts a walk looks at in about the time of a step.
const VISITS_PER_STEP: usize = 16;

/// How many parts a walk looks at before it pays for them.
const VISITS_PER_PAYMENT: usize = 1 << 10;

/// How many bytes are read in about the time of a step.
pub(crate) const BYTES_PER_STEP: usize = 256;

/// A walk through values, which may share parts and so unfold to far more than they take.
pub(crate) struct Walk {
    limit: usize,
    visited: usize,
    exhausted: BoundError,
}

impl Walk {
    /// A walk that only looks.
    pub(crate) const fn looking() -> Self {
        Self {
            limit: MAX_VISITS,
            visited: 0,
            exhausted: BoundError::Visits,
        }
    }

    /// A walk that copies what it finds.
    pub(crate) const fn copying() -> Self {
        Self {
            limit: MAX_ITEMS,
            visited: 0,
            exhausted: BoundError::Items,
        }
    }

    /// Goes to one more part, that many levels down.
    pub(crate) fn visit(&mut self, depth: usize) -> Result<(), BoundError> {
        if depth > MAX_DEPTH {
            return Err(beyond(BoundError::Depth));
        }
        self.visited += 1;
        if self.visited > self.limit {
            return Err(beyond(self.exhausted));
        }
        if self.visited.is_multiple_of(VISITS_PER_PAYMENT) {
            spend((VISITS_PER_PAYMENT / VISITS_PER_STEP) as u64)?;
        }
        Ok(())
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        note_work((self.visited % VISITS_PER_PAYMENT / VISITS_PER_STEP) as u64);
    }
}

/// Pays for reading a text, unless it is short.
pub(crate) fn read(bytes: usize) -> Result<(), BoundError> {
    match bytes / BYTES_PER_STEP {
        0 => Ok(()),
        steps => spend(steps as u64),
    }
}
