//! Whether the ClusterClass that a release makes is the one that Clusters name when they ask for the release.

use crds::names::ReleaseTag;

use super::observed::ReleaseObserved;
use crate::objects::is_class;

/// Says why the files cannot be those of this release, when they make a ClusterClass that has not its name: usually a chart that still has the version
/// of another release, whose class both would then write. Of a second class nobody could say which release the Clusters on it use, so that one in
/// use would be deleted.
pub(super) fn misnamed(observed: &ReleaseObserved) -> Option<String> {
    let intents = observed.rendering.intents()?;
    let expected = observed.tag.parse::<ReleaseTag>().ok()?.class_name().to_string();
    let classes = || intents.keys().filter(|key| is_class(&key.group_kind()));
    let found = &classes().find(|class| class.name != expected)?.name;
    let (also, help) = if classes().any(|class| class.name == expected) {
        (
            " also",
            "take the other class out of the chart: a stack of its own may bring it",
        )
    } else {
        (
            "",
            "set the version in cluster-class/Chart.yaml and build the release again",
        )
    };
    Some(format!(
        "the class chart{also} makes the ClusterClass {found}, and Clusters of this release name {expected}: {help}"
    ))
}
