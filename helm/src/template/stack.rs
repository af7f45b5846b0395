//! A thread with a stack for deep templates: a thousand nested includes need more than a usual thread has.

use std::thread;

/// Enough for [`super::Limits::depth`] levels of an unoptimised build. The system hands out pages only when they are used.
const STACK_BYTES: usize = 512 << 20;

/// The thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("unable to start a thread for the templates")]
pub struct StackError(#[source] std::io::Error);

/// Runs `work` on a thread of its own with a deep stack, and waits for it. Parsing and executing belong here, because
/// the limits of both assume that stack.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StackError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new()
            .name("templates".to_owned())
            .stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work).map_err(StackError)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
