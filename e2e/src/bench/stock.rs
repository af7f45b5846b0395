//! The releases that a benchmark installs: stacks of the same shape, each with as many versions as asked for.

use std::{
    iter,
    ops::Range,
    path::{Path, PathBuf},
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
/// Objects of each release when nothing else is asked for.
pub(super) const OBJECTS: usize = 4;
/// Releases of a stack when nothing else is asked for.
pub(super) const RELEASES_OF_A_STACK: usize = 50;

/// How many releases, and how they are spread.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// How many releases each stack has.
    spread: Vec<usize>,
    /// Of each release.
    pub(super) objects: usize,
}

impl Shape {
    /// As equal as can be.
    pub(super) fn even(releases: usize, stacks: usize, objects: usize) -> Self {
        let versions = |stack| releases / stacks + usize::from(stack < releases % stacks);
        Self {
            spread: (0..stacks).map(versions).collect(),
            objects,
        }
    }

    /// So many stacks with one release each, and then these.
    pub(super) fn after_single(mut self, singles: usize) -> Self {
        self.spread = iter::repeat_n(1, singles).chain(self.spread).collect();
        self
    }

    pub(super) fn releases(&self) -> usize {
        self.spread.iter().sum()
    }

    pub(super) fn stacks(&self) -> usize {
        self.spread.len()
    }
}

/// A directory of releases, and the stacks that ask for all of them.
pub(super) struct Stock {
    pub(super) releases: Releases,
    stacks: Vec<Planned>,
}

/// A stack that is to be created.
struct Planned {
    name: String,
    versions: Vec<String>,
    /// Further fields of its spec.
    further: Value,
}

/// The tag of a release of a stack.
pub(super) fn tag(stack: &str, version: &str) -> String {
    format!("docker-{stack}-1-34-{version}")
}

impl Stock {
    /// Packs them by the built `kubectl-stacks`, as a provider of clusters would.
    pub(super) async fn pack(folder: &Path, shape: &Shape, progress: &Progress) -> Result<Self> {
        let releases = Releases::at(&folder.join("releases"))?;
        let mut stacks = Vec::new();
        let mut packs = Vec::new();
        for (index, count) in shape.spread.iter().enumerate() {
            let name = format!("s{index:03}");
            let source = folder.join("sources").join(&name);
            releases::write_small_stack(&source, &name, shape.objects - FIXED_OBJECTS)?;
            let versions: Vec<String> = (1..=*count).map(|number| format!("v{number}")).collect();
            packs.extend(versions.iter().map(|version| (source.clone(), version.clone())));
            stacks.push(Planned {
                name,
                versions,
                further: json!({}),
            });
        }
        pack(&releases, packs, progress).await?;
        Ok(Self { releases, stacks })
    }

    /// How many releases there are.
    pub(super) fn count(&self) -> usize {
        self.stacks.iter().map(|stack| stack.versions.len()).sum()
    }

    /// What the stacks are called.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stacks.iter().map(|stack| stack.name.as_str())
    }

    /// Has the releases of some stacks come from elsewhere: each is published there (its folder, its tag) and leaves the directory.
    pub(super) fn elsewhere(
        &mut self,
        stacks: Range<usize>,
        further: &Value,
        mut publish: impl FnMut(&Path, &str) -> Result<()>,
    ) -> Result<()> {
        for stack in &mut self.stacks[stacks] {
            stack.further.clone_from(further);
            for version in &stack.versions {
                let tag = tag(&stack.name, version);
                publish(&self.releases.folder_of(&tag), &tag)?;
                self.releases.unpublish(&tag)?;
            }
        }
        Ok(())
    }

    /// The ClusterStacks, without namespace.
    pub(super) fn cluster_stacks(&self) -> impl Iterator<Item = Value> {
        self.stacks.iter().map(|stack| {
            let mut spec = json!({
                "provider": "docker", "name": stack.name, "kubernetesVersion": "1.34",
                "autoSubscribe": false, "noProvider": true, "versions": stack.versions,
            });
            for (key, value) in stack.further.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
                "metadata": { "name": stack.name }, "spec": spec,
            })
        })
    }
}

/// Packs sources of stacks as versions, on every core.
pub(super) async fn pack(releases: &Releases, packs: Vec<(PathBuf, String)>, progress: &Progress) -> Result<()> {
    let (packed, count) = (Arc::new(AtomicUsize::new(0)), packs.len());
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
                progress.tick(&format!("{done} of {count} releases packed"));
                Ok::<_, anyhow::Error>(())
            }
        })
        .buffer_unordered(workers)
        .try_collect::<()>()
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_belongs_to_one_stack() {
        for (releases, stacks) in [(1000, 20), (100, 3), (2, 2), (7, 1)] {
            let shape = Shape::even(releases, stacks, OBJECTS);
            assert_eq!((shape.releases(), shape.stacks()), (releases, stacks), "{shape:?}");
            let shape = shape.after_single(5);
            assert_eq!(
                (shape.releases(), shape.stacks()),
                (releases + 5, stacks + 5),
                "{shape:?}"
            );
        }
    }
}
