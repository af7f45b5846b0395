//! What `kubectl get` shows of a stack that is not well, or that somebody stopped: its columns, and the events beside them.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionStatus, ConditionType, find},
    labels,
};
use e2e::{Journey, audit::Mark, eventually, journey::SOON, releases::harbor_tag};
use kube::{Resource, core::NamespaceResourceScope};
use serde_json::json;

use crate::journey;

/// The reason and the message in the columns of an object; empty where nothing is told.
async fn columns<K>(journey: &Journey, name: &str) -> Result<(String, String)>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let reason = journey.cell::<K>(name, "Reason").await?;
    let message = journey.cell::<K>(name, "Message").await?;
    Ok((reason.unwrap_or_default(), message.unwrap_or_default()))
}

/// Waits until the columns of a stack have this reason and a message that begins and ends like this, and returns the stack.
async fn told(journey: &Journey, reason: &str, begin: &str, end: &str) -> Result<ClusterStack> {
    eventually(SOON, format!("{reason} in the columns"), async || {
        let stack = journey.api::<ClusterStack>().get("harbor").await?;
        let (found, message) = columns::<ClusterStack>(journey, "harbor").await?;
        let fits = found == reason && message.starts_with(begin) && message.ends_with(end);
        ensure!(fits, "{found} {message:?}");
        Ok::<_, anyhow::Error>(stack)
    })
    .await
}

fn is_ready(stack: &ClusterStack) -> bool {
    let conditions = stack.status.as_ref().map(|status| status.conditions.as_slice());
    let ready = find(conditions.unwrap_or_default(), ConditionType::Ready);
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// The messages of the warnings with this reason.
async fn warnings(journey: &Journey, stack: &ClusterStack, reason: &str) -> Result<Vec<String>> {
    let events = journey.events_of(stack).await?;
    let events = events
        .into_iter()
        .filter(|(kind, found, _)| kind == "Warning" && found == reason);
    Ok(events.map(|(_, _, message)| message).collect())
}

/// Lets another stack of the same operator be looked at: whatever was changed before was looked at too.
async fn time_passes(journey: &Journey, word: &str) -> Result<()> {
    journey
        .stack("other", json!({ "kubernetesVersion": "1.33", "versions": ["v9"] }))
        .await?;
    journey.ask_stack("other", word).await.map(drop)
}

/// How often the operator has written the status of this object since then.
async fn writes(journey: &Journey, mark: Mark, object: &str) -> Result<usize> {
    let requests = journey.requests_since(mark).await?.writes();
    let end = format!("/{object}/status");
    Ok(requests.filter(|event| event.request_uri.contains(&end)).len())
}

#[test]
fn a_stack_tells_which_release_cannot_be_used_and_why() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let (two, nine) = (harbor_tag("v2"), harbor_tag("v9"));
        journey.stack("harbor", json!({ "versions": ["v1", "v9"] })).await?;
        let source = journey.releases.folder_of("");
        let source = source.display().to_string();
        let source = source.trim_end_matches('/');
        let mistyped = format!("{nine} is not in directory {source}, which has: v1");
        let stack = told(journey, "ReleaseNotFound", &mistyped, &mistyped).await?;
        assert!(!is_ready(&stack));

        journey
            .stack("harbor", json!({ "versions": ["v1"], "autoSubscribe": true }))
            .await?;
        told(journey, "", "", "").await?;
        journey.releases.publish_harbor("v1", "v2")?;
        journey.usable("harbor", "v1, v2").await?;
        let damage = |file: &'static str, text: &'static str| {
            journey
                .releases
                .edit(&two, move |folder| Ok(std::fs::write(folder.join(file), text)?))
        };
        damage("metadata.yaml", "broken: [")?;
        let begin = format!("{two} cannot be used yet: ");
        let stack = told(journey, "BrokenRelease", &begin, "; v1 is used until then").await?;
        assert!(is_ready(&stack), "v1 can be used");
        // The same with other words is no news.
        damage("metadata.yaml", "{}")?;
        let first = columns::<ClusterStack>(journey, "harbor").await?;
        eventually(SOON, "other words", async || {
            let found = columns::<ClusterStack>(journey, "harbor").await?;
            ensure!(found != first && found.0 == first.0, "{found:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;

        // Whoever lists it has asked for it.
        journey
            .stack("harbor", json!({ "versions": ["v1", "v2"], "autoSubscribe": true }))
            .await?;
        let stack = eventually(SOON, "Ready to be False", async || {
            let stack = told(journey, "BrokenRelease", &begin, "").await?;
            ensure!(!is_ready(&stack), "{stack:#?}");
            Ok::<_, anyhow::Error>(stack)
        })
        .await?;
        for (reason, begin) in [("ReleaseNotFound", &mistyped), ("BrokenRelease", &begin)] {
            let told = eventually(SOON, "one event", async || {
                let told = warnings(journey, &stack, reason).await?;
                ensure!(told.len() == 1, "{told:#?}");
                Ok::<_, anyhow::Error>(told)
            })
            .await?;
            assert!(told[0].starts_with(begin.as_str()), "{told:#?}");
        }

        journey.releases.publish_harbor("v1", "v2")?;
        told(journey, "", "", "").await?;
        journey.usable("harbor", "v1, v2").await.map(drop)
    })
}

#[test]
fn a_release_of_another_stack_is_told_with_what_to_do_and_an_event() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("first", json!({ "versions": ["v1"] })).await?;
        journey.usable("first", "v1").await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let begin = format!("release {tag} belongs to ClusterStack first, ");
        let stack = told(journey, "ReleaseOwnedByOtherStack", &begin, "another namespace").await?;
        eventually(SOON, "the event", async || {
            let told = warnings(journey, &stack, "ReleaseOwnedByOtherStack").await?;
            ensure!(told.len() == 1 && told[0].starts_with(&begin), "{told:#?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}

#[test]
fn a_stack_that_is_stopped_says_so_with_one_write_and_keeps_the_rest() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let spec = |suspend: bool| json!({ "versions": ["v1"], "autoSubscribe": true, "suspend": suspend });
        journey.stack("harbor", spec(false)).await?;
        let before = journey.usable("harbor", "v1").await?.status.context("a status")?;
        time_passes(journey, "before").await?;

        let mark = journey.mark().await?;
        journey.stack("harbor", spec(true)).await?;
        let suspended = "spec.suspend is true: no release is created, changed or deleted, and the rest of the status is from before; \
                         set it to false to go on";
        let stack = told(journey, "Suspended", suspended, suspended).await?;
        assert!(is_ready(&stack), "it was ready");
        let status = stack.status.context("a status")?;
        assert_eq!(status.observed_generation, before.observed_generation);
        assert_eq!(status.usable_versions, before.usable_versions);
        // Nothing that happens meanwhile is worth a second write, also not to a new process.
        journey.releases.publish_harbor("v1", "v2")?;
        journey
            .annotate::<ClusterStack>("harbor", labels::REQUESTED_AT, Some("now"))
            .await?;
        time_passes(journey, "one").await?;
        journey.restart_operator().await?;
        time_passes(journey, "two").await?;
        assert_eq!(writes(journey, mark, "harbor").await?, 1);

        journey
            .annotate::<ClusterStack>("harbor", labels::PAUSED, Some(""))
            .await?;
        let paused = "the annotation cluster.x-k8s.io/paused is set: no release is created, changed or deleted, and the rest of the status \
                      is from before; remove it to go on";
        told(journey, "Paused", paused, paused).await?;
        journey.annotate::<ClusterStack>("harbor", labels::PAUSED, None).await?;
        told(journey, "Suspended", suspended, suspended).await?;
        journey.stack("harbor", spec(false)).await?;
        journey.usable("harbor", "v1, v2").await?;
        let stack = told(journey, "", "", "").await?;
        let conditions = stack.status.context("a status")?.conditions;
        assert_eq!(find(&conditions, ConditionType::Paused), None);
        Ok(())
    })
}

#[test]
fn a_paused_release_says_so_with_one_write_and_takes_it_back_with_another() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let before = journey.release_ready(&tag).await?;
        time_passes(journey, "before").await?;
        let mark = journey.mark().await?;
        let shows = async |reason: &str| {
            eventually(SOON, format!("the reason {reason:?}"), async || {
                let (found, message) = columns::<ClusterStackRelease>(journey, &tag).await?;
                ensure!(found == reason, "{found} {message}");
                Ok::<_, anyhow::Error>(message)
            })
            .await
        };
        journey
            .annotate::<ClusterStackRelease>(&tag, labels::PAUSED, Some(""))
            .await?;
        assert_eq!(
            shows("Paused").await?,
            "the annotation cluster.x-k8s.io/paused is set: no object is applied, put back or deleted, and the rest \
             of the status is from before; remove it to go on"
        );
        time_passes(journey, "paused").await?;
        assert_eq!(writes(journey, mark, &tag).await?, 1);
        journey
            .annotate::<ClusterStackRelease>(&tag, labels::PAUSED, None)
            .await?;
        assert_eq!(shows("").await?, "");
        time_passes(journey, "resumed").await?;
        assert_eq!(writes(journey, mark, &tag).await?, 2);
        let after = journey.ask_release(&tag, "now").await?;
        assert_eq!(after.meta().generation, before.meta().generation);
        let conditions = |release: &ClusterStackRelease| release.status.clone().unwrap_or_default().conditions;
        assert_eq!(conditions(&after), conditions(&before));
        Ok(())
    })
}
