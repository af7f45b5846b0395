//! What nobody needs any more: followers of sources and watches of kinds that no object names which this process works on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::ClusterStackRelease;
use kube::ResourceExt;

use super::addons::{classes_in_hand, parts_in_hand};
use crate::context::Context;
use crate::release::kinds_of;
use crate::sources::is_recent;

/// Ends followers and watches that nobody names any more.
pub(super) fn end_idle_followers(context: &Context) {
    if context.stacks.is_listed() && context.releases.is_listed() {
        let (mut stacks, all) = (context.stacks.watched(), context.releases.watched());
        context.sources.keep_for(&all);
        stacks.retain(|stack| context.has_stack(stack));
        let (releases, needed) = in_hand(context, all);
        context.sources.follow_only(&stacks, &needed);
        context.providers.follow_only(&stacks, &releases);
        let kinds = kinds_of(context, &releases);
        context
            .management
            .objects
            .keep(|kind, asked| kinds.contains(kind) || is_recent(asked));
        if let Some(addons) = &context.addons {
            addons.parts.follow_only(&parts_in_hand(context));
        }
    }
}

/// The releases that are in a shard of this process, and those whose files it needs: besides, the releases of the classes of its add-ons, in whatever
/// shard these are.
fn in_hand(
    context: &Context,
    all: Vec<Arc<ClusterStackRelease>>,
) -> (Vec<Arc<ClusterStackRelease>>, Vec<Arc<ClusterStackRelease>>) {
    let classes: BTreeSet<(String, String)> = classes_in_hand(context);
    let is_class = |release: &ClusterStackRelease| {
        classes.contains(&(release.namespace().unwrap_or_default(), release.name_any()))
    };
    let mut needed = all;
    needed.retain(|release| context.has_release(release) || is_class(release));
    let mut releases = needed.clone();
    releases.retain(|release| context.has_release(release));
    (releases, needed)
}
