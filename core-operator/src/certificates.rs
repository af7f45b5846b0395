//! Where a server of ours finds its certificate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

/// For a storage that hangs.
const LOOK_DEADLINE: Duration = Duration::from_secs(5);

/// The folder of a server's certificate: the one that was named, else the usual one if it is there; `None` where the server is not wanted.
pub(crate) async fn directory(server: &str, named: Option<&Path>, usual: &str) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let there = timeout(LOOK_DEADLINE, tokio::fs::try_exists(usual)).await;
    if matches!(there, Ok(Ok(true))) {
        return Some(PathBuf::from(usual));
    }
    tracing::info!(
        directory = usual,
        "{server} are not served: there is no folder with a certificate"
    );
    None
}
