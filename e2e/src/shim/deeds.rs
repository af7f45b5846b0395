//! Does what is due for one Cluster, in the name of the shim. Decides nothing.

use std::sync::Arc;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    Key, Stage,
    due::{Deed, Done, Look, kubeconfig_secret},
    kinds::Kind,
    rights::NAME,
    seen::CLUSTER_NAME,
    workload::Workload,
};

/// What a machine boots with, which none does.
const BOOTSTRAP_DATA: &str = "#cloud-config\n";

/// Looks after one Cluster.
pub(super) struct Worker {
    stage: Arc<Stage>,
    key: Key,
    done: Done,
    /// The one that `done` is about.
    workload: Option<Workload>,
}

impl Worker {
    pub(super) fn new(stage: Arc<Stage>, key: Key) -> Self {
        Self {
            stage,
            key,
            done: Done::default(),
            workload: None,
        }
    }

    /// Does what is due, up to the first write that fails.
    pub(super) async fn look(&mut self) -> Result<()> {
        let (held, workload) = self.stage.directed(&self.key);
        if self.workload.as_ref().is_none_or(|known| !known.is_same(&workload)) {
            self.done = Done::default();
            self.workload = Some(workload.clone());
        }
        let seen = self.stage.stores.seen(&self.key);
        let look = Look {
            namespace: &self.key.0,
            name: &self.key.1,
            seen: &seen,
            held: &held,
            done: &self.done,
            kinds: &self.stage.kinds,
            endpoint: &workload.endpoint(),
            now: &Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
        for deed in look.due() {
            self.perform(deed, &workload).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, deed: Deed, workload: &Workload) -> Result<()> {
        match deed {
            Deed::Merge { kind, name, patch } => {
                let api = self.objects(kind)?;
                let merged = api.patch(&name, &parameters(), &Patch::Merge(patch)).await;
                passed_over(merged).with_context(|| format!("failed to write {} {name}", kind.name()))
            }
            Deed::Report { kind, name, status } => {
                let api = self.objects(kind)?;
                let patch = Patch::Merge(json!({ "status": status }));
                let reported = api.patch_status(&name, &parameters(), &patch).await;
                passed_over(reported).with_context(|| format!("failed to report of {} {name}", kind.name()))
            }
            Deed::Publish { owner } => {
                let secret = kubeconfig_secret(&self.key.1);
                self.write_secret(&secret, &owner, workload.kubeconfig()).await?;
                self.done.published_for = owner["uid"].as_str().map(str::to_owned);
                Ok(())
            }
            Deed::Bootstrap { secret, owner } => self.write_secret(&secret, &owner, BOOTSTRAP_DATA).await,
            Deed::RemoveSecret { name } => {
                let removed = self.secrets().delete(&name, &DeleteParams::default()).await;
                passed_over(removed).with_context(|| format!("failed to remove the Secret {name}"))
            }
            Deed::Admit { machine } => {
                self.stage.direct(&self.key, |direction| {
                    direction.held.admitted = direction.held.admitted.saturating_sub(1);
                });
                self.done.admitted.insert(machine);
                Ok(())
            }
            Deed::BringNode {
                name,
                provider_id,
                version,
            } => {
                workload.bring_node(&name, &provider_id, &version).await?;
                self.done.nodes.insert(name);
                Ok(())
            }
            Deed::RemoveNode { name } => workload.remove_node(&name).await,
        }
    }

    /// The type, the label and the key are those by which Cluster API finds and reads it.
    async fn write_secret(&self, name: &str, owner: &Value, value: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": { "name": name, "labels": { CLUSTER_NAME: self.key.1 }, "ownerReferences": [owner] },
            "data": { "value": BASE64_STANDARD.encode(value) },
        });
        let parameters = PatchParams::apply(NAME).force();
        let written = self.secrets().patch(name, &parameters, &Patch::Apply(secret)).await;
        written
            .map(drop)
            .with_context(|| format!("failed to write the Secret {name}"))
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.stage.client.clone(), &self.key.0)
    }

    fn objects(&self, kind: Kind) -> Result<Api<DynamicObject>> {
        let served = self.stage.kinds.get(&kind).context("a kind that is not served")?;
        Ok(Api::namespaced_with(
            self.stage.client.clone(),
            &self.key.0,
            &served.resource,
        ))
    }
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(NAME.to_owned()),
        ..PatchParams::default()
    }
}

/// What is gone, or was changed by others meanwhile, is seen again when the watch tells.
fn passed_over<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}
