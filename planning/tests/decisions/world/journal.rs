//! What happened, as text that a reviewer reads in a diff: actions of plans in order, and what changed in status.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::ClusterStackStatus;
use crds::cluster_stack_release::ClusterStackReleaseStatus;
use crds::conditions::{Condition, ConditionStatus};
use crds::resource::{Resource, SyncStatus};
use planning::objects::{Action, ObjectAction, key_of};
use planning::release::ReleaseAction;
use planning::stack::StackAction;

#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    lines: Vec<String>,
    /// The status of each object as it was last told.
    told: BTreeMap<String, Vec<String>>,
    /// What broke a rule that holds always; the properties assert that there is nothing.
    pub(crate) violations: Vec<String>,
}

impl Journal {
    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    pub(crate) fn violation(&mut self, line: impl Into<String>) {
        let line = line.into();
        self.lines.push(format!("VIOLATION: {line}"));
        self.violations.push(line);
    }

    /// # Panics
    /// When a rule was broken.
    pub(crate) fn assert_no_violations(&mut self) {
        let lines = self.take();
        assert!(
            self.violations.is_empty(),
            "{:#?} after\n{}",
            self.violations,
            lines.join("\n")
        );
    }

    /// What was said since the last call.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Says which lines of a status are new since it was last told.
    pub(crate) fn status(&mut self, subject: &str, card: &[String]) {
        let before = self.told.insert(subject.to_owned(), card.to_vec()).unwrap_or_default();
        let head = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        let heads: BTreeSet<String> = card.iter().map(|line| head(line)).collect();
        for gone in before
            .iter()
            .map(|line| head(line))
            .filter(|head| !heads.contains(head))
        {
            self.say(format!("{subject} · no longer {gone}"));
        }
        for new in card.iter().filter(|line| !before.contains(line)) {
            self.say(format!("{subject} · {new}"));
        }
    }
}

pub(crate) fn of_stack(action: &StackAction) -> String {
    match action {
        StackAction::CreateRelease { tag, spec, .. } => {
            let provider = spec.provider_ref.as_ref().and_then(|reference| reference.kind.clone());
            format!(
                "create release {tag}{}",
                provider
                    .map(|kind| format!(" with provider {kind}"))
                    .unwrap_or_default()
            )
        }
        StackAction::UpdateRelease { tag, adopt, .. } => {
            format!("update release {tag}{}", if *adopt { " and adopt it" } else { "" })
        }
        StackAction::DeleteRelease { tag, .. } => format!("delete release {tag}"),
        StackAction::ApplyProviderObject { reference, .. } => format!(
            "apply {} {}",
            reference.kind.as_deref().unwrap_or_default(),
            reference.name.as_deref().unwrap_or_default()
        ),
        StackAction::DeleteOrphan { class, .. } => format!("delete orphan {class}"),
    }
}

pub(crate) fn of_release(action: &Action<ReleaseAction>) -> String {
    match action {
        Action::Object(action) => of_object(action),
        Action::Own(ReleaseAction::Mark { group_kinds }) => {
            let kinds: Vec<&str> = group_kinds.iter().map(|group_kind| group_kind.kind.as_str()).collect();
            format!("mark [{}]", kinds.join(", "))
        }
        Action::Own(ReleaseAction::ControlProvider { .. }) => "control the provider's object".to_owned(),
        Action::Own(ReleaseAction::RecordInventory { status }) => {
            format!("record an inventory of {}", status.resources.len())
        }
        Action::Own(ReleaseAction::RemoveFinalizer) => "remove the finalizer".to_owned(),
    }
}

fn of_object(action: &ObjectAction) -> String {
    match action {
        ObjectAction::Apply { key, why, force } => {
            format!(
                "apply {} {} ({why:?}{})",
                key.kind,
                key.name,
                if *force { ", forced" } else { "" }
            )
        }
        ObjectAction::Check { key } => format!("check {} {}", key.kind, key.name),
        ObjectAction::Read { key } => format!("read {} {}", key.kind, key.name),
        ObjectAction::TakeOver { key } => format!("take over {} {}", key.kind, key.name),
        ObjectAction::Delete { key, .. } => format!("delete {} {}", key.kind, key.name),
    }
}

/// The status of a stack, one fact a line, the fact's name before the first colon.
pub(crate) fn stack_card(status: &ClusterStackStatus) -> Vec<String> {
    let mut card = Vec::new();
    card.extend(status.latest_release.iter().map(|latest| format!("latest: {latest}")));
    card.extend(status.usable_versions.iter().map(|usable| format!("usable: {usable}")));
    card.extend(status.next_release.iter().map(|next| format!("next: {next}")));
    for summary in &status.summary {
        let message = summary
            .message
            .as_ref()
            .map(|message| format!(" ({message})"))
            .unwrap_or_default();
        card.push(format!("{}: {}{message}", summary.name, summary.phase));
    }
    card.extend(status.conditions.iter().filter_map(condition));
    card.extend(
        status
            .last_handled_reconcile_at
            .iter()
            .map(|at| format!("handled request: {at}")),
    );
    card
}

/// The status of a release, as above.
pub(crate) fn release_card(status: &ClusterStackReleaseStatus) -> Vec<String> {
    let mut card = vec![format!("ready: {}", status.ready)];
    card.extend(status.resources.iter().map(row));
    let approved = status.resources.iter().filter(|row| row.prune_approved).count();
    let digest = status.approved_prune.iter();
    card.extend(digest.map(|digest| format!("approved prune: {digest}, {approved} left")));
    card.extend(status.conditions.iter().filter_map(condition));
    card
}

fn row(row: &Resource) -> String {
    let key = key_of(row);
    let mut text = format!("{} {}: ", key.kind, key.name);
    text.push_str(match row.status {
        Some(SyncStatus::Synced) => "synced",
        Some(SyncStatus::NotSynced) => "not synced",
        None => "unknown",
    });
    if let Some(health) = row.health {
        text.extend([", ", &health.to_string()]);
    }
    if !row.superseded_by.is_empty() {
        text.extend([", superseded by ", &row.superseded_by]);
    }
    if !row.manager.is_empty() {
        text.extend([", also managed by ", &row.manager]);
    }
    if !row.error.is_empty() {
        text.extend([" (", &row.error, ")"]);
    }
    text
}

/// Ready and whatever is not well; conditions that simply hold say nothing new.
fn condition(condition: &Condition) -> Option<String> {
    let plain = condition.status == ConditionStatus::True && condition.reason.is_none();
    let name = &condition.type_;
    match (plain, name.as_str()) {
        (true, "Ready") => Some(format!("{name}: True")),
        (true, _) => None,
        (false, _) => Some(format!(
            "{name}: {} {} {}",
            condition.status,
            condition.reason.as_deref().unwrap_or_default(),
            condition.message.as_deref().unwrap_or_default()
        )),
    }
}
