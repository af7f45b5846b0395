//! Changes to an image, all or none of them.

use http::HeaderValue;
use serde_json::Value;

use super::{
    answers::{Answer, Refusal, ok},
    images::{Call, READ_ONLY, visible},
    model::{Amendable, Status},
};

/// The one form of changes that is spoken.
const KIND: &[u8] = b"application/openstack-images-v2.1-json-patch";

/// Fields that every image has, so that they can be replaced and not removed.
const FIELDS: [&str; 9] = [
    "name",
    "visibility",
    "protected",
    "os_hidden",
    "min_disk",
    "min_ram",
    "tags",
    "disk_format",
    "container_format",
];

/// Makes the changes.
pub(super) fn patch(call: &Call<'_>, id: &str, kind: Option<&HeaderValue>, changes: &Value) -> Result<Answer, Refusal> {
    if kind.map(HeaderValue::as_bytes) != Some(KIND) {
        let status = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Refusal::new(status, "Unsupported Content-Type for a change."));
    }
    let Value::Array(changes) = changes else {
        return Err(Refusal::bad("Request body must be a JSON array of operation objects."));
    };
    let mut state = call.shared.state();
    let image = visible(&state, id, call.project)?;
    if image.project != call.project && !call.is_admin {
        return Err(Refusal::forbidden(
            "You are not authorized to complete modify_image action.",
        ));
    }
    let is_queued = image.status == Status::Queued;
    let mut fields = image.fields.clone();
    for change in changes {
        one(call, &mut fields, change, is_queued)?;
    }
    let Some(image) = state.images.get_mut(id) else {
        return Err(Refusal::not_found(id));
    };
    image.fields = fields;
    image.touch();
    Ok(ok(&image.shown()))
}

fn one(call: &Call<'_>, fields: &mut Amendable, change: &Value, is_queued: bool) -> Result<(), Refusal> {
    let path = change["path"].as_str().and_then(|path| path.strip_prefix('/'));
    let key = path.ok_or_else(|| Refusal::bad("A change needs a path."))?;
    let key = key.replace("~1", "/").replace("~0", "~");
    let key = key.as_str();
    if key.ends_with("_format") && FIELDS.contains(&key) && !is_queued {
        let words = format!("Attribute {key} can be only replaced for a queued image.");
        return Err(Refusal::forbidden(words));
    }
    if READ_ONLY.contains(&key) || key == "id" {
        return Err(Refusal::forbidden(format!("Attribute '{key}' is read-only.")));
    }
    let is_there = FIELDS.contains(&key) || fields.properties.contains_key(key);
    match change["op"].as_str() {
        Some("remove") if FIELDS.contains(&key) => {
            Err(Refusal::forbidden(format!("Property {key} may not be removed.")))
        }
        Some("remove" | "replace") if !is_there => Err(Refusal::conflict(format!("Property {key} does not exist."))),
        Some("remove") => {
            fields.properties.remove(key);
            Ok(())
        }
        Some("add" | "replace") => call.set(fields, key, &change["value"]),
        _ => Err(Refusal::bad("Unable to find an operation of add, replace or remove.")),
    }
}
