//! Whose an object is.

use crds::labels;
use planning::objects::Belongs;

use super::api::NAMESPACE;
use super::live::{Body, Live, label};

/// The value of the label by which a release knows its objects.
pub(crate) fn mark(tag: &str) -> String {
    labels::part_of("ClusterStackRelease", NAMESPACE, tag)
}

/// With the marks that every object of a release carries.
pub(crate) fn marked(tag: &str, body: &Body) -> Body {
    let mut body = body.clone();
    body.insert(label(labels::INSTANCE), labels::INSTANCE_OWNED.to_owned());
    body.insert(label(labels::PART_OF), mark(tag));
    body
}

/// Whose an object is.
pub(crate) fn belongs(tag: &str, live: &Live) -> Belongs {
    match live.value(&label(labels::PART_OF)) {
        Some(part_of) if part_of == mark(tag) => Belongs::Us,
        Some(part_of) if labels::is_part_of(part_of) => Belongs::OtherOwner,
        Some(_) => Belongs::Stranger,
        None if live.is_managed_by(labels::FIELD_MANAGER) => Belongs::Us,
        None if live.is_managed_by(labels::PREDECESSOR_FIELD_MANAGER) => Belongs::Predecessor,
        None => Belongs::Nobody,
    }
}
