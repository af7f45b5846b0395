//! Of which kinds the objects of a release are, by what it says of itself.

use std::collections::{BTreeSet, HashSet};

use crds::ClusterStackRelease;
use operator_kit::object::GroupKind;
use planning::objects::{Rendering, key_of};

use super::claims::rows;
use super::memory::ReleaseMemory;
use crate::context::Context;
use crate::objects::named_kinds;

/// The kinds of what is rendered.
pub(super) fn rendered_kinds(rendering: &Rendering) -> BTreeSet<GroupKind> {
    let intents = rendering.intents().into_iter().flatten();
    intents.map(|(key, _)| key.group_kind()).collect()
}

/// The kinds that the annotation of a release names: all that it renders (`rendered`) or that are in its inventory, and of others some.
pub(super) fn marked_kinds(release: &ClusterStackRelease, rendered: BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
    let mut known = rendered;
    known.extend(rows(release).map(|row| key_of(row).group_kind()));
    named_kinds(release, &known)
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
