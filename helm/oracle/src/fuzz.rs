//! Differential fuzzing: templates by grammar, rendered by the real Helm and by ours, until a time is over.
//!
//! Hundreds of templates share one run of the real Helm; those that we refuse run alone. A difference is made smaller as long as it stays
//! one, and kept as a row for the recorded facts of the crate `helm`.

mod duel;
mod functions;
mod grammar;
#[cfg(test)]
mod tests;
mod texts;
mod worker;

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use helm::Profile;

use worker::Worker;

use crate::progress::Progress;

/// How many differences are enough to look at: they will have few causes.
pub const ENOUGH: usize = 40;

/// How long differences are made smaller after the search is over.
const GRACE: Duration = Duration::from_mins(1);

/// How often somebody looks how far it is.
const POLL: Duration = Duration::from_millis(200);

/// A real Helm.
#[derive(Debug)]
pub struct Oracle {
    /// Whose words it has.
    pub profile: &'static Profile,
    /// Its binary.
    pub binary: PathBuf,
}

/// What to search.
#[derive(Debug)]
pub struct Search {
    /// How long.
    pub time: Duration,
    /// The real binaries, of which each batch takes the next.
    pub oracles: Vec<Oracle>,
    /// After that many differences it ends before its time.
    pub enough: usize,
    /// Equal seeds generate equal templates.
    pub seed: u64,
    /// The file that the rows of differences are added to.
    pub rows: PathBuf,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// Templates that both rendered to the same bytes.
    pub equal: usize,
    /// Templates that both refused in the same words.
    pub refused_alike: usize,
    /// Templates that we refused and that were not tried with the real Helm, because each takes a run of its own, or because they are
    /// beyond our limits.
    pub untried: usize,
    /// In the order of finding, each template once.
    pub differences: Vec<Difference>,
}

/// One difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The smallest template that shows it.
    pub template: String,
    /// The Helm version.
    pub profile: &'static str,
    /// What the real one answers.
    pub theirs: String,
    /// What we answer.
    pub ours: String,
}

impl Found {
    /// One line.
    pub fn summary(&self) -> String {
        format!(
            "{} equal, {} refused alike, {} refused and not tried, {} different",
            self.equal,
            self.refused_alike,
            self.untried,
            self.differences.len()
        )
    }

    fn add(&mut self, difference: Difference) {
        let is_known = |known: &Difference| known.template == difference.template;
        if !self.differences.iter().any(is_known) {
            self.differences.push(difference);
        }
    }
}

/// The template and both answers.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            template,
            profile,
            theirs,
            ours,
        } = self;
        write!(formatter, "{profile}: {template}\n  helm: {theirs}\n  ours: {ours}\n")
    }
}

/// What the workers share.
struct Shared<'a> {
    search: &'a Search,
    end: Instant,
    found: Mutex<Found>,
    /// Nobody hears any more what is found.
    is_given_up: AtomicBool,
}

impl Shared<'_> {
    /// Whether no new templates are to be tried: also when there is enough to look at.
    fn is_over(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
            || Instant::now() >= self.end
            || self.found(|found| found.differences.len() >= self.search.enough)
    }

    /// Whether even what was found is not to be made smaller any more.
    fn is_late(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed) || Instant::now() >= self.end + GRACE
    }

    fn found<T>(&self, change: impl FnOnce(&mut Found) -> T) -> T {
        change(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Searches on all processors, with progress. Tells of each difference as soon as it is small, and adds a row for it to [`Search::rows`]:
/// nothing is lost when the search is interrupted.
///
/// # Errors
/// A real binary cannot be run, or a file cannot be written.
pub fn search(search: &Search, mut tell: impl FnMut(&Difference) -> anyhow::Result<()>) -> anyhow::Result<Found> {
    let shared = Shared {
        search,
        end: Instant::now() + search.time,
        found: Mutex::default(),
        is_given_up: AtomicBool::new(false),
    };
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..workers as u64)
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || Worker::new(shared, number).run())
            })
            .collect();
        let progress = Progress::start();
        let mut told = 0;
        loop {
            let is_over = handles.iter().all(thread::ScopedJoinHandle::is_finished);
            let differences = shared.found(|found| found.differences[told..].to_vec());
            for difference in &differences {
                progress.clear();
                let told = tell(difference).and_then(|()| keep(search, difference));
                // Else the workers, who are waited for, would search on for nobody.
                told.inspect_err(|_| shared.is_given_up.store(true, Ordering::Relaxed))?;
            }
            told += differences.len();
            if is_over {
                break;
            }
            progress.tick(|| {
                let left = shared.end.saturating_duration_since(Instant::now()).as_secs();
                format!("{left} s left: {}", shared.found(|found| found.summary()))
            });
            thread::sleep(POLL);
        }
        drop(progress);
        handles.into_iter().try_for_each(|handle| {
            handle
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the search broke")))
        })
    })?;
    Ok(shared.found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// As a question without an answer: recording gives it one.
fn keep(search: &Search, difference: &Difference) -> anyhow::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(&search.rows);
    file.and_then(|mut file| writeln!(file, "> {}", difference.template.replace('\n', "\n| ")))
        .with_context(|| format!("unable to write {}", search.rows.display()))
}
