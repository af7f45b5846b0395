//! ClusterClasses that the Go operator left behind when it dropped their releases. They are told; somebody has to allow that they go.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::{OrphanedClass, Orphans};
use crds::names::{ClassName, ReleaseTag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::observed::StackObserved;
use super::plan::{CLUSTER_CLASS, StackAction};
use crate::digest::digest;
use crate::object_key::ObjectKey;

/// How many classes the status names, and of each how many objects and Clusters. What it names can be allowed to go; the others follow.
const SHOWN: usize = 20;

/// A ClusterClass that the Go operator applied and nobody has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its identity.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The templates that it names in its own namespace.
    pub templates: BTreeSet<ObjectKey>,
    /// Those of the templates that a release of the namespace has in its inventory.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held: BTreeSet<ObjectKey>,
}

/// A leftover that no release of the namespace accounts for.
struct Orphan<'a> {
    class: ClassName,
    leftover: &'a Leftover,
    users: &'a BTreeSet<String>,
}

impl Orphan<'_> {
    /// Whether it may be allowed to go.
    fn is_free(&self) -> bool {
        self.users.is_empty() && !self.leftover.deleting
    }

    /// What an approval has to name. It says nothing of a class that is another one by then, or that names other templates.
    fn digest(&self) -> Option<String> {
        self.is_free()
            .then(|| digest(&(self.class.to_string(), &self.leftover.uid, self.templates())))
    }

    fn templates(&self) -> BTreeSet<&ObjectKey> {
        self.leftover.templates.difference(&self.leftover.held).collect()
    }

    fn is_approved(&self, observed: &StackObserved) -> bool {
        let approvals = observed.approved_orphans.as_deref().unwrap_or_default();
        let mut approved = approvals.split(|mark: char| mark == ',' || mark.is_whitespace());
        self.digest().is_some_and(|digest| approved.any(|name| name == digest))
    }
}

/// The templates that a ClusterClass names in its own namespace, in either spelling of Cluster API. Cluster API allows no others.
pub fn templates_of(class: &Value, namespace: &str) -> BTreeSet<ObjectKey> {
    let mut templates = BTreeSet::new();
    for part in ["/spec/infrastructure", "/spec/controlPlane", "/spec/workers"] {
        collect(class.pointer(part).unwrap_or(&Value::Null), namespace, &mut templates);
    }
    templates
}

fn collect(value: &Value, namespace: &str, templates: &mut BTreeSet<ObjectKey>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, namespace, templates)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "ref" | "templateRef" | "remediationTemplate" => templates.extend(named(field, namespace)),
                    _ => collect(field, namespace, templates),
                }
            }
        }
        _ => {}
    }
}

fn named(reference: &Value, namespace: &str) -> Option<ObjectKey> {
    let text = |field: &str| {
        reference
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let (group, _) = text("apiVersion")?.split_once('/')?;
    let here = text("namespace").is_none_or(|elsewhere| elsewhere == namespace);
    here.then_some(ObjectKey::new(group, text("kind")?, namespace, text("name")?))
}

/// What is left without a release, in the order in which it is shown. `None` while that is not known.
fn orphans<'a>(observed: &'a StackObserved, wanted: &BTreeSet<ReleaseTag>) -> Option<Vec<Orphan<'a>>> {
    const NOBODY: &BTreeSet<String> = &BTreeSet::new();
    let (leftovers, used_by) = observed.leftovers.as_ref().zip(observed.used_by.as_ref())?;
    let orphan = |(name, leftover): (&String, &'a Leftover)| {
        let class = name.parse::<ClassName>().ok()?;
        let tag = class.release_tag();
        // A release takes over what is there, whatever becomes of it after that.
        let accounted_for = wanted.contains(tag) || observed.releases.contains_key(&tag.to_string());
        let users = used_by.get(&tag.to_string()).unwrap_or(NOBODY);
        (!accounted_for).then_some(Orphan { class, leftover, users })
    };
    let mut orphans: Vec<Orphan<'a>> = leftovers.iter().filter_map(orphan).collect();
    orphans.sort_by_cached_key(|orphan| (!orphan.is_free(), orphan.class.release_tag().clone()));
    Some(orphans)
}

/// What the status says of them.
pub(super) fn status(observed: &StackObserved, wanted: &BTreeSet<ReleaseTag>) -> Option<Orphans> {
    let Some(orphans) = orphans(observed, wanted) else {
        return observed.status.orphans.clone();
    };
    let told = |orphan: &Orphan<'_>| {
        let templates = orphan.templates();
        let failure = observed.failures.get(&subject(&orphan.class.to_string()));
        OrphanedClass {
            name: orphan.class.to_string(),
            digest: orphan.digest(),
            objects: templates
                .iter()
                .take(SHOWN)
                .map(|key| format!("{} {}", key.kind, key.name))
                .collect(),
            used_by: orphan.users.iter().take(SHOWN).cloned().collect(),
            message: failure
                .filter(|_| orphan.is_approved(observed))
                .map(|failure| failure.message.clone()),
        }
    };
    (!orphans.is_empty()).then(|| Orphans {
        count: i64::try_from(orphans.len()).unwrap_or(i64::MAX),
        classes: orphans.iter().take(SHOWN).map(told).collect(),
    })
}

/// Deletes what is shown and allowed to go. A template stays while a class that stays names it.
pub(super) fn actions(observed: &StackObserved, wanted: &BTreeSet<ReleaseTag>) -> Vec<StackAction> {
    let orphans = orphans(observed, wanted).unwrap_or_default();
    let going: BTreeMap<String, &Orphan<'_>> = orphans
        .iter()
        .take(SHOWN)
        .filter(|orphan| orphan.is_approved(observed))
        .map(|orphan| (orphan.class.to_string(), orphan))
        .collect();
    let staying = observed.leftovers.iter().flatten();
    let staying = staying.filter(|(name, leftover)| !going.contains_key(*name) && !leftover.deleting);
    let kept: BTreeSet<&ObjectKey> = staying.flat_map(|(_, leftover)| &leftover.templates).collect();
    let delete = |(name, orphan): (&String, &&Orphan<'_>)| StackAction::DeleteOrphan {
        class: name.clone(),
        tag: orphan.class.release_tag().to_string(),
        uid: orphan.leftover.uid.clone(),
        templates: orphan.templates().difference(&kept).map(|key| (*key).clone()).collect(),
    };
    going.iter().map(delete).collect()
}

/// What an action on a class is done to.
pub(super) fn subject(class: &str) -> String {
    format!("{CLUSTER_CLASS} {class}")
}

#[cfg(test)]
mod tests;
