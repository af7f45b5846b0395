//! What is remembered of an object, and what a new sight of it means. Pure.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kube::core::ObjectMeta;

/// Bytes of an annotation beyond which it is not kept: anybody may write 256 KiB into one.
pub const LONGEST_ANNOTATION: usize = 255;

/// Annotations in which controllers keep accounts. Whoever else writes one loses it to them again, so that none is ever drift: an object that was applied
/// and whose controller has counted is as it was applied.
///
/// The first is that of the controller of Deployments. The second is in no object as it is stored: `apps/v1` makes it of a field of DaemonSets that nobody can
/// set, in answers, and in no metadata, because these are not converted (seen with 1.36).
const ACCOUNTS: [&str; 2] = [
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
];

/// The few facts kept of a watched object. A stack of a thousand releases has thousands of them, so no maps, no spare
/// capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Another uid under the same key is another object.
    pub uid: Box<str>,
    /// Changes with every write, also of the status.
    pub resource_version: Box<str>,
    /// `None` for kinds without one (`ConfigMap`, RBAC).
    pub generation: Option<i64>,
    /// The value of the label that is watched.
    pub part_of: Arc<str>,
    /// Of labels, owner references and the annotations that are nobody's accounts; comparable only within one process.
    pub labels_digest: u64,
    /// The value of the annotation that is kept, where there is one and that is short enough ([`LONGEST_ANNOTATION`]).
    pub annotation: Option<Box<str>>,
    /// The uids of all owners.
    pub owners: Box<[Box<str>]>,
    /// Marked for deletion.
    pub deleting: bool,
}

/// The part of an object whose change may be drift. Two equal triggers of one object mean: nobody but status writers
/// touched it in between.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    uid: Box<str>,
    revision: Revision,
    labels_digest: u64,
    deleting: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Revision {
    Generation(i64),
    ResourceVersion(Box<str>),
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// First sight, or another object under a known key.
    Appeared,
    /// Its [`Trigger`] changed.
    Changed,
    /// Only its resourceVersion changed: a status write, in kinds with a generation.
    StatusChanged,
    /// It is gone, or has lost the label; reading it by name tells.
    Vanished,
}

impl Seen {
    /// The facts of an object with this metadata; `None` when it lacks the label.
    pub fn of(metadata: &ObjectMeta, label: &str) -> Option<Self> {
        let part_of = metadata.labels.as_ref()?.get(label)?;
        Some(Self {
            uid: boxed(metadata.uid.as_deref()),
            resource_version: boxed(metadata.resource_version.as_deref()),
            generation: metadata.generation,
            part_of: Arc::from(part_of.as_str()),
            labels_digest: labels_digest(metadata),
            annotation: None,
            owners: metadata
                .owner_references
                .iter()
                .flatten()
                .map(|owner| Box::from(owner.uid.as_str()))
                .collect(),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// The same, with the value of this annotation.
    pub(super) fn keeping(self, annotation: &str, metadata: &ObjectMeta) -> Self {
        let value = metadata.annotations.as_ref().and_then(|all| all.get(annotation));
        let value = value.filter(|value| value.len() <= LONGEST_ANNOTATION);
        Self {
            annotation: value.map(|value| Box::from(value.as_str())),
            ..self
        }
    }

    /// Bytes of its texts.
    pub(super) fn size(&self) -> usize {
        let owners: usize = self.owners.iter().map(|owner| owner.len()).sum();
        let annotation = self.annotation.as_deref().map_or(0, str::len);
        self.uid.len() + self.resource_version.len() + self.part_of.len() + annotation + owners
    }

    /// Whether this is an earlier state of the same object. Resource versions of one kind count up.
    pub(super) fn is_older(&self, known: &Self) -> bool {
        let versions = self.version().zip(known.version());
        self.uid == known.uid && versions.is_some_and(|(this, other)| this < other)
    }

    /// The resource version as a number, where it is one.
    pub(super) fn version(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }

    /// What a later [`Seen`] is compared by.
    pub fn trigger(&self) -> Trigger {
        Trigger {
            uid: self.uid.clone(),
            revision: match self.generation {
                Some(generation) => Revision::Generation(generation),
                None => Revision::ResourceVersion(self.resource_version.clone()),
            },
            labels_digest: self.labels_digest,
            deleting: self.deleting,
        }
    }

    /// What this sight means after `before`; `None` when nothing changed at all.
    pub fn after(&self, before: Option<&Self>) -> Option<What> {
        let Some(before) = before.filter(|before| before.uid == self.uid) else {
            return Some(What::Appeared);
        };
        if self.trigger() != before.trigger() {
            Some(What::Changed)
        } else if self.resource_version != before.resource_version {
            Some(What::StatusChanged)
        } else {
            None
        }
    }
}

/// Sixteen hexadecimal digits; equal triggers print equally within one process.
impl fmt::Display for Trigger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        write!(out, "{:016x}", hasher.finish())
    }
}

impl Trigger {
    /// The trigger of an object as an apply answered it, to be compared with [`Seen::trigger`] later.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: boxed(metadata.uid.as_deref()),
            revision: match metadata.generation {
                Some(generation) => Revision::Generation(generation),
                None => Revision::ResourceVersion(boxed(metadata.resource_version.as_deref())),
            },
            labels_digest: labels_digest(metadata),
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }
}

fn boxed(text: Option<&str>) -> Box<str> {
    Box::from(text.unwrap_or_default())
}

fn labels_digest(metadata: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    metadata.labels.hash(&mut hasher);
    let annotations = metadata.annotations.iter().flatten();
    for (name, value) in annotations.filter(|(name, _)| !ACCOUNTS.contains(&name.as_str())) {
        // Numbers tell annotations from what follows.
        (1_u8, name, value).hash(&mut hasher);
    }
    0_u8.hash(&mut hasher);
    for owner in metadata.owner_references.iter().flatten() {
        (&owner.uid, owner.controller, owner.block_owner_deletion).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LABEL: &str = "example.org/part-of";

    fn seen(changes: &Value) -> Seen {
        let mut metadata = json!({
            "name": "one", "uid": "u1", "resourceVersion": "10", "generation": 1, "labels": { LABEL: "x" }
        });
        for (key, value) in changes.as_object().unwrap() {
            metadata[key] = value.clone();
        }
        Seen::of(&serde_json::from_value(metadata).unwrap(), LABEL).unwrap()
    }

    #[test]
    fn sights_are_told_apart() {
        let before = seen(&json!({}));
        let cases = [
            (json!({}), None),
            (json!({ "resourceVersion": "11" }), Some(What::StatusChanged)),
            (json!({ "resourceVersion": "11", "generation": 2 }), Some(What::Changed)),
            (
                json!({ "resourceVersion": "11", "labels": { LABEL: "y" } }),
                Some(What::Changed),
            ),
            (
                json!({ "resourceVersion": "11", "annotations": { "a": "b" } }),
                Some(What::Changed),
            ),
            (
                json!({ "resourceVersion": "11", "deletionTimestamp": "2026-01-01T00:00:00Z" }),
                Some(What::Changed),
            ),
            (json!({ "resourceVersion": "11", "uid": "u2" }), Some(What::Appeared)),
            (
                json!({ "resourceVersion": "11", "ownerReferences": [{ "apiVersion": "v1", "kind": "A", "name": "a", "uid": "o" }] }),
                Some(What::Changed),
            ),
        ];
        for (changes, what) in cases {
            assert_eq!(seen(&changes).after(Some(&before)), what, "{changes}");
        }
        assert_eq!(before.after(None), Some(What::Appeared));
    }

    #[test]
    fn accounts_that_controllers_keep_in_annotations_are_no_change_of_the_object() {
        let noted = |version: &str, annotations: Value| {
            seen(&json!({ "resourceVersion": version, "annotations": annotations }))
        };
        let applied = seen(&json!({}));
        let revision = "deployment.kubernetes.io/revision";
        let first = noted("11", json!({ revision: "1" }));
        assert_eq!(first.after(Some(&applied)), Some(What::StatusChanged));
        let second = noted("12", json!({ revision: "2" }));
        assert_eq!(second.after(Some(&first)), Some(What::StatusChanged));
        let other = noted("13", json!({ revision: "2", "a": "b" }));
        assert_eq!(other.after(Some(&second)), Some(What::Changed));
        let likewise = noted("13", json!({ "a": "b" }));
        assert_eq!(likewise.trigger(), other.trigger());
    }

    #[test]
    fn what_answers_alone_count_of_a_daemon_set_is_no_change_of_it() {
        let counted = json!({ "deprecated.daemonset.template.generation": "1" });
        let answered = seen(&json!({ "annotations": counted }));
        let shown = seen(&json!({}));
        assert_eq!(shown.after(Some(&answered)), None);
    }

    #[test]
    fn a_label_that_moves_to_the_annotations_is_a_change() {
        let before = seen(&json!({ "labels": { LABEL: "x", "a": "b" } }));
        let after = seen(&json!({ "resourceVersion": "11", "annotations": { "a": "b" } }));
        assert_eq!(after.after(Some(&before)), Some(What::Changed));
    }

    #[test]
    fn every_write_counts_for_a_kind_without_generation() {
        let before = seen(&json!({ "generation": null }));
        let after = seen(&json!({ "generation": null, "resourceVersion": "11" }));
        assert_eq!(after.after(Some(&before)), Some(What::Changed));
    }

    #[test]
    fn trigger_of_an_answer_equals_the_trigger_of_its_watch_event() {
        let metadata: ObjectMeta = serde_json::from_value(json!({
            "name": "one", "uid": "u1", "resourceVersion": "10", "generation": 3, "labels": { LABEL: "x" }, "annotations": { "a": "b" }
        }))
        .unwrap();
        assert_eq!(Trigger::of(&metadata), Seen::of(&metadata, LABEL).unwrap().trigger());
    }

    #[test]
    fn of_the_annotations_one_is_kept_unless_it_is_too_long() {
        const KEPT: &str = "example.org/stage";
        let kept = |value: &str| {
            let metadata =
                json!({ "name": "one", "labels": { LABEL: "x" }, "annotations": { KEPT: value, "other": "b" } });
            let metadata = serde_json::from_value(metadata).unwrap();
            let seen = Seen::of(&metadata, LABEL).unwrap();
            assert_eq!(seen.annotation, None);
            seen.keeping(KEPT, &metadata).annotation
        };
        assert_eq!(kept("network").as_deref(), Some("network"));
        assert_eq!(kept(&"x".repeat(LONGEST_ANNOTATION + 1)), None);
    }

    #[test]
    fn an_object_without_the_label_is_not_seen() {
        assert_eq!(Seen::of(&ObjectMeta::default(), LABEL), None);
    }
}
