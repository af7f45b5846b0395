//! The plan for one ClusterStack: what to create, adjust and delete, the status that follows from what was seen, and why nothing more happens.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::{ClusterStackStatus, VERSION_FORM};
use crds::cluster_stack_release::ClusterStackReleaseSpec;
use crds::conditions::{Condition, Reason};
use crds::labels;
use crds::names::ReleaseTag;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use serde::{Deserialize, Serialize};

use super::approval::permission;
use super::notes::{Note, notes};
use super::observed::{Listing, Owner, ProviderTemplate, ReleaseView, StackObserved};
use super::orphans;
use super::provider;
use super::select::{LatestUnknown, Selection, select};
use super::status;
use crate::approval::Permission;
use crate::next::{Next, rests_until, retry_delay_seconds};
use crate::object_key::ObjectKey;
use crate::pause::Pause;
use crate::unlisted::next_words;

/// The status of one stack is written at most this often: fifty releases that become ready in a second are one write, not fifty.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// The kind of releases, in the subject of an action.
const RELEASE: &str = "ClusterStackRelease";
/// The kind of classes, in the subject of an action.
pub(super) const CLUSTER_CLASS: &str = "ClusterClass";

/// What a driver performs, and what it then knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackPlan {
    /// What to do; the actions are independent of each other, and one that fails stops none.
    pub actions: Vec<StackAction>,
    /// The status that follows from what was observed.
    pub status: ClusterStackStatus,
    /// Whether the status may be written now, by the limit of one write a second.
    pub status_due: bool,
    /// What to tell in events.
    pub notes: Vec<Note>,
    /// Why nothing (more) happens, sorted.
    pub waiting: Vec<StackWaiting>,
    /// When to look again.
    pub next: Next,
}

/// One thing to do. An executor has no choices: every operand is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StackAction {
    /// Create a release object with our finalizer and the stack as owner.
    CreateRelease {
        /// Its name.
        tag: String,
        /// Its spec.
        spec: Box<ClusterStackReleaseSpec>,
        /// The value of its label for watch filters, where the stack has one.
        watch_filter: Option<String>,
    },
    /// Bring a release object in line.
    UpdateRelease {
        /// Its name.
        tag: String,
        /// The whole spec.
        spec: Box<ClusterStackReleaseSpec>,
        /// Whether the stack becomes its owner.
        adopt: bool,
        /// The value of its label for watch filters; none: it has no such label.
        watch_filter: Option<String>,
    },
    /// Delete a release object, provided that it still has this identity.
    DeleteRelease {
        /// Its name.
        tag: String,
        /// The identity.
        uid: String,
    },
    /// Server-side apply of the provider's release object.
    ApplyProviderObject {
        /// Kind and name.
        reference: Box<ObjectReference>,
        /// Identity of the release that controls it.
        release_uid: String,
        /// Its spec, from the template.
        spec: serde_json::Value,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// Its annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Delete a ClusterClass that the Go operator left behind, provided that it still has this identity, is still nobody's, that there is still no
    /// release of it and no Cluster that uses it. The templates go with it, as far as they are nobody's either.
    DeleteOrphan {
        /// Name of the class.
        class: String,
        /// The release that it was made for.
        tag: String,
        /// The identity of the class.
        uid: String,
        /// The templates.
        templates: BTreeSet<ObjectKey>,
    },
}

impl StackAction {
    /// Kind and name of what it is done to.
    pub fn subject(&self) -> String {
        match self {
            Self::CreateRelease { tag, .. } | Self::UpdateRelease { tag, .. } | Self::DeleteRelease { tag, .. } => {
                format!("{RELEASE} {tag}")
            }
            Self::ApplyProviderObject { reference, .. } => {
                let text = |field: &Option<String>| field.clone().unwrap_or_default();
                format!("{} {}", text(&reference.kind), text(&reference.name))
            }
            Self::DeleteOrphan { class, .. } => orphans::subject(class),
        }
    }
}

/// Why nothing more happens, as data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StackWaiting {
    /// The object is paused.
    Paused,
    /// A watch or the source has not listed yet what the status was made from: what it says still stands.
    Lists,
    /// `spec.suspend` is set.
    Suspended,
    /// The spec cannot be used.
    InvalidSpec {
        /// What to change.
        message: String,
    },
    /// The source cannot be used or does not answer.
    Source {
        /// Its words.
        message: String,
    },
    /// The source lists no release of this stack in its channel.
    NothingListed,
    /// Hash releases cannot be ordered.
    NoOrder,
    /// The provider's template is not there.
    ProviderTemplate,
    /// Another stack has the release.
    OwnedByOther {
        /// The release.
        tag: String,
        /// The other stack.
        stack: String,
    },
    /// Clusters are not known yet, so nothing is deleted.
    ClusterList,
    /// A release object could not be written.
    ReleaseWrite {
        /// Its name.
        tag: String,
        /// The API server's words.
        message: String,
    },
    /// A provider's release object could not be written.
    ProviderWrite {
        /// Its kind and name.
        subject: String,
        /// The API server's words.
        message: String,
    },
    /// Somebody keeps undoing what is written to a provider's release object.
    ProviderContested {
        /// Its kind and name.
        subject: String,
        /// Who, and until when it is left alone.
        message: String,
    },
    /// A class without a release could not be deleted.
    OrphanDelete {
        /// Its kind and name.
        subject: String,
        /// Why.
        message: String,
    },
    /// Deleting what left the source needs an approval.
    PruneApproval {
        /// What `approve-prune` has to say.
        digest: String,
        /// How many releases would go.
        releases: usize,
    },
    /// Deleting what left the source is approved, which the status does not say yet.
    PruneRecord {
        /// How many releases will go.
        releases: usize,
    },
}

/// Decides about a stack.
pub fn plan(observed: &StackObserved, now: Timestamp) -> StackPlan {
    if observed.deleting {
        return idle(observed, Vec::new(), Next::Await);
    }
    if observed.paused {
        return paused(observed, Pause::Stack, StackWaiting::Paused, now);
    }
    if observed.spec.suspend {
        return paused(observed, Pause::Suspension, StackWaiting::Suspended, now);
    }
    if let Some(until) = blind_until(observed, now)
        && observed.status.observed_generation == Some(observed.generation)
    {
        return idle(observed, vec![StackWaiting::Lists], until);
    }
    let (stem, channel) = match (observed.spec.stem(), observed.spec.parsed_channel()) {
        (Ok(stem), Ok(channel)) => (stem, channel),
        (Err(error), _) | (_, Err(error)) => return invalid(observed, &error.to_string(), now),
    };
    let mut selection = select(observed, &stem, &channel);
    let mut waiting = waiting(observed, &selection);
    if !matches!(permission(observed, &selection.left_source), Permission::Given) {
        selection.keep_what_left_the_source();
    }
    let mut actions = actions(observed, &selection);
    actions.extend(orphans::actions(observed, &selection.wanted));
    let (actions, retry) = back_off(observed, actions, &mut waiting, now);
    let status = status::status(observed, &selection, &stem, &actions, &waiting, now);
    let notes = notes(observed, &actions, &status);
    let plan = finish(observed, actions, status, notes, waiting, now);
    let words = match &observed.template {
        ProviderTemplate::NotListed(_) => next_words(now),
        _ => Next::Await,
    };
    StackPlan {
        next: plan.next.sooner(retry).sooner(words),
        ..plan
    }
}

/// Leaves out what failed a moment ago, says so, and what was done a moment ago; tells when it is tried again.
fn back_off(
    observed: &StackObserved,
    actions: Vec<StackAction>,
    waiting: &mut Vec<StackWaiting>,
    now: Timestamp,
) -> (Vec<StackAction>, Next) {
    let mut retry = Next::Await;
    let (held, due): (Vec<_>, Vec<_>) = actions.into_iter().partition(|action| {
        let failure = observed.failures.get(&action.subject());
        let at = failure.and_then(|failure| {
            let delay = SignedDuration::from_secs(retry_delay_seconds(failure.attempts));
            rests_until(failure.at, delay, now)
        });
        let at = at.max(provider::shown_by(observed, action, now));
        let at = at.max(provider::contested_until(observed, action, now));
        retry = retry.sooner(at.map_or(Next::Await, Next::At));
        at.is_some()
    });
    waiting.extend(held.iter().filter_map(|action| refused(observed, action, now)));
    waiting.sort();
    (due, retry)
}

fn refused(observed: &StackObserved, action: &StackAction, now: Timestamp) -> Option<StackWaiting> {
    let subject = action.subject();
    if let Some(message) = provider::contest(observed, action, now) {
        return Some(StackWaiting::ProviderContested { subject, message });
    }
    let message = observed.failures.get(&subject)?.message.clone();
    Some(match action {
        StackAction::CreateRelease { tag, .. }
        | StackAction::UpdateRelease { tag, .. }
        | StackAction::DeleteRelease { tag, .. } => StackWaiting::ReleaseWrite {
            tag: tag.clone(),
            message,
        },
        StackAction::ApplyProviderObject { .. } => StackWaiting::ProviderWrite { subject, message },
        StackAction::DeleteOrphan { .. } => StackWaiting::OrphanDelete { subject, message },
    })
}

/// Until when something that the status speaks of is awaited, which has not been listed yet by this process.
fn blind_until(observed: &StackObserved, now: Timestamp) -> Option<Next> {
    let template = match &observed.template {
        ProviderTemplate::NotListed(unlisted) => unlisted.patience_until(now),
        _ => None,
    };
    if observed.listing == Listing::NotAsked && speaks_of_the_list(observed) {
        return Some(Next::Await);
    }
    template.map(Next::At)
}

/// Whether the status was made from what the source lists: a stack of listed versions says what it did not find there.
fn speaks_of_the_list(observed: &StackObserved) -> bool {
    let not_found = |condition: &Condition| condition.reason.as_deref() == Some(Reason::ReleaseNotFound.as_str());
    observed.spec.auto_subscribe || observed.status.conditions.iter().any(not_found)
}

/// Nothing to do, and nothing new to say.
fn idle(observed: &StackObserved, waiting: Vec<StackWaiting>, next: Next) -> StackPlan {
    StackPlan {
        actions: Vec::new(),
        status: observed.status.clone(),
        status_due: false,
        notes: Vec::new(),
        waiting,
        next,
    }
}

/// Nothing to do, and the status says why.
fn paused(observed: &StackObserved, pause: Pause, waiting: StackWaiting, now: Timestamp) -> StackPlan {
    let status = ClusterStackStatus {
        conditions: pause.conditions(&observed.status.conditions, now),
        ..observed.status.clone()
    };
    finish(observed, Vec::new(), status, Vec::new(), vec![waiting], now)
}

fn invalid(observed: &StackObserved, message: &str, now: Timestamp) -> StackPlan {
    let status = status::invalid(observed, message, now);
    let waiting = vec![StackWaiting::InvalidSpec {
        message: message.to_owned(),
    }];
    finish(observed, Vec::new(), status, Vec::new(), waiting, now)
}

fn finish(
    observed: &StackObserved,
    actions: Vec<StackAction>,
    status: ClusterStackStatus,
    notes: Vec<Note>,
    waiting: Vec<StackWaiting>,
    now: Timestamp,
) -> StackPlan {
    let due_at = observed
        .status_written_at
        .and_then(|at| rests_until(at, STATUS_INTERVAL, now));
    let (status_due, next) = match due_at {
        Some(at) if status != observed.status => (false, Next::At(at)),
        _ => (true, Next::Await),
    };
    StackPlan {
        actions,
        status,
        status_due,
        notes,
        waiting,
        next,
    }
}

fn actions(observed: &StackObserved, selection: &Selection) -> Vec<StackAction> {
    let mut actions = Vec::new();
    let without_provider = provider::objection(&observed.spec).is_some();
    for tag in &selection.wanted {
        match observed.releases.get(&tag.to_string()) {
            // A release that needs no provider is not the same as one whose provider was forgotten.
            _ if without_provider => {}
            None => actions.push(create(observed, tag)),
            Some(view) => actions.extend(adjust(observed, tag, view)),
        }
    }
    for tag in &selection.unwanted {
        if let Some(view) = observed.releases.get(&tag.to_string()).filter(|view| !view.deleting) {
            actions.push(StackAction::DeleteRelease {
                tag: tag.to_string(),
                uid: view.uid.clone(),
            });
        }
    }
    actions
}

fn create(observed: &StackObserved, tag: &ReleaseTag) -> StackAction {
    StackAction::CreateRelease {
        tag: tag.to_string(),
        spec: Box::new(release_spec(observed, tag)),
        watch_filter: watch_filter(observed).cloned(),
    }
}

/// Who looks after the stack looks after its releases.
fn watch_filter(observed: &StackObserved) -> Option<&String> {
    observed.labels.get(labels::WATCH_FILTER)
}

/// What brings an existing release and its provider object in line.
fn adjust(observed: &StackObserved, tag: &ReleaseTag, view: &ReleaseView) -> Vec<StackAction> {
    if view.deleting || matches!(view.owner, Owner::Other { .. }) {
        return Vec::new();
    }
    let spec = release_spec(observed, tag);
    let adopt = view.owner != Owner::Us;
    let watch_filter = watch_filter(observed);
    let mut actions = Vec::new();
    if adopt || view.spec != spec || view.watch_filter.as_ref() != watch_filter {
        actions.push(StackAction::UpdateRelease {
            tag: tag.to_string(),
            spec: Box::new(spec),
            adopt,
            watch_filter: watch_filter.cloned(),
        });
    }
    actions.extend(provider::action(observed, tag, view));
    actions
}

fn release_spec(observed: &StackObserved, tag: &ReleaseTag) -> ClusterStackReleaseSpec {
    ClusterStackReleaseSpec {
        provider_ref: provider::reference(observed, tag),
        source: observed.spec.source.clone(),
        policy: Some(observed.spec.policy()),
    }
}

fn waiting(observed: &StackObserved, selection: &Selection) -> Vec<StackWaiting> {
    let mut waiting = Vec::new();
    if !selection.invalid.is_empty() {
        let message = format!(
            "invalid version: invalid version string {}; {VERSION_FORM}",
            selection.invalid.join(", ")
        );
        waiting.push(StackWaiting::InvalidSpec { message });
    }
    waiting.extend(
        provider::objection(&observed.spec).map(|objection| StackWaiting::InvalidSpec {
            message: objection.to_owned(),
        }),
    );
    match &observed.listing {
        Listing::Unusable { message } | Listing::Unavailable { message, .. } => {
            waiting.push(StackWaiting::Source {
                message: message.clone(),
            });
        }
        Listing::NotAsked | Listing::Known { .. } => {}
    }
    match selection.latest_unknown {
        Some(LatestUnknown::NothingListed) => waiting.push(StackWaiting::NothingListed),
        Some(LatestUnknown::NoOrder) => waiting.push(StackWaiting::NoOrder),
        Some(LatestUnknown::SourceSilent) | None => {}
    }
    if matches!(
        observed.template,
        ProviderTemplate::Missing
            | ProviderTemplate::TooLarge { .. }
            | ProviderTemplate::TooDeep
            | ProviderTemplate::KindMissing { .. }
    ) {
        waiting.push(StackWaiting::ProviderTemplate);
    }
    for tag in selection.wanted.iter().map(ToString::to_string) {
        if let Some(Owner::Other { name }) = observed.releases.get(&tag).map(|view| &view.owner) {
            waiting.push(StackWaiting::OwnedByOther {
                tag,
                stack: name.clone(),
            });
        }
    }
    if observed.used_by.is_none() {
        waiting.push(StackWaiting::ClusterList);
    }
    let releases = selection.left_source.len();
    match permission(observed, &selection.left_source) {
        Permission::Given => {}
        Permission::Unrecorded => waiting.push(StackWaiting::PruneRecord { releases }),
        Permission::Missing(digest) => waiting.push(StackWaiting::PruneApproval { digest, releases }),
    }
    waiting.sort();
    waiting
}
