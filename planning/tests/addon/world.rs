//! A cluster with Cluster API of one minor, the objects of its add-ons, and a driver that does what the decisions say. It may be killed between an effect and the
//! status that tells of it; answers may be lost, and may come from a replica whose watch is behind.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus, StageAction, StagePhase};
use crds::labels::{CONTAINS_GROUP_KINDS, HOOK_CALLED};
use planning::addon::{
    Call, Change, ClusterSeen, ConditionSeen, Course, CourseInput, Hook, HookCalled, Kind, Listed, Marks,
    ReleaseListed, ReleaseSeen, Stage, StageKey, StageSeen, Stages, Target, Values, Wanted, Work, answer, change,
    course, due, kind, stages, wanted,
};
use serde_json::{Value, json};

use crate::given::{addon, at, listed};

/// How Cluster API calls hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minor {
    /// Up to 1.11, v1beta1.
    Older,
    /// From 1.12 on, v1beta2.
    Newer,
    /// Whatever minor, without runtime hooks.
    Silent,
}

pub(crate) struct Release {
    pub(crate) class: &'static str,
    pub(crate) addon_version: &'static str,
    pub(crate) kubernetes_version: &'static str,
    pub(crate) stages: Stages,
    /// It applies a chart and deletes it later.
    pub(crate) is_passing: bool,
}

pub(crate) fn releases() -> Vec<Release> {
    let release = |class, addon_version, kubernetes_version, stages| Release {
        class,
        addon_version,
        kubernetes_version,
        stages,
        is_passing: false,
    };
    let conditions = "waitForPreCondition: {conditions: a}, waitForPostCondition: {conditions: b}";
    let many = format!(
        "{{AfterControlPlaneInitialized: [{{name: cni, action: apply, {conditions}}}],
           BeforeClusterUpgrade: [{{name: cni, action: apply, {conditions}}}],
           BeforeControlPlaneUpgrade: [{{name: policy, action: apply}}],
           AfterControlPlaneUpgrade: [{{name: metrics, action: apply, {conditions}}}],
           AfterWorkersUpgrade: [{{name: csi, action: apply}}],
           AfterClusterUpgrade: [{{name: extra, action: apply}}, {{name: seed, action: delete}}]}}"
    );
    let seeding = "{AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: seed, action: apply}, {name: seed, action: delete}],
           BeforeClusterUpgrade: [{name: cni, action: apply}]}";
    let two = format!(
        "{{AfterControlPlaneInitialized: [{{name: cni, action: apply, {conditions}}}, {{name: metrics, action: apply}}]}}"
    );
    vec![
        Release {
            is_passing: true,
            ..release("docker-scs-1-33-v1", "v1", "v1.33.1", listed(seeding))
        },
        release("docker-scs-1-33-v2", "v2", "v1.33.1", listed(&two)),
        release("docker-scs-1-34-v1", "v3", "v1.34.0", listed(&many)),
        release("docker-scs-1-34-v2", "v3", "v1.34.0", listed(&many)),
        release("docker-scs-1-35-v1", "v5", "v1.35.0", Stages::Single),
    ]
}

/// A ClusterAddon as a watch had it, and the Cluster as somebody had it.
#[derive(Clone)]
struct Snapshot {
    addon: ClusterAddon,
}

pub(crate) struct World {
    pub(crate) minor: Minor,
    pub(crate) releases: Vec<Release>,
    pub(crate) class: usize,
    pub(crate) version: &'static str,
    variable: u32,
    generation: i64,
    is_made: bool,
    pub(crate) wanted: &'static str,
    pub(crate) reached: Option<&'static str>,
    pub(crate) workers: Option<&'static str>,
    workers_told: Option<&'static str>,
    pub(crate) pending: BTreeSet<Hook>,
    pub(crate) addon: ClusterAddon,
    snapshots: Vec<Snapshot>,
    /// By chart: the target that its objects are of, how much of them is there, and since which second.
    pub(crate) objects: BTreeMap<String, (String, u8, i64)>,
    pub(crate) writes: usize,
    pub(crate) second: i64,
}

/// What goes wrong with a round of Cluster API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// How many versions of the ClusterAddon the replica that answers is behind.
    pub(crate) behind: usize,
    /// The answer does not arrive.
    pub(crate) is_lost: bool,
    /// The annotation is not written.
    pub(crate) is_unmarked: bool,
    /// The call is made twice.
    pub(crate) is_doubled: bool,
}

impl World {
    pub(crate) fn new(minor: Minor) -> Self {
        let mut addon = addon();
        let annotation = (CONTAINS_GROUP_KINDS.to_owned(), "ConfigMap".to_owned());
        addon.metadata.annotations = Some([annotation].into());
        Self {
            minor,
            releases: releases(),
            class: 0,
            version: "v1.33.1",
            variable: 0,
            generation: 1,
            is_made: false,
            wanted: "v1.33.1",
            reached: None,
            workers: None,
            workers_told: None,
            pending: BTreeSet::new(),
            snapshots: vec![Snapshot { addon: addon.clone() }],
            addon,
            objects: BTreeMap::new(),
            writes: 0,
            second: 0,
        }
    }

    // What people do.

    /// Sets the class, if Cluster API's webhook would let the version that belongs to it pass.
    pub(crate) fn set_class(&mut self, class: usize) {
        let next = self.releases[class].kubernetes_version;
        let is_stable = self.reached == Some(self.wanted)
            && self.wanted == self.version
            && self.workers == Some(self.version)
            && !self.pending.contains(&Hook::AfterClusterUpgrade);
        if next == self.version || (next > self.version && is_stable) {
            self.class = class;
            self.generation += 1;
        }
    }

    pub(crate) fn set_version(&mut self) {
        let next = self.releases[self.class].kubernetes_version;
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
        self.addon.status = None;
        self.shown();
    }

    // Cluster API.

    pub(crate) fn cluster(&self) -> ClusterSeen {
        ClusterSeen::of(&self.cluster_value(), Some(&self.control_plane_value()))
    }

    fn control_plane_value(&self) -> Value {
        json!({"spec": {"version": self.wanted}, "status": {"version": self.reached}})
    }

    fn cluster_value(&self) -> Value {
        let class = self.releases[self.class].class;
        let names: Vec<_> = self.pending.iter().map(|hook| hook.name()).collect();
        let rolling = self.workers != self.workers_told;
        let workers = json!({"replicas": 3, "upToDateReplicas": if rolling { 1 } else { 3 }});
        let reference = if self.is_made {
            json!({"name": "web"})
        } else {
            Value::Null
        };
        let is_told = self.wanted == self.version && self.workers_told == Some(self.version);
        let (status, reason) = match self.minor {
            Minor::Newer | Minor::Silent
                if is_told && !rolling && !self.pending.contains(&Hook::AfterClusterUpgrade) =>
            {
                ("True", "ReconcileSucceeded")
            }
            Minor::Newer | Minor::Silent => ("False", "ClusterUpgrading"),
            Minor::Older if is_told => ("True", "ReconcileSucceeded"),
            Minor::Older => ("False", "MachineDeploymentsUpgradePending"),
        };
        let mut conditions = vec![json!({"type": "TopologyReconciled", "status": status, "reason": reason})];
        if self.reached.is_some() {
            conditions.push(json!({"type": "ControlPlaneInitialized", "status": "True"}));
        }
        let annotations = json!({"runtime.cluster.x-k8s.io/pending-hooks": names.join(",")});
        let metadata = json!({
            "namespace": "team", "name": "web", "uid": "uid-1", "generation": self.generation, "annotations": annotations,
        });
        let (topology, status) = if self.minor == Minor::Older {
            let status = json!({"conditions": conditions, "v1beta2": {"conditions": conditions, "workers": workers}});
            (json!({"class": class, "version": self.version}), status)
        } else {
            let status = json!({"conditions": conditions, "workers": workers});
            (json!({"classRef": {"name": class}, "version": self.version}), status)
        };
        json!({
            "metadata": metadata,
            "spec": {"topology": topology, "infrastructureRef": reference, "controlPlaneRef": reference},
            "status": status,
        })
    }

    /// Calls a hook; whether the cluster may go on. Whoever lets an upgrade go on must have done what comes before.
    fn call(&mut self, hook: Hook, trouble: Trouble) -> bool {
        let mut cluster = self.cluster_value();
        if self.minor == Minor::Newer {
            cluster["status"] = Value::Null;
        }
        let request = json!({"cluster": cluster, "kubernetesVersion": self.version});
        let call = Call::of(hook, &request).expect("a call");
        if !trouble.is_unmarked {
            let called = HookCalled {
                hook,
                version: self.version.to_owned(),
            };
            let annotations = self.addon.metadata.annotations.get_or_insert_default();
            annotations.insert(HOOK_CALLED.to_owned(), called.text());
            self.shown();
        }
        let behind = trouble.behind.min(self.snapshots.len() - 1);
        let snapshot = &self.snapshots[self.snapshots.len() - 1 - behind].addon;
        let listed = Listed {
            addons: true,
            release: ReleaseListed::Present,
        };
        let given = answer(&call, Some(snapshot), listed, at(self.second));
        if trouble.is_doubled {
            assert_eq!(given, answer(&call, Some(snapshot), listed, at(self.second)));
        }
        let goes_on = given.retry_after_seconds == 0;
        if goes_on && Hook::ALL[2..8].contains(&hook) {
            self.assert_done_before(hook);
        }
        goes_on && !trouble.is_lost
    }

    /// Every chart is as the stages up to the moment of the hook leave it.
    fn assert_done_before(&self, hook: Hook) {
        let target = self.target().expect("whoever is let on has a target");
        let last = match hook {
            Hook::BeforeClusterUpgrade => Hook::BeforeControlPlaneUpgrade,
            Hook::AfterControlPlaneUpgrade => Hook::BeforeWorkersUpgrade,
            Hook::AfterWorkersUpgrade => Hook::AfterClusterUpgrade,
            other => other,
        };
        let mut left = BTreeMap::new();
        for Stage { key, .. } in self
            .stages_of(&target)
            .1
            .into_iter()
            .filter(|stage| stage.key.hook <= last)
        {
            left.insert(key.name, key.action);
        }
        for (chart, action) in left {
            let is_there = self
                .objects
                .get(&chart)
                .is_some_and(|(of, part, _)| *of == target.digest && *part == 2);
            let is_right = is_there == (action == StageAction::Apply);
            assert!(
                is_right,
                "{hook} goes on, and {chart} is not as {action} leaves it: {:?}",
                self.objects
            );
        }
    }

    /// One round of the topology controller.
    pub(crate) fn cluster_api(&mut self, trouble: Trouble) {
        if !self.is_made {
            if self.minor == Minor::Silent || self.call(Hook::BeforeClusterCreate, trouble) {
                self.is_made = true;
                self.generation += 1;
                self.wanted = self.version;
            }
        } else if self.reached != Some(self.wanted) {
            self.reached = Some(self.wanted);
            self.workers = self.workers.or(Some(self.wanted));
            self.workers_told = self.workers_told.or(Some(self.wanted));
        } else if self.workers != self.workers_told {
            self.workers = self.workers_told;
        } else {
            match self.minor {
                Minor::Silent => self.silently(),
                Minor::Older => self.as_before_1_12(trouble),
                Minor::Newer => self.as_since_1_12(trouble),
            }
        }
    }

    fn silently(&mut self) {
        if self.wanted == self.version {
            self.workers_told = Some(self.version);
        } else {
            self.wanted = self.version;
        }
    }

    /// A hook that is owed is called; whether nothing is owed any more.
    fn owed(&mut self, hook: Hook, trouble: Trouble) -> bool {
        if self.pending.contains(&hook) && self.call(hook, trouble) {
            self.pending.remove(&hook);
        }
        !self.pending.contains(&hook)
    }

    fn as_before_1_12(&mut self, trouble: Trouble) {
        if self.wanted != self.version {
            if self.call(Hook::BeforeClusterUpgrade, trouble) {
                self.pending
                    .extend([Hook::AfterControlPlaneUpgrade, Hook::AfterClusterUpgrade]);
                self.wanted = self.version;
            }
        } else if self.owed(Hook::AfterControlPlaneUpgrade, trouble) {
            if self.workers_told != Some(self.version) {
                self.workers_told = Some(self.version);
            } else if self.pending.remove(&Hook::AfterClusterUpgrade) && !trouble.is_unmarked {
                self.mark(Hook::AfterClusterUpgrade);
            }
        }
    }

    /// A call whose answer holds nothing up.
    fn mark(&mut self, hook: Hook) {
        let annotations = self.addon.metadata.annotations.get_or_insert_default();
        annotations.insert(HOOK_CALLED.to_owned(), format!("{hook}@{}", self.version));
        self.shown();
    }

    fn as_since_1_12(&mut self, trouble: Trouble) {
        if !self.owed(Hook::AfterControlPlaneUpgrade, trouble) || !self.owed(Hook::BeforeWorkersUpgrade, trouble) {
            return;
        }
        if self.workers_told != Some(self.wanted) {
            self.workers_told = Some(self.wanted);
            return;
        }
        if !self.owed(Hook::AfterWorkersUpgrade, trouble) {
            return;
        }
        if self.wanted == self.version {
            self.owed(Hook::AfterClusterUpgrade, trouble);
            return;
        }
        let is_begun = self.pending.contains(&Hook::AfterClusterUpgrade);
        if !is_begun && !self.call(Hook::BeforeClusterUpgrade, trouble) {
            return;
        }
        self.pending.insert(Hook::AfterClusterUpgrade);
        if self.call(Hook::BeforeControlPlaneUpgrade, trouble) {
            self.wanted = self.version;
            let hooks = [
                Hook::AfterControlPlaneUpgrade,
                Hook::BeforeWorkersUpgrade,
                Hook::AfterWorkersUpgrade,
            ];
            self.pending.extend(hooks);
        }
    }

    // The driver.

    fn release(&self) -> &Release {
        &self.releases[self.class]
    }

    pub(crate) fn target(&self) -> Option<Target> {
        let release = ReleaseSeen::Ready {
            addon_version: self.release().addon_version.to_owned(),
            kubernetes_version: self.release().kubernetes_version.to_owned(),
        };
        let values = Values::Known {
            digest: self.variable.to_string(),
        };
        match wanted(&self.cluster(), &release, &values) {
            Wanted::Target(target) => Some(target),
            _ => None,
        }
    }

    pub(crate) fn stages_of(&self, target: &Target) -> (Kind, Vec<Stage>) {
        let kind = kind(&self.cluster(), &Marks::of(&self.addon), target);
        (kind, stages(kind, &self.release().stages))
    }

    fn seen(&self, target: &Target, stages: &[Stage]) -> BTreeMap<StageKey, StageSeen> {
        let seen = |stage: &Stage| {
            let object = self.objects.get(&stage.key.name);
            let (is_done, since) = match stage.key.action {
                StageAction::Apply => {
                    let there = object.filter(|(of, part, _)| *of == target.digest && *part == 2);
                    (there.is_some(), there.map_or(0, |(_, _, since)| *since))
                }
                StageAction::Delete => (object.is_none(), 0),
            };
            let condition = |holds: bool| {
                if holds {
                    ConditionSeen::Holds
                } else {
                    let message = "not yet".to_owned();
                    ConditionSeen::Fails { message }
                }
            };
            let work = if is_done {
                Work::Done
            } else {
                Work::Ongoing {
                    message: "some are left".to_owned(),
                }
            };
            StageSeen {
                work,
                pre: condition(self.second > 20),
                post: condition(self.second > since + 2),
            }
        };
        stages.iter().map(|stage| (stage.key.clone(), seen(stage))).collect()
    }

    fn course_with(&self, target: &Target, status: &ClusterAddonStatus) -> Course {
        let (kind, stages) = self.stages_of(target);
        let cluster = self.cluster();
        let due = due(&cluster, Marks::of(&self.addon).called.as_ref());
        let seen = self.seen(target, &stages);
        let input = CourseInput {
            kind,
            stages: &stages,
            target,
            cluster: &cluster,
            status,
            due: &due,
            seen: &seen,
        };
        course(&input, at(self.second))
    }

    /// One round: look, do, write down, unless it is killed before.
    pub(crate) fn drive(&mut self, is_killed: bool) {
        let status = self.addon.status.clone().unwrap_or_default();
        let Some(target) = self.target() else {
            if !is_killed {
                self.write(ClusterAddonStatus {
                    cluster_generation: Some(self.generation),
                    ..status
                });
            }
            return;
        };
        let course = self.course_with(&target, &status);
        self.assert_losing_the_status_costs_nothing(&target, &course);
        for stage in course
            .open()
            .filter(|stage| stage.phase == StagePhase::ApplyingOrDeleting)
        {
            let was_done = status.applied == status.target;
            assert!(
                !was_done || change(&target, &status) != Change::SameAddons,
                "there is nothing to do"
            );
            self.work(&stage.key, &target.digest);
        }
        if is_killed {
            return;
        }
        let mut applied = status.applied.clone();
        if course.is_done() {
            applied = Some(target.recorded());
            let marks = Marks::of(&self.addon).after(course.kind, &target);
            let annotations = self.addon.metadata.annotations.get_or_insert_default();
            annotations.extend(marks.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        self.write(ClusterAddonStatus {
            cluster_generation: Some(self.generation),
            target: Some(target.recorded()),
            applied,
            stages: course.rows(),
            ..status
        });
    }

    fn work(&mut self, key: &StageKey, digest: &str) {
        self.writes += 1;
        if key.action == StageAction::Delete {
            self.objects.remove(&key.name);
            return;
        }
        let object = self.objects.entry(key.name.clone()).or_default();
        let part = if object.0 == digest { object.1 + 1 } else { 1 };
        *object = (digest.to_owned(), part.min(2), self.second);
    }

    fn write(&mut self, status: ClusterAddonStatus) {
        if self.addon.status.as_ref() != Some(&status) {
            self.addon.status = Some(status);
            self.shown();
        }
    }

    fn shown(&mut self) {
        let addon = self.addon.clone();
        self.snapshots.push(Snapshot { addon });
    }

    /// Who knows nothing finds every stage as far as who remembers all of it. A chart that a later stage takes away again is made again, and taken away.
    fn assert_losing_the_status_costs_nothing(&self, target: &Target, course: &Course) {
        if self.release().is_passing {
            return;
        }
        let without = self.course_with(target, &ClusterAddonStatus::default());
        let facts = |course: &Course| {
            let stages = course.stages.iter();
            stages
                .map(|stage| {
                    (
                        stage.key.clone(),
                        stage.phase,
                        stage.open,
                        stage.reason,
                        stage.message.clone(),
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!((course.kind, facts(course)), (without.kind, facts(&without)));
    }

    /// Rounds without trouble until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        self.set_version();
        for _ in 0..120 {
            self.second += 1;
            self.cluster_api(Trouble::default());
            self.drive(false);
        }
    }

    /// The cluster has what it shall have, and Cluster API owes nothing.
    pub(crate) fn assert_settled(&self) {
        let target = self.target().expect("class and version fit");
        let status = self.addon.status.clone().unwrap_or_default();
        assert_eq!(status.applied, Some(target.recorded()), "{:#?}", status.stages);
        assert_eq!((self.reached, self.workers), (Some(self.version), Some(self.version)));
        assert_eq!(self.pending, BTreeSet::new());
        assert!(status.stages.iter().all(|row| row.phase == StagePhase::Done));
        let mut last = BTreeMap::new();
        for Stage { key, .. } in self.stages_of(&target).1 {
            last.insert(key.name, key.action);
        }
        for (chart, action) in last {
            let of = self.objects.get(&chart).map(|(of, ..)| of.clone());
            let expected = (action == StageAction::Apply).then(|| target.digest.clone());
            assert_eq!(of, expected, "{chart}");
        }
    }
}
