//! What is told of a stack in events: what was made, what went, what was found.

use std::collections::BTreeSet;

use crds::cluster_stack::{ClusterStackStatus, Orphans};
use crds::events::Happening;
use crds::labels::APPROVE_ORPHANS;
use serde::{Deserialize, Serialize};

use super::observed::StackObserved;
use super::obstacle::enumerate;
use super::plan::StackAction;

/// An event on the object that is decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whether it is a warning.
    pub warning: bool,
    /// One word for programs.
    pub reason: Happening,
    /// What happened, in the past tense.
    pub message: String,
}

/// One event for all releases that are created, and one for all that are deleted: fifty at once are one piece of news. The same for orphans.
pub(super) fn notes(observed: &StackObserved, actions: &[StackAction], status: &ClusterStackStatus) -> Vec<Note> {
    let (mut created, mut deleted, mut orphans) = (Vec::new(), Vec::new(), Vec::new());
    for action in actions {
        match action {
            StackAction::CreateRelease { tag, .. } => created.push(tag),
            StackAction::DeleteRelease { tag, .. } => deleted.push(tag),
            StackAction::DeleteOrphan { class, .. } => orphans.push(class),
            StackAction::UpdateRelease { .. } | StackAction::ApplyProviderObject { .. } => {}
        }
    }
    let note = |reason: Happening, verb: &str, names: &[&String]| {
        (!names.is_empty()).then(|| Note {
            warning: false,
            reason,
            message: format!("{verb} {}", enumerate(names)),
        })
    };
    let made = note(Happening::ClusterStackReleaseCreated, "created", &created);
    let gone = note(Happening::ClusterStackReleaseDeleted, "deleted", &deleted);
    let allowed = note(Happening::OrphansDeleted, "deleted ClusterClasses", &orphans);
    let found = found(observed.status.orphans.as_ref(), status.orphans.as_ref());
    [made, gone, allowed, found].into_iter().flatten().collect()
}

/// What is told of classes that the status did not name before.
fn found(before: Option<&Orphans>, now: Option<&Orphans>) -> Option<Note> {
    let classes = |orphans: Option<&Orphans>| -> BTreeSet<String> {
        let classes = orphans.into_iter().flat_map(|orphans| &orphans.classes);
        classes.map(|class| class.name.clone()).collect()
    };
    let found: Vec<String> = classes(now).difference(&classes(before)).cloned().collect();
    (!found.is_empty()).then(|| Note {
        warning: false,
        reason: Happening::OrphansFound,
        message: format!(
            "found ClusterClasses of releases that are no more: {}; status.orphans says what goes when the annotation {APPROVE_ORPHANS} allows it",
            enumerate(&found)
        ),
    })
}
