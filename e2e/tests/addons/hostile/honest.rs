//! The honest cluster beside those that are not: it gets whatever its owner wants, and never waits for long.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{ControlPlane, Journey, eventually, journey::SOON, shim::Workload};
use futures::future::{join, join_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::Attack;
use crate::{
    by_hand::{ByHand, until_status},
    ground::CLUSTER_API,
};

pub(super) const HONEST: &str = "honest";
/// The longest that it may wait for what its owner changes while others are at work.
const MOST_PATIENCE: Duration = Duration::from_mins(1);

/// The cluster, of the [honest](super::releases) release.
pub(super) struct Honest {
    pub(super) cluster: ByHand,
    pub(super) workload: ControlPlane,
}

impl Honest {
    pub(super) fn at(workload: ControlPlane, class: &str, served: &Workload) -> Self {
        Self {
            cluster: ByHand::new(HONEST, class, served.kubeconfig().as_bytes()),
            workload,
        }
    }

    /// Brings it, and waits until its note says whose it is.
    pub(super) async fn is_complete(&self, journey: &Journey) -> Result<()> {
        self.cluster.bring(journey).await?;
        until_status(journey, HONEST, "ready", |status| status.ready).await?;
        let note = self.note(&format!("{HONEST}-note")).await?;
        ensure!(note.get("cluster").is_some_and(|name| name == HONEST), "{note:?}");
        Ok(())
    }

    /// All of these are told, and until then it gets whatever its owner wants, again and again.
    pub(super) async fn is_served_until_told<'a>(
        &self,
        journey: &Journey,
        attacks: impl Iterator<Item = &'a Attack>,
    ) -> Result<()> {
        let is_over = AtomicBool::new(false);
        let told = async {
            let told = join_all(attacks.map(|attack| attack.is_told(journey))).await;
            is_over.store(true, Ordering::Relaxed);
            told
        };
        let served = async {
            let mut longest = Duration::ZERO;
            for berth in 1.. {
                let begun = Instant::now();
                self.moves(journey, &format!("berth-{berth}")).await?;
                longest = longest.max(begun.elapsed());
                if is_over.load(Ordering::Relaxed) {
                    eprintln!("{berth} times moved, in {longest:?} at most");
                    break;
                }
            }
            anyhow::Ok(longest)
        };
        let (told, longest) = join(told, served).await;
        let untold: Vec<String> = told
            .into_iter()
            .filter_map(|told| Some(format!("{:#}", told.err()?)))
            .collect();
        ensure!(untold.is_empty(), "{untold:#?}");
        let longest = longest?;
        ensure!(longest < MOST_PATIENCE, "the honest cluster waited for {longest:?}");
        Ok(())
    }

    /// It goes elsewhere, and its note tells that.
    async fn moves(&self, journey: &Journey, berth: &str) -> Result<()> {
        let there = Patch::Merge(json!({ "metadata": { "labels": { "berth": berth } } }));
        let clusters = journey.objects(CLUSTER_API, "Cluster");
        let moved = clusters.patch(HONEST, &PatchParams::default(), &there).await;
        moved.context("failed to change the honest Cluster")?;
        eventually(SOON, format!("the note to tell {berth}"), async || {
            let note = self.note(&format!("{HONEST}-note")).await?;
            ensure!(note.get("berth").is_some_and(|told| told == berth), "{note:?}");
            Ok(())
        })
        .await
    }

    /// What a ConfigMap in it holds.
    pub(super) async fn note(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let notes: Api<ConfigMap> = Api::namespaced(self.workload.client(), "kube-system");
        Ok(notes.get(name).await?.data.unwrap_or_default())
    }
}
