//! The process that works: takes the limits upon itself, reads its request, answers, ends.

use std::env;
use std::io::{self, Read as _, Write};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::limits::Limits;

/// What the first argument begins with; the name of the work follows.
pub(crate) const ARGUMENT: &str = "--serve-isolated=";

/// What the work does runs on a thread with this much stack, in bytes: part of the memory of [`Limits`], and the same on every system.
const STACK: usize = 16 << 20;

/// The work went through, but its answer did not.
const UNHEARD: i32 = 3;
/// The system refuses the limits; without them there is no work.
pub(crate) const UNLIMITED: i32 = 4;
/// The work panicked.
pub(crate) const PANICKED: i32 = 5;

/// Names of work that this program has said it does.
static SERVED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Whether this program does work of this name when it is started for it.
pub(crate) fn is_served(name: &str) -> bool {
    served().contains(&name)
}

fn served() -> MutexGuard<'static, Vec<&'static str>> {
    // Names are only added, one by one.
    SERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the work and ends the process, if [`Program::ask`](crate::Program::ask) has started it for work of this name; otherwise returns at
/// once. To be called first thing in `main`: before there are threads, before anything is read or opened, before arguments are looked at.
///
/// `work` gets the whole request and writes the answer. Who asks also gets what was written, and flushed, before a failure. An error means
/// that the answer cannot be written; all others belong into the answer.
pub fn serve(name: &'static str, limits: Limits, work: impl FnOnce(Vec<u8>, &mut dyn Write) -> io::Result<()> + Send) {
    let asked = env::args_os().nth(1);
    let asked = asked.as_deref().and_then(|argument| argument.to_str());
    if asked.and_then(|argument| argument.strip_prefix(ARGUMENT)) != Some(name) {
        served().push(name);
        return;
    }
    process::exit(thread::scope(|scope| {
        // Started before the limits, which allow no further one.
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            if limits.hold().is_err() {
                return UNLIMITED;
            }
            answer(work).map_or(UNHEARD, |()| 0)
        });
        worker.map_or(UNLIMITED, |worker| worker.join().unwrap_or(PANICKED))
    }))
}

fn answer(work: impl FnOnce(Vec<u8>, &mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut request = Vec::new();
    io::stdin().lock().read_to_end(&mut request)?;
    let mut answer = io::stdout();
    work(request, &mut answer)?;
    answer.flush()
}
