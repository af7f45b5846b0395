//! What the API has and this version does not act on is answered, and never ignored in silence.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use crds::{
    ClusterStack,
    conditions::{ConditionStatus, ConditionType, find},
    labels,
    not_yet::NOT_YET,
};
use e2e::journey::status;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::journey;

#[test]
fn a_stack_that_asks_for_what_is_not_there_yet_is_told_so() -> Result<()> {
    journey(async |journey| {
        let cases = [(
            "verification",
            json!({ "verification": { "mode": "Require", "cosign": { "publicKeySecretRef": { "name": "key" } } } }),
            "does not look at signatures",
        )];
        let answered: BTreeSet<_> = cases.iter().map(|(field, ..)| *field).collect();
        assert_eq!(answered, NOT_YET.iter().map(|(field, _)| *field).collect());

        journey.operate().await?;
        for (number, (field, spec, words)) in cases.into_iter().enumerate() {
            let version = format!("v{}", number + 1);
            journey.releases.publish_harbor("v1", &version)?;
            let name = field.replace('.', "-").to_lowercase();
            let mut spec = spec;
            spec["versions"] = json!([version]);
            journey.stack(&name, spec).await?;
            let is_told = |stack: &ClusterStack| {
                let conditions = stack.status.iter().flat_map(|status| &status.conditions);
                let conditions: Vec<_> = conditions.cloned().collect();
                find(&conditions, ConditionType::Ready).is_some_and(|ready| {
                    let message = ready.message.as_deref().unwrap_or_default();
                    ready.status == ConditionStatus::False && message.contains(words)
                })
            };
            journey.until_stack(&name, words, is_told).await?;
        }
        Ok(())
    })
}

fn verified(mode: &str) -> Value {
    json!({
        "versions": ["v1"],
        "verification": { "mode": mode, "cosign": { "publicKeySecretRef": { "name": "key" } } },
    })
}

#[test]
fn nothing_is_rendered_of_a_release_that_nobody_has_verified() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", verified("Require")).await?;
        let release = journey
            .until_release(&tag, "refused", |release| {
                let conditions = status(release).conditions;
                find(&conditions, ConditionType::ClusterStackReleaseDownloaded)
                    .is_some_and(|downloaded| downloaded.status == ConditionStatus::False)
            })
            .await?;
        let kinds = release.annotations().get(labels::CONTAINS_GROUP_KINDS);
        ensure!(kinds.is_none(), "rendered: {kinds:?}");
        ensure!(status(&release).resources.is_empty(), "{release:#?}");
        Ok(())
    })
}

#[test]
fn a_release_that_is_to_be_used_with_a_warning_says_that_nobody_looked() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", verified("Warn")).await?;
        let release = journey.release_ready(&tag).await?;
        let conditions = status(&release).conditions;
        let downloaded = find(&conditions, ConditionType::ClusterStackReleaseDownloaded);
        let message = downloaded.and_then(|downloaded| downloaded.message.as_deref());
        ensure!(
            message.is_some_and(|message| message.contains("does not look at signatures")),
            "{message:?}"
        );
        Ok(())
    })
}
