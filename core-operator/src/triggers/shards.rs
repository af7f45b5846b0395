//! What is looked at because it came into the hands of this process.

use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use operator_kit::lease::Held;
use planning::election::{shard_of_release, shard_of_stack};

use super::Triggers;
use crate::context::Context;
use crate::operator::Tidings;

/// Shards were gained: what is in them is looked at.
pub(crate) async fn follow_shards(context: Arc<Context>, triggers: Triggers, tidings: Tidings) {
    let mut watch = context.tenure.watch();
    let mut known = Held::new();
    loop {
        let held = watch.borrow_and_update().clone();
        tidings.tell_shards();
        if context.tenure.count() > 1 && held != known {
            let shards = held.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            tracing::info!(shards, "holds other shards");
        }
        let count = context.tenure.count();
        let gained = |shard: u16| held.contains_key(&shard) && held.get(&shard) != known.get(&shard);
        for stack in context.stacks.watched() {
            if gained(shard_of_stack(&stack, count)) {
                triggers.stack(ObjectRef::from_obj(stack.as_ref()));
            }
        }
        for release in context.releases.watched() {
            if gained(shard_of_release(&release, count)) {
                triggers.release(ObjectRef::from_obj(release.as_ref()));
            }
        }
        triggers.clusters_in(&context, gained);
        known = held;
        if watch.changed().await.is_err() {
            return;
        }
    }
}
