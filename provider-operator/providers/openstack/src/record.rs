//! What an image of Glance's means for us: its state, and whether it is ours. Pure.

use std::time::Duration;

use jiff::Timestamp;
use provider_plugin::{Foreign, ImageId, Owned, OwnerId, Record, RecordState, Subject};
use serde_json::Value;

use crate::{
    identity::{self, Marks},
    options::Options,
};

/// How long an old cloud may take to begin an import of which it shows nothing.
const SILENT_IMPORT: Duration = Duration::from_mins(2);

const MIB: u64 = 1 << 20;

/// Whether an image lies in our project, as far as the cloud says where it lies. Elsewhere anybody may have given it our marks, and an id that follows from
/// them, and have shown it to us.
pub fn is_in(image: &Value, project: &str) -> bool {
    text(image, "owner").is_none_or(|owner| owner == project)
}

/// The marks of an image that is ours and of this object, if it is.
pub fn marks(image: &Value, subject: &Subject, project: &str) -> Option<Marks> {
    let is_ours = |marks: &Marks| marks.owner == subject.owner && marks.object == subject.object;
    Marks::of(image).filter(|marks| is_ours(marks) && is_in(image, project))
}

/// An image that is ours and of this object. Without options that make sense none of its own differ from them. `tasks` are its imports, the last one at the
/// end, where the cloud tells of them and was asked; `now` is the time by the cloud's clock, or ours.
pub fn record(
    image: &Value,
    subject: &Subject,
    project: &str,
    options: Option<&Options>,
    tasks: Option<&[Value]>,
    now: Timestamp,
) -> Option<Record> {
    let marks = marks(image, subject, project)?;
    let verified = image[identity::VERIFIED].as_str().map(str::to_owned);
    let task = tasks.and_then(<[Value]>::last);
    let task_says = task.map(|task| task["message"].as_str().unwrap_or_default());
    let differences = options.map(|options| options.differences(image)).unwrap_or_default();
    let drift = differences.into_iter().map(|(drift, _)| drift);
    Some(Record {
        id: id(image)?,
        key: marks.key,
        attempt: marks.attempt,
        holder: marks.holder,
        state: state(image, tasks, now),
        size: image["size"].as_u64().or_else(|| task_says.and_then(copied)),
        sha512: sha512(image),
        format: image["disk_format"].as_str().map(str::to_owned),
        // A cloud that does not know hidden images shows all of them, and what it shows is told by the mark.
        shown: verified.is_some() && image["os_hidden"] != true,
        verified,
        drift: drift.collect(),
        marker: marker(image, task),
    })
}

/// The id of an image.
pub fn id(image: &Value) -> Option<ImageId> {
    image["id"].as_str().map(|id| ImageId(id.to_owned()))
}

/// Whether the cloud works on an import of this image, or was to: then it has more to say of it than the image itself.
pub fn has_imports(image: &Value) -> bool {
    is_importing(image) || is_silent(image)
}

fn is_importing(image: &Value) -> bool {
    image["status"] == "importing" || text(image, "os_glance_import_task").is_some()
}

/// Whether an import was about to be begun, and the image shows nothing of one.
fn is_silent(image: &Value) -> bool {
    image["status"] == "queued" && image[identity::IMPORT].is_string() && image["os_glance_failed_import"].is_null()
}

/// How many bytes are stored, as an import tells it.
fn copied(words: &str) -> Option<u64> {
    let mib = words.strip_prefix("Copied ")?.strip_suffix(" MiB")?;
    mib.parse::<u64>().ok()?.checked_mul(MIB)
}

fn text<'a>(image: &'a Value, field: &str) -> Option<&'a str> {
    image[field].as_str().filter(|text| !text.is_empty())
}

fn state(image: &Value, tasks: Option<&[Value]>, now: Timestamp) -> RecordState {
    let said = tasks
        .and_then(<[Value]>::last)
        .and_then(|task| task["message"].as_str());
    let message = said.unwrap_or_default().to_owned();
    match image["status"].as_str().unwrap_or_default() {
        // The task is there before the state says so.
        "queued" | "uploading" if is_importing(image) => RecordState::Importing { message },
        // It tells of imports, and of none: what was to begin this one did not get there.
        "queued" if is_silent(image) && tasks.is_some_and(<[Value]>::is_empty) => RecordState::Empty,
        "queued" => queued(image, now),
        "saving" | "uploading" => RecordState::Receiving,
        "importing" => RecordState::Importing { message },
        "active" => RecordState::Whole,
        "deactivated" => RecordState::Withdrawn,
        "pending_delete" | "deleted" => RecordState::Going,
        // `killed`, and whatever else a cloud may call what nobody can use.
        _ => RecordState::Dead,
    }
}

/// An image that waits for its bytes, or for nothing any more.
fn queued(image: &Value, now: Timestamp) -> RecordState {
    let spoilt = |why: &str| RecordState::Spoilt { why: why.to_owned() };
    if let Some(stores) = text(image, "os_glance_failed_import") {
        return spoilt(&format!("the cloud could not import it into {stores}"));
    }
    if image["checksum"].is_string() || image["os_hash_value"].is_string() {
        return spoilt("the cloud refused its bytes, and still holds them");
    }
    if !is_silent(image) {
        return RecordState::Empty;
    }
    let updated = image["updated_at"]
        .as_str()
        .and_then(|updated| updated.parse::<Timestamp>().ok());
    let waited = updated.map(|updated| now.duration_since(updated));
    match waited.and_then(|waited| Duration::try_from(waited).ok()) {
        Some(waited) if waited > SILENT_IMPORT => spoilt("the cloud began no import of it within two minutes"),
        _ => RecordState::Importing {
            message: "the cloud has not begun yet".to_owned(),
        },
    }
}

/// The hash that the cloud made, if it is of the kind that can be compared.
fn sha512(image: &Value) -> Option<String> {
    let hash = image["os_hash_value"]
        .as_str()
        .filter(|_| image["os_hash_algo"] == "sha512")?;
    Some(hash.to_ascii_lowercase())
}

/// Other, whenever something moved.
fn marker(image: &Value, task: Option<&Value>) -> String {
    let parts = [&image["status"], &image["updated_at"], &image["size"]];
    let parts = parts.map(ToString::to_string);
    let task = task.map(|task| format!("{} {} {}", task["status"], task["message"], task["updated_at"]));
    format!("{} {}", parts.join(" "), task.unwrap_or_default())
}

/// An image of somebody else, or of another object of ours.
pub fn foreign(image: &Value, subject: &Subject, project: &str) -> Option<Foreign> {
    if marks(image, subject, project).is_some() {
        return None;
    }
    let word = |field: &str| image[field].as_str().unwrap_or("unknown");
    Some(Foreign {
        id: id(image)?,
        is_of_our_project: image["owner"] == project,
        is_usable: image["status"] == "active",
        is_of_community: image["visibility"] == "community" && image["owner"] != project,
        size: image["size"].as_u64(),
        sha512: sha512(image),
        digest: None,
        description: format!(
            "{:?}, {}, {}, of project {}",
            word("name"),
            word("status"),
            word("visibility"),
            word("owner")
        ),
    })
}

/// An image that carries this owner, or is held by it.
pub fn owned(image: &Value, owner: &OwnerId) -> Option<Owned> {
    let marks = Marks::of(image).filter(|marks| marks.owner == *owner || marks.holder == *owner)?;
    Some(Owned {
        id: id(image)?,
        owner: marks.owner,
        holder: marks.holder,
        key: marks.key,
        object: marks.object,
        attempt: marks.attempt,
        created: image["created_at"].as_str()?.parse().ok()?,
        verified: image[identity::VERIFIED].is_string(),
        size: image["size"].as_u64(),
    })
}
