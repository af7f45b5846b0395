//! The kinds that an owner says it has objects of.

use std::collections::BTreeSet;

use crds::labels;
use kube::{Resource, ResourceExt};
use operator_kit::object::GroupKind;

/// How many kinds are looked after that nothing but the annotation of an owner names. It helps when the inventory was lost, and whoever may change the owner
/// may write any there: each is a watch.
const NAMED_ALONE: usize = 32;

/// The kinds that the annotation of an owner names: all of those of which it is `known` that it has some or wants some, and of others some.
pub(crate) fn named_kinds<K: Resource<DynamicType = ()>>(
    owner: &K,
    known: &BTreeSet<GroupKind>,
) -> BTreeSet<GroupKind> {
    let annotation = owner.annotations().get(labels::CONTAINS_GROUP_KINDS);
    let named = labels::parse_group_kinds(annotation.map(String::as_str).unwrap_or_default());
    let named = named.into_iter().map(|(group, kind)| GroupKind::new(group, kind));
    let (mut marked, alone): (BTreeSet<GroupKind>, BTreeSet<GroupKind>) = named.partition(|kind| known.contains(kind));
    if alone.len() > NAMED_ALONE {
        tracing::warn!(
            kind = %K::kind(&()),
            namespace = owner.namespace(),
            name = owner.name_any(),
            annotation = labels::CONTAINS_GROUP_KINDS,
            kinds = alone.len(),
            most = NAMED_ALONE,
            "the annotation names kinds of which it has no objects; not all are looked after"
        );
    }
    marked.extend(alone.into_iter().take(NAMED_ALONE));
    marked
}

#[cfg(test)]
mod tests {
    use crds::ClusterStackRelease;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_annotation_does_not_make_any_number_of_watches() {
        let kind = |number: usize| GroupKind::new("example.org", format!("Kind{number:03}"));
        let annotation = (0..500).map(|number| kind(number).to_string()).collect::<Vec<_>>();
        let release: ClusterStackRelease = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "spec": {},
            "metadata": { "name": "a", "annotations": { labels::CONTAINS_GROUP_KINDS: annotation.join(",") } },
        }))
        .expect("a release");
        let marked = named_kinds(&release, &BTreeSet::from([kind(498), kind(499), kind(500)]));
        assert!(
            marked.contains(&kind(499)) && marked.contains(&kind(498)),
            "it has or wants one"
        );
        assert!(!marked.contains(&kind(500)), "it is not named");
        assert_eq!(marked.len(), NAMED_ALONE + 2);
    }
}
