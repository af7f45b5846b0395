//! What the system holds a process to, whatever the work in it does.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};

/// What the work may use up. The process sets them for itself before it reads a byte of its request, and cannot raise them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What it may hold in memory, in bytes: what is allocated, and all stacks. Held by Linux only.
    pub memory: u64,
    /// How long it may compute, in seconds of one core. Ends what has lost the process that would stop it.
    pub processor_seconds: u64,
}

impl Limits {
    /// Holds this process to the limits, and to no files, no processes and no core dump beside them.
    pub(crate) fn hold(self) -> Result<(), Errno> {
        let Self {
            memory,
            processor_seconds,
        } = self;
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        lower(Resource::Core, 0)?;
        // A second later it is killed without a word.
        setrlimit(
            Resource::Cpu,
            Rlimit {
                current: Some(processor_seconds),
                maximum: Some(processor_seconds + 1),
            },
        )?;
        lower(Resource::Data, memory)?;
        // A pipe has no size in this sense: what is written into it passes.
        lower(Resource::Fsize, 0)?;
        // Not held against root.
        lower(Resource::Nproc, 0)?;
        // The three that are open. Last, because whatever else would open one.
        lower(Resource::Nofile, OPEN)
    }
}

/// Standard input, output and error output.
const OPEN: u64 = 3;

fn lower(resource: Resource, limit: u64) -> Result<(), Errno> {
    let limit = Some(limit);
    setrlimit(
        resource,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )
}
