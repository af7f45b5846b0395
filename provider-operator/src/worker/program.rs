//! The program of a Job: reads what it is to do, connects as the Secret says that is mounted, does it as the operator itself would, and leaves word of
//! how it went. Ends at once when it is told to: what is left in the cloud is empty, ends by itself, or can be gone on with.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use operator_kit::client::{ClientOptions, Traffic, connect};
use operator_kit::failure::chain;
use operator_kit::lease::Fence;
use operator_kit::telemetry::registry;
use planning::image::{Done, Failure, FailureClass, StopReason};
use provider_plugin::{Addresses, Identity};
use release::http::{Network, NetworkOptions};
use secrecy::SecretString;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::artifact::Artifact;
use super::document::{self, Document};
use super::report::Report;
use super::{Failed, Whose, WorkPlan, Worked, exit};
use crate::args::WorkerArgs;
use crate::clock::Steady;
use crate::executor::{Order, Pace, errand};
use crate::identity::Connection;
use crate::progress::Ledgers;
use crate::registry::{Given, Registry};
use crate::source::{Asked, Files, WebFiles};

/// Largest file of a Secret.
const LARGEST_KEY: u64 = 1024 * 1024;
/// How long the end may take: less than the kubelet waits.
const LAST: Duration = Duration::from_secs(5);

/// What a deed needs before it can begin.
struct Ready {
    order: Order,
    ledgers: Ledgers,
}

/// Does what the plan says; gives the exit code, which says what kind of end it was. An error means that it was not even known what was to be done.
pub(crate) async fn run(args: &WorkerArgs) -> anyhow::Result<u8> {
    args.log.install(None)?;
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let document = read(&args.plan)?;
    let plan = document.plan();
    tracing::info!(object = %plan.object, deed = ?plan.deed.name(), attempt = document.attempt(), "begins");
    let worked = stop.run_until_cancelled(worked(args, &document, plan)).await;
    let outcome = outcome(worked);
    match &outcome {
        Ok(_) => tracing::info!("the image was sent"),
        Err(failure) => tracing::error!(
            class = ?failure.class,
            request = failure.request_id,
            "{}",
            failure.message
        ),
    }
    // Whoever reads it looks at the cloud too, so that an end without a word is no disaster.
    if let Err(error) = fs::write(&args.result, Report::of(&document, &outcome).text()) {
        tracing::warn!(%error, "unable to leave word of how it ended");
    }
    Ok(exit::code(&outcome))
}

/// `None`: it was told to end.
fn outcome(worked: Option<Worked>) -> Result<Done, Failure> {
    let stopped = || {
        let class = FailureClass::Stopped {
            why: StopReason::Draining,
        };
        Failed::new(class, "the Pod was told to end", Whose::Cloud)
    };
    let worked = worked.unwrap_or_else(|| Worked::failed(stopped()));
    worked.outcome.map_err(|failed| failed.failure)
}

fn read(path: &Path) -> anyhow::Result<Document> {
    let metadata = fs::metadata(path).with_context(|| format!("--plan {} cannot be read", path.display()))?;
    anyhow::ensure!(
        metadata.len() <= document::LARGEST as u64,
        "--plan {} is too large to be one",
        path.display()
    );
    let text = fs::read_to_string(path).with_context(|| format!("--plan {} cannot be read", path.display()))?;
    Ok(Document::read(&text)?)
}

async fn worked(args: &WorkerArgs, document: &Document, plan: WorkPlan) -> Worked {
    match ready(args, document, plan).await {
        Ok(Ready { order, ledgers }) => {
            let ledger = ledgers.open(&order.plan);
            let pace = Pace::new(Steady::start(), order.connection.counts().clone());
            // Who else waits for a place, only the operator knows.
            errand::run(&order, pace, ledger, Box::new(|| true)).await
        }
        Err(failed) => Worked::failed(failed),
    }
}

async fn ready(args: &WorkerArgs, document: &Document, plan: WorkPlan) -> Result<Ready, Failed> {
    let files = files(args, document, &plan)?;
    let connection = connection(args, document, &plan)?;
    let client = client(args).await.map_err(|error| {
        let words = format!("there is no way to the API server: {}", chain(error.as_ref()));
        Failed::new(FailureClass::Sealing, words, Whose::Cloud)
    })?;
    Ok(Ready {
        order: Order {
            plan,
            connection: Arc::new(connection),
            files: Some(files),
            job: None,
        },
        ledgers: Ledgers::new(client, operator_kit::process::host()),
    })
}

async fn client(args: &WorkerArgs) -> anyhow::Result<kube::Client> {
    let options = ClientOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: None,
        qps: 0.0,
        burst: 1,
        user_agent: format!("stackwright-provider-worker/{}", env!("CARGO_PKG_VERSION")),
        // Whose Job it is may change while it runs: it writes of its own image alone.
        fence: Fence::default(),
    };
    Ok(connect(&options, &Traffic::register(&mut registry())).await?)
}

fn connection(args: &WorkerArgs, document: &Document, plan: &WorkPlan) -> Result<Connection, Failed> {
    let invalid = |words: String| Failed::new(FailureClass::Invalid, words, Whose::Cloud);
    let given = Given {
        #[cfg(feature = "filestore")]
        filestores: {
            let options = args.filestore.iter().map(String::as_str);
            provider_filestore::FileStores::parse(options).map_err(|error| invalid(error.to_string()))?
        },
        // What lies in registries nobody sends.
        #[cfg(feature = "docker")]
        registries: crate::registries::WebRegistries::of(None),
    };
    let name = plan.object.provider;
    let registry = Registry::of(&[name.to_string()], given).map_err(|error| invalid(error.to_string()))?;
    let provider = registry
        .get(name)
        .ok_or_else(|| invalid(format!("there is no provider {name} in this program")))?;
    let data = match &args.identity {
        Some(folder) => secret(folder).map_err(|error| {
            let words = format!("the Secret that is mounted cannot be read: {}", chain(error.as_ref()));
            Failed::new(FailureClass::Credentials, words, Whose::Cloud)
        })?,
        None => BTreeMap::new(),
    };
    let identity = Identity {
        name: document.cloud.clone(),
        data,
        version: "mounted".to_owned(),
    };
    Connection::new(Arc::clone(provider), identity, addresses(document)).map_err(|error| {
        // Its Secret may have been another one when the Job was made.
        Failed::new(FailureClass::Credentials, error.to_string(), Whose::Cloud)
    })
}

#[cfg(feature = "openstack")]
fn addresses(document: &Document) -> Arc<dyn Addresses> {
    let networks = document.network.clouds();
    Arc::new(provider_openstack::CloudAddresses { networks })
}

#[cfg(not(feature = "openstack"))]
fn addresses(_document: &Document) -> Arc<dyn Addresses> {
    Arc::new(crate::args::Nowhere)
}

/// The files of a mounted Secret that are text. Names that begin with two dots are the kubelet's.
fn secret(folder: &Path) -> anyhow::Result<BTreeMap<String, SecretString>> {
    let mut data = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let metadata = fs::metadata(entry.path())?;
        if name.starts_with("..") || !metadata.is_file() || metadata.len() > LARGEST_KEY {
            continue;
        }
        if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
            data.insert(name, SecretString::from(text));
        }
    }
    Ok(data)
}

/// What was built, or what is at the URL, on a web server or in a registry.
fn files(args: &WorkerArgs, document: &Document, plan: &WorkPlan) -> Result<Files, Failed> {
    match &args.artifact {
        Some(path) => of_artifact(path, document.artifact_limit),
        None => at_the_url(document, plan),
    }
}

fn at_the_url(document: &Document, plan: &WorkPlan) -> Result<Files, Failed> {
    let options = NetworkOptions {
        plain_http: document.network.plain_http,
        networks: document.network.sources(),
        ..NetworkOptions::default()
    };
    let network =
        Network::new(options).map_err(|error| Failed::new(FailureClass::SourceBroken, chain(&error), Whose::Source))?;
    Ok(WebFiles::new(&network, []).files(&Asked {
        url: plan.content.url.clone(),
        is_pinned: plan.content.pinned.is_some(),
        sums: document.sums().map(|sums| (sums.url.clone(), sums.name.clone())),
        credentials: None,
        certificates: None,
        namespace: plan.object.namespace.clone(),
    }))
}

/// What a build leaves is the build's matter.
fn of_artifact(path: &Path, limit: Option<u64>) -> Result<Files, Failed> {
    let artifact = Artifact::open(path, limit).map_err(|error| {
        let class = FailureClass::BuildFailed {
            exit: i32::from(exit::WRONG),
        };
        Failed::new(class, chain(&error), Whose::Source)
    })?;
    Ok(Files {
        image: Arc::new(artifact),
        sums: None,
        tag_is_digest: false,
    })
}

fn stop_on_signal(stop: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        // Whatever still holds a thread is given up.
        tokio::time::sleep(LAST).await;
        std::process::exit(i32::from(exit::STOPPED));
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use planning::image::Deed;
    use tempfile::TempDir;

    use super::super::document::{NetworkOfDocument, Surroundings};
    use super::*;
    use crate::stand_ins::{object, plan};

    #[test]
    fn a_file_in_a_registry_is_the_same_for_a_job() {
        let url = "oci+http://registry.example:5000/disks/ubuntu:v1#u.qcow2";
        let deed = Deed::Transfer {
            id: "one".to_owned(),
            attempt: 3,
            staged: false,
        };
        let mut told = plan(&object("fleet", "ubuntu"), deed);
        told.content.url = url.to_owned();
        let surroundings = Surroundings {
            network: NetworkOfDocument::new(true, &[], &[]),
            ..Surroundings::default()
        };
        let text = Document::of(&told, surroundings).expect("a document").text();
        let read = Document::read(&text.expect("a text")).expect("a document");
        let files = at_the_url(&read, &read.plan()).expect("files");
        assert!(files.tag_is_digest);
        assert_eq!(
            files.image.place(),
            "oci://registry.example:5000/disks/ubuntu:v1#u.qcow2"
        );
    }

    #[test]
    fn a_mounted_secret_is_read_without_what_the_kubelet_keeps_beside_it() {
        let folder = TempDir::new().expect("a folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
        write("clouds.yaml", b"clouds: {}");
        write("..data", b"not a key");
        write("binary", &[0xff]);
        fs::create_dir(folder.path().join("..2026")).expect("a folder");
        let data = secret(folder.path()).expect("a Secret");
        assert_eq!(data.keys().collect::<Vec<_>>(), ["clouds.yaml"]);
    }

    #[test]
    fn an_end_that_was_asked_for_is_told_as_one() {
        let failure = outcome(None).expect_err("it was stopped");
        assert_eq!(exit::code(&Err(failure)), exit::STOPPED);
    }
}
