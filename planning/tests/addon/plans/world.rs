//! A Cluster, its ClusterAddon, the cluster behind it, and the process of the operator with what it remembers.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{AddonMemo, ClusterAddon, ClusterAddonStatus, StageAction, StagePhase};
use crds::policy::{DriftPolicy, PruneLimit};
use jiff::Timestamp;
use planning::addon::{
    Call, ClusterSeen, Connection, Hook, Listed, Marks, ReleaseListed, Waits, answer, charts_that_stay, kind, stages,
};
use planning::object_key::{GroupKind, ObjectKey};
use planning::objects::{ObjectMemory, key_of};
use serde_json::{Value, json};

use super::cluster::{Cluster, stays};
use super::releases::{Release, releases};
use crate::given::{addon, at};

#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(crate) struct World {
    pub(crate) releases: Vec<Release>,
    pub(crate) class: usize,
    pub(crate) version: &'static str,
    pub(crate) variable: u32,
    pub(crate) generation: i64,
    /// Versions of the control plane, and of the workers.
    pub(crate) wanted: &'static str,
    pub(crate) reached: Option<&'static str>,
    pub(crate) workers: Option<&'static str>,
    /// Since which second the Cluster is to go.
    pub(crate) deleting: Option<i64>,
    pub(crate) ok_to_delete: bool,
    /// The Cluster is gone.
    pub(crate) is_gone: bool,
    /// The ClusterAddon; `None` when it is gone.
    pub(crate) addon: Option<ClusterAddon>,
    pub(crate) is_addon_deleted: bool,
    pub(crate) finalizer: bool,
    pub(crate) group_kinds: Option<BTreeSet<GroupKind>>,
    pub(crate) cluster: Cluster,
    pub(crate) connection: Connection,
    pub(crate) is_release_ready: bool,
    /// The values cannot be made, and nobody remembers those of before.
    pub(crate) is_unmade: bool,
    pub(crate) drift: DriftPolicy,
    pub(crate) prune_limit: PruneLimit,
    /// What the annotation says that approves a prune.
    pub(crate) approved_prune: Option<String>,
    pub(crate) is_paused: bool,
    /// The watches have shown what there is.
    pub(crate) is_listed: bool,
    /// Kinds whose watches have not, with what the API server says of that, if it says anything.
    pub(crate) unlistable: BTreeMap<GroupKind, Option<&'static str>>,
    /// Charts take long to render.
    pub(crate) is_slow: bool,
    /// What conditions that do not hold say.
    pub(crate) words: u32,
    /// Stages whose conditions do not hold, by chart.
    pub(crate) unmet: BTreeSet<&'static str>,
    /// Those of them whose conditions no object can ever meet.
    pub(crate) unfit: BTreeSet<&'static str>,
    /// What the Secret holds, and what this process has drawn.
    pub(crate) memo: Option<AddonMemo>,
    pub(crate) drawn: Option<AddonMemo>,
    draws: usize,
    pub(crate) memory: BTreeMap<ObjectKey, (ObjectMemory, Option<u64>)>,
    pub(crate) status_written_at: Option<Timestamp>,
    /// The process ends before its n-th write from now.
    pub(crate) crash: Option<usize>,
    pub(crate) writes: usize,
    pub(crate) second: i64,
    /// What was done to objects, and to the ClusterAddon.
    pub(crate) journal: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            releases: releases(),
            class: 0,
            version: "v1.33.1",
            variable: 0,
            generation: 1,
            wanted: "v1.33.1",
            reached: None,
            workers: None,
            deleting: None,
            ok_to_delete: false,
            is_gone: false,
            addon: Some(addon()),
            is_addon_deleted: false,
            finalizer: false,
            group_kinds: None,
            cluster: Cluster::default(),
            connection: Connection::Disconnected,
            is_release_ready: true,
            is_unmade: false,
            drift: DriftPolicy::Correct,
            prune_limit: PruneLimit::Percent(100),
            approved_prune: None,
            is_paused: false,
            is_listed: true,
            unlistable: BTreeMap::new(),
            is_slow: false,
            words: 0,
            unmet: BTreeSet::new(),
            unfit: BTreeSet::new(),
            memo: None,
            drawn: None,
            draws: 0,
            memory: BTreeMap::new(),
            status_written_at: None,
            crash: None,
            writes: 0,
            second: 0,
            journal: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        at(self.second)
    }

    pub(crate) fn release(&self) -> &Release {
        &self.releases[self.class]
    }

    pub(crate) fn status(&self) -> ClusterAddonStatus {
        let addon = self.addon.as_ref();
        addon.and_then(|addon| addon.status.clone()).unwrap_or_default()
    }

    // What people do.

    /// Sets the class, if Cluster API's webhook would let the version that belongs to it pass.
    pub(crate) fn set_class(&mut self, class: usize) {
        let next = self.releases[class].kubernetes_version;
        let is_stable = [self.reached, self.workers, Some(self.wanted)].map(|at| at == Some(self.version)) == [true; 3];
        if next == self.version || (next > self.version && is_stable) {
            self.class = class;
            self.generation += 1;
        }
    }

    pub(crate) fn set_version(&mut self) {
        let next = self.release().kubernetes_version;
        if next != self.version {
            self.version = next;
            self.generation += 1;
        }
    }

    pub(crate) fn set_variable(&mut self) {
        self.variable += 1;
        self.generation += 1;
    }

    pub(crate) fn lose_status(&mut self) {
        if let Some(addon) = &mut self.addon {
            addon.status = None;
        }
    }

    /// The n-th object of the cluster.
    pub(crate) fn object(&self, number: usize) -> Option<ObjectKey> {
        let keys: Vec<&ObjectKey> = self.cluster.objects.keys().collect();
        (!keys.is_empty()).then(|| keys[number % keys.len()].clone())
    }

    /// The process begins anew.
    pub(crate) fn restart(&mut self) {
        self.memory.clear();
        self.drawn = None;
        self.status_written_at = None;
        self.crash = None;
    }

    /// What charts get that ask for something random.
    pub(crate) fn draw(&mut self) -> AddonMemo {
        let known = self.memo.clone().or_else(|| self.drawn.clone());
        let memo = known.unwrap_or_else(|| {
            self.draws += 1;
            AddonMemo {
                digest: format!("draw {}", self.draws),
                entries: 1,
            }
        });
        self.drawn = Some(memo.clone());
        memo
    }

    // Cluster API.

    /// One round: the control plane comes up, takes the version, the workers follow.
    pub(crate) fn cluster_api(&mut self) {
        if self.reached != Some(self.wanted) {
            self.reached = Some(self.wanted);
            self.workers = self.workers.or(Some(self.wanted));
            self.connection = Connection::Healthy;
        } else if self.workers != Some(self.wanted) {
            self.workers = Some(self.wanted);
        } else {
            self.wanted = self.version;
        }
    }

    pub(crate) fn cluster_seen(&self) -> Option<ClusterSeen> {
        let control_plane = json!({"spec": {"version": self.wanted}, "status": {"version": self.reached}});
        (!self.is_gone).then(|| ClusterSeen::of(&self.cluster_value(), Some(&control_plane)))
    }

    fn cluster_value(&self) -> Value {
        let is_settled = self.workers == Some(self.version) && self.wanted == self.version;
        let mut conditions = vec![json!({
            "type": "TopologyReconciled",
            "status": if is_settled { "True" } else { "False" },
            "reason": if is_settled { "ReconcileSucceeded" } else { "ClusterUpgrading" },
        })];
        if self.reached.is_some() {
            conditions.push(json!({"type": "ControlPlaneInitialized", "status": "True"}));
        }
        let ok_to_delete = self.ok_to_delete.then_some("");
        json!({
            "metadata": {
                "namespace": "team", "name": "web", "uid": "uid-1", "generation": self.generation,
                "deletionTimestamp": self.deleting.map(|second| at(second).to_string()),
                "annotations": ok_to_delete.map(|value| json!({"runtime.cluster.x-k8s.io/ok-to-delete": value})),
            },
            "spec": {
                "topology": {"classRef": {"name": self.release().class}, "version": self.version},
                "infrastructureRef": {"name": "web"}, "controlPlaneRef": {"name": "web"},
            },
            "status": {"conditions": conditions},
        })
    }
}

impl World {
    /// Somebody deletes the ClusterAddon, and it is made anew.
    pub(crate) fn delete_addon(&mut self) {
        self.is_addon_deleted = true;
        if !self.finalizer {
            self.addon = None;
        }
        while self.addon.is_some() {
            self.reconcile();
        }
        self.addon = Some(addon());
        self.is_addon_deleted = false;
        self.group_kinds = None;
        self.restart();
    }

    /// Rounds without trouble until nothing moves any more. A release that is faulty is left for one that is not.
    pub(crate) fn settle(&mut self) {
        self.unmet.clear();
        self.unfit.clear();
        self.crash = None;
        self.is_release_ready = true;
        self.is_unmade = false;
        self.is_listed = true;
        self.unlistable.clear();
        self.is_slow = false;
        self.set_version();
        if self.release().is_faulty {
            self.class = 1;
            self.generation += 1;
        }
        for _ in 0..60 {
            self.second += 60;
            self.cluster_api();
            if self.reached.is_some() {
                self.connection = Connection::Healthy;
            }
            self.reconcile();
        }
    }

    /// The cluster has all that it shall have, and nothing else of ours.
    pub(crate) fn assert_settled(&mut self) {
        let target = self.target().expect("class and version fit").recorded();
        let status = self.status();
        let steps = self.decide().map(|plan| (plan.steps, plan.waiting));
        let told = format!("{status:#?}\n{steps:#?}\n{:#?}\n{:#?}", self.cluster, self.journal);
        assert_eq!(
            (&status.target, &status.applied),
            (&Some(target.clone()), &Some(target)),
            "{told}"
        );
        assert!(status.ready && status.hook.is_none(), "{told}");
        assert!(status.stages.iter().all(|row| row.phase == StagePhase::Done), "{told}");
        let expected = self.expected();
        for (key, content) in &expected {
            let live = self.cluster.objects.get(key).map(|live| (&live.content, live.is_ours));
            assert_eq!(live, Some((content, true)), "{key}: {told}");
        }
        let left = self.staying();
        for (key, live) in &self.cluster.objects {
            assert!(
                expected.contains_key(key) || left.contains(key) || !live.is_ours || stays(key),
                "{key} is left: {told}"
            );
        }
        let named: BTreeSet<ObjectKey> = status.resources.iter().map(key_of).collect();
        assert!(expected.keys().all(|key| named.contains(key)), "{told}");
        assert_eq!(status.memo, self.memo, "{told}");
    }

    /// What the charts ask for that the course of the cluster leaves there, and those that it would leave alone.
    fn expected(&mut self) -> BTreeMap<ObjectKey, String> {
        let (cluster, target) = (
            self.cluster_seen().expect("a Cluster"),
            self.target().expect("a target"),
        );
        let marks = Marks::of(self.addon.as_ref().expect("a ClusterAddon"));
        let stages = stages(kind(&cluster, &marks, &target), &self.release().stages);
        let mut charts: Vec<(String, StageAction)> = Vec::new();
        for stage in stages {
            charts.retain(|(chart, _)| *chart != stage.key.name);
            charts.push((stage.key.name, stage.key.action));
        }
        let mut expected = BTreeMap::new();
        for (chart, _) in charts.into_iter().filter(|(_, action)| *action == StageAction::Apply) {
            expected.extend(self.contents(&chart).expect("a chart that renders"));
        }
        expected
    }

    /// What the charts ask for that stay: those that the course leaves there, and those that who makes a ClusterAddon anew takes nothing away from.
    pub(crate) fn staying(&mut self) -> BTreeSet<ObjectKey> {
        let (cluster, target) = (
            self.cluster_seen().expect("a Cluster"),
            self.target().expect("a target"),
        );
        let marks = Marks::of(self.addon.as_ref().expect("a ClusterAddon"));
        let kind = kind(&cluster, &marks, &target);
        let mut charts = charts_that_stay(kind, &self.release().stages);
        for stage in stages(kind, &self.release().stages) {
            if stage.key.action == StageAction::Delete {
                charts.remove(&stage.key.name);
            }
        }
        let contents = charts.into_iter().filter_map(|chart| self.contents(&chart));
        contents.flat_map(BTreeMap::into_keys).collect()
    }

    /// Whoever answers the hook lets the Cluster go.
    pub(crate) fn assert_lets_go(&mut self) {
        self.reconcile();
        let request = json!({"cluster": self.cluster_value()});
        let call = Call::of(Hook::BeforeClusterDelete, &request).expect("a call");
        let listed = Listed {
            addons: true,
            release: ReleaseListed::Present,
            unmade: None,
            never_initialized: false,
            waits: Waits::Unseen,
        };
        let answer = answer(&call, self.addon.as_ref(), listed, self.now());
        assert_eq!(answer.retry_after_seconds, 0, "{answer:?}: {:#?}", self.status());
    }
}
