//! The releases of the model: what their charts ask for, and in which stages.

use std::collections::BTreeMap;

use planning::addon::Stages;
use planning::object_key::ObjectKey;

use crate::given::listed;

/// What the API server refuses, whoever asks for it.
pub(crate) const REFUSED: &str = "refused";

/// A chart: what it asks for, or why it cannot be used.
#[derive(Clone, Debug)]
pub(crate) enum Chart {
    Objects(BTreeMap<ObjectKey, String>),
    Missing,
    Broken,
}

pub(crate) struct Release {
    pub(crate) class: &'static str,
    pub(crate) addon_version: &'static str,
    pub(crate) kubernetes_version: &'static str,
    pub(crate) stages: Stages,
    pub(crate) charts: BTreeMap<&'static str, Chart>,
    /// No cluster can get all of it.
    pub(crate) is_faulty: bool,
}

/// A key from its printed form.
pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

/// A chart from lines such as `ConfigMap kube-system/a: content`.
fn chart(objects: &[(&str, &str)]) -> Chart {
    let objects = objects.iter();
    Chart::Objects(
        objects
            .map(|(text, content)| (key(text), (*content).to_owned()))
            .collect(),
    )
}

pub(crate) const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io widgets.example.org";
pub(crate) const WIDGET: &str = "Widget.example.org kube-system/w";
pub(crate) const MOVED: &str = "ConfigMap kube-system/moved";
pub(crate) const SEED: &str = "ConfigMap kube-system/seed";
pub(crate) const KEPT: &str = "Secret kube-system/kept";

const AROUND: &str = "waitForPreCondition: {conditions: a}, waitForPostCondition: {conditions: b}";

/// Releases one after the other: 0 is where clusters begin.
pub(crate) fn releases() -> Vec<Release> {
    vec![
        seeding(),
        moving(),
        refused(),
        missing(),
        many("docker-scs-1-34-v1"),
        many("docker-scs-1-34-v2"),
        single(),
    ]
}

/// A chart that is applied and taken away, and one that draws at random.
fn seeding() -> Release {
    Release {
        class: "docker-scs-1-33-v1",
        addon_version: "v1",
        kubernetes_version: "v1.33.1",
        stages: listed(&format!(
            "{{AfterControlPlaneInitialized: [{{name: cni, action: apply, {AROUND}}}, {{name: seed, action: apply}}, {{name: seed, action: delete}}],
               BeforeClusterUpgrade: [{{name: cni, action: apply}}, {{name: old, action: apply}}],
               BeforeClusterDelete: [{{name: cni, action: delete}}]}}"
        )),
        charts: BTreeMap::from([
            ("cni", chart(&[("Namespace cni", ""), ("ConfigMap cni/cni", "1"), ("Secret cni/ca", "random"), (MOVED, "1")])),
            ("seed", chart(&[(SEED, "1"), (MOVED, "seed")])),
            ("old", chart(&[("ConfigMap kube-system/old", "1"), (KEPT, "1")])),
        ]),
        is_faulty: false,
    }
}

/// An object moves from one chart to another, and one leaves.
fn moving() -> Release {
    Release {
        class: "docker-scs-1-33-v2",
        addon_version: "v2",
        kubernetes_version: "v1.33.1",
        stages: listed(&format!(
            "{{AfterControlPlaneInitialized: [{{name: cni, action: apply, {AROUND}}}, {{name: metrics, action: apply}}],
               BeforeClusterDelete: [{{name: metrics, action: delete}}, {{name: cni, action: delete}}]}}"
        )),
        charts: BTreeMap::from([
            ("cni", chart(&[("Namespace cni", ""), ("ConfigMap cni/cni", "2")])),
            (
                "metrics",
                chart(&[("ConfigMap kube-system/metrics", "1"), (MOVED, "2")]),
            ),
        ]),
        is_faulty: false,
    }
}

fn refused() -> Release {
    let mut release = moving();
    release.charts.insert(
        "metrics",
        chart(&[("ConfigMap kube-system/metrics", REFUSED), (MOVED, "3")]),
    );
    Release {
        class: "docker-scs-1-33-v3",
        addon_version: "v3",
        is_faulty: true,
        ..release
    }
}

fn missing() -> Release {
    let mut release = moving();
    release.charts.insert("cni", chart(&[("ConfigMap cni/cni", "3")]));
    release.charts.insert("metrics", Chart::Missing);
    Release {
        class: "docker-scs-1-33-v4",
        addon_version: "v4",
        is_faulty: true,
        ..release
    }
}

/// Stages for every hook, one of which takes a chart of earlier releases away, and a kind that a chart brings along.
fn many(class: &'static str) -> Release {
    Release {
        class,
        addon_version: "v5",
        kubernetes_version: "v1.34.0",
        stages: listed(&format!(
            "{{AfterControlPlaneInitialized: [{{name: cni, action: apply, {AROUND}}}],
               BeforeClusterUpgrade: [{{name: cni, action: apply, {AROUND}}}],
               BeforeControlPlaneUpgrade: [{{name: policy, action: apply}}],
               AfterControlPlaneUpgrade: [{{name: widgets, action: apply, {AROUND}}}],
               AfterWorkersUpgrade: [{{name: metrics, action: delete}}],
               AfterClusterUpgrade: [{{name: extra, action: apply, onFailure: continue}}, {{name: old, action: delete}}],
               BeforeClusterDelete: [{{name: extra, action: delete, timeout: 2m}}]}}"
        )),
        charts: BTreeMap::from([
            ("cni", chart(&[("Namespace cni", ""), ("ConfigMap cni/cni", "5"), ("Secret cni/ca", "random")])),
            ("policy", chart(&[("ConfigMap kube-system/policy", "1"), (MOVED, "5")])),
            ("widgets", chart(&[(CRD, "1"), (WIDGET, "1")])),
            ("metrics", chart(&[("ConfigMap kube-system/metrics", "1"), (MOVED, "2")])),
            ("extra", chart(&[("ConfigMap kube-system/extra", "1")])),
            ("old", chart(&[("ConfigMap kube-system/old", "1"), (KEPT, "1")])),
        ]),
        is_faulty: false,
    }
}

fn single() -> Release {
    Release {
        class: "docker-scs-1-35-v1",
        addon_version: "v7",
        kubernetes_version: "v1.35.0",
        stages: Stages::Single,
        charts: BTreeMap::from([(
            planning::addon::SINGLE_STAGE,
            chart(&[
                ("Namespace cni", ""),
                ("ConfigMap cni/cni", "7"),
                ("ConfigMap kube-system/extra", "2"),
            ]),
        )]),
        is_faulty: false,
    }
}

/// A release whose chart cannot be rendered.
pub(crate) fn broken() -> Release {
    let mut release = moving();
    release.charts.insert("metrics", Chart::Broken);
    Release {
        is_faulty: true,
        ..release
    }
}
