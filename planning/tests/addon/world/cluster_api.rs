//! What Cluster API does, by minor.

use std::collections::BTreeMap;

use crds::cluster_addon::StageAction;
use crds::labels::HOOK_CALLED;
use planning::addon::{Call, ClusterSeen, Hook, Listed, ReleaseListed, Stage, Waits, answer, noted};
use serde_json::{Value, json};

use super::{Minor, Trouble, World};
use crate::given::at;

impl World {
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
        let mut conditions = vec![
            json!({"type": "TopologyReconciled", "status": status, "reason": reason}),
            json!({"type": "WorkerMachinesUpToDate", "status": if rolling { "False" } else { "True" }}),
        ];
        if self.reached.is_some() {
            conditions.push(json!({"type": "ControlPlaneInitialized", "status": "True"}));
        }
        let annotations = json!({"runtime.cluster.x-k8s.io/pending-hooks": names.join(",")});
        let metadata = json!({
            "namespace": "team", "name": "web", "uid": "uid-1", "generation": self.generation, "annotations": annotations,
        });
        let (topology, status) = if self.minor == Minor::Older {
            let status = json!({"conditions": conditions, "v1beta2": {"conditions": conditions}});
            (json!({"class": class, "version": self.version}), status)
        } else {
            let status = json!({"conditions": conditions});
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
        let behind = trouble.behind.min(self.snapshots.len() - 1);
        let snapshot = &self.snapshots[self.snapshots.len() - 1 - behind].addon;
        let listed = Listed {
            addons: true,
            release: ReleaseListed::Present,
            unmade: None,
            never_initialized: false,
            waits: Waits::Unseen,
        };
        let given = answer(&call, Some(snapshot), listed, at(self.second));
        if trouble.is_doubled {
            assert_eq!(given, answer(&call, Some(snapshot), listed, at(self.second)));
        }
        let note = noted(&call, snapshot, &given).filter(|_| !trouble.is_unmarked);
        if let Some(called) = note {
            let annotations = self.addon.metadata.annotations.get_or_insert_default();
            annotations.insert(HOOK_CALLED.to_owned(), called.text());
            self.shown();
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
        let called = format!("{hook}@{}@{}", self.version, self.releases[self.class].class);
        let annotations = self.addon.metadata.annotations.get_or_insert_default();
        annotations.insert(HOOK_CALLED.to_owned(), called);
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
}
