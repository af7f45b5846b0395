//! Which objects the add-ons of a cluster have now, which of them are held back, and which have to go: what the stages that have begun say.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::StageAction;
use jiff::Timestamp;

use super::action::Step;
use super::course::charts_that_stay;
use super::observed::AddonObserved;
use super::outlook::{Outlook, Way, is_reached};
use super::work::{Spared, doomed, goes_by_inventory, origins};
use crate::object_key::ObjectKey;
use crate::objects::{Action, Decisions, Intent, ObjectAction, ObjectObserved, ObjectSet};

/// The objects, parted.
///
/// What stages that have begun ask for is wanted, each object as the last of them wants it. What a stage takes away that has begun is doomed. All else that is
/// there stays as it is until the way is gone to its end: then what no chart asks for that stays is left over.
pub(super) struct Belongings {
    /// What is wanted.
    intents: BTreeMap<ObjectKey, Intent>,
    /// The chart that wants it.
    charts: BTreeMap<ObjectKey, String>,
    /// These charts, in the order in which they were applied.
    order: Vec<String>,
    /// What is there, or is wanted or doomed.
    objects: BTreeMap<ObjectKey, ObjectObserved>,
    /// What is neither written nor removed.
    held: BTreeSet<ObjectKey>,
    /// What stages take away.
    doomed: BTreeMap<ObjectKey, ObjectObserved>,
    /// The chart of which has to be known what it asks for before what is left over may go.
    unknown: Option<String>,
    /// Whether anything of this can be looked at.
    is_reached: bool,
}

impl Belongings {
    pub(super) fn of(outlook: &Outlook<'_>) -> Self {
        let observed = outlook.observed;
        let mut belongings = Self {
            intents: BTreeMap::new(),
            charts: BTreeMap::new(),
            order: Vec::new(),
            objects: there(observed),
            held: BTreeSet::new(),
            doomed: BTreeMap::new(),
            unknown: None,
            is_reached: false,
        };
        if let Some(way) = &outlook.way
            && is_reached(observed, outlook.cluster)
        {
            belongings.is_reached = true;
            belongings.follow(way, observed);
        }
        belongings
    }

    fn follow(&mut self, way: &Way<'_>, observed: &AddonObserved) {
        let begun = way.begun();
        for (chart, action) in &begun {
            if let (Some(intents), StageAction::Apply) = (observed.intents_of(chart), action) {
                self.want(chart, intents);
            }
        }
        let spared = Spared::of(observed, way.course.kind, way.layout, &way.stages);
        for (chart, action) in &begun {
            let is_told = observed.intents_of(chart).is_some() || goes_by_inventory(observed, way.course.kind, chart);
            if *action == StageAction::Delete && is_told && spared.unknown.is_none() {
                self.doom(chart, observed, &spared, way);
            }
        }
        self.hold(way, &begun, observed);
        for key in self.intents.keys() {
            if let Some(object) = observed.objects.get(key) {
                self.objects.insert(key.clone(), object.clone());
            }
        }
        self.objects.extend(self.doomed.clone());
    }

    /// Holds back what is neither wanted nor doomed, until the way is gone to its end: then only what charts have a claim to that stay, and that this way does
    /// not come by. While one of these is not known, it may have one to anything.
    fn hold(&mut self, way: &Way<'_>, begun: &[(&str, StageAction)], observed: &AddonObserved) {
        let mut others = charts_that_stay(way.course.kind, way.layout);
        others.retain(|chart| !self.order.contains(chart));
        let claimed = objects_of(&others, observed);
        let is_rest = |key: &&ObjectKey| !self.intents.contains_key(*key) && !self.doomed.contains_key(*key);
        self.held = self.objects.keys().filter(is_rest).cloned().collect();
        if !way.may_prune() || self.held.is_subset(&claimed) {
            return;
        }
        let begun = begun.iter().map(|(chart, _)| *chart);
        let mut charts = begun.chain(others.iter().map(String::as_str));
        self.unknown = charts
            .find(|chart| observed.intents_of(chart).is_none())
            .map(str::to_owned);
        if self.unknown.is_none() {
            self.held.retain(|key| claimed.contains(key));
        }
    }

    fn want(&mut self, chart: &str, intents: &BTreeMap<ObjectKey, Intent>) {
        self.order.push(chart.to_owned());
        for (key, intent) in intents {
            self.intents.insert(key.clone(), intent.clone());
            self.charts.insert(key.clone(), chart.to_owned());
        }
    }

    /// While the stage is at work, also what nobody knows to be there; afterwards what is.
    fn doom(&mut self, chart: &str, observed: &AddonObserved, spared: &Spared<'_>, way: &Way<'_>) {
        let mut open = way.course.open();
        let is_open = open.any(|stage| stage.key.name == chart && stage.key.action == StageAction::Delete);
        let doomed = doomed(observed, chart, spared);
        let doomed = doomed
            .into_iter()
            .filter(|(key, _)| !self.intents.contains_key(key) && (is_open || self.objects.contains_key(key)));
        self.doomed.extend(doomed.collect::<Vec<_>>());
    }

    /// The objects for whoever tells of them.
    pub(super) fn set<'a>(&'a self, observed: &'a AddonObserved) -> ObjectSet<'a> {
        observed.set(Some(&self.intents), &self.objects, &self.held)
    }

    /// What becomes of them.
    pub(super) fn decisions(&self, observed: &AddonObserved, now: Timestamp) -> Decisions {
        if !self.is_reached {
            return self.set(observed).untouched();
        }
        let mut others = self.objects.clone();
        others.retain(|key, _| !self.doomed.contains_key(key));
        let mut decisions = observed.set(Some(&self.intents), &others, &self.held).installation(now);
        let none = BTreeSet::new();
        let removed = observed.set(None, &self.doomed, &none).removal(now);
        decisions.leftovers.extend(removed.leftovers);
        decisions
    }

    /// The chart that what is left over waits for, since it may ask for some of it.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// The chart that an object is of.
    pub(super) fn chart_of(&self, key: &ObjectKey) -> Option<&str> {
        self.charts.get(key).map(String::as_str)
    }

    /// What brings that about: looks, then each chart by itself, so that one that does not get on holds up no wave of another; then deletions.
    pub(super) fn steps(&self, set: &ObjectSet<'_>, decisions: &Decisions, way: Option<&Way<'_>>) -> Vec<Step> {
        let wanted = self.order.iter().map(|chart| {
            let wanted = decisions.wanted.iter();
            let of_chart = wanted.filter(|(key, _)| self.chart_of(key) == Some(chart));
            Decisions {
                wanted: of_chart.map(|(key, sync)| (key.clone(), sync.clone())).collect(),
                ..Decisions::default()
            }
        });
        let leftovers = Decisions {
            leftovers: decisions.leftovers.clone(),
            ..Decisions::default()
        };
        let (mut looks, mut steps) = (Step::default(), Vec::new());
        for step in wanted.chain([leftovers]).flat_map(|part| part.steps(set)) {
            if step.gate {
                steps.push(step);
            } else {
                looks.actions.extend(step.actions);
            }
        }
        let ahead = way.into_iter().flat_map(|way| self.looks_ahead(way));
        looks.actions.extend(ahead.cloned().map(Action::Object));
        looks.actions.sort_by(|one, other| one.object().cmp(&other.object()));
        if !looks.actions.is_empty() {
            steps.insert(0, looks);
        }
        steps
    }

    /// The chart whose form of each object these steps are about.
    pub(super) fn charts_of(&self, steps: &[Step], way: Option<&Way<'_>>) -> BTreeMap<ObjectKey, String> {
        let ahead = way.into_iter().flat_map(Way::about_to_begin).flat_map(|stage| {
            let chart = &stage.key.name;
            let looks = way.into_iter().flat_map(|way| way.works.looks(chart));
            looks.map(move |look| (look.key(), chart))
        });
        let mut charts: BTreeMap<&ObjectKey, &String> = ahead.collect();
        charts.extend(&self.charts);
        let actions = steps.iter().flat_map(Step::on_objects);
        actions
            .filter(|action| matches!(action, ObjectAction::Apply { .. } | ObjectAction::Check { .. }))
            .filter_map(|action| Some((action.key().clone(), (*charts.get(action.key())?).clone())))
            .collect()
    }

    /// What has to be known of a stage before it begins: if nothing is left to do, nobody waits for what must hold before.
    fn looks_ahead<'a>(&'a self, way: &'a Way<'_>) -> impl Iterator<Item = &'a ObjectAction> {
        let looks = way
            .about_to_begin()
            .filter(|stage| stage.key.action == StageAction::Apply)
            .flat_map(|stage| way.works.looks(&stage.key.name));
        looks.filter(|look| !self.intents.contains_key(look.key()))
    }
}

/// What comes from these charts, or is asked for by them.
fn objects_of(charts: &BTreeSet<String>, observed: &AddonObserved) -> BTreeSet<ObjectKey> {
    let come_from = origins(observed);
    let come_from = come_from.into_iter().filter(|(_, chart)| charts.contains(*chart));
    let mut keys: BTreeSet<ObjectKey> = come_from.map(|(key, _)| key).collect();
    let asked_for = charts.iter().filter_map(|chart| observed.intents_of(chart));
    keys.extend(asked_for.flat_map(|intents| intents.keys().cloned()));
    keys
}

/// What is there of the add-ons, as far as anybody knows.
fn there(observed: &AddonObserved) -> BTreeMap<ObjectKey, ObjectObserved> {
    let named: BTreeSet<ObjectKey> = observed.status.resources.iter().map(crate::objects::key_of).collect();
    let objects = observed.objects.iter();
    objects
        .filter(|(key, object)| object.is_ours() || named.contains(*key))
        .map(|(key, object)| (key.clone(), object.clone()))
        .collect()
}
