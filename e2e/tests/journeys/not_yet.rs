//! What the API has and this version does not act on is answered, and never ignored in silence.

use std::collections::BTreeSet;

use anyhow::Result;
use crds::{
    ClusterStack,
    conditions::{ConditionStatus, ConditionType, find},
    not_yet::NOT_YET,
};
use serde_json::json;

use crate::journey;

#[test]
fn a_stack_that_asks_for_what_is_not_there_yet_is_told_so() -> Result<()> {
    journey(async |journey| {
        let cases = [(
            "verification.cosign.keyless",
            json!({ "verification": { "mode": "Require", "cosign": { "keyless": {
                "issuer": "https://issuer.example.com",
                "identity": "publisher@example.com",
                "trustRootSecretRef": { "name": "root" },
            } } } }),
            "keyless is not in this version",
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
