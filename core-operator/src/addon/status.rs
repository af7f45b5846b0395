//! Writes the status of a ClusterAddon, and tells what it says for the first time.

use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus};
use crds::conditions::{ConditionType, is_true, lint};
use crds::labels;
use kube::{Api, Resource, ResourceExt};
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::telemetry::{Change, log_readiness};
use planning::addon::notes;
use planning::stack::Note;

use crate::context::Context;

/// Writes a status where it differs from the one that was read, and gives the ClusterAddon that there is then; the error is in words.
pub(super) async fn write_status(
    context: &Context,
    addon: &ClusterAddon,
    status: &ClusterAddonStatus,
) -> Result<ClusterAddon, String> {
    // What is not looked at keeps what it has, even if that is nothing.
    let before = addon.status.clone().unwrap_or_default();
    if before == *status {
        return Ok(addon.clone());
    }
    let observed = status.observed_generation.unwrap_or(0);
    debug_assert!(
        // A paused one keeps what it says, whoever wrote it.
        is_true(&status.conditions, ConditionType::Paused)
            || lint(&status.conditions, addon.metadata.generation.unwrap_or(0), observed).is_empty(),
        "{:?}",
        status.conditions
    );
    let wanted = ClusterAddon {
        status: Some(status.clone()),
        ..addon.clone()
    };
    let api = api(context, &addon.namespace().unwrap_or_default());
    match replace_status(&api, addon, &wanted, labels::STATUS_FIELD_MANAGER).await {
        Ok(StatusWrite::Written(written)) => {
            let change = Change {
                before: &before.conditions,
                after: &status.conditions,
                by_words: true,
                objects: Some(status.resources.len()),
            };
            log_readiness("ClusterAddon", addon, change, context.now());
            tell(context, addon, &notes(&before, status));
            context.warn(&addon.object_ref(&()), &before.conditions, &status.conditions);
            Ok(*written)
        }
        Ok(StatusWrite::Unchanged) => Ok(addon.clone()),
        Ok(StatusWrite::Gone) => Err("the ClusterAddon is gone".to_owned()),
        Ok(StatusWrite::Conflict) => Err("somebody else wrote the ClusterAddon in between".to_owned()),
        Err(error) => Err(chain(&error)),
    }
}

/// Tells what took place, in events. What was told last is not told again.
pub(super) fn tell<'n>(context: &Context, addon: &ClusterAddon, notes: impl IntoIterator<Item = &'n Note>) {
    for note in notes {
        let kind = if note.warning {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let about = addon.object_ref(&());
        context.events.publish(about, kind, note.reason, &note.message);
    }
}

/// The ClusterAddons of one namespace.
pub(super) fn api(context: &Context, namespace: &str) -> Api<ClusterAddon> {
    Api::namespaced(context.management.client.clone(), namespace)
}
