//! What happens to the stacks of a soak: versions appear and disappear, are asked for and dropped, objects are damaged, stacks go and come back.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context, Result};
use crds::{ClusterStack, labels};
use kube::{
    Error,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    Journey,
    fault_proxy::Dice,
    releases::{Releases, write_small_stack},
    web::IndexServer,
};

/// Versions that each stack may have.
const VERSIONS: u64 = 4;
/// How often sources are asked: as often as they may be.
const OFTEN: &str = "10s";

/// All stacks of a soak, and what becomes of them.
pub(super) struct Deeds {
    dice: Dice,
    /// Where every release lies that may ever appear.
    packed: Releases,
    index: IndexServer,
    stacks: Vec<Stack>,
    done: usize,
}

struct Stack {
    name: String,
    /// Whether its releases are in the index of a web server, not in the directory.
    is_remote: bool,
    offered: BTreeSet<u64>,
}

impl Stack {
    fn tag(&self, version: u64) -> String {
        format!("docker-{}-1-34-v{version}", self.name)
    }
}

impl Deeds {
    /// Packs every release, and offers the first of each stack.
    pub(super) async fn prepare(journey: &Journey, stacks: usize, seed: u64) -> Result<Self> {
        let packed = Releases::at(&journey.folder().join("packed"))?;
        let mut deeds = Self {
            dice: Dice::of(seed, "deeds"),
            index: IndexServer::start().await?,
            stacks: Vec::new(),
            done: 0,
            packed,
        };
        for number in 0..stacks {
            let name = format!("s{number:03}");
            let source = journey.folder().join("sources").join(&name);
            write_small_stack(&source, &name, 1)?;
            deeds.pack(source).await?;
            deeds.stacks.push(Stack {
                name,
                is_remote: number % 2 == 1,
                offered: BTreeSet::new(),
            });
            deeds.offer(journey, number, 1)?;
        }
        for number in 0..stacks {
            deeds.want(journey, number, &[]).await?;
        }
        Ok(deeds)
    }

    async fn pack(&self, source: PathBuf) -> Result<()> {
        let packed = self.packed.clone();
        let pack = move || {
            (1..=VERSIONS).try_for_each(|version| packed.publish_stack(&source, &format!("v{version}")).map(drop))
        };
        tokio::task::spawn_blocking(pack).await.context("packing was stopped")?
    }

    /// How many there were.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// Does the next one: first a round through every version of every stack, so that what is remembered of each is there early, then as the dice fall.
    pub(super) async fn next(&mut self, journey: &Journey) -> Result<()> {
        let round = self.done;
        self.done += 1;
        let (number, version) = (
            round / 2 % self.stacks.len(),
            1 + (round / 2 / self.stacks.len()) as u64,
        );
        if version <= VERSIONS {
            return match round % 2 {
                0 => self.offer(journey, number, version),
                _ => self.want(journey, number, &[version]).await,
            };
        }
        let number = usize::try_from(self.dice.below(self.stacks.len() as u64))?;
        let version = 1 + self.dice.below(VERSIONS);
        let stack = &self.stacks[number];
        match self.dice.below(8) {
            0 | 1 => self.offer(journey, number, version),
            2 if stack.offered.len() > 1 => self.withdraw(journey, number, version),
            2 | 3 => self.want(journey, number, &[]).await,
            4 => self.want(journey, number, &[version]).await,
            5 => delete_class(journey, &stack.tag(version)).await,
            6 => change_template(journey, &stack.tag(version)).await,
            _ if self.done.is_multiple_of(3) => delete(journey, &stack.name).await,
            _ => ask(journey, &stack.name, self.done).await,
        }
    }

    /// Deletes every stack.
    pub(super) async fn remove_all(&self, journey: &Journey) -> Result<()> {
        for stack in &self.stacks {
            delete(journey, &stack.name).await?;
        }
        Ok(())
    }

    fn offer(&mut self, journey: &Journey, number: usize, version: u64) -> Result<()> {
        let stack = &mut self.stacks[number];
        if !stack.offered.insert(version) {
            return Ok(());
        }
        let release = self.packed.folder_of(&stack.tag(version));
        if stack.is_remote {
            self.index.publish(&release)
        } else {
            journey.releases.publish(&release)
        }
    }

    fn withdraw(&mut self, journey: &Journey, number: usize, version: u64) -> Result<()> {
        let stack = &mut self.stacks[number];
        if !stack.offered.remove(&version) {
            return Ok(());
        }
        let tag = stack.tag(version);
        if stack.is_remote {
            self.index.withdraw(&tag);
            Ok(())
        } else {
            journey.releases.unpublish(&tag)
        }
    }

    /// Has a stack ask for these versions, or for the newest; makes it when it is not there.
    async fn want(&self, journey: &Journey, number: usize, versions: &[u64]) -> Result<()> {
        let stack = &self.stacks[number];
        let versions: Vec<String> = versions.iter().map(|version| format!("v{version}")).collect();
        let mut spec: Value = json!({ "name": stack.name, "versions": versions, "autoSubscribe": versions.is_empty() });
        if stack.is_remote {
            spec["source"] = self.index.source();
            spec["interval"] = OFTEN.into();
        }
        journey.stack(&stack.name, spec).await
    }
}

async fn delete(journey: &Journey, stack: &str) -> Result<()> {
    let deleted = journey
        .api::<ClusterStack>()
        .delete(stack, &DeleteParams::default())
        .await;
    if_there(deleted).with_context(|| format!("failed to delete the stack {stack}"))
}

async fn delete_class(journey: &Journey, tag: &str) -> Result<()> {
    let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
    let deleted = classes.delete(tag, &DeleteParams::default()).await;
    if_there(deleted).with_context(|| format!("failed to delete the class {tag}"))
}

async fn change_template(journey: &Journey, tag: &str) -> Result<()> {
    let machines = journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate");
    let other = json!({ "spec": { "template": { "spec": { "customImage": "registry.example.com/somebody:else" } } } });
    let changed = machines
        .patch(
            &format!("{tag}-worker-0"),
            &PatchParams::default(),
            &Patch::Merge(other),
        )
        .await;
    if_there(changed).with_context(|| format!("failed to change a template of {tag}"))
}

async fn ask(journey: &Journey, stack: &str, word: usize) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { labels::REQUESTED_AT: word.to_string() } } });
    let stacks = journey.api::<ClusterStack>();
    let asked = stacks.patch(stack, &PatchParams::default(), &Patch::Merge(patch)).await;
    if_there(asked).with_context(|| format!("failed to ask for a look at {stack}"))
}

/// What is not there needs nothing done to it.
fn if_there<T>(done: Result<T, Error>) -> Result<()> {
    match done {
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        done => Ok(done.map(drop)?),
    }
}
