//! The operator is there before its CRDs: those of its predecessor have fewer fields, and the API server drops what they lack.

use anyhow::{Result, ensure};
use crds::{ClusterStack, conditions::ConditionType};
use e2e::{
    Operator, definitions, eventually,
    journey::{SOON, journey, status},
    storm::Voyage,
    world::quiet,
};
use serde_json::json;

use crate::back::definitions_of_the_predecessor;

const STACK: &str = "harbor";
/// More writes than one release takes with its first tries and the next ones in the same minute, and far fewer than a loop makes in a second.
const MOST_WRITES: usize = 60;
/// As the message of the stack's condition says it.
const WORDS: &str = "bring the CRDs";

/// What the stack says of what is in its way.
fn told(stack: &ClusterStack) -> String {
    let conditions = stack.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions
        .into_iter()
        .find(|condition| condition.type_ == ConditionType::Ready.as_str());
    ready.and_then(|ready| ready.message.clone()).unwrap_or_default()
}

#[test]
fn an_operator_with_crds_older_than_itself_says_so_writes_in_no_loop_and_goes_on_when_they_come() -> Result<()> {
    journey(async |here| {
        here.elsewhere(async |journey| {
            definitions::install(&journey.client, &definitions_of_the_predecessor()).await?;
            let voyage = Voyage::begin(journey).await?;
            let mut operator = Operator::start(journey.lab(), &journey.options)?;
            let tag = journey.releases.publish_harbor("v1", "v1")?;
            journey.stack(STACK, json!({ "versions": ["v1"] })).await?;
            let says = |stack: &ClusterStack| told(stack).contains(WORDS);
            journey.until_stack(STACK, "tells of its CRDs", says).await?;
            journey.release_ready(&tag).await?;
            quiet(&voyage.proxy).await?;
            let writes = voyage.proxy.writes();
            ensure!(writes.len() <= MOST_WRITES, "{} writes: {writes:#?}", writes.len());
            operator.check()?;

            definitions::install(&journey.client, &definitions::ours()?).await?;
            let before = journey.inventory(&tag).await?;
            journey.ask_stack(STACK, "with its CRDs").await?;
            eventually(SOON, "the stack to have no more to say", async || {
                let stack = journey.api::<ClusterStack>().get(STACK).await?;
                ensure!(told(&stack).is_empty(), "{}", told(&stack));
                Ok::<_, anyhow::Error>(())
            })
            .await?;
            journey.usable(STACK, "v1").await?;
            let release = journey.release_ready(&tag).await?;
            ensure!(release.spec.policy.is_some(), "{release:#?}");
            ensure!(status(&release).observed_generation.is_some(), "{release:#?}");
            let uid = |object: &Option<kube::api::DynamicObject>| object.as_ref().and_then(kube::ResourceExt::uid);
            for (name, object) in journey.inventory(&tag).await? {
                ensure!(uid(&object) == before.get(&name).and_then(uid), "{name} was made anew");
            }
            quiet(&voyage.proxy).await?;
            voyage.judge(journey).await?;
            operator.check()
        })
        .await
    })
}
