//! What tests are given: releases, Clusters, times.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{ClusterAddon, ClusterAddonSpec};
use crds::labels::{ADDON_FINALIZER, CONTAINS_GROUP_KINDS};
use crds::release_files::ClusterAddonConfig;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use planning::addon::{ClusterSeen, Course, CourseInput, Kind, StageKey, StageSeen, Stages, Target, course, stages};
use serde_json::{Value, json};

/// Seconds after the begin of all tests.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// Stages as clusteraddon.yaml has them.
pub(crate) fn listed(addon_stages: &str) -> Stages {
    let config = ClusterAddonConfig::parse(format!("addonStages: {addon_stages}").as_bytes());
    Stages::Listed(config.expect("good stages"))
}

pub(crate) const CLASS: &str = "docker-scs-1-33-v1";

/// A Cluster of our class whose control plane answers, in the form of v1beta2.
pub(crate) fn cluster_value(class: &str, version: &str) -> Value {
    json!({
        "metadata": {"namespace": "team", "name": "web", "uid": "uid-1", "generation": 3},
        "spec": {
            "topology": {"classRef": {"name": class}, "version": version},
            "infrastructureRef": {"name": "web"}, "controlPlaneRef": {"name": "web"},
        },
        "status": {"conditions": [
            {"type": "ControlPlaneInitialized", "status": "True"},
            {"type": "TopologyReconciled", "status": "True"},
        ]},
    })
}

/// The same, with a control plane that shall have one version and has another.
pub(crate) fn cluster(version: &str, wanted: &str, reached: &str) -> ClusterSeen {
    let control_plane = json!({"spec": {"version": wanted}, "status": {"version": reached}});
    ClusterSeen::of(&cluster_value(CLASS, version), Some(&control_plane))
}

pub(crate) fn target(version: &str, kubernetes_version: &str) -> Target {
    Target {
        class: CLASS.to_owned(),
        version: version.to_owned(),
        kubernetes_version: kubernetes_version.to_owned(),
        digest: format!("{version} for {kubernetes_version}"),
    }
}

/// The Cluster of this uid, as it owns its add-on.
pub(crate) fn owner(uid: &str) -> OwnerReference {
    OwnerReference {
        kind: "Cluster".to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }
}

pub(crate) fn addon() -> ClusterAddon {
    let spec = ClusterAddonSpec {
        cluster_ref: ObjectReference::default(),
        cluster_stack: None,
        version: None,
        hook: None,
    };
    ClusterAddon::new("cluster-addon-web", spec)
}

pub(crate) fn annotated(annotations: &[(&str, &str)]) -> ClusterAddon {
    let mut addon = addon();
    let annotations = annotations
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    addon.metadata.annotations = Some(annotations.collect());
    addon
}

/// With the marks of one that we have begun to work on.
pub(crate) fn begun() -> ClusterAddon {
    let mut addon = annotated(&[(CONTAINS_GROUP_KINDS, "ConfigMap")]);
    addon.metadata.finalizers = Some(vec![ADDON_FINALIZER.to_owned()]);
    addon
}

/// A course that is driven by hand.
pub(crate) struct Driven {
    pub(crate) kind: Kind,
    pub(crate) layout: Stages,
    pub(crate) target: Target,
    pub(crate) cluster: ClusterSeen,
    pub(crate) status: crds::cluster_addon::ClusterAddonStatus,
    pub(crate) seen: BTreeMap<StageKey, StageSeen>,
}

impl Driven {
    pub(crate) fn new(kind: Kind, layout: Stages, target: Target, cluster: ClusterSeen) -> Self {
        Self {
            kind,
            layout,
            target,
            cluster,
            status: crds::cluster_addon::ClusterAddonStatus::default(),
            seen: BTreeMap::new(),
        }
    }

    /// Looks, and writes down what was found.
    pub(crate) fn look(&mut self, second: i64) -> Course {
        let due: BTreeSet<_> = planning::addon::due(&self.cluster, None);
        let stages = stages(self.kind, &self.layout);
        let input = CourseInput {
            kind: self.kind,
            stages: &stages,
            target: &self.target,
            cluster: &self.cluster,
            status: &self.status,
            due: &due,
            seen: &self.seen,
        };
        let course = course(&input, at(second));
        let hook = course.progress(&input, at(second));
        self.status.target = Some(self.target.recorded());
        self.status.stages = course.rows();
        self.status.hook = hook;
        course
    }

    /// The key of the n-th stage.
    pub(crate) fn key(&self, number: usize) -> StageKey {
        stages(self.kind, &self.layout)[number].key.clone()
    }

    pub(crate) fn see(&mut self, number: usize, seen: StageSeen) {
        self.seen.insert(self.key(number), seen);
    }
}
