//! How the objects of each stage are, as far as that can be seen: whether its work is done, what is left of it, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::StageAction;
use crds::conditions::Reason;
use jiff::Timestamp;

use super::course::{Kind, Stage, StageKey, Stages, charts_that_stay};
use super::observed::{AddonObserved, ChartSeen};
use super::stage::Work;
use crate::object_key::{GroupKind, ObjectKey};
use crate::objects::{
    Decisions, Fate, ObjectAction, ObjectObserved, Rendering, Sync, SyncState, awaited_kinds, refusals,
};

/// What was seen of the work of stages.
#[derive(Default)]
pub(super) struct Works {
    of_stages: BTreeMap<StageKey, Work>,
    /// How the objects are that charts ask for, by chart.
    syncs: BTreeMap<String, BTreeMap<ObjectKey, Sync>>,
}

impl Works {
    /// Looks at all stages, whichever of them has its turn.
    pub(super) fn of(observed: &AddonObserved, kind: Kind, layout: &Stages, stages: &[Stage], now: Timestamp) -> Self {
        let mut works = Self {
            of_stages: BTreeMap::new(),
            syncs: syncs(observed, stages, now),
        };
        let spared = Spared::of(observed, kind, layout, stages);
        for (place, stage) in stages.iter().enumerate() {
            let key = &stage.key;
            let work = match (unready(observed, kind, key), key.action) {
                (Some(work), _) => work,
                (None, StageAction::Apply) => works.application(observed, &key.name, &stages[place + 1..]),
                (None, StageAction::Delete) => deletion(observed, &key.name, &spared, now),
            };
            works.of_stages.insert(key.clone(), work);
        }
        works
    }

    /// How the work of a stage is.
    pub(super) fn work(&self, key: &StageKey) -> Work {
        self.of_stages.get(key).cloned().unwrap_or_default()
    }

    /// What has to be looked at to know how the objects of a chart are.
    pub(super) fn looks(&self, chart: &str) -> impl Iterator<Item = &ObjectAction> {
        let syncs = self.syncs.get(chart).into_iter().flatten();
        syncs
            .filter_map(|(_, sync)| sync.action.as_ref())
            .filter(|action| matches!(action, ObjectAction::Check { .. } | ObjectAction::Read { .. }))
    }

    /// An object that a later stage takes over is as it is to be when it is as that one wants it.
    fn application(&self, observed: &AddonObserved, chart: &str, later: &[Stage]) -> Work {
        let empty = BTreeMap::new();
        let syncs = self.syncs.get(chart).unwrap_or(&empty);
        let is_taken_over = |key: &ObjectKey| {
            let charts = later.iter().filter(|stage| stage.key.action == StageAction::Apply);
            let mut syncs = charts.filter_map(|stage| self.syncs.get(&stage.key.name)?.get(key));
            syncs.any(|sync| sync.state.is_settled())
        };
        let open = syncs.iter();
        let open = open.filter(|(key, sync)| !sync.state.is_settled() && !is_taken_over(key));
        application(
            observed,
            &open.map(|(key, sync)| (key, &sync.state)).collect::<Vec<_>>(),
        )
    }
}

/// The objects that stay when a course is over, because charts ask for them that do.
pub(super) struct Spared<'a> {
    keys: BTreeSet<&'a ObjectKey>,
    /// Those of these charts of which the inventory tells what is theirs.
    charts: BTreeSet<String>,
    /// The first of these charts of which nobody knows what it asks for.
    pub(super) unknown: Option<String>,
}

impl<'a> Spared<'a> {
    pub(super) fn of(observed: &'a AddonObserved, kind: Kind, layout: &Stages, stages: &[Stage]) -> Self {
        let last = last_actions(stages);
        let is_deleted = |chart: &String| last.get(chart.as_str()) == Some(&StageAction::Delete);
        let charts: BTreeSet<String> = match kind {
            // All else goes with the cluster.
            Kind::Deletion => last.keys().map(|chart| (*chart).to_owned()).collect(),
            Kind::Creation | Kind::Upgrade => charts_that_stay(kind, layout),
        };
        let mut spared = Self {
            keys: BTreeSet::new(),
            charts: BTreeSet::new(),
            unknown: None,
        };
        for chart in charts.into_iter().filter(|chart| !is_deleted(chart)) {
            match observed.intents_of(&chart) {
                Some(intents) => spared.keys.extend(intents.keys()),
                None if goes_by_inventory(observed, kind, &chart) => {
                    spared.charts.insert(chart);
                }
                None => spared.unknown = spared.unknown.or(Some(chart)),
            }
        }
        spared
    }
}

/// What each chart is used for last.
fn last_actions(stages: &[Stage]) -> BTreeMap<&str, StageAction> {
    let stages = stages.iter();
    stages
        .map(|stage| (stage.key.name.as_str(), stage.key.action))
        .collect()
}

fn syncs(observed: &AddonObserved, stages: &[Stage], now: Timestamp) -> BTreeMap<String, BTreeMap<ObjectKey, Sync>> {
    let none = BTreeSet::new();
    let applied = stages.iter().filter(|stage| stage.key.action == StageAction::Apply);
    let charts: BTreeSet<&String> = applied.map(|stage| &stage.key.name).collect();
    charts
        .into_iter()
        .filter_map(|chart| {
            let intents = observed.intents_of(chart)?;
            let set = observed.set(Some(intents), &observed.objects, &none);
            Some((chart.clone(), set.syncs(now)))
        })
        .collect()
}

/// Whether the inventory alone tells what is of a chart, because that does not render. What is to go before a deletion cannot be made good: somebody may have
/// deleted what the values are made of together with the Cluster.
pub(super) fn goes_by_inventory(observed: &AddonObserved, kind: Kind, chart: &str) -> bool {
    kind == Kind::Deletion && observed.charts.get(chart).is_some_and(ChartSeen::has_failed)
}

/// What keeps a stage from its work, if its chart does.
fn unready(observed: &AddonObserved, kind: Kind, stage: &StageKey) -> Option<Work> {
    let chart = stage.name.as_str();
    if stage.action == StageAction::Delete && goes_by_inventory(observed, kind, chart) {
        return None;
    }
    let failed = |reason, message: &String| {
        Some(Work::Failed {
            reason,
            message: message.clone(),
        })
    };
    match observed.charts.get(chart) {
        None | Some(ChartSeen::Found(Rendering::NotRendered)) => Some(Work::Unknown),
        Some(ChartSeen::Missing { message }) => failed(Reason::HelmChartMissing, message),
        Some(ChartSeen::Found(
            Rendering::Failed { message, .. }
            | Rendering::Awaited {
                failed: Some(message), ..
            },
        )) => failed(Reason::TemplateNewClusterStackFailed, message),
        Some(ChartSeen::Found(Rendering::Awaited { failed: None })) => Some(Work::Ongoing {
            message: "its chart takes long to render, or many are before it".to_owned(),
        }),
        Some(ChartSeen::Found(Rendering::Rendered { .. })) => None,
    }
}

/// The work of a stage that applies, of whose objects these are not as they are wanted.
fn application(observed: &AddonObserved, open: &[(&ObjectKey, &SyncState)]) -> Work {
    if open.is_empty() {
        return Work::Done;
    }
    let refused = open.iter().filter_map(|(key, state)| match state {
        SyncState::Failed { message } | SyncState::Contested { message } => {
            Some((format!("{} {}", key.kind, key.name), message.as_str()))
        }
        _ => None,
    });
    let message = refusals(refused);
    if !message.is_empty() {
        let is_refused = |(_, state): &(_, &SyncState)| matches!(state, SyncState::Failed { .. });
        let reason = if open.iter().any(is_refused) {
            Reason::FailedToApplyObjects
        } else {
            Reason::Contested
        };
        return Work::Failed { reason, message };
    }
    let unserved = open.iter().filter(|(_, state)| **state == SyncState::KindMissing);
    let kinds: BTreeSet<GroupKind> = unserved.map(|(key, _)| key.group_kind()).collect();
    let message = if !kinds.is_empty() {
        awaited_kinds(kinds.iter())
    } else if open.iter().any(|(_, state)| **state == SyncState::Pending) {
        "objects are being applied".to_owned()
    } else if let Some((kind, words)) = observed.unwatched.first_key_value() {
        format!("objects have not been looked at yet: {kind} cannot be watched: {words}")
    } else {
        "objects have not been looked at yet".to_owned()
    };
    Work::Ongoing { message }
}

/// The work of a stage that deletes what comes from a chart.
fn deletion(observed: &AddonObserved, chart: &str, spared: &Spared<'_>, now: Timestamp) -> Work {
    let ongoing = |message: String| Work::Ongoing { message };
    if let Some(other) = &spared.unknown {
        return ongoing(format!(
            "waits until the chart {other} is rendered, which may ask for some of its objects"
        ));
    }
    let (doomed, none) = (doomed(observed, chart, spared), BTreeSet::new());
    let set = observed.set(None, &doomed, &none);
    if let Some(kind) = unlisted(observed, chart) {
        return ongoing(set.unlisted(kind));
    }
    let decisions = set.removal(now);
    if decisions.is_over() {
        return Work::Done;
    }
    match undeleted(&decisions) {
        Some(message) => Work::Failed {
            reason: Reason::FailedToDeleteObjects,
            message,
        },
        None => ongoing(set.going(&decisions)),
    }
}

/// A kind that may have objects of a chart which nobody has seen.
///
/// The list of one that the chart asks for, or has objects of, is waited for as long as it takes. That of any other matters only because the inventory may have been lost,
/// as when somebody moved the Cluster: it is waited for while it is on its way, but a kind that another chart brought, perhaps long ago, and that cannot be listed holds
/// nothing up.
fn unlisted<'a>(observed: &'a AddonObserved, chart: &str) -> Option<&'a GroupKind> {
    let rows = observed.status.resources.iter();
    let rows = rows.filter(|row| row.stage.is_empty() || row.stage == chart);
    let mut kinds: BTreeSet<GroupKind> = rows.map(|row| crate::objects::key_of(row).group_kind()).collect();
    let asked_for = observed.intents_of(chart).into_iter().flatten();
    kinds.extend(asked_for.map(|(key, _)| key.group_kind()));
    let mut unlisted = observed.unlisted.difference(&observed.forbidden);
    unlisted.find(|kind| kinds.contains(*kind) || !observed.unwatched.contains_key(*kind))
}

/// The objects that a stage deletes: those that come from its chart, or that it asks for, unless a chart that stays asks for them too. Where nobody knows what
/// that one asks for, it is what comes from it.
pub(super) fn doomed(
    observed: &AddonObserved,
    chart: &str,
    spared: &Spared<'_>,
) -> BTreeMap<ObjectKey, ObjectObserved> {
    let origins = origins(observed);
    let is_asked_for = |key: &ObjectKey| {
        let intents = observed.intents_of(chart);
        intents.is_some_and(|intents| intents.contains_key(key))
    };
    let comes_from = |key: &ObjectKey| origins.get(key).is_some_and(|origin| *origin == chart);
    let is_spared = |key: &ObjectKey| {
        let of_chart = |origin: &&str| spared.charts.contains(*origin);
        spared.keys.contains(key) || origins.get(key).is_some_and(of_chart)
    };
    let objects = observed.objects.iter();
    objects
        .filter(|(key, _)| !is_spared(key) && (comes_from(key) || is_asked_for(key)))
        .map(|(key, object)| (key.clone(), object.clone()))
        .collect()
}

/// The charts that objects come from, as the status has it, or as they say themselves.
pub(super) fn origins(observed: &AddonObserved) -> BTreeMap<ObjectKey, &str> {
    let shown = observed.origins.iter();
    let mut origins: BTreeMap<ObjectKey, &str> = shown.map(|(key, chart)| (key.clone(), chart.as_str())).collect();
    let named = observed.status.resources.iter().filter(|row| !row.stage.is_empty());
    origins.extend(named.map(|row| (crate::objects::key_of(row), row.stage.as_str())));
    origins
}

/// What could not be deleted, and why.
pub(super) fn undeleted(decisions: &Decisions) -> Option<String> {
    let failed = decisions.leftovers.iter().filter_map(|(key, fate)| match fate {
        Fate::Failed { message, .. } => Some((format!("{} {}", key.kind, key.name), message.as_str())),
        Fate::Gone | Fate::LeftAlone | Fate::Going { .. } => None,
    });
    Some(refusals(failed)).filter(|message| !message.is_empty())
}
