//! What a project may hold. A body without a length is not counted before it is there, as with the real one.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Shared,
    answers::Refusal,
    identity::project_id,
    model::{Image, State, Status},
    upload::Place,
};
use crate::Limits;

const MIB: u64 = 1 << 20;

struct Usage {
    size: u64,
    stage: u64,
    count: u64,
    uploading: u64,
}

fn usage_of(state: &State, project: &str) -> Usage {
    let ours = || state.images.values().filter(|image| image.project == project);
    let stored = |image: &Image| image.sums.as_ref().map_or(0, |sums| sums.size);
    let staged = |image: &Image| image.staged.as_ref().map_or(0, |staged| staged.sums.size);
    let at_work = [Status::Saving, Status::Uploading, Status::Importing];
    Usage {
        size: ours().map(stored).sum::<u64>() / MIB,
        stage: ours().map(staged).sum::<u64>() / MIB,
        count: ours().count() as u64,
        uploading: ours().filter(|image| at_work.contains(&image.status)).count() as u64,
    }
}

fn limits(shared: &Shared, project: &str) -> Limits {
    shared.options.limits.get(project).copied().unwrap_or(Limits::WIDE)
}

/// `/v2/info/usage`.
pub(super) fn shown(shared: &Shared, state: &State, project: &str) -> Value {
    let (limits, usage) = (limits(shared, project), usage_of(state, project));
    let of = |limit: u64, usage: u64| json!({ "limit": limit, "usage": usage });
    json!({ "usage": {
        "image_size_total": of(limits.size_total, usage.size),
        "image_stage_total": of(limits.stage_total, usage.stage),
        "image_count_total": of(limits.count_total, usage.count),
        "image_count_uploading": of(limits.count_uploading, usage.uploading),
    } })
}

/// Whether another image may be made.
pub(super) fn create(shared: &Shared, state: &State, project: &str) -> Result<(), Refusal> {
    let (limits, usage) = (limits(shared, project), usage_of(state, project));
    within(project, "image_count_total", limits.count_total, usage.count, 1)
}

/// Whether so many bytes may be sent.
pub(super) fn upload(
    shared: &Shared,
    state: &State,
    project: &str,
    to: Place,
    length: Option<u64>,
) -> Result<(), Refusal> {
    let (limits, usage) = (limits(shared, project), usage_of(state, project));
    let delta = length.unwrap_or(0) / MIB;
    match to {
        Place::File => within(project, "image_size_total", limits.size_total, usage.size, delta)?,
        Place::Stage => within(project, "image_stage_total", limits.stage_total, usage.stage, delta)?,
    }
    within(
        project,
        "image_count_uploading",
        limits.count_uploading,
        usage.uploading,
        1,
    )
}

fn within(project: &str, resource: &str, limit: u64, usage: u64, delta: u64) -> Result<(), Refusal> {
    if usage + delta <= limit {
        return Ok(());
    }
    let words = format!(
        "Project {} is over a limit for [Resource {resource} is over limit of {limit} due to current usage {usage} and delta {delta}]",
        project_id(project)
    );
    Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words))
}
