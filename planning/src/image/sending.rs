//! How the bytes get into an empty record: what must be known before, which way they go and where that runs.

use std::time::Duration;

use super::case::{Case, hold, in_process};
use super::decide::look_ready;
use super::execution::executed_as;
use super::judge::pinned;
use super::kept::Kept;
use super::op::{Deed, Form};
use super::seen::{RecordSeen, Seen, Sight, Source};
use super::step::{Halt, HaltReason, Step};
use super::wait::{Since, Until, Wait, WaitReason};
use super::wanted::{Via, Wanted};
use super::wording::NO_DIGEST;

/// How long what a source said is believed: longer than it takes to make a record, shorter than a release is edited.
pub const PROBE_HOLDS: Duration = Duration::from_mins(10);
/// Imports that fail in a row before bytes are sent instead: one may be bad luck.
pub const IMPORTS_AT_MOST: u32 = 2;

/// How often one looks whether Jobs can be had by now: nobody tells of a right.
const JOBS_AGAIN: Duration = Duration::from_mins(1);

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// They are sent.
    Upload,
    /// They are sent to a stage.
    Staged,
    /// The cloud fetches them.
    Import,
}

/// The way that is asked for, where it can be gone and its end be verified; else they are sent.
pub(super) fn path(case: &Case<'_>) -> Path {
    chosen(case.wanted, case.kept, case.seen).0
}

/// The same, and where it is not the one that is asked for, why.
pub(super) fn chosen(wanted: &Wanted, kept: &Kept, seen: &Seen) -> (Path, Option<&'static str>) {
    let abilities = seen.abilities.clone().unwrap_or_default();
    let has_failed = kept.imports_failed >= IMPORTS_AT_MOST;
    match wanted.via {
        // The Job that builds it sends it itself.
        _ if wanted.build.is_some() => (Path::Upload, None),
        Via::Auto | Via::Upload => (Path::Upload, None),
        Via::ServerSide => unless(
            Path::Import,
            &[
                (!abilities.server_side, "this cloud fetches nothing itself"),
                (!wanted.fetchable, "the cloud cannot read it where it lies"),
                (
                    wanted.compressed || is_packed(seen),
                    "it is packed, and the cloud unpacks nothing",
                ),
                // Nobody could tell what the cloud has fetched.
                (pinned(wanted, seen).is_none(), NO_DIGEST),
                (has_failed, "the cloud could not fetch it"),
            ],
        ),
        Via::Staged => unless(
            Path::Staged,
            &[
                (!abilities.staged, "this cloud has no stage"),
                (has_failed, "the cloud made no image of what was staged"),
            ],
        ),
    }
}

/// Whether the beginning of the file says so, whatever its name.
const fn is_packed(seen: &Seen) -> bool {
    matches!(&seen.source, Sight::Seen { value, .. } if value.packed)
}

fn unless(path: Path, obstacles: &[(bool, &'static str)]) -> (Path, Option<&'static str>) {
    match obstacles.iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => (Path::Upload, Some(why)),
        None => (path, None),
    }
}

/// What is still to be found out before a record is made or filled; `Ok` when nothing is. `at`: when the cloud was seen.
#[expect(
    clippy::result_large_err,
    reason = "a step is no failure, and one is made for a decision"
)]
pub(super) fn prepared(case: &Case<'_>, at: Duration) -> Result<Form, Step> {
    let halt = |Halt { reason, message, look }| {
        // Meanwhile somebody else may bring the image.
        let again = (case.now.steady + JOBS_AGAIN).min(at + look_ready(&case.wanted.key));
        let again = (reason == HaltReason::JobsUnavailable).then_some(again);
        hold(reason, &message, look.or(again))
    };
    let (form, _) = executed_as(case.wanted, &case.seen.jobs).map_err(halt)?;
    if case.wanted.build.is_none() {
        source(case)?;
    }
    Ok(form)
}

#[expect(
    clippy::result_large_err,
    reason = "a step is no failure, and one is made for a decision"
)]
fn source<'a>(case: &Case<'a>) -> Result<&'a Source, Step> {
    let now = case.now.steady;
    match &case.seen.source {
        Sight::Seen { value, at, fresh: true } if now.saturating_sub(*at) <= PROBE_HOLDS => Ok(value),
        Sight::Failed {
            failure, since, next, ..
        } if now < *next => Err(Step::Await(Wait {
            reason: WaitReason::Source,
            since: Since::Steady(*since),
            until: Until::Again(Since::Steady(*next)),
            look: Some(*next),
            message: failure.message.clone(),
        })),
        Sight::Unseen | Sight::Failed { .. } | Sight::Seen { .. } => Err(in_process(Deed::Probe)),
    }
}

/// Fills an empty record.
pub(super) fn send(case: &Case<'_>, record: &RecordSeen, at: Duration) -> Step {
    let form = match prepared(case, at) {
        Ok(form) => form,
        Err(step) => return step,
    };
    let (id, attempt) = (record.id.clone(), record.attempt);
    if case.wanted.build.is_some() {
        let deed = Deed::Build { id, attempt };
        return Step::Do { deed, form };
    }
    match path(case) {
        // The cloud does the work.
        Path::Import => in_process(Deed::Import { id, attempt }),
        path @ (Path::Upload | Path::Staged) => Step::Do {
            deed: Deed::Transfer {
                id,
                attempt,
                staged: path == Path::Staged,
            },
            form,
        },
    }
}
