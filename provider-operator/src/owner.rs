//! Whose the images are: under which name those of this installation are marked. Asks the API server where flags do not say it.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::{Client, ResourceExt};
use operator_kit::failure::chain;
use operator_kit::telemetry::Readiness;
use provider_plugin::OwnerId;

use crate::args::Args;

/// Between two tries to learn whose images these are.
const OWNER_AGAIN: Duration = Duration::from_secs(2);

/// Under which name images of this installation are marked: as flags say, else as this cluster is known by everybody.
pub(super) async fn owner(args: &Args, client: &Client, readiness: &Readiness) -> anyhow::Result<OwnerId> {
    if let Some(owner) = args.clouds.owner().map_err(anyhow::Error::msg)? {
        return Ok(owner);
    }
    let gate = readiness.open_gate("the uid of the namespace kube-system, by which images are marked");
    loop {
        match known_as(client).await {
            Ok(owner) => {
                gate.open();
                return owner.context("the namespace kube-system has no uid; use --installation");
            }
            Err(error) => {
                let words = chain(&error);
                gate.close_for(&format!("{words}; allow it, or use --installation"));
                tracing::warn!(
                    error = words,
                    "unable to learn whose images these are; it is tried again"
                );
                tokio::time::sleep(OWNER_AGAIN).await;
            }
        }
    }
}

/// How this cluster is known by everybody; `None` where it is by nothing.
pub(crate) async fn known_as(client: &Client) -> Result<Option<OwnerId>, kube::Error> {
    let namespace = Api::<Namespace>::all(client.clone())
        .get_metadata("kube-system")
        .await?;
    Ok(OwnerId::parse(&namespace.uid().unwrap_or_default()))
}
