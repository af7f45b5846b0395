//! Writes the status of an image object, and tells what it says for the first time. Decides nothing but how often progress alone is written.

use std::sync::Arc;
use std::time::Duration;

use crds::labels;
use crds::providers::image_status::NodeImageStatus;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::telemetry::{Change, log_readiness};
use planning::image::Told;
use planning::stack::Note;

use super::execute::Pass;
use super::memory::lock;
use crate::kinds::with;

/// Until the next try after somebody else's write.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);

/// What became of a status.
pub(super) enum Written {
    /// The object is like this now, whether anything had to be written or not.
    Current(Arc<DynamicObject>),
    /// It is gone.
    Gone,
    /// Somebody else wrote it, or the API server did not take it; it is tried again after this time.
    Refused(Duration),
}

/// Writes what is told, where it is news.
pub(super) async fn write(pass: &Pass<'_>, told: &Told) -> Written {
    let object = &pass.case.object;
    if told.status == pass.case.status {
        return Written::Current(Arc::clone(object));
    }
    let mut wanted = DynamicObject::clone(object);
    match serde_json::to_value(&told.status) {
        Ok(status) => with(&mut wanted, "status", status),
        Err(error) => return Written::Refused(pass.refused(&error.to_string())),
    }
    let api = pass
        .served
        .image_api(&pass.context.client, &object.namespace().unwrap_or_default());
    match replace_status(&api, object.as_ref(), &wanted, labels::STATUS_FIELD_MANAGER).await {
        Ok(StatusWrite::Written(written)) => {
            lock(pass.memory).refusals = 0;
            tell_news(pass, &told.status, &told.notes);
            pass.served.images.note(DynamicObject::clone(&written));
            Written::Current(Arc::from(written))
        }
        Ok(StatusWrite::Unchanged) => Written::Current(Arc::clone(object)),
        Ok(StatusWrite::Gone) => Written::Gone,
        Ok(StatusWrite::Conflict) => again(pass).await,
        Err(error) => Written::Refused(pass.refused(&chain(&error))),
    }
}

/// Reads the object, so that the next try knows what somebody else wrote, also where the watch is late.
async fn again(pass: &Pass<'_>) -> Written {
    let object = &pass.case.object;
    let api = pass
        .served
        .image_api(&pass.context.client, &object.namespace().unwrap_or_default());
    match api.get_opt(&object.name_any()).await {
        Ok(Some(current)) => {
            pass.served.images.note(current);
            Written::Refused(AFTER_CONFLICT)
        }
        Ok(None) => Written::Gone,
        Err(error) => Written::Refused(pass.refused(&chain(&error))),
    }
}

fn tell_news(pass: &Pass<'_>, status: &NodeImageStatus, notes: &[Note]) {
    let change = Change {
        before: &pass.case.status.conditions,
        after: &status.conditions,
        by_words: true,
        objects: None,
    };
    let kind = pass.served.kind.definition().image_kind;
    log_readiness(kind, pass.case.object.as_ref(), change, pass.context.clock.wall());
    let reference = pass.served.image_reference(&pass.case.object);
    pass.context.warn(&reference, change.before, change.after);
    publish(pass, notes);
}

/// Tells in events what happened.
pub(super) fn publish(pass: &Pass<'_>, notes: &[Note]) {
    for note in notes {
        let kind = if note.warning {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let reference = pass.served.image_reference(&pass.case.object);
        pass.context.events.publish(reference, kind, note.reason, &note.message);
    }
}
