//! How whoever asks is told that a cluster is held up: why, since when, until when, and how to go on all the same.

use std::collections::BTreeSet;

use crds::cluster_addon::{StageProgress, name_for};
use crds::conditions::Reason;
use crds::labels::SKIP_HOOK;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::{Call, HookAnswer, HookStatus};
use super::cluster::ClusterSeen;
use super::hook::Hook;

/// Seconds until a call is made again that is held up. Since 1.12 Cluster API notices with the next call only that it may go on.
const HELD: u32 = 5;
/// The same where nobody has looked at what the Cluster wants yet.
const UNSEEN: u32 = 2;
/// Longest words of others in an answer, in bytes. Cluster API puts the answers of all extensions into one condition.
const WORDS: usize = 512;
/// Longest entry of the annotation that is repeated, in bytes.
const ENTRY: usize = 128;

/// Since when Cluster API says that a Cluster waits.
///
/// Of what nobody has looked at, no status says since when. No process remembers it either: Cluster API writes each answer into a condition of the Cluster, and
/// asks whichever replica it reaches, so that what only one of them knows would change that with every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waits {
    /// Nobody knows: the watch of Clusters has not shown this one.
    #[default]
    Unseen,
    /// It has not said so yet: it has just begun to ask.
    NotYet,
    /// Since then.
    Since(Timestamp),
}

impl Waits {
    /// What is known from the Cluster that a watch shows, for a call about this one; an earlier one of its name says nothing.
    pub fn of(shown: Option<&ClusterSeen>, asked: &ClusterSeen) -> Self {
        match shown {
            Some(shown) if shown.is_asked_about(asked) => shown.unreconciled_since.map_or(Self::NotYet, Self::Since),
            Some(_) | None => Self::Unseen,
        }
    }
}

/// What takes the annotation that lets a cluster go on.
pub(super) enum SkippedOn {
    ClusterAddon,
    /// While there is no ClusterAddon.
    Cluster,
}

/// Why a cluster is held up.
pub(super) struct Hold {
    pub(super) retry: u32,
    pub(super) skipped_on: SkippedOn,
    pub(super) reason: String,
    pub(super) message: String,
    /// Where that is written down; otherwise it is since the Cluster waits.
    pub(super) since: Option<Timestamp>,
    pub(super) deadline: Option<Timestamp>,
}

impl Hold {
    pub(super) fn new(reason: &str, message: &str) -> Self {
        let cut = message.floor_char_boundary(WORDS);
        Self {
            retry: HELD,
            skipped_on: SkippedOn::ClusterAddon,
            reason: reason.to_owned(),
            message: message[..cut].to_owned(),
            since: None,
            deadline: None,
        }
    }

    pub(super) fn unseen(message: &str) -> Self {
        Self {
            retry: UNSEEN,
            ..Self::new(Reason::NotObservedYet.as_str(), message)
        }
    }

    /// The operator that leads has something to do first, which it does unless something is wrong with it.
    pub(super) fn undone(message: &str) -> Self {
        Self::unseen(&format!(
            "{message}; if that stays, the log of the operator that leads says why"
        ))
    }

    pub(super) fn of_row(row: &StageProgress, now: Timestamp) -> Self {
        let StageProgress {
            name, action, phase, ..
        } = row;
        let hook = row.hook.as_deref().unwrap_or_default();
        let message = row.message.as_deref().unwrap_or("its turn has not come");
        let deadline = row.deadline.as_ref().map(|time| time.0);
        let late = if deadline.is_some_and(|deadline| deadline <= now) {
            ", for too long"
        } else {
            ""
        };
        let reason = row.reason.as_deref().unwrap_or(Reason::Progressing.as_str());
        Self {
            since: row.since.as_ref().map(|time| time.0),
            deadline,
            ..Self::new(
                reason,
                &format!("stage {name} ({action}) of {hook} is {phase}{late}: {message}"),
            )
        }
    }

    /// What whoever asks is told; `skipped` is what the annotation says that lets the cluster go on.
    pub(super) fn answer(self, call: &Call, skipped: &BTreeSet<(Hook, String)>, waits: Waits) -> HookAnswer {
        let cluster = &call.cluster;
        let since = self.since(call, waits);
        let deadline = self
            .deadline
            .map_or_else(|| "none".to_owned(), |deadline| deadline.to_string());
        let (namespace, skips) = (&cluster.namespace, with_this_one(skipped, call));
        let object = match self.skipped_on {
            SkippedOn::ClusterAddon => format!("clusteraddon {}", name_for(&cluster.name)),
            SkippedOn::Cluster => format!("cluster {}", cluster.name),
        };
        let Self { reason, message, .. } = &self;
        HookAnswer {
            status: HookStatus::Success,
            retry_after_seconds: self.retry,
            message: format!(
                "{reason}: {message} (since {since}, deadline {deadline}); to go on without it: kubectl --namespace {namespace} annotate \
                 --overwrite {object} {SKIP_HOOK}={skips}"
            ),
        }
    }

    /// The same, and that the annotation does not help as it is written.
    pub(super) fn misspelt(self, entry: &str) -> Self {
        let cut = entry.floor_char_boundary(ENTRY);
        let message = format!(
            "{}; no hook is meant by {:?} in the annotation {SKIP_HOOK}",
            self.message,
            &entry[..cut]
        );
        Self { message, ..self }
    }

    /// Cluster API asks whether it may make a cluster before it makes anything of it, so that this one has waited since it is there.
    fn since(&self, call: &Call, waits: Waits) -> String {
        let made = call.created.filter(|_| call.hook == Hook::BeforeClusterCreate);
        match (self.since.or(made), waits) {
            (Some(since), _) | (None, Waits::Since(since)) => since.to_string(),
            (None, Waits::NotYet) => "just now".to_owned(),
            (None, Waits::Unseen) => "unknown".to_owned(),
        }
    }
}

/// What the annotation is to say, so that the cluster goes on without this hook and still goes on without those before: in an upgrade by several steps they are called
/// again. What is said of another class holds for another upgrade, so that there is an entry for each hook at most.
fn with_this_one(skipped: &BTreeSet<(Hook, String)>, call: &Call) -> String {
    let class = call.cluster.class();
    let of_this_class = skipped.iter().filter(|(_, skipped_for)| skipped_for == class);
    let mut hooks: BTreeSet<Hook> = of_this_class.map(|(hook, _)| *hook).collect();
    hooks.insert(call.hook);
    let entries: Vec<String> = hooks.into_iter().map(|hook| format!("{hook}@{class}")).collect();
    entries.join(",")
}
