//! Steps that many journeys take: what most begin with, asking the operator for a look, reading what it told.

mod kubectl;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Resource, api::ListParams, core::NamespaceResourceScope};
use serde_json::{Value, json};

use super::{Journey, SOON, status};
use crate::{
    audit::{AuditEvents, Mark},
    eventually,
};

/// What explains every word of the operator.
const GUIDE: &str = include_str!("../../../docs/reference/reasons.md");

impl Journey {
    /// The first version of our own stack, asked for by the ClusterStack `harbor` and ready. The answer is its tag.
    pub async fn installed(&mut self) -> Result<String> {
        let tag = self.releases.publish_harbor("v1", "v1")?;
        self.operate().await?;
        self.stack("harbor", json!({ "versions": ["v1"] })).await?;
        self.release_ready(&tag).await?;
        Ok(tag)
    }

    /// What the operator wrote since `mark`, which is something. An object is seen to be written a moment before its writer has the answer, and only what was
    /// answered is in the audit log.
    pub async fn writes_since(&self, mark: Mark) -> Result<AuditEvents> {
        eventually(SOON, "a write of the operator", async || {
            let writes = self.requests_since(mark).await?.writes();
            ensure!(!writes.is_empty(), "it has written nothing");
            Ok(writes)
        })
        .await
    }

    /// Asks for a look at a release and returns it when it was answered. Whatever was changed before was seen then. `word` is another one
    /// each time.
    pub async fn ask_release(&self, tag: &str, word: &str) -> Result<ClusterStackRelease> {
        self.annotate::<ClusterStackRelease>(tag, labels::REQUESTED_AT, Some(word))
            .await?;
        let answered =
            |release: &ClusterStackRelease| status(release).last_handled_reconcile_at.as_deref() == Some(word);
        self.until_release(tag, "the request answered", answered).await
    }

    /// The same for a stack.
    pub async fn ask_stack(&self, name: &str, word: &str) -> Result<ClusterStack> {
        self.annotate::<ClusterStack>(name, labels::REQUESTED_AT, Some(word))
            .await?;
        let answered = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(word)
        };
        self.until_stack(name, "the request answered", answered).await
    }

    /// Waits until exactly these versions of a stack are usable.
    pub async fn usable(&self, stack: &str, versions: &str) -> Result<ClusterStack> {
        let holds = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status
                .and_then(|status| status.usable_versions.as_deref())
                .unwrap_or_default()
                == versions
        };
        self.until_stack(stack, &format!("usable versions {versions:?}"), holds)
            .await
    }

    /// What `kubectl get` shows of an object in this column; `None` where it shows nothing, or there is no such object.
    pub async fn cell<K>(&self, name: &str, column: &str) -> Result<Option<String>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let path = format!("{}/{name}", K::url_path(&(), Some(&self.namespace)));
        let request = http::Request::get(path)
            .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())?;
        let table = match self.client.request::<Value>(request).await {
            Ok(table) => table,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            Err(error) => return Err(error).context("failed to ask for a table"),
        };
        let definitions = table["columnDefinitions"].as_array().context("columns")?;
        let place = definitions.iter().position(|definition| definition["name"] == column);
        let place = place.with_context(|| format!("no column {column}"))?;
        Ok(table["rows"][0]["cells"][place].as_str().map(str::to_owned))
    }

    /// The events of an object as `kubectl describe` asks for them: type, reason and message. Each has an age and a sender, and its reason
    /// is one that the reference explains.
    pub async fn events_of<K>(&self, object: &K) -> Result<Vec<(String, String, String)>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let meta = object.meta();
        let selector = format!(
            "involvedObject.name={},involvedObject.namespace={},involvedObject.kind={},involvedObject.uid={}",
            meta.name.as_deref().unwrap_or_default(),
            self.namespace,
            K::kind(&()),
            meta.uid.as_deref().unwrap_or_default(),
        );
        let events = Api::<Event>::namespaced(self.client.clone(), &self.namespace);
        let mut found = Vec::new();
        for event in events.list(&ListParams::default().fields(&selector)).await? {
            ensure!(event.event_time.is_some(), "no age: {event:?}");
            ensure!(
                event.reporting_component.as_deref() == Some("clusterstack.x-k8s.io/core-operator"),
                "{event:?}"
            );
            let reason = event.reason.unwrap_or_default();
            ensure!(
                ["Event", "Reason"]
                    .iter()
                    .any(|kind| GUIDE.contains(&format!("\n### {kind} {reason}\n"))),
                "docs/reference/reasons.md does not explain {reason}"
            );
            found.push((
                event.type_.unwrap_or_default(),
                reason,
                event.message.unwrap_or_default(),
            ));
        }
        Ok(found)
    }
}
