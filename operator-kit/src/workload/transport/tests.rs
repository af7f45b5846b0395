use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use kube::Client;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

use super::super::probe::probe;
use super::super::state::Reason;
use super::*;
use crate::client::install_crypto;
use crate::failure::chain;

const LOCAL: Addresses = Addresses { loopback: true };

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of the authority for this name, and its key.
fn certified(authority: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new([name.to_owned()]).unwrap();
    (parameters.signed_by(&key, authority).unwrap(), key)
}

/// What speaks TLS to the clients of the authority, and to others.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    install_crypto();
    let (certificate, key) = certified(authority, "api.cluster.test");
    let mut clients = RootCertStore::empty();
    clients.add(authority.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder(Arc::new(clients));
    let config = ServerConfig::builder()
        .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        );
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// An API server that knows the clients of the authority, and any token. Gives its port, and what it was asked.
async fn server(authority: &Authority) -> (u16, Arc<Mutex<String>>) {
    let acceptor = acceptor(authority);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let known = stream.get_ref().1.peer_certificates().is_some();
            let mut bytes = vec![0; 4096];
            let length = stream.read(&mut bytes).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes[..length]).to_ascii_lowercase();
            let status = if known || text.contains("authorization: bearer") {
                "200 OK"
            } else {
                "401 No"
            };
            *heard.lock().unwrap() = format!("{text}certificate: {known}");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, asked)
}

fn access(server: &str, authority: &Authority, user: &Value) -> Access {
    let kubeconfig = json!({
        "clusters": [{ "name": "c", "cluster": {
            "server": server, "certificate-authority-data": STANDARD.encode(authority.pem()),
            "tls-server-name": "api.cluster.test",
        } }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
    });
    Access::parse(kubeconfig.to_string().as_bytes(), LOCAL).unwrap()
}

fn client(access: &Access, addresses: Addresses) -> Client {
    let user_agent = HeaderValue::from_static("operator/1");
    let network = Network {
        addresses,
        user_agent,
        names: Names::default(),
    };
    let wire = network.dial(access).unwrap();
    Client::new(wire, "default")
}

/// Whether a cluster answers whoever dials it like this.
async fn ask(access: &Access, addresses: Addresses) -> Result<(), Reason> {
    probe(&client(access, addresses)).await
}

#[tokio::test]
async fn a_cluster_is_asked_with_the_token_or_the_certificate_of_its_kubeconfig() {
    let authority = authority();
    let (port, asked) = server(&authority).await;
    let at = format!("https://127.0.0.1:{port}/prefix");
    let token = access(&at, &authority, &json!({ "token": "abc" }));
    assert_eq!(ask(&token, LOCAL).await, Ok(()));
    let heard = asked.lock().unwrap().clone();
    for part in [
        "get /prefix/version ",
        "authorization: bearer abc",
        "user-agent: operator/1",
        "certificate: false",
    ] {
        assert!(heard.contains(part), "{part} is not in {heard}");
    }
    assert!(!heard.contains("accept-encoding"), "{heard}");
    let (certificate, key) = certified(&authority, "admin");
    let user = json!({
        "client-certificate-data": STANDARD.encode(certificate.pem()),
        "client-key-data": STANDARD.encode(key.serialize_pem()),
    });
    assert_eq!(ask(&access(&at, &authority, &user), LOCAL).await, Ok(()));
    assert!(asked.lock().unwrap().contains("certificate: true"));
}

#[tokio::test]
async fn a_cluster_whose_certificate_is_of_another_authority_is_told_nothing() {
    let (authority, other) = (authority(), authority());
    let (port, asked) = server(&authority).await;
    let access = access(&format!("https://127.0.0.1:{port}"), &other, &json!({ "token": "abc" }));
    let reason = ask(&access, LOCAL).await.unwrap_err();
    assert!(matches!(reason, Reason::Secure { .. }), "{reason:?}");
    assert_eq!(*asked.lock().unwrap(), "");
}

/// A gateway that refuses everything, and repeats what it was sent. Gives its port.
async fn gateway(authority: &Authority) -> u16 {
    let acceptor = acceptor(authority);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut bytes = vec![0; 4096];
            let length = stream.read(&mut bytes).await.unwrap_or_default();
            let head = format!("HTTP/1.1 403 No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), &bytes[..length]].concat()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

#[tokio::test]
async fn what_a_gateway_says_is_told_without_the_token_that_it_repeats() {
    const TOKEN: &str = "salamis-480-before-plataea";
    let authority = authority();
    let port = gateway(&authority).await;
    let access = access(
        &format!("https://127.0.0.1:{port}"),
        &authority,
        &json!({ "token": TOKEN }),
    );
    let client = client(&access, LOCAL);
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let told = chain(&client.request_text(request).await.unwrap_err());
    assert!(told.contains("(not shown)") && !told.contains(TOKEN), "{told}");
}

#[tokio::test]
async fn a_name_that_stands_for_this_machine_is_not_connected_to() {
    let look_up = async |loopback| {
        let addresses = Addresses { loopback };
        let names = Names::default();
        Lookup { names, addresses }.oneshot("localhost".parse().unwrap()).await
    };
    let error = look_up(false).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    assert!(look_up(true).await.unwrap().all(|address| address.ip().is_loopback()));
    let authority = authority();
    let (port, asked) = server(&authority).await;
    let user = json!({ "token": "abc" });
    let access = access(&format!("https://localhost:{port}"), &authority, &user);
    let reason = ask(&access, Addresses::default()).await.unwrap_err();
    let Reason::Reach { words } = reason else {
        panic!("{reason:?}")
    };
    assert!(words.contains("which is this machine itself"), "{words}");
    assert_eq!(*asked.lock().unwrap(), "");
}

#[tokio::test]
async fn a_name_of_several_addresses_is_not_connected_to_where_there_is_no_cluster_at_one_of_them() {
    const GOOD: [u8; 4] = [192, 0, 2, 1];
    for found in [
        [GOOD, [127, 0, 0, 1]],
        [[127, 0, 0, 1], GOOD],
        [GOOD, [169, 254, 169, 254]],
    ] {
        let found = found.map(|address| SocketAddr::from((address, 0)));
        let names = Names::asking(move |_| Ok(found.to_vec()), Duration::from_secs(1));
        let addresses = Addresses::default();
        let looking = Lookup { names, addresses }.oneshot("api.cluster.test".parse().unwrap());
        let error = looking.await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    }
}

/// An API server that answers so many requests at once, and none before. Gives its port, and how many connections it was asked by.
async fn patient_server(authority: &Authority, at_once: usize) -> (u16, Arc<AtomicUsize>) {
    let (acceptor, all) = (acceptor(authority), Arc::new(Barrier::new(at_once)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::default());
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, all, counted) = (acceptor.clone(), Arc::clone(&all), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut bytes = vec![0; 4096];
                let mut is_first = true;
                while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {
                    counted.fetch_add(usize::from(std::mem::take(&mut is_first)), Ordering::SeqCst);
                    all.wait().await;
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (port, connections)
}

#[tokio::test]
async fn requests_at_once_go_through_the_connections_of_those_before() {
    const ROUNDS: usize = 10;
    let authority = authority();
    let (port, connections) = patient_server(&authority, CONNECTIONS).await;
    let access = access(
        &format!("https://127.0.0.1:{port}"),
        &authority,
        &json!({ "token": "abc" }),
    );
    let client = client(&access, LOCAL);
    for _ in 0..ROUNDS {
        let answers = join_all((0..CONNECTIONS).map(|_| probe(&client))).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    let connections = connections.load(Ordering::SeqCst);
    // A connection whose answer has just been read may be missed by the next request.
    assert!(connections <= 2 * CONNECTIONS, "{connections} in {ROUNDS} rounds");
}
