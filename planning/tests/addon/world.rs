//! A cluster with Cluster API of one minor, the objects of its add-ons, and a driver that does what the decisions say. It may be killed between an effect and the
//! status that tells of it; answers may be lost, and may come from a replica whose watch is behind.

mod cluster_api;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus, StageAction, StagePhase};
use planning::addon::{
    Change, ConditionSeen, Course, CourseInput, Hook, Kind, Marks, ReleaseSeen, Stage, StageKey, StageSeen, Stages,
    Target, Values, Wanted, Work, change, course, due, kind, stages, wanted,
};

use crate::given::{self, at, listed, owner};

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

/// A ClusterAddon that we have begun to work on.
fn begun() -> ClusterAddon {
    let mut addon = given::begun();
    addon.metadata.owner_references = Some(vec![owner("uid-1")]);
    addon
}

impl World {
    pub(crate) fn new(minor: Minor) -> Self {
        let addon = begun();
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

    /// Somebody deletes the ClusterAddon, and another one is made, of which nothing is known.
    pub(crate) fn replace_addon(&mut self) {
        self.addon = begun();
        self.shown();
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
        match wanted(&self.cluster(), &release, &values, None) {
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
