//! A port of this machine that a test plays a server at: connections are taken in until it is dropped, which closes all of them. What is answered on
//! them is decided elsewhere.

use std::{
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context, Result};
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

/// A port that nobody is answered at yet. Whoever connects waits.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

/// A port that is answered at. Dropped, it closes every connection.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    accepting: AbortHandle,
}

impl Port {
    /// Opens one of the loopback, which nobody else has.
    pub async fn open() -> Result<Self> {
        Self::open_at(Ipv4Addr::LOCALHOST).await
    }

    /// The same at another address of this machine, for those who do not reach its loopback.
    pub async fn open_at(address: Ipv4Addr) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await;
        let listener = listener.context("failed to open a port")?;
        let address = listener.local_addr().context("failed to read the port")?;
        Ok(Self { listener, address })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.address.port()
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers every question so, over plain HTTP. An error closes the connection.
    pub fn answer<F, B>(self, answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> Listening
    where
        F: Future<Output = io::Result<Response<B>>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        self.take_in(move |stream| {
            let answer = Arc::clone(&answer);
            async move { speak(stream, |request| answer(request)).await }
        })
    }

    /// Does this with every connection.
    pub fn take_in<F>(self, connection: impl Fn(TcpStream) -> F + Send + 'static) -> Listening
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let accepting = async move {
            // Dropped with this task, and every connection with it.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = self.listener.accept().await else {
                    continue;
                };
                while connections.try_join_next().is_some() {}
                connections.spawn(connection(stream));
            }
        };
        Listening {
            address: self.address,
            accepting: tokio::spawn(accepting).abort_handle(),
        }
    }
}

impl Listening {
    /// The number of its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL of a path that begins with a slash, over plain HTTP.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers the questions of one connection so, until it ends.
pub async fn speak<F, B>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: impl Fn(Request<Incoming>) -> F)
where
    F: Future<Output = io::Result<Response<B>>>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    // Whoever hangs up has heard enough, and a connection that breaks is what was asked for.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use http::Method;

    use super::*;
    use crate::client::{Client, whole};

    #[tokio::test]
    async fn an_error_closes_the_connection_and_the_next_question_is_answered() -> Result<()> {
        let listening = Port::open().await?.answer(async |request| match request.uri().path() {
            "/lost" => Err(io::ErrorKind::ConnectionAborted.into()),
            path => Ok(Response::new(whole(path.to_owned()))),
        });
        let ask = async |path| {
            let url = listening.url(path).parse()?;
            Client::new(None)?.send(Method::GET, &url, &[], whole("")).await
        };
        assert!(ask("/lost").await.is_err());
        assert_eq!(ask("/there").await?.text(), "/there");
        Ok(())
    }

    #[tokio::test]
    async fn whoever_waits_is_let_go_when_the_port_is_dropped() -> Result<()> {
        let never = pending::<io::Result<Response<String>>>;
        let listening = Port::open().await?.answer(move |_| never());
        let url = listening.url("/").parse()?;
        let client = Client::new(None)?;
        let (answer, ()) = tokio::join!(client.send(Method::GET, &url, &[], whole("")), async {
            drop(listening);
        });
        assert!(answer.is_err());
        Ok(())
    }
}
