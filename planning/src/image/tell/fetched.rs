//! How far a cloud is with an image that it fetches itself. Of what we send, whoever sends it tells; of this nobody else does. Says only what was seen.

use crds::providers::image_status::{SentVia, TransferStatus};

use super::view::View;
use crate::image::seen::{RecordSeen, RecordState, Sight};
use crate::image::status::whole_seconds;
use crate::image::wanted::{Now, Via};

/// Whose work it is, for the column DONE.
const FETCHED: &str = "fetched by the cloud";

/// The transfer of the image that is told of, while the cloud fetches it, and as it ended; `None` where none of it is the cloud's.
pub(super) fn fetched(view: &View<'_>, told: Option<&TransferStatus>, now: Now) -> Option<TransferStatus> {
    let record = view.record.filter(|record| is_fetched(view, record))?;
    let attempt = i64::from(record.attempt);
    let before = told.filter(|told| told.attempt == attempt && told.via == SentVia::ServerSide);
    let is_importing = record.state == RecordState::Importing;
    // What it had already when somebody looked first, it may have had for long.
    let is_over = record.state == RecordState::Whole && before.is_some();
    if !is_importing && !is_over {
        return None;
    }
    let sent = whole(record.size.unwrap_or_default());
    let total = record.size.filter(|_| is_over).or_else(|| size(view)).map(whole);
    let moved = before.filter(|before| before.sent_bytes == sent);
    let now = whole_seconds(now.wall);
    let last_progress_time = moved.map_or_else(|| Some(now.clone()), |before| before.last_progress_time.clone());
    Some(TransferStatus {
        attempt,
        via: SentVia::ServerSide,
        sent_bytes: sent,
        total_bytes: total,
        bytes_per_second: 0,
        seconds_left: None,
        last_progress_time,
        resumes: 0,
        started_at: before.map_or(Some(now), |before| before.started_at.clone()),
        holder: String::new(),
        summary: summary(record, sent, total),
        // Of whoever sent an earlier one.
        sealed: told.and_then(|told| told.sealed.clone()),
    })
}

/// What is staged was sent, and what is sealed was too.
fn is_fetched(view: &View<'_>, record: &RecordSeen) -> bool {
    view.wanted.via == Via::ServerSide && view.kept.sealed_of(record.attempt).is_none()
}

fn size(view: &View<'_>) -> Option<u64> {
    match &view.seen.source {
        Sight::Seen { value, .. } => value.size,
        Sight::Unseen | Sight::Failed { .. } => None,
    }
}

/// Nothing is seen to move while a cloud only fetches: it tells how much of it is stored.
fn summary(record: &RecordSeen, sent: i64, total: Option<i64>) -> String {
    let part = total.filter(|total| *total > 0 && sent > 0);
    match (part, &record.words) {
        _ if record.state == RecordState::Whole => FETCHED.to_owned(),
        (Some(total), _) => format!(
            "{FETCHED}, {} % stored",
            i128::from(sent.min(total)) * 100 / i128::from(total)
        ),
        (None, Some(words)) => format!("{FETCHED}, {words}"),
        (None, None) => FETCHED.to_owned(),
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
