//! The releases that a benchmark installs: stacks of the same shape, each with as many versions as asked for.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use e2e::{releases, releases::Releases};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::progress::Progress;

/// Objects of the chart beside its machine templates.
const FIXED_OBJECTS: usize = 3;

/// How many releases, and how they are spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) releases: usize,
    pub(super) stacks: usize,
    /// Of each release.
    pub(super) objects: usize,
}

impl Shape {
    /// How many versions each stack has: as equal as can be.
    fn versions(self, stack: usize) -> usize {
        let extra = usize::from(stack < self.releases % self.stacks);
        self.releases / self.stacks + extra
    }
}

/// A directory of releases, and the stacks that ask for all of them.
pub(super) struct Stock {
    pub(super) releases: Releases,
    /// `(name, versions)` of each stack.
    stacks: Vec<(String, Vec<String>)>,
}

impl Stock {
    /// Packs them by the built `kubectl-stacks`, as a provider of clusters would.
    pub(super) async fn pack(folder: &Path, shape: Shape, progress: &Progress) -> Result<Self> {
        let releases = Releases::at(&folder.join("releases"))?;
        let mut stacks = Vec::new();
        let mut packs = Vec::new();
        for index in 0..shape.stacks {
            let name = format!("s{index:03}");
            let source = folder.join("sources").join(&name);
            releases::write_small_stack(&source, &name, shape.objects - FIXED_OBJECTS)?;
            let versions: Vec<String> = (1..=shape.versions(index)).map(|number| format!("v{number}")).collect();
            packs.extend(versions.iter().map(|version| (source.clone(), version.clone())));
            stacks.push((name, versions));
        }
        let packed = Arc::new(AtomicUsize::new(0));
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        stream::iter(packs)
            .map(|(source, version)| {
                let (releases, packed) = (releases.clone(), Arc::clone(&packed));
                async move {
                    let pack = move || releases.publish_stack(&source, &version);
                    tokio::task::spawn_blocking(pack)
                        .await
                        .context("packing was stopped")??;
                    let done = packed.fetch_add(1, Ordering::Relaxed) + 1;
                    progress.tick(&format!("{done} of {} releases packed", shape.releases));
                    Ok::<_, anyhow::Error>(())
                }
            })
            .buffer_unordered(workers)
            .try_collect::<()>()
            .await?;
        Ok(Self { releases, stacks })
    }

    /// The ClusterStacks, without namespace.
    pub(super) fn cluster_stacks(&self) -> impl Iterator<Item = Value> {
        self.stacks.iter().map(|(name, versions)| {
            json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1",
                "kind": "ClusterStack",
                "metadata": { "name": name },
                "spec": {
                    "provider": "docker", "name": name, "kubernetesVersion": "1.34",
                    "autoSubscribe": false, "noProvider": true, "versions": versions,
                },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_belongs_to_one_stack() {
        for (releases, stacks) in [(1000, 20), (100, 3), (2, 2), (7, 1)] {
            let shape = Shape {
                releases,
                stacks,
                objects: 4,
            };
            let versions: Vec<usize> = (0..stacks).map(|stack| shape.versions(stack)).collect();
            assert_eq!(versions.iter().sum::<usize>(), releases, "{versions:?}");
        }
    }
}
