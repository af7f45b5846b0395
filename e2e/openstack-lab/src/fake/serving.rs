//! Connections, with or without TLS, which are closed when the services crash. What is answered is decided elsewhere.

use std::{convert::Infallible, future, io, sync::Arc};

use http::Request;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Shared,
    answers::Answer,
    faults::{Faults, Verdict},
    identity, images,
};
use crate::listening::{Listening, Port, speak};

/// Which of the two services is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Service {
    Identity,
    Images,
}

pub(super) fn serve(port: Port, tls: Option<TlsAcceptor>, shared: Arc<Shared>, service: Service) -> Listening {
    port.take_in(move |stream| connection(stream, tls.clone(), Arc::clone(&shared), service))
}

/// One connection, which ends with the life that it was begun in.
async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>, service: Service) {
    let mut lives = shared.lives.subscribe();
    let serving = async {
        match tls {
            None => answers(stream, &shared, service).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    answers(stream, &shared, service).await;
                }
            }
        }
    };
    tokio::select! {
        () = serving => {}
        _ = lives.changed() => {}
    }
}

async fn answers(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Arc<Shared>, service: Service) {
    speak(stream, |request| answer(Arc::clone(shared), service, request)).await;
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
