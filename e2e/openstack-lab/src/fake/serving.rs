//! Connections: accepted, with or without TLS, and closed when the services crash. What is answered is decided elsewhere.

use std::{convert::Infallible, future, io, net::Ipv4Addr, sync::Arc};

use anyhow::{Context, Result};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Shared,
    answers::Answer,
    faults::{Faults, Verdict},
    identity, images,
};

/// Which of the two services is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Service {
    Identity,
    Images,
}

/// A port that is open.
pub(super) struct Listening {
    listener: TcpListener,
    pub(super) port: u16,
}

pub(super) async fn listen() -> Result<Listening> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("failed to open a port")?;
    let port = listener.local_addr().context("failed to read the port")?.port();
    Ok(Listening { listener, port })
}

pub(super) async fn accept(listening: Listening, tls: Option<TlsAcceptor>, shared: Arc<Shared>, service: Service) {
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listening.listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, tls.clone(), Arc::clone(&shared), service));
    }
}

/// One connection, which ends with the life that it was begun in.
async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>, service: Service) {
    let mut lives = shared.lives.subscribe();
    let serving = async {
        match tls {
            None => serve(stream, &shared, service).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    serve(stream, &shared, service).await;
                }
            }
        }
    };
    tokio::select! {
        () = serving => {}
        _ = lives.changed() => {}
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, shared: &Arc<Shared>, service: Service) {
    let answer = service_fn(move |request| answer(Arc::clone(shared), service, request));
    // Whoever hangs up has heard enough.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(shared: Arc<Shared>, service: Service, request: Request<Incoming>) -> io::Result<Answer> {
    let prefix = match service {
        _ if !shared.options.prefix => "",
        Service::Identity => "/identity",
        Service::Images => "/image",
    };
    let method = request.method().clone();
    let target = request.uri().to_string();
    let target = target.strip_prefix(prefix).unwrap_or(&target).to_owned();
    let number = shared.faults.note(&method, &target, request.headers());
    let verdict = shared.faults.judge(&method, &target);
    let is_lost = matches!(verdict, Verdict::Lose);
    let answer = match verdict {
        Verdict::Hang => match future::pending::<Infallible>().await {},
        Verdict::Answer(answer) => *answer,
        Verdict::Serve | Verdict::Lose => match service {
            Service::Identity => identity::answer(&shared, &target, request).await,
            Service::Images => images::answer(&shared, &target, request, number).await,
        },
    };
    shared.faults.answered(number, answer.status());
    if is_lost { Err(Faults::lost()) } else { Ok(answer) }
}
