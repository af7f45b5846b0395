//! What is told of the clusters in which add-ons are: their add-ons look at it.

use std::sync::Arc;

use operator_kit::objects::{Changed, Notice};
use operator_kit::workload::News;
use tokio::sync::{OwnedMutexGuard, mpsc};

use super::Triggers;
use crate::addon::{ClusterPlace, cluster_of, shard_of_addons};
use crate::context::Context;
use crate::sources::is_recent;

/// Wakes the add-ons of a cluster when it answers or no longer does, serves other kinds, or when something of theirs changed in it, or something that a stage
/// of theirs waits for.
pub(super) async fn follow(context: Arc<Context>, triggers: Triggers, mut news: OwnedMutexGuard<mpsc::Receiver<News>>) {
    while let Some(news) = news.recv().await {
        let (News::Connected { uid } | News::Lost { uid } | News::Served { uid, .. } | News::Objects { uid, .. }) =
            &news;
        let workloads = context.workloads.as_ref();
        // One that was forgotten is nobody's business any more.
        let Some((cluster, part_of)) = workloads.and_then(|workloads| workloads.concerned(uid)) else {
            continue;
        };
        match &news {
            News::Objects { notice, .. } => objects_told(&context, &triggers, notice, (&cluster, &part_of)),
            News::Connected { .. } | News::Lost { .. } | News::Served { .. } => triggers.cluster(&context, &cluster),
        }
    }
}

fn objects_told(context: &Context, triggers: &Triggers, notice: &Notice, (cluster, part_of): (&ClusterPlace, &str)) {
    match notice {
        // Whoever came upon it knows.
        Notice::Noted { by, .. } if by == part_of => {}
        Notice::Object(changed) | Notice::Noted { changed, .. } => object_changed(context, triggers, changed, part_of),
        // Only what a stage waits for is followed by its name.
        Notice::Synced(_) | Notice::Stopped(_) | Notice::Named(_) => triggers.cluster(context, cluster),
    }
}

/// All that is shown of a cluster is of its add-ons, or was.
fn object_changed(context: &Context, triggers: &Triggers, changed: &Changed, part_of: &str) {
    let Some(addons) = &context.addons else { return };
    if let Some(addon) = addons.memories.changed(part_of, &changed.key) {
        triggers.addon(addon);
    }
}

/// Ends what nobody needs of clusters: the ways to those whose add-ons are gone, or in the shard of another process, and the watches of kinds of
/// which add-ons have nothing.
pub(super) fn end_idle(context: &Context) {
    let (Some(addons), Some(workloads)) = (&context.addons, &context.workloads) else {
        return;
    };
    let count = context.tenure.count();
    let is_in_hand = |(namespace, name): &ClusterPlace| {
        addons
            .of(namespace, name)
            .is_some_and(|addon| cluster_of(&addon).is_some())
            && context.tenure.holds(shard_of_addons(namespace, name, count))
    };
    workloads.keep(is_in_hand);
    for ((namespace, name), place) in workloads.places() {
        let addon = addons.of(&namespace, &name);
        let Some(status) = addon.as_ref().and_then(|addon| addon.status.as_ref()) else {
            continue;
        };
        let is_named = |group: &str, kind: &str| {
            let mut rows = status.resources.iter();
            rows.any(|row| row.group == group && row.kind == kind)
        };
        place
            .objects
            .keep(|kind, asked| is_named(&kind.group, &kind.kind) || is_recent(asked));
    }
}
