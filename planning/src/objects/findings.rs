//! What conditions say of objects: whether they are as they are wanted, what is wrong with them, and whether somebody has to help.

use crds::conditions::{ConditionType, Finding, Reason, Severity};
use crds::resource::{Health, Left, Resource, SyncStatus};

use super::decisions::Decisions;
use super::inventory::key_of;
use super::set::{ObjectSet, OwnerKind};
use super::sync::{Sync, SyncState};
use super::waiting::Wait;
use super::wording::{awaited_kinds, missing_kinds, refusals, summary};
use crate::object_key::{GroupKind, ObjectKey};

const TYPE: ConditionType = ConditionType::HelmChartApplied;

impl ObjectSet<'_> {
    /// Whether the objects are as they are wanted, where they were looked at one by one: after an [`installation`](Self::installation) of all that is
    /// wanted, or where they are [`watched`](Self::watched). `rows` are those of the next status.
    pub fn applied(&self, decisions: &Decisions, rows: &[Resource]) -> Finding {
        if let Some(message) = self.failing(decisions, rows) {
            let reason = self.failing_reason(decisions, rows);
            return Finding::fails(TYPE, Severity::Warning, reason, message);
        }
        let mut wanted = decisions.wanted.iter();
        if wanted.clone().any(|(_, sync)| sync.state == SyncState::Pending) {
            let message = "objects are being applied";
            return Finding::fails(TYPE, Severity::Info, Reason::ObjectsApplyingOngoing, message);
        }
        if wanted.any(|(key, sync)| self.is_unknown(key, sync)) {
            let mut message = "objects have not been looked at yet".to_owned();
            if let Some((kind, words)) = self.unwatched.first_key_value() {
                message = format!("{message}: {kind} cannot be watched: {words}");
            }
            return Finding::fails(TYPE, Severity::Info, Reason::NotObservedYet, message);
        }
        let unhealthy: Vec<String> = rows.iter().filter_map(|row| self.unhealthy(row)).collect();
        if !unhealthy.is_empty() {
            return Finding::fails(TYPE, Severity::Info, Reason::ObjectsNotHealthy, summary(&unhealthy));
        }
        installed(rows)
    }

    /// The same where nothing could be compared: what was applied is taken to be there still. Without anything applied there is nothing to say.
    pub fn uncompared(&self, rows: &[Resource]) -> Option<Finding> {
        if rows.is_empty() {
            return None;
        }
        if rows.iter().all(|row| self.stands(row)) {
            return Some(installed(rows));
        }
        let owner = self.owner;
        let message = format!("objects of the {owner} are there that could not be compared with it yet");
        Some(Finding::fails(TYPE, Severity::Info, Reason::NotObservedYet, message))
    }

    /// What is not as wanted, objects of kinds that are not served by their kinds.
    pub fn failing(&self, decisions: &Decisions, rows: &[Resource]) -> Option<String> {
        let unserved = |key: &ObjectKey| {
            let sync = decisions.wanted.get(key);
            sync.is_some_and(|sync| sync.state == SyncState::KindMissing)
        };
        let refused = self.refused(rows).filter(|row| !unserved(&key_of(row))).map(told);
        let refused = Some(refusals(refused)).filter(|words| !words.is_empty());
        let missing = missing_kinds(self, decisions.wanted.keys().filter(|key| unserved(key)));
        let parts: Vec<String> = refused.into_iter().chain(missing).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What an owner that is to go waits for.
    pub fn going(&self, decisions: &Decisions) -> String {
        let left = decisions.leftovers.iter().filter(|(_, fate)| !fate.is_over());
        let left: Vec<String> = left.map(|(key, _)| format!("{} {}", key.kind, key.name)).collect();
        match self.unseen().first() {
            _ if !left.is_empty() => format!("deleting {}", summary(&left)),
            Some(kind) => self.unlisted(kind),
            None => "deleting the last traces".to_owned(),
        }
    }

    /// What keeps an owner, or a stage, whose known objects are gone.
    pub(crate) fn unlisted(&self, kind: &GroupKind) -> String {
        match self.unwatched.get(kind) {
            Some(words) => format!("objects may be left: {kind} cannot be watched: {words}"),
            None => format!("waits for the list of {kind}, of which objects may be left"),
        }
    }

    /// The rows of which the API server, or we, say why they are not as wanted.
    fn refused<'a>(&self, rows: &'a [Resource]) -> impl Iterator<Item = &'a Resource> {
        rows.iter()
            .filter(|row| row.status == Some(SyncStatus::NotSynced) && !row.error.is_empty())
            .filter(|row| !self.is_left(row))
    }

    /// Whether it is open how an object is. One that was in line and has not been looked at since a restart is taken to be so still.
    fn is_unknown(&self, key: &ObjectKey, sync: &Sync) -> bool {
        sync.state == SyncState::Unverified && self.row(key).is_none_or(|row| !self.stands(row))
    }

    /// Why what is not as wanted is so. Where none of it is wanted, all of that which fails is to go.
    fn failing_reason(&self, decisions: &Decisions, rows: &[Resource]) -> Reason {
        let is_wanted = |row: &Resource| decisions.wanted.contains_key(&key_of(row));
        let mut refused = self.refused(rows).peekable();
        if refused.peek().is_some() && !refused.any(is_wanted) {
            Reason::FailedToDeleteObjects
        } else {
            applied_reason(decisions)
        }
    }

    fn unhealthy(&self, row: &Resource) -> Option<String> {
        let health = row.health?;
        if matches!(health, Health::Current | Health::Unknown) {
            return None;
        }
        let object = self.objects.get(&key_of(row));
        let seen = object.and_then(|object| object.memory.health.as_ref());
        let message = seen.map(|seen| seen.message.as_str()).unwrap_or_default();
        Some(format!("{} {} is {health}: {message}", row.kind, row.name))
    }
}

impl Wait {
    /// What somebody has to say before so many objects go, if that is waited for.
    pub fn approval(&self, owner: OwnerKind) -> Option<String> {
        let Self::PruneApproval { digest, objects } = self else {
            return None;
        };
        Some(format!(
            "{objects} objects that left the {owner} would be deleted, more than pruneLimit allows; to allow it set the annotation {}: {digest}",
            crds::labels::APPROVE_PRUNE
        ))
    }

    /// Why only somebody's action helps, if it is so.
    pub fn stall(&self, decisions: &Decisions, deleting: bool) -> Option<(Reason, String)> {
        let Self::Object { key, message } = self else {
            return None;
        };
        let wanted = decisions.wanted.get(key);
        let is_contested = wanted.is_some_and(|sync| matches!(sync.state, SyncState::Contested { .. }));
        // Nobody is kept from anything: that the objects of an owner that is to go stay as they are is meant.
        if is_contested || deleting && wanted.is_some() {
            return None;
        }
        let reason = if wanted.is_none() {
            Reason::FailedToDeleteObjects
        } else {
            applied_reason(decisions)
        };
        Some((reason, format!("{} {}: {message}", key.kind, key.name)))
    }

    /// What is said while this is waited for before all others, of which `all` has those that are alike.
    pub fn progress<'a>(&'a self, all: impl Iterator<Item = &'a Self>) -> String {
        match self {
            Self::Health { .. } => "waits until objects are healthy".to_owned(),
            Self::Object { key, .. } => format!("{} {} is put back again by itself", key.kind, key.name),
            Self::Holder { release } => format!("waits until release {release} says what it applied"),
            Self::Kind { .. } => awaited_kinds(all.filter_map(|wait| match wait {
                Self::Kind { group_kind } => Some(group_kind),
                _ => None,
            })),
            Self::List { .. } | Self::PruneApproval { .. } => "waits".to_owned(),
        }
    }
}

fn told(row: &Resource) -> (String, &str) {
    (format!("{} {}", row.kind, row.name), &row.error)
}

/// Everything is applied; the message tells what is left otherwise, and what a newer release has.
fn installed(rows: &[Resource]) -> Finding {
    let superseded: Vec<(String, String)> = rows.iter().filter_map(handed_over).collect();
    let superseded = superseded.iter().map(|(object, why)| (object.clone(), why.as_str()));
    let left = rows.iter().filter(|row| !row.error.is_empty()).map(told);
    let message = refusals(left.chain(superseded));
    if message.is_empty() {
        return Finding::holds(TYPE);
    }
    let drifted = |row: &Resource| !row.error.is_empty() && row.left != Some(Left::InNewerForm);
    let reason = if rows.iter().any(drifted) {
        Reason::Drifted
    } else {
        Reason::InNewerForm
    };
    Finding::holds_because(TYPE, reason, message)
}

fn handed_over(row: &Resource) -> Option<(String, String)> {
    let release = Some(&row.superseded_by).filter(|release| !release.is_empty())?;
    let why = format!("release {release}, which is newer, has it in the form that it wants");
    Some((format!("{} {}", row.kind, row.name), why))
}

/// The most telling reason among the objects that are wanted and not in line.
fn applied_reason(decisions: &Decisions) -> Reason {
    let any = |test: fn(&SyncState) -> bool| decisions.wanted.values().any(|sync| test(&sync.state));
    if any(|state| matches!(state, SyncState::Failed { .. })) {
        Reason::FailedToApplyObjects
    } else if any(|state| matches!(state, SyncState::Contested { .. })) {
        Reason::Contested
    } else if any(|state| matches!(state, SyncState::KindMissing)) {
        Reason::KindNotFound
    } else if any(|state| matches!(state, SyncState::Missing { .. })) {
        Reason::Drifted
    } else {
        Reason::ObjectsApplyingOngoing
    }
}
