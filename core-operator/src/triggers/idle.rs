//! What nobody needs any more: followers of sources and watches of kinds that no object names which this process works on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::ClusterStackRelease;
use kube::ResourceExt;

use super::addons::{classes_in_hand, parts_in_hand};
use super::workloads;
use crate::context::Context;
use crate::release::kinds_of;
use crate::sources::is_recent;

/// Ends followers and watches that nobody names any more.
pub(super) fn end_idle_followers(context: &Context) {
    if context.stacks.is_listed() && context.releases.is_listed() {
        let (mut stacks, all) = (context.stacks.watched(), context.releases.watched());
        context.sources.keep_for(&all);
        stacks.retain(|stack| context.has_stack(stack));
        let mut releases = needed(all, |release| context.has_release(release), &classes_in_hand(context));
        context.sources.follow_only(&stacks, &releases);
        releases.retain(|release| context.has_release(release));
        context.providers.follow_only(&stacks, &releases);
        let kinds = kinds_of(context, &releases);
        context
            .management
            .objects
            .keep(|kind, asked| kinds.contains(kind) || is_recent(asked));
        if let Some(addons) = &context.addons {
            addons.parts.follow_only(&parts_in_hand(context));
            if addons.objects.is_listed() {
                workloads::end_idle(context);
            }
        }
    }
}

/// The releases whose files this process needs: those that are in a shard of it, and those of the classes of its add-ons, in whatever shard they are.
fn needed(
    mut releases: Vec<Arc<ClusterStackRelease>>,
    is_in_hand: impl Fn(&ClusterStackRelease) -> bool,
    classes: &BTreeSet<(String, String)>,
) -> Vec<Arc<ClusterStackRelease>> {
    releases.retain(|release| {
        let place = (release.namespace().unwrap_or_default(), release.name_any());
        is_in_hand(release) || classes.contains(&place)
    });
    releases
}

#[cfg(test)]
mod tests {
    use crds::ClusterStackReleaseSpec;

    use super::*;

    #[test]
    fn the_files_of_a_release_in_the_shard_of_another_process_are_kept_while_a_cluster_here_has_its_class() {
        let release = |(namespace, name): &(&str, &str)| {
            let mut release = ClusterStackRelease::new(name, ClusterStackReleaseSpec::default());
            release.metadata.namespace = Some((*namespace).to_owned());
            Arc::new(release)
        };
        let (ours, used) = ("docker-harbor-1-34-v1", "docker-ferrol-1-34-v1");
        let all = [
            ("fleet", ours),
            ("fleet", used),
            ("fleet", "docker-ferrol-1-34-v2"),
            ("depot", used),
        ];
        let classes = BTreeSet::from([("fleet".to_owned(), used.to_owned())]);
        let kept = needed(
            all.iter().map(release).collect(),
            |release| release.name_any() == ours,
            &classes,
        );
        let kept: Vec<_> = kept
            .iter()
            .map(|release| (release.namespace().unwrap(), release.name_any()))
            .collect();
        assert_eq!(
            kept,
            [
                ("fleet".to_owned(), ours.to_owned()),
                ("fleet".to_owned(), used.to_owned())
            ]
        );
    }
}
