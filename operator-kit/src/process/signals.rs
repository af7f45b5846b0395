//! How the process is asked to stop.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first signal to end (`SIGTERM`, `SIGINT`), and ends the process by force when it still runs `patience` later, or at the next
/// signal.
pub async fn stop_on_signal(stop: CancellationToken, patience: Duration) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("signals cannot be received; stop the process by force");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
    // Whoever asks twice does not want to wait.
    tokio::select! {
        () = tokio::time::sleep(patience) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("gave up what was still being done; the next process finds out and goes on");
    std::process::exit(1);
}
