//! What a workload cluster at rest costs in memory: `cargo run --release -p operator-kit --example idle_watches -- CLUSTERS WATCHES`.
//!
//! An API server of its own, which is another process, answers by TLS: discovery with the kinds of a usual cluster, an object of each kind that is
//! watched, and a bookmark every minute. Here are the clusters, each with connections of its own, and what is resident before and after.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use futures::{StreamExt, stream};
use http::{HeaderValue, Response as HttpResponse};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kube::client::{Body as KubeBody, Client};
use kube::core::GroupVersionKind;
use operator_kit::client::install_crypto;
use operator_kit::lease::Fence;
use operator_kit::workload::addresses::Addresses;
use operator_kit::workload::{News, Settings, Workload, WorkloadClusters, WorkloadMetrics};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const LABEL: &str = "example.org/part-of";
const GROUP: &str = "weight.example.org";
/// Kinds of a usual cluster with some add-ons.
const KINDS: usize = 90;
const WARM_UP: usize = 5;

fn main() -> anyhow::Result<()> {
    install_crypto();
    let arguments: Vec<String> = env::args().skip(1).collect();
    // As the operators have it: two threads.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    if arguments.first().is_some_and(|first| first == "serve") {
        return runtime.block_on(serve());
    }
    let number = |at: usize, otherwise| arguments.get(at).map_or(Ok(otherwise), |text| text.parse::<usize>());
    let (clusters, watches) = (number(0, 100)?, number(1, 8)?);
    runtime.block_on(measure(clusters, watches))
}

/// The API server, which ends with its parent.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

async fn measure(count: usize, watches: usize) -> anyhow::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    let child = command
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut server = Server(child);
    let output = server.0.stdout.take().context("the server has an output")?;
    let mut lines = BufReader::new(output).lines();
    let mut line = || {
        lines
            .next()
            .context("the server says where it is")?
            .context("it is text")
    };
    let (port, authority) = (line()?, line()?);
    let mut settings = Settings::new(Fence::default(), HeaderValue::from_static("weight"), LABEL);
    settings.addresses = Addresses { loopback: true };
    settings.watches = watches;
    let metrics = WorkloadMetrics::default();
    let management = management(&port, &authority);
    let (clusters, mut news) = WorkloadClusters::new(management, settings, metrics, CancellationToken::new());
    begin(&clusters, &mut news, 0..WARM_UP, watches).await?;
    let before = resident()?;
    begin(&clusters, &mut news, WARM_UP..WARM_UP + count, watches).await?;
    let after = resident()?;
    let connections = fs::read_dir("/proc/self/fd")?.count();
    let each = (after - before) / count;
    writeln!(
        std::io::stdout(),
        "{count} clusters with {watches} watches: {before} bytes before, {after} after, {each} for each ({:.2} MiB); {connections} files are open",
        f64::from(u32::try_from(each)?) / f64::from(1 << 20),
    )?;
    Ok(())
}

/// Follows clusters until each is connected and has listed its kinds, and lets them rest.
async fn begin(
    clusters: &WorkloadClusters,
    news: &mut mpsc::Receiver<News>,
    numbers: std::ops::Range<usize>,
    watches: usize,
) -> anyhow::Result<()> {
    let mut expected = numbers.len() * watches;
    for number in numbers {
        let uid = format!("uid-{number}");
        let workload = Workload {
            namespace: "fleet".to_owned(),
            name: format!("cluster-{number}"),
            owner: "owner".to_owned(),
        };
        clusters.follow(&uid, &workload);
    }
    while expected > 0 {
        let next = timeout(Duration::from_mins(1), news.recv()).await;
        match next.context("a cluster is not there after a minute")?.context("news")? {
            News::Connected { uid } => {
                expected -= 1;
                let state = clusters.get(&uid);
                let connection = state.connection().context("it was connected a moment ago")?;
                // One watch is that of the CRDs.
                for kind in 1..watches {
                    let kind = GroupVersionKind::gvk(GROUP, "v1", &format!("Kind{kind}"));
                    connection.objects.ensure(&kind).await?;
                }
            }
            News::Served { .. } => {}
            News::Objects { notice, .. } => {
                expected -= usize::from(matches!(notice, operator_kit::objects::Notice::Synced(_)));
            }
            News::Lost { uid } => anyhow::bail!("{uid} is lost: {:?}", clusters.get(&uid)),
        }
    }
    // Until connections that nobody uses are closed.
    sleep(Duration::from_secs(20)).await;
    Ok(())
}

/// Bytes of this process that are in memory.
fn resident() -> anyhow::Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.context("VmRSS")?.trim().parse::<usize>()? * 1024)
}

/// The management cluster, which has a Secret for every cluster.
fn management(port: &str, authority: &str) -> Client {
    let kubeconfig = json!({
        "clusters": [{ "name": "c", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority-data": authority,
        } }],
        "users": [{ "name": "u", "user": { "token": "abc" } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
    });
    let secret = k8s_openapi::api::core::v1::Secret {
        type_: Some("cluster.x-k8s.io/secret".to_owned()),
        data: Some(BTreeMap::from([(
            "value".to_owned(),
            k8s_openapi::ByteString(kubeconfig.to_string().into_bytes()),
        )])),
        ..Default::default()
    };
    let secret = Bytes::from(serde_json::to_vec(&secret).unwrap_or_default());
    let service = service_fn(move |_: http::Request<KubeBody>| {
        let secret = secret.clone();
        async move { Ok::<_, std::convert::Infallible>(HttpResponse::new(http_body_util::Full::new(secret))) }
    });
    Client::new(service, "default")
}

async fn serve() -> anyhow::Result<()> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let certificate = CertificateDer::from(cert.der().to_vec());
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(|error| anyhow::anyhow!("{error}"))?;
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let authority = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, cert.pem());
    writeln!(std::io::stdout(), "{}\n{authority}", listener.local_addr()?.port())?;
    let router = Router::new().fallback(answer);
    // Ends with whoever began it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = TowerToHyperService::new(router);
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(request: Request) -> Response {
    let uri = request.uri();
    let whole = |value: Value| Response::new(Body::from(value.to_string()));
    if uri.query().is_some_and(|query| query.contains("watch=true")) {
        let bookmark = json!({ "type": "BOOKMARK", "object": {
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": { "resourceVersion": "6" },
        } });
        let bookmarks = stream::repeat(format!("{bookmark}\n")).then(|line| async move {
            sleep(Duration::from_secs(5)).await;
            Ok::<_, std::convert::Infallible>(line)
        });
        return Response::new(Body::from_stream(bookmarks));
    }
    match uri.path() {
        "/version" => whole(json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.0" })),
        "/api" => whole(groups(&json!([]))),
        "/apis" => {
            let kind = |number: usize| {
                json!({
                    "resource": format!("kind{number}s"), "scope": "Namespaced", "verbs": ["get", "list", "watch"],
                    "responseKind": { "group": GROUP, "version": "v1", "kind": format!("Kind{number}") },
                    "subresources": [{ "subresource": "status", "verbs": ["get"] }],
                })
            };
            let kinds: Vec<Value> = (0..KINDS).map(kind).collect();
            let group = json!({ "metadata": { "name": GROUP }, "versions": [{ "version": "v1", "resources": kinds }] });
            whole(groups(&json!([group])))
        }
        _ => whole(json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": { "resourceVersion": "5" },
            "items": [{ "metadata": {
                "name": "one", "namespace": "kube-system", "uid": "d1f0c7b2-7a34-4a5e-9f0c-0c1b2a3d4e5f", "resourceVersion": "5",
                "generation": 1, "labels": { LABEL: "owner" }, "annotations": { "text": "x".repeat(500) },
            } }],
        })),
    }
}

fn groups(items: &Value) -> Value {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items })
}
