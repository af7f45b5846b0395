//! How long templates may run. Raises a flag when the time is over; that somebody looks at the flag is up to the work.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Does the work, and raises `over` if it is still being done after `limit`. Fails when there is no thread to wait on, and then does nothing.
pub(crate) fn within<T>(limit: Duration, over: &AtomicBool, work: impl FnOnce() -> T) -> io::Result<T> {
    thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        let wait = move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                over.store(true, Ordering::Relaxed);
            }
        };
        thread::Builder::new()
            .name("deadline".to_owned())
            .spawn_scoped(scope, wait)?;
        let done = work();
        drop(working);
        Ok(done)
    })
}
