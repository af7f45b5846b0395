//! A release that comes to want many objects less than it applied, which needs an approval.

use anyhow::{Context, Result, ensure};
use crds::{ClusterStackRelease, labels};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::{
    Journey,
    journey::status,
    releases::{EXTRA_KINDS, StackSource},
};

/// A release whose operator waits for an approval.
#[derive(Debug)]
pub struct Asking {
    /// Its name.
    pub tag: String,
    /// What the annotation has to say.
    pub digest: String,
}

/// Installs a release with so many further objects of each of two kinds, which go one after the other, starts the operator anew with files that have so
/// many of them `left`, and waits until it asks whether the others may go.
///
/// A release may render fewer objects when its stack asks for other rules; here its status forgets which bytes it pins, as after a restore from a backup.
pub async fn asks_to_prune(journey: &mut Journey, extras: usize, left: usize) -> Result<Asking> {
    let source = StackSource::with_extras(extras)?;
    let tag = journey.releases.publish_stack(&source.path(), "v1")?;
    journey.operate().await?;
    // As few as there may be, so that those of one kind alone are too many.
    journey
        .stack("harbor", json!({ "versions": ["v1"], "pruneLimit": 1 }))
        .await?;
    let before = status(&journey.release_ready(&tag).await?).resources.len();
    journey.kill_operator().await?;
    let source = StackSource::with_extras(left)?;
    journey.releases.publish_stack(&source.path(), "v1")?;
    let forgotten = Patch::Merge(json!({ "status": { "assets": null } }));
    let releases = journey.api::<ClusterStackRelease>();
    releases.patch_status(&tag, &PatchParams::default(), &forgotten).await?;
    journey.operate().await?;
    let asks = |release: &ClusterStackRelease| wanted_approval(release).is_some();
    let release = journey.until_release(&tag, "asking for an approval", asks).await?;
    // What is there and what is wanted: the inventory names both.
    ensure!(status(&release).resources.len() == before, "{:?}", status(&release));
    ensure!(
        extras_left(journey).await? == [extras; 2],
        "something went without an approval"
    );
    let digest = wanted_approval(&release).context("a digest")?;
    Ok(Asking { tag, digest })
}

impl Asking {
    /// Gives the approval.
    pub async fn approve(&self, journey: &Journey) -> Result<()> {
        let digest = Some(self.digest.as_str());
        journey
            .annotate::<ClusterStackRelease>(&self.tag, labels::APPROVE_PRUNE, digest)
            .await
    }

    /// Waits until the release is ready with so many objects.
    pub async fn pruned(&self, journey: &Journey, objects: usize) -> Result<ClusterStackRelease> {
        let pruned = |release: &ClusterStackRelease| {
            let status = status(release);
            status.ready && status.resources.len() == objects
        };
        journey.until_release(&self.tag, "pruned", pruned).await
    }
}

/// How many of the further objects are there, of each kind.
pub async fn extras_left(journey: &Journey) -> Result<[usize; 2]> {
    let mut counts = [0; 2];
    for (count, (api_version, kind)) in counts.iter_mut().zip(EXTRA_KINDS) {
        let mine = ListParams::default().labels(labels::PART_OF);
        let found = journey.objects(api_version, kind).list(&mine).await?;
        let names = found.items.into_iter().filter_map(|object| object.metadata.name);
        *count = names.filter(|name| name.starts_with("extra-")).count();
    }
    Ok(counts)
}

/// What the status says `approve-prune` has to be.
fn wanted_approval(release: &ClusterStackRelease) -> Option<String> {
    let conditions = status(release).conditions;
    let asking = conditions
        .iter()
        .find(|condition| condition.reason.as_deref() == Some("PruneNotApproved"))?;
    let (_, digest) = asking.message.as_deref()?.rsplit_once(": ")?;
    Some(digest.to_owned())
}
