//! Whether the ClusterClass that a release makes is the one that Clusters name when they ask for the release.

use crds::names::ReleaseTag;

use super::observed::{ReleaseObserved, Rendering};
use crate::object_key::ObjectKey;

/// Says why the files cannot be those of this release, when they make ClusterClasses and none has its name: usually a chart that still has the
/// version of another release, whose class both would then write.
pub(super) fn misnamed(observed: &ReleaseObserved) -> Option<String> {
    let Rendering::Rendered { intents } = &observed.rendering else {
        return None;
    };
    let expected = observed.tag.parse::<ReleaseTag>().ok()?.class_name().to_string();
    let mut classes = intents.keys().filter(|key| is_class(key)).peekable();
    let found = classes.peek()?.name.clone();
    if classes.any(|class| class.name == expected) {
        return None;
    }
    Some(format!(
        "the class chart makes the ClusterClass {found}, and Clusters of this release name {expected}: \
         set the version in cluster-class/Chart.yaml and build the release again"
    ))
}

fn is_class(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == ("cluster.x-k8s.io", "ClusterClass")
}
