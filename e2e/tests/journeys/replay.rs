//! Recorded decisions, made again.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use planning::{
    addon::{self, AddonObserved},
    release::{self, ReleaseObserved},
    stack::{self, StackObserved},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A file of `--record`, in the order in which it is written.
#[derive(Serialize)]
struct Decision<'a, O, P> {
    observed: &'a O,
    now: Timestamp,
    plan: &'a P,
}

/// What a decision is made from.
#[derive(Deserialize)]
struct Question<O> {
    observed: O,
    now: Timestamp,
}

/// Makes every decision of this folder again and compares whole files, in which there is no secret.
pub(crate) fn every_decision_again(folder: &Path) -> Result<()> {
    let mut decisions = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // What the operator was writing when it was killed.
        if path.extension().is_some_and(|extension| extension == "part") {
            continue;
        }
        let recorded = fs::read(&path)?;
        // Every secret of the journeys has this word in it.
        ensure!(
            !String::from_utf8_lossy(&recorded).contains("canary"),
            "{} holds a secret",
            path.display()
        );
        let again = match name.trim_end_matches(".json").rsplit('-').next() {
            Some("stack") => again(&recorded, stack_plan),
            Some("release") => again(&recorded, release_plan),
            Some("addon") => again(&recorded, addon_plan),
            _ => bail!("{name} is a decision of an unknown kind"),
        };
        let again = again.with_context(|| format!("unable to make {} again", path.display()))?;
        ensure!(
            recorded == again,
            "{} comes out otherwise:\n{}",
            path.display(),
            String::from_utf8_lossy(&again)
        );
        decisions += 1;
    }
    ensure!(decisions > 0, "no decision was recorded in {}", folder.display());
    Ok(())
}

fn stack_plan(observed: &StackObserved, now: Timestamp) -> stack::StackPlan {
    stack::plan(observed, now)
}

fn release_plan(observed: &ReleaseObserved, now: Timestamp) -> release::ReleasePlan {
    release::plan(observed, now)
}

fn addon_plan(observed: &AddonObserved, now: Timestamp) -> addon::AddonPlan {
    addon::plan(observed, now)
}

fn again<O, P>(recorded: &[u8], plan: impl Fn(&O, Timestamp) -> P) -> Result<Vec<u8>>
where
    O: DeserializeOwned + Serialize,
    P: Serialize,
{
    let Question { observed, now } = serde_json::from_slice(recorded)?;
    let plan = plan(&observed, now);
    Ok(serde_json::to_vec_pretty(&Decision {
        observed: &observed,
        now,
        plan: &plan,
    })?)
}
