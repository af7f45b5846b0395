//! Whether the objects of a release are where they may be: in the namespace of the release, as far as they have one.

use super::observed::{ReleaseObserved, Rendering};
use super::wording::summary;
use crate::object_key::ObjectKey;

/// Says which objects are in another namespace than the release. It is no place for them: whoever may publish releases for one namespace must not
/// write into all. Of what has no namespace the operator's role decides, and of a kind that is not served nobody knows whether it has one.
pub(super) fn outside(observed: &ReleaseObserved) -> Option<String> {
    let Rendering::Rendered { intents } = &observed.rendering else {
        return None;
    };
    let own = &observed.namespace;
    let has_namespace = |key: &ObjectKey| {
        let object = observed.objects.get(key);
        object.is_some_and(|object| object.served && !object.misplaced)
    };
    let elsewhere: Vec<String> = intents
        .keys()
        .filter(|key| !key.namespace.is_empty() && key.namespace != *own && has_namespace(key))
        .map(|key| format!("{} {}/{}", key.kind, key.namespace, key.name))
        .collect();
    (!elsewhere.is_empty()).then(|| {
        format!(
            "the class chart puts objects into other namespaces than that of the release, {own}: {}; leave metadata.namespace out of the chart, and \
             publish a new version",
            summary(&elsewhere)
        )
    })
}
