//! What a look at the world finds.

use std::collections::{BTreeMap, BTreeSet};

use planning::addon::{
    AddonObserved, AddonSeen, ChartSeen, ClassOwner, ConditionSeen, Connection, Layout, Marks, MemoSeen, ReleaseSeen,
    StageConditions, Target, Values, Wanted, charts_needed, kind, stages, wanted,
};
use planning::object_key::{GroupKind, ObjectKey, ObjectRef};
use planning::objects::{Intent, ObjectObserved, Rendering, Seen, key_of};
use planning::waves::wave_of;

use super::releases::Chart;
use super::world::World;

/// What is said of values that cannot be made.
const UNMADE: &str = "the Secret own is not in the namespace of the Cluster";

impl World {
    fn release_seen(&self) -> ReleaseSeen {
        if !self.is_release_ready {
            return ReleaseSeen::NotReady {
                message: "it is being downloaded".to_owned(),
            };
        }
        ReleaseSeen::Ready {
            addon_version: self.release().addon_version.to_owned(),
            kubernetes_version: self.release().kubernetes_version.to_owned(),
        }
    }

    fn values(&self) -> Values {
        if self.is_unmade {
            let message = UNMADE.to_owned();
            return Values::Failed { message };
        }
        Values::Known {
            digest: self.variable.to_string(),
        }
    }

    pub(crate) fn target(&self) -> Option<Target> {
        let last = self.status().target;
        match wanted(
            &self.cluster_seen()?,
            &self.release_seen(),
            &self.values(),
            last.as_ref(),
        ) {
            Wanted::Target(target) => Some(target),
            _ => None,
        }
    }

    /// What a chart asks for with the values of now.
    pub(crate) fn contents(&mut self, chart: &str) -> Option<BTreeMap<ObjectKey, String>> {
        let Some(Chart::Objects(objects)) = self.release().charts.get(chart).cloned() else {
            return None;
        };
        let variable = self.variable;
        let contents = objects.into_iter().map(|(key, content)| {
            let content = match content.as_str() {
                "random" => self.draw().digest,
                // Some of the objects depend on the values.
                "2" => format!("2 with {variable}"),
                other => other.to_owned(),
            };
            (key, content)
        });
        Some(contents.collect())
    }

    fn chart_seen(&mut self, chart: &str) -> ChartSeen {
        match self.release().charts.get(chart) {
            Some(_) if self.is_unmade => {
                let (message, transient) = (UNMADE.to_owned(), None);
                return ChartSeen::Found(Rendering::Failed { message, transient });
            }
            Some(Chart::Broken) => {
                let message = format!("{chart}/templates/a.yaml:1: no such value");
                let transient = None;
                return ChartSeen::Found(Rendering::Failed { message, transient });
            }
            Some(Chart::Missing) | None => {
                let message = format!("the archive has no folder {chart}");
                return ChartSeen::Missing { message };
            }
            Some(Chart::Objects(_)) if self.is_slow => {
                return ChartSeen::Found(Rendering::Awaited { failed: None });
            }
            Some(Chart::Objects(_)) => {}
        }
        let contents = self.contents(chart).unwrap_or_default();
        let intent = |(key, digest): (ObjectKey, String)| {
            let wave = wave_of(&key.group_kind());
            let version = "v1".to_owned();
            let object = ObjectRef {
                version,
                key: key.clone(),
            };
            (key, Intent { object, digest, wave })
        };
        ChartSeen::Found(Rendering::Rendered {
            intents: contents.into_iter().map(intent).collect(),
        })
    }

    pub(crate) fn observe(&mut self) -> Option<AddonObserved> {
        let addon = self.addon.clone()?;
        let marks = Marks::of(&addon);
        let cluster = self.cluster_seen();
        let owners = addon.metadata.owner_references.clone().unwrap_or_default();
        let charts = self.charts_seen(&marks);
        let objects = self.objects_seen(&charts);
        let is_shown = self.is_shown();
        let origins = self.cluster.objects.iter();
        let origins = origins.filter(|(key, live)| is_shown && live.is_ours && objects.contains_key(*key));
        Some(AddonObserved {
            namespace: "team".to_owned(),
            name: "cluster-addon-web".to_owned(),
            uid: "addon-1".to_owned(),
            generation: 1,
            seen: AddonSeen {
                owner: owners.first().map(|owner| owner.uid.clone()),
                deleting: self.is_addon_deleted,
                begun: self.group_kinds.is_some(),
                paused: self.is_paused,
                ..AddonSeen::default()
            },
            finalizer: self.finalizer,
            group_kinds: self.group_kinds.clone().unwrap_or_default(),
            requested_at: None,
            approved_prune: self.approved_prune.clone(),
            spec: addon.spec.clone(),
            status: addon.status.clone().unwrap_or_default(),
            status_written_at: self.status_written_at,
            class: ClassOwner::Ours,
            release: self.release_seen(),
            layout: Layout::Known(self.release().stages.clone()),
            assets: Some(format!("sha256:{}", self.release().addon_version)),
            drift: self.drift,
            prune_limit: self.prune_limit,
            values: self.values(),
            values_note: None,
            values_held: BTreeMap::new(),
            memo: Some(MemoSeen {
                stored: self.memo.clone(),
                drawn: self.drawn.clone(),
            }),
            conditions: self.conditions_seen(&marks),
            connection: self.connection.clone(),
            origins: origins.map(|(key, live)| (key.clone(), live.chart.clone())).collect(),
            objects,
            unlisted: self.unlisted(),
            unwatched: self.unwatched(),
            forbidden: BTreeSet::new(),
            marks,
            cluster,
            charts,
        })
    }

    /// The charts that the plan asks to be rendered, and no other.
    fn charts_seen(&mut self, marks: &Marks) -> BTreeMap<String, ChartSeen> {
        let (Some(cluster), Some(target)) = (self.cluster_seen(), self.target()) else {
            return BTreeMap::new();
        };
        let kind = kind(&cluster, marks, &target);
        let seen = charts_needed(kind, &self.release().stages).into_iter().map(|chart| {
            let seen = self.chart_seen(&chart);
            (chart, seen)
        });
        seen.collect()
    }

    fn conditions_seen(&self, marks: &Marks) -> Vec<StageConditions> {
        let (Some(cluster), Some(target)) = (self.cluster_seen(), self.target()) else {
            return Vec::new();
        };
        let stages = stages(kind(&cluster, marks, &target), &self.release().stages);
        let seen = |chart: &str| {
            if self.unfit.contains(chart) {
                let message = format!("{chart} has no replica: did you mean replicas?");
                ConditionSeen::Invalid { message }
            } else if self.unmet.contains(chart) {
                let words = self.words;
                let message = format!("replicas of {chart} is {words}");
                ConditionSeen::Fails { message }
            } else {
                ConditionSeen::Holds
            }
        };
        let around = stages.into_iter().filter(|stage| stage.pre.is_some());
        let mut around: Vec<StageConditions> = around
            .map(|stage| StageConditions {
                pre: seen(&stage.key.name),
                post: seen(&stage.key.name),
                key: stage.key,
            })
            .collect();
        around.sort_by(|one, other| one.key.cmp(&other.key));
        around
    }

    /// Whether the watches show what there is.
    fn is_shown(&self) -> bool {
        self.is_listed && self.connection == Connection::Healthy && self.reached.is_some()
    }

    /// The kinds of the annotation that a watch does not show yet.
    fn unlisted(&self) -> BTreeSet<GroupKind> {
        let mut kinds = self.group_kinds.clone().unwrap_or_default();
        kinds.retain(|kind| !self.is_shown() || self.unlistable.contains_key(kind));
        kinds
    }

    /// What the API server says of kinds that it does not list.
    fn unwatched(&self) -> BTreeMap<GroupKind, String> {
        let said = self.unlistable.iter();
        said.filter_map(|(kind, words)| Some((kind.clone(), (*words)?.to_owned())))
            .collect()
    }

    fn objects_seen(&mut self, charts: &BTreeMap<String, ChartSeen>) -> BTreeMap<ObjectKey, ObjectObserved> {
        let (is_shown, unlistable) = (self.is_shown(), self.unlistable.clone());
        let is_shown = |key: &ObjectKey| is_shown && !unlistable.contains_key(&key.group_kind());
        let mut keys: BTreeSet<ObjectKey> = self.status().resources.iter().map(key_of).collect();
        for chart in charts.values() {
            if let ChartSeen::Found(Rendering::Rendered { intents }) = chart {
                keys.extend(intents.keys().cloned());
            }
        }
        let live = self.cluster.objects.iter();
        let live = live.filter(|(key, live)| is_shown(key) && live.is_ours);
        keys.extend(live.map(|(key, _)| key.clone()));
        let mut objects = BTreeMap::new();
        for key in keys {
            let live = self.cluster.objects.get(&key);
            let live = live.filter(|live| is_shown(&key) && live.is_ours);
            let seen = live.map(|live| Seen {
                uid: live.uid.to_string(),
                trigger: live.trigger(),
                resource_version: live.version.to_string(),
                ours: true,
                deleting: false,
            });
            let shown = live.map(|live| live.version);
            let (memory, read_at) = self.memory.entry(key.clone()).or_default();
            if *read_at != shown {
                // The watch has told of a change.
                memory.read = None;
                *read_at = shown;
            }
            let served = self.cluster.serves(&key);
            let object = ObjectObserved {
                version: "v1".to_owned(),
                served,
                watched: is_shown(&key),
                seen,
                memory: memory.clone(),
                ..ObjectObserved::default()
            };
            objects.insert(key, object);
        }
        objects
    }
}
