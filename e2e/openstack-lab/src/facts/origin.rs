//! Where clouds fetch a disk from: a web server on a port of this machine. It serves one disk and knows nothing of clouds.

use std::future;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::sync::watch;

use crate::{
    client::{Body, pieces, whole},
    listening::{Listening, Port},
};

/// What of a held disk goes out at once.
const BEGINNING: usize = 64 * 1024;

/// A running server. Dropped, it closes every connection.
#[derive(Debug)]
pub struct Origin {
    held: watch::Sender<bool>,
    listening: Listening,
}

impl Origin {
    /// Serves this disk at `/disk`, and nothing at `/missing`. What is asked for at `/held` stops after 64 KiB until it is let go.
    pub async fn start(disk: impl Into<Bytes>) -> Result<Self> {
        let disk = disk.into();
        let held = watch::Sender::new(true);
        let waiting = held.subscribe();
        let answer = move |request| future::ready(Ok(answer(&request, &disk, waiting.clone())));
        let listening = Port::open().await?.answer(answer);
        Ok(Self { held, listening })
    }

    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        self.listening.url(path)
    }

    /// Lets go of what is held; from now on nothing is.
    pub fn let_go(&self) {
        self.held.send_replace(false);
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
