//! A server on a thread of its own: the threads of the others may all be busy with rendering when Cluster API asks.

use std::io;
use std::thread;

use axum::Router;
use operator_kit::https::{ServerOptions, serve_https};
use operator_kit::serving::{ServeError, Serving};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const NAME: &str = "hooks";

/// A server could not be started on a thread of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApartError {
    /// The system has no thread for it.
    #[error("failed to start a thread for the hook server")]
    Start(#[source] io::Error),
    /// It does not listen.
    #[error("failed to serve hooks")]
    Serve(#[source] ServeError),
    /// The thread ended before it said anything.
    #[error("the thread of the hook server ended abnormally")]
    Run,
}

/// Serves until `stop`; then what is being answered is finished. The task ends when that is done.
pub(super) async fn serve(
    options: ServerOptions,
    router: Router,
    stop: CancellationToken,
) -> Result<Serving, ApartError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ApartError::Start)?;
    let (begun, has_begun) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let work = async move {
        match serve_https(options, router, stop).await {
            Ok((address, serving)) => {
                // Nobody asks any more where a process that is about to end has listened.
                let _ = begun.send(Ok(address));
                let _ = serving.await;
            }
            Err(error) => {
                let _ = begun.send(Err(error));
            }
        }
        drop(end);
    };
    thread::Builder::new()
        .name(NAME.to_owned())
        .spawn(move || runtime.block_on(work))
        .map_err(ApartError::Start)?;
    let address = has_begun.await.map_err(|_| ApartError::Run)?;
    let address = address.map_err(ApartError::Serve)?;
    let serving = tokio::spawn(async move {
        // It is never sent: it ends with the thread's work.
        let _ = ended.await;
    });
    Ok((address, serving))
}
