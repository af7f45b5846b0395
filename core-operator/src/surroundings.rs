//! What is told at the start of surroundings that look like a mistake. Nothing of it keeps the operator from working: what is missing may come.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use crate::args::Args;

/// For a storage that hangs.
const DEADLINE: Duration = Duration::from_secs(10);

/// Looks once.
pub(crate) async fn look_around(args: Args, client: Client) {
    if is_missing(args.usual.release_dir()).await {
        let directory = args.usual.release_dir().display();
        tracing::warn!(%directory, "the release directory does not exist; nothing can be installed before it does");
    }
    if args.scope.namespace.is_empty() {
        return;
    }
    // Who may not read namespaces knows nothing, and need not.
    if let Ok(None) = Api::<Namespace>::all(client)
        .get_metadata_opt(&args.scope.namespace)
        .await
    {
        let namespace = &args.scope.namespace;
        tracing::warn!(
            namespace,
            "the namespace does not exist; there is nothing to do before it does"
        );
    }
}

async fn is_missing(directory: &Path) -> bool {
    let looking = tokio::fs::try_exists(directory);
    matches!(tokio::time::timeout(DEADLINE, looking).await, Ok(Ok(false)))
}
