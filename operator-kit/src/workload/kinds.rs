//! Which kinds of a cluster are watched, and which are listed now and then because watches are dear. Pure.

use std::collections::BTreeMap;

use kube::core::GroupVersionKind;

use crate::object::{GroupKind, group_kind};

/// How a kind is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Watched,
    Listed,
}

/// The ways of kinds, of which the first ones matter most. A kind in several versions is one kind, in the version that is named first.
pub(super) fn ways(kinds: &[GroupVersionKind], watches: usize) -> BTreeMap<GroupKind, (GroupVersionKind, Way)> {
    let mut ways = BTreeMap::new();
    for kind in kinds {
        let way = if ways.len() < watches {
            Way::Watched
        } else {
            Way::Listed
        };
        ways.entry(group_kind(kind)).or_insert_with(|| (kind.clone(), way));
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_matter_most_are_watched_and_the_others_listed() {
        let kinds: Vec<_> = [("a", "v1"), ("a", "v2"), ("b", "v1"), ("c", "v1"), ("d", "v1")]
            .map(|(kind, version)| GroupVersionKind::gvk("g", version, kind))
            .to_vec();
        let ways = ways(&kinds, 2);
        let told: Vec<_> = ways
            .values()
            .map(|(gvk, way)| (gvk.kind.as_str(), gvk.version.as_str(), *way))
            .collect();
        let expected = [
            ("a", "v1", Way::Watched),
            ("b", "v1", Way::Watched),
            ("c", "v1", Way::Listed),
            ("d", "v1", Way::Listed),
        ];
        assert_eq!(told, expected);
    }
}
