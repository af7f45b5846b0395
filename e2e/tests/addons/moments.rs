//! Every moment of a cluster's life has a stage of its own: each runs at its moment, one after the other, and what the moment comes before waits for it (A7).

use std::{collections::BTreeSet, fmt::Write as _, fs};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::{StagePhase, name_for},
    labels,
};
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    hooks::Hook,
    journey::SOON,
    releases::StackSource,
    shim::{Hold, PlayedCluster, cluster},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, ObjectMeta, PostParams},
};
use serde_json::Value;

use crate::{
    deleted::{ask_for_the_end, both_are_gone, says_what_holds_it_up},
    ground::{
        CLUSTER, CLUSTER_API, Ground, control_plane, course, phases, release_of, set_topology, until_addon,
        until_cluster,
    },
    reshaped::{STAGES, add_chart, add_object},
    stack,
};

const OLD: &str = "v1.34.0";
const NEW: &str = "v1.35.0";
const CONTROL_PLANE: &str = "ShimControlPlane";
const SYSTEM: &str = "kube-system";

/// The moments of each part of a life.
const OF_CREATION: [Hook; 2] = [Hook::BeforeClusterCreate, Hook::AfterControlPlaneInitialized];
const OF_UPGRADE: [Hook; 6] = [
    Hook::BeforeClusterUpgrade,
    Hook::BeforeControlPlaneUpgrade,
    Hook::AfterControlPlaneUpgrade,
    Hook::BeforeWorkersUpgrade,
    Hook::AfterWorkersUpgrade,
    Hook::AfterClusterUpgrade,
];
const OF_DELETION: [Hook; 1] = [Hook::BeforeClusterDelete];

/// How the chart of a moment is called, and what its name makes of its ConfigMap.
fn chart_of(hook: Hook) -> String {
    hook.dashed()
}

fn object_of(hook: Hook) -> String {
    format!("ConfigMap {SYSTEM}/cluster-addon-{}", chart_of(hook))
}

/// The stack with a chart for each moment, of one ConfigMap, and a stage that ends when somebody has opened its gate.
fn with_a_stage_for_each_moment(version: &str) -> Result<StackSource> {
    let source = StackSource::quay(version)?;
    fs::remove_dir_all(source.path().join("cluster-addon")).context("failed to remove the charts")?;
    let mut stages = String::from(
        "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n\
         clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1\naddonStages:\n",
    );
    for hook in Hook::ALL {
        let chart = chart_of(hook);
        add_chart(&source, &chart)?;
        add_object(&source, &chart, "ConfigMap", "", &chart)?;
        write!(
            stages,
            "  {}:
  - name: {chart}
    action: apply
    waitForPostCondition:
      objects:
      - key: gate
        apiVersion: v1
        kind: ConfigMap
        name: gate-{chart}
        namespace: {SYSTEM}
      conditions: gate.data.is == \"open\"
",
            hook.name()
        )?;
    }
    source.write(STAGES, &stages)?;
    Ok(source)
}

/// That stack as a class; the answer is its name.
async fn class(journey: &Journey, version: &str) -> Result<String> {
    let source = with_a_stage_for_each_moment(version)?;
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, version, version).await?;
    Ok(tag)
}

/// One Cluster on its way through the moments.
struct Life<'a> {
    journey: &'a Journey,
    ground: &'a Ground,
    web: PlayedCluster,
    /// The moments that came so far.
    came: Vec<Hook>,
}

impl Life<'_> {
    /// The stage of the next moment does its work and waits; those before are over, those after have not begun.
    async fn comes_to(&mut self, hook: Hook, of: &[Hook]) -> Result<()> {
        let place = of
            .iter()
            .position(|other| *other == hook)
            .context("it is of another part")?;
        let charts: Vec<String> = of.iter().copied().map(chart_of).collect();
        let phase = |at: usize| match at {
            _ if at < place => StagePhase::Done,
            _ if at == place => StagePhase::WaitingForPostCondition,
            _ => StagePhase::Pending,
        };
        let wanted: Vec<_> = charts
            .iter()
            .enumerate()
            .map(|(at, chart)| (chart.as_str(), phase(at)))
            .collect();
        until_addon(self.journey, &format!("the stage of {}", hook.name()), |status| {
            phases(status) == wanted
        })
        .await?;
        self.came.push(hook);
        self.has_what_came().await
    }

    /// The workload cluster has what the moments so far bring, and nothing else of ours.
    async fn has_what_came(&self) -> Result<()> {
        let there = stack::ours(&self.ground.workload.client(), &self.ground.home).await?;
        let wanted: BTreeSet<String> = self.came.iter().copied().map(object_of).collect();
        ensure!(there == wanted, "{there:#?} instead of {wanted:#?}");
        Ok(())
    }

    /// Whoever waits for the stage of this moment may go on.
    async fn open(&self, hook: Hook) -> Result<()> {
        let gate = ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("gate-{}", chart_of(hook))),
                ..ObjectMeta::default()
            },
            data: Some([("is".to_owned(), "open".to_owned())].into()),
            ..ConfigMap::default()
        };
        let gates: Api<ConfigMap> = Api::namespaced(self.ground.workload.client(), SYSTEM);
        gates.create(&PostParams::default(), &gate).await?;
        Ok(())
    }

    /// The version that the control plane was told, that it has, and that the workers were told.
    async fn versions(&self) -> Result<[String; 3]> {
        let plane = control_plane(self.journey, CONTROL_PLANE).await?;
        let set = self.workers().await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok([
            text(&plane.data["spec"]["version"]),
            text(&plane.data["status"]["version"]),
            text(&set.data["spec"]["template"]["spec"]["version"]),
        ])
    }

    async fn has(&self, versions: [&str; 3]) -> Result<()> {
        let found = self.versions().await?;
        ensure!(found == versions, "{found:?} instead of {versions:?}");
        Ok(())
    }

    /// The control plane has the next version and the workers have not. Cluster API 1.14.2 was seen to give it to the workers half a second before it called
    /// `AfterControlPlaneUpgrade` for the first time, which nobody can hold up: there it is not looked for.
    async fn has_old_workers(&self) -> Result<()> {
        let [wanted, reached, workers] = self.versions().await?;
        ensure!(wanted == NEW && reached == NEW, "{wanted}, {reached}");
        ensure!(
            workers == OLD || self.ground.release == Release::V1_14,
            "the workers have {workers}"
        );
        Ok(())
    }

    async fn comes_to_have(&self, versions: [&str; 3]) -> Result<()> {
        eventually(SOON, format!("the versions {versions:?}"), async || {
            self.has(versions).await
        })
        .await
    }

    /// The Cluster says that it waits for the stage of this moment.
    async fn is_held_by(&self, hook: Hook) -> Result<()> {
        let stage = format!("stage {} (apply)", chart_of(hook));
        until_cluster(
            self.journey,
            &format!("the Cluster to wait for the {stage}"),
            |cluster| cluster["status"].to_string().contains(&stage),
        )
        .await
    }

    /// What the ClusterAddon says to have been called, once it says so.
    async fn was_called(&self, hook: Hook, class: &str) -> Result<()> {
        let wanted = format!("{}@{NEW}@{class}", hook.name());
        let noted = |addon: &ClusterAddon| addon.annotations().get(labels::HOOK_CALLED) == Some(&wanted);
        self.journey
            .until(&name_for(CLUSTER), &format!("the note {wanted}"), noted)
            .await
            .map(drop)
    }

    /// All stages are over, and nothing else is to be done.
    async fn is_complete(&self, class: &str, kubernetes: &str) -> Result<ClusterAddon> {
        until_addon(self.journey, &format!("all stages of {class} to be over"), |status| {
            let applied = status.applied.as_ref();
            status.ready
                && status.applied == status.target
                && applied.is_some_and(|applied| {
                    applied.cluster_stack == class && applied.kubernetes_version.as_deref() == Some(kubernetes)
                })
                && status.stages.iter().all(|stage| stage.phase == StagePhase::Done)
        })
        .await
    }

    /// The cluster comes up, which no moment holds up: before it answers, no stage can run there.
    async fn begins(&mut self, class: &str) -> Result<()> {
        self.web.hold(Hold::Initialization);
        self.journey.apply(cluster(CLUSTER, class, OLD, 1)).await?;
        eventually(SOON, "Cluster API to go on and make a control plane", async || {
            control_plane(self.journey, CONTROL_PLANE).await.map(drop)
        })
        .await?;
        let pending = OF_CREATION.map(|hook| (chart_of(hook), StagePhase::Pending));
        until_addon(self.journey, "stages that wait for the cluster", |status| {
            let phases = phases(status).into_iter();
            phases.map(|(name, phase)| (name.to_owned(), phase)).eq(pending.clone())
        })
        .await?;
        self.has_what_came().await?;
        self.web.release(Hold::Initialization);
        for hook in OF_CREATION {
            self.comes_to(hook, &OF_CREATION).await?;
            self.open(hook).await?;
        }
        let addon = self.is_complete(class, OLD).await?;
        let noted = addon.annotations().get(labels::HOOK_CALLED);
        ensure!(noted.is_none(), "{noted:?}");
        self.comes_to_have([OLD, OLD, OLD]).await
    }

    /// Neither the control plane nor the workers take the next version before the stages that come before are over, and the stages that come after wait for them.
    async fn is_upgraded(&mut self, class: &str) -> Result<()> {
        let after_workers = if self.ground.release.knows(Hook::AfterWorkersUpgrade) {
            Hook::AfterWorkersUpgrade
        } else {
            Hook::AfterClusterUpgrade
        };
        // Workers without a Machine are as good as new: nothing waits for them.
        eventually(SOON, "the workers to be there", async || self.workers_are_new().await).await?;
        self.web.hold(Hold::Upgrade);
        self.web.hold(Hold::Machines);
        set_topology(self.journey, class, NEW).await?;
        for hook in [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade] {
            self.comes_to(hook, &OF_UPGRADE).await?;
            self.is_held_by(hook).await?;
            self.was_called(Hook::BeforeClusterUpgrade, class).await?;
            self.has([OLD, OLD, OLD]).await?;
            self.open(hook).await?;
        }
        self.comes_to_have([NEW, OLD, OLD]).await?;
        self.waits_for_the_cluster(Hook::AfterControlPlaneUpgrade).await?;
        self.web.release(Hold::Upgrade);
        for hook in [Hook::AfterControlPlaneUpgrade, Hook::BeforeWorkersUpgrade] {
            self.comes_to(hook, &OF_UPGRADE).await?;
            self.is_held_by(hook).await?;
            self.has_old_workers().await?;
            self.open(hook).await?;
        }
        self.comes_to_have([NEW, NEW, NEW]).await?;
        self.waits_for_the_cluster(Hook::AfterWorkersUpgrade).await?;
        self.web.release(Hold::Machines);
        for hook in [Hook::AfterWorkersUpgrade, Hook::AfterClusterUpgrade] {
            self.comes_to(hook, &OF_UPGRADE).await?;
            self.was_called(after_workers, class).await?;
            self.workers_are_new().await?;
            self.open(hook).await?;
        }
        self.is_complete(class, NEW).await.map(drop)
    }

    /// The stage of this moment is the next, and has not begun; what came so far is all that there is.
    async fn waits_for_the_cluster(&self, hook: Hook) -> Result<()> {
        let chart = chart_of(hook);
        let what = format!("the stage of {} to be the next", hook.name());
        until_addon(self.journey, &what, |status| {
            let mut open = phases(status)
                .into_iter()
                .filter(|(_, phase)| *phase != StagePhase::Done);
            open.next() == Some((chart.as_str(), StagePhase::Pending))
        })
        .await?;
        self.has_what_came().await
    }

    async fn workers(&self) -> Result<DynamicObject> {
        let sets = self.journey.objects(CLUSTER_API, "MachineDeployment");
        let list = sets.list(&ListParams::default()).await?;
        list.items.into_iter().next().context("no workers")
    }

    async fn workers_are_new(&self) -> Result<()> {
        let set = self.workers().await?;
        let status = &set.data["status"];
        ensure!(status["updatedReplicas"] == 1, "{status:#}");
        Ok(())
    }

    /// Nothing of the cluster is deleted before the last stage is over.
    async fn ends(&self) -> Result<()> {
        let [last] = OF_DELETION;
        ask_for_the_end(self.journey).await?;
        let chart = chart_of(last);
        until_addon(self.journey, "the last stage", |status| {
            phases(status) == [(chart.as_str(), StagePhase::WaitingForPostCondition)]
        })
        .await?;
        says_what_holds_it_up(self.journey, self.ground, &format!("stage {chart} (apply)")).await?;
        let cluster = self.journey.objects(CLUSTER_API, "Cluster").get(CLUSTER).await?;
        let annotations = cluster.annotations();
        ensure!(!annotations.contains_key(labels::OK_TO_DELETE), "{annotations:?}");
        let plane = control_plane(self.journey, CONTROL_PLANE).await?;
        ensure!(plane.metadata.deletion_timestamp.is_none(), "{:?}", plane.metadata);
        self.open(last).await?;
        both_are_gone(self.journey).await
    }
}

/// The moments in the order in which their objects were first written.
fn order(written: &[String]) -> Vec<Hook> {
    let mut order = Vec::new();
    for write in written {
        let is_of = |hook: &Hook| write.contains(&format!("/configmaps/cluster-addon-{}?", chart_of(*hook)));
        order.extend(
            Hook::ALL
                .into_iter()
                .filter(is_of)
                .filter(|hook| !order.contains(hook))
                .collect::<Vec<_>>(),
        );
    }
    order
}

fn each_at_its_moment(release: Release) -> Result<()> {
    course(release, async |journey, ground| {
        let [old, new] = [class(journey, "v1").await?, class(journey, "v2").await?];
        let mark = ground.workload.audit_log().mark().await?;
        let mut life = Life {
            journey,
            ground,
            web: ground.web(),
            came: Vec::new(),
        };
        life.begins(&old).await?;
        life.is_upgraded(&new).await?;
        life.ends().await?;
        let order = order(&ground.written_since(mark).await?);
        ensure!(order == Hook::ALL, "{order:?}");
        Ok(())
    })
}

#[test]
fn a7_each_lifecycle_hook_has_its_stages_run_at_its_moment_and_holds_up_what_it_comes_before_on_1_10() -> Result<()> {
    each_at_its_moment(Release::V1_10)
}

#[test]
fn a7_each_lifecycle_hook_has_its_stages_run_at_its_moment_and_holds_up_what_it_comes_before_on_1_14() -> Result<()> {
    each_at_its_moment(Release::V1_14)
}
