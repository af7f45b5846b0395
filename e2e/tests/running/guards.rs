//! What the CRDs forbid may be stored all the same, by older CRDs: the operator has guards of its own behind their rules.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionType, find},
};
use e2e::{
    Journey, definitions,
    journey::{journey, status},
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// Our CRDs without their rules for references to objects of providers. The control plane is this program's alone.
async fn forget_rules(journey: &Journey) -> Result<()> {
    let mut definitions = definitions::ours()?;
    for definition in &mut definitions {
        without_rules(definition);
    }
    definitions::install(&journey.client, &definitions).await
}

fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(reference) = fields.get_mut("providerRef").and_then(Value::as_object_mut) {
                reference.remove("x-kubernetes-validations");
            }
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// Whether one of these conditions says that the reference is none to a provider.
fn refused(conditions: &[Condition], about: ConditionType) -> bool {
    find(conditions, about).is_some_and(|condition| {
        condition.reason.as_deref() == Some("InvalidSpec")
            && condition
                .message
                .as_deref()
                .is_some_and(|message| message.contains("invalid provider ref"))
    })
}

#[test]
fn an_object_outside_of_the_providers_group_is_neither_watched_nor_controlled_nor_made() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let other = journey.releases.publish_harbor("v2", "v2")?;
        journey.operate().await?;
        forget_rules(journey).await?;
        let begin = journey.mark().await?;
        let victim = |name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
        journey.apply(victim(&tag)).await?;
        let reference = |name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "name": name });
        let release = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": tag }, "spec": { "providerRef": reference(&tag) },
        });
        journey.apply(release).await?;
        // A template is a PodTemplate here: what is made from it would be a Pod, if the name were followed.
        let spec = json!({
            "versions": ["v2"], "noProvider": false,
            "providerRef": { "apiVersion": "v1", "kind": "PodTemplate", "name": "any" },
        });
        journey.stack("harbor", spec).await?;
        journey
            .until_release(&tag, "told that the reference is wrong", |release| {
                refused(
                    &status(release).conditions,
                    ConditionType::ProviderClusterStackReleaseReady,
                )
            })
            .await?;
        journey
            .until::<ClusterStack>("harbor", "told that the reference is wrong", |stack| {
                let conditions = stack.status.as_ref().map_or(&[][..], |status| &status.conditions);
                refused(conditions, ConditionType::Ready)
            })
            .await?;
        let secret = journey.objects("v1", "Secret").get(&tag).await?;
        ensure!(secret.owner_references().is_empty(), "{secret:#?}");
        let releases = journey.api::<ClusterStackRelease>();
        ensure!(
            releases.get_opt(&other).await?.is_none(),
            "made for a provider that is none"
        );
        let requests = journey.requests_since(begin).await?;
        let strange = ["/secrets", "/pods", "/podtemplates"];
        let asked = requests.filter(|event| strange.iter().any(|resource| event.request_uri.contains(resource)));
        ensure!(asked.is_empty(), "{asked:#?}");
        definitions::install(&journey.client, &definitions::ours()?)
            .await
            .context("the rules are gone")
    })
}
