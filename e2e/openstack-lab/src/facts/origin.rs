//! Where clouds fetch a disk from: a web server on a port of this machine. It serves one disk and knows nothing of clouds.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::client::{Body, pieces, whole};

/// What of a held disk goes out at once.
const BEGINNING: usize = 64 * 1024;

/// A running server. Dropped, it closes every connection.
#[derive(Debug)]
pub struct Origin {
    port: u16,
    held: watch::Sender<bool>,
    accepting: AbortHandle,
}

impl Origin {
    /// Serves this disk at `/disk`, and nothing at `/missing`. What is asked for at `/held` stops after 64 KiB until it is let go.
    pub async fn start(disk: impl Into<Bytes>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("failed to open a port")?;
        let port = listener.local_addr().context("failed to read the port")?.port();
        let held = watch::Sender::new(true);
        let accepting = tokio::spawn(accept(listener, disk.into(), held.subscribe())).abort_handle();
        Ok(Self { port, held, accepting })
    }

    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Lets go of what is held; from now on nothing is.
    pub fn let_go(&self) {
        self.held.send_replace(false);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, disk: Bytes, held: watch::Receiver<bool>) {
    let disk = Arc::new(disk);
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (disk, held) = (Arc::clone(&disk), held.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &disk, held.clone());
                async move { Ok::<_, Infallible>(answer) }
            });
            // Whoever hangs up has what he wanted.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn answer(request: &Request<Incoming>, disk: &Bytes, held: watch::Receiver<bool>) -> Response<Body> {
    let body = match request.uri().path() {
        "/missing" => {
            let mut missing = Response::new(whole("nothing here\n"));
            *missing.status_mut() = StatusCode::NOT_FOUND;
            return missing;
        }
        "/held" => stopping(disk.clone(), held),
        _ => whole(disk.clone()),
    };
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_LENGTH, disk.len().into());
    answer
}

fn stopping(mut disk: Bytes, mut held: watch::Receiver<bool>) -> Body {
    let beginning = disk.split_to(BEGINNING.min(disk.len()));
    let rest = stream::once(async move {
        // The server goes away with the test, and the disk with it.
        let _ = held.wait_for(|held| !held).await;
        disk
    });
    pieces(stream::iter([beginning]).chain(rest))
}
