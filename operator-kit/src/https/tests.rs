use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use jiff::Timestamp;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::certificate::Keeper;
use super::files::Folder;
use super::*;
use crate::client::install_crypto;
use crate::serving::CONNECTIONS;
use crate::serving::tests::are_ended;
use crate::telemetry::Readiness;

/// Who signs, and how clients know.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate that ends with this year, and its key, in PEM.
    fn pair(&self, year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    async fn connect(&self, address: SocketAddr) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }
}

/// Writes as a kubelet does: a folder of its own, and a link to it that is replaced in one step.
fn mount(directory: &Path, name: &str, (certificate, key): &(String, String)) {
    let version = directory.join(name);
    fs::create_dir(&version).unwrap();
    fs::write(version.join("tls.crt"), certificate).unwrap();
    fs::write(version.join("tls.key"), key).unwrap();
    symlink(name, directory.join("..next")).unwrap();
    fs::rename(directory.join("..next"), directory.join("..data")).unwrap();
    for file in ["tls.crt", "tls.key"] {
        if !directory.join(file).exists() {
            symlink(format!("..data/{file}"), directory.join(file)).unwrap();
        }
    }
}

/// What follows a folder, with all that it tells.
struct Followed {
    directory: TempDir,
    certificates: Certificates,
    readiness: Readiness,
    registry: Registry,
    keeper: Keeper,
}

impl Followed {
    fn new() -> Self {
        install_crypto();
        let (certificates, readiness) = (Certificates::default(), Readiness::default());
        let mut registry = Registry::default();
        let expiries = Expiries::register(&mut registry);
        let keeper = Keeper::new("test", certificates.clone(), readiness.gate("test"), &expiries);
        Self {
            directory: tempfile::tempdir().unwrap(),
            certificates,
            readiness,
            registry,
            keeper,
        }
    }

    async fn look(&mut self) {
        self.look_in(2026).await;
    }

    async fn look_in(&mut self, year: i32) {
        let now: Timestamp = format!("{year}-06-01T00:00:00Z").parse().unwrap();
        let folder = Folder::new(self.directory.path().to_owned());
        self.keeper.look(folder.read().await, now);
    }

    fn metric(&self, name: &str) -> i64 {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}{{server=\"test\"}} ")));
        line.unwrap_or_else(|| panic!("no {name}: {page}")).parse().unwrap()
    }
}

fn year_of(seconds: i64) -> i16 {
    let end = Timestamp::from_second(seconds).unwrap();
    end.to_zoned(jiff::tz::TimeZone::UTC).year()
}

async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nhello") {
        let mut part = [0; 512];
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..read]);
    }
    String::from_utf8(answer).unwrap()
}

fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_connections_and_old_ones_go_on() {
    let (authority, mut followed) = (Authority::new(), Followed::new());
    mount(followed.directory.path(), "first", &authority.pair(2030));
    followed.look().await;
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        certificates: followed.certificates.clone(),
    };
    let (router, cancel) = (
        Router::new().route("/", get(|| async { "hello" })),
        CancellationToken::new(),
    );
    let (address, task) = serve_https(options, router, cancel.clone()).await.unwrap();
    let mut old = authority.connect(address).await;
    assert!(ask(&mut old).await.starts_with("HTTP/1.1 200"));
    assert_eq!(
        year_of(followed.metric("tls_certificate_expiry_timestamp_seconds")),
        2030
    );

    mount(followed.directory.path(), "second", &authority.pair(2031));
    followed.look().await;
    let mut new = authority.connect(address).await;
    assert!(ask(&mut new).await.starts_with("HTTP/1.1 200"));
    assert_ne!(shown(&old), shown(&new));
    assert!(
        ask(&mut old).await.starts_with("HTTP/1.1 200"),
        "the old connection stands"
    );
    assert_eq!(
        year_of(followed.metric("tls_certificate_expiry_timestamp_seconds")),
        2031
    );

    // Both connections are idle now, so the end waits for nobody.
    cancel.cancel();
    task.await.unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "a cancelled server listens no more"
    );
}

#[tokio::test]
async fn a_pair_that_cannot_be_used_leaves_the_one_before_in_use_and_is_told() {
    let (authority, mut followed) = (Authority::new(), Followed::new());
    let directory = followed.directory.path().to_owned();
    let good = authority.pair(2030);
    mount(&directory, "good", &good);
    followed.look().await;
    let other = authority.pair(2031);
    let mismatched = (other.0.clone(), good.1.clone());
    let cut = (other.0[..200].to_owned(), other.1.clone());
    let empty = (String::new(), other.1.clone());
    let no_key = (other.0.clone(), "no key".to_owned());
    for (name, pair) in [
        ("mismatched", mismatched),
        ("cut", cut),
        ("empty", empty),
        ("no-key", no_key),
    ] {
        mount(&directory, name, &pair);
        followed.look().await;
        assert!(
            followed.readiness.remarks().is_empty(),
            "{name}: it may be half written"
        );
        followed.look().await;
        let remarks = followed.readiness.remarks();
        let words = "the certificate on disk cannot be used, the one before stays in use until 2030-12-31T00:00:00Z: unable to use ";
        assert!(
            matches!(remarks.as_slice(), [remark] if remark.contains(words)),
            "{name}: {remarks:?}"
        );
        assert!(!remarks[0].contains("BEGIN"), "{remarks:?}");
        assert!(followed.readiness.missing().is_empty(), "{name}: it serves on");
        assert_eq!(followed.metric("tls_certificate_refused"), 1, "{name}");
        assert_eq!(
            year_of(followed.metric("tls_certificate_expiry_timestamp_seconds")),
            2030
        );
    }
    mount(&directory, "mended", &other);
    followed.look().await;
    assert!(followed.readiness.remarks().is_empty());
    assert_eq!(followed.metric("tls_certificate_refused"), 0);
    assert_eq!(
        year_of(followed.metric("tls_certificate_expiry_timestamp_seconds")),
        2031
    );
}

#[tokio::test]
async fn the_gate_says_why_there_is_no_certificate_and_when_it_ended() {
    let (authority, mut followed) = (Authority::new(), Followed::new());
    followed.look().await;
    let missing = followed.readiness.missing();
    assert!(
        matches!(missing.as_slice(), [line] if line.contains("tls.crt: No such file")),
        "{missing:?}"
    );
    mount(followed.directory.path(), "first", &authority.pair(2030));
    followed.look().await;
    assert!(followed.readiness.missing().is_empty());
    followed.look_in(2031).await;
    assert_eq!(
        followed.readiness.missing(),
        ["test: the certificate ended at 2030-12-31T00:00:00Z; renew it"]
    );
    mount(followed.directory.path(), "second", &authority.pair(2032));
    followed.look_in(2031).await;
    assert!(followed.readiness.missing().is_empty());
}

#[tokio::test]
async fn without_a_certificate_no_handshake_succeeds_and_nothing_breaks() {
    let mut followed = Followed::new();
    followed.look().await;
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        certificates: followed.certificates.clone(),
    };
    let cancel = CancellationToken::new();
    let router = Router::new().route("/", get(|| async { "hello" }));
    let (address, task) = serve_https(options, router, cancel.clone()).await.unwrap();
    let authority = Authority::new();
    let stream = TcpStream::connect(address).await.unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let refused = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    assert!(refused.is_err());
    mount(followed.directory.path(), "first", &authority.pair(2030));
    followed.look().await;
    let mut stream = authority.connect(address).await;
    assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    cancel.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn connections_that_are_silent_before_or_after_the_handshake_give_their_places_back() {
    let (authority, mut followed) = (Authority::new(), Followed::new());
    mount(followed.directory.path(), "first", &authority.pair(2030));
    followed.look().await;
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        certificates: followed.certificates.clone(),
    };
    let router = Router::new().route("/", get(|| async { "hello" }));
    let (address, _task) = serve_https(options, router, CancellationToken::new()).await.unwrap();

    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    are_ended(silent).await;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(authority.connect(address).await);
    }
    assert!(ask(&mut idle[CONNECTIONS - 1]).await.starts_with("HTTP/1.1 200"));
    are_ended(idle).await;
    let mut next = authority.connect(address).await;
    assert!(ask(&mut next).await.starts_with("HTTP/1.1 200"));
}

#[test]
fn a_folder_that_hangs_takes_one_thread_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("tls.crt");
    // Whoever opens it waits for somebody who writes.
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(2)
        .build();
    runtime.unwrap().block_on(async {
        let (cancel, readiness) = (CancellationToken::new(), Readiness::default());
        let expiries = Expiries::register(&mut Registry::default());
        let gate = readiness.gate("test");
        follow("test", folder.path().to_owned(), gate, &expiries, cancel.clone());
        while !readiness
            .missing()
            .iter()
            .any(|line| line.contains("no answer within 5 seconds"))
        {
            time::advance(Duration::from_secs(1)).await;
        }
        for _ in 0..60 {
            time::advance(Duration::from_secs(1)).await;
        }
        time::resume();
        let other = time::timeout(Duration::from_secs(30), spawn_blocking(|| "done")).await;
        cancel.cancel();
        let writer = fs::File::options().read(true).write(true).open(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap();
        drop(writer);
        assert_eq!(other.expect("there is a thread").unwrap(), "done");
    });
}
