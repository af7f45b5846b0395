//! Of which kinds the objects of a release are, by what it says of itself.

use std::collections::{BTreeSet, HashSet};

use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use operator_kit::object::GroupKind;
use planning::objects::{Rendering, key_of};

use super::claims::rows;
use super::memory::ReleaseMemory;
use crate::context::Context;

/// How many kinds are looked after that nothing but the annotation of a release names. It helps when the inventory was lost, and whoever may
/// change releases may write any there: each is a watch.
const NAMED_ALONE: usize = 32;

/// The kinds of what is rendered.
pub(super) fn rendered_kinds(rendering: &Rendering) -> BTreeSet<GroupKind> {
    let intents = rendering.intents().into_iter().flatten();
    intents.map(|(key, _)| key.group_kind()).collect()
}

/// The kinds that the annotation of a release names: all that it renders (`rendered`) or that are in its inventory, and of others some.
pub(super) fn marked_kinds(release: &ClusterStackRelease, rendered: BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
    let mut known = rendered;
    known.extend(rows(release).map(|row| key_of(row).group_kind()));
    let annotation = release.annotations().get(labels::CONTAINS_GROUP_KINDS);
    let named = labels::parse_group_kinds(annotation.map(String::as_str).unwrap_or_default());
    let named = named.into_iter().map(|(group, kind)| GroupKind::new(group, kind));
    let (mut marked, alone): (BTreeSet<GroupKind>, BTreeSet<GroupKind>) = named.partition(|kind| known.contains(kind));
    if alone.len() > NAMED_ALONE {
        tracing::warn!(
            namespace = release.namespace(),
            name = release.name_any(),
            annotation = labels::CONTAINS_GROUP_KINDS,
            kinds = alone.len(),
            most = NAMED_ALONE,
            "the annotation names kinds of which the release has no objects; not all are looked after"
        );
    }
    marked.extend(alone.into_iter().take(NAMED_ALONE));
    marked
}

/// The kinds that any of these releases has, wants or names.
pub(crate) fn kinds_of(context: &Context, releases: &[impl AsRef<ClusterStackRelease>]) -> HashSet<GroupKind> {
    let mut kinds = context.memories.kinds(ReleaseMemory::kinds);
    for release in releases {
        let release = release.as_ref();
        kinds.extend(rows(release).map(|row| key_of(row).group_kind()));
        kinds.extend(marked_kinds(release, BTreeSet::new()));
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_annotation_does_not_make_any_number_of_watches() {
        let kind = |number: usize| GroupKind::new("example.org", format!("Kind{number:03}"));
        let annotation = (0..500).map(|number| kind(number).to_string()).collect::<Vec<_>>();
        let release: ClusterStackRelease = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "spec": {},
            "metadata": { "name": "a", "annotations": { labels::CONTAINS_GROUP_KINDS: annotation.join(",") } },
            "status": { "resources": [{ "group": "example.org", "version": "v1", "kind": "Kind499", "name": "a" }] },
        }))
        .expect("a release");
        let marked = marked_kinds(&release, BTreeSet::from([kind(498), kind(500)]));
        assert!(marked.contains(&kind(499)), "it has one");
        assert!(marked.contains(&kind(498)), "it wants one");
        assert!(!marked.contains(&kind(500)), "it is not named");
        assert_eq!(marked.len(), NAMED_ALONE + 2);
    }
}
