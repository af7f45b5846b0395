//! The whole operator before an API server in memory, with a directory as its cloud: releases make objects of images, images become files, and go again. Of
//! the calls to the API server the n-th fails, for every n; and for every n the process dies after it, and another one goes on.

#[cfg(feature = "openstack")]
mod clouds_drift;
#[cfg(feature = "openstack")]
mod clouds_orphans;
mod drift;
mod images;
mod jobs;
mod moved;
#[cfg(feature = "openstack")]
mod names;
mod orphans;
mod places;
#[cfg(feature = "openstack")]
mod secrets;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use operator_kit::in_memory::journey::{End, Played, assert_same, beside, end, paused, with_every_call_failing};
use operator_kit::in_memory::{Fault, Key, Served, Server};
use operator_kit::lease::Tenure;
use operator_kit::telemetry::{Readiness, registry};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use release::pack::{self, Versioning};
use release::source::{DirectorySource, RELEASES_DIRECTORY};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, CommandLine};
use crate::metrics::Metrics;
use crate::operator::{Ends, Tidings, operate};

/// Longer than every wait between retries. No time goes by for it: the clock stands still while something is done, and leaps when nothing is.
const LONG: Duration = Duration::from_mins(12);

/// The journey has more calls than this, or it is not the one that was meant.
const FEWEST: usize = 30;

const OURS: &str = "clusterstack.x-k8s.io";
const PROVIDERS: &str = "infrastructure.clusterstack.x-k8s.io";
const RELEASE: &str = "FileStoreClusterStackRelease";
const IMAGE: &str = "FileStoreNodeImageRelease";
pub(crate) const SECOND: &str = "docker-harbor-1-34-v2";
pub(crate) const FIRST: &str = "docker-harbor-1-34-v1";

/// What is served.
static KINDS: [Served; 13] = [
    Served::NAMESPACE,
    Served::SECRET,
    Served::EVENT,
    Served::namespaced(OURS, "v1alpha1", "ClusterStackRelease", "clusterstackreleases"),
    Served::namespaced(PROVIDERS, "v1alpha1", RELEASE, "filestoreclusterstackreleases"),
    Served::namespaced(PROVIDERS, "v1alpha1", IMAGE, "filestorenodeimagereleases"),
    Served::namespaced(
        PROVIDERS,
        "v1alpha1",
        "OpenStackClusterStackRelease",
        "openstackclusterstackreleases",
    ),
    Served::namespaced(
        PROVIDERS,
        "v1alpha1",
        "OpenStackNodeImageRelease",
        "openstacknodeimagereleases",
    ),
    Served::namespaced("batch", "v1", "Job", "jobs"),
    Served::namespaced("", "v1", "Pod", "pods"),
    Served::SERVICE_ACCOUNT,
    Served::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    Served::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
];

/// The fields that tell how an image came to be, and when.
const HISTORY: [&str; 6] = ["transfer", "lastFailure", "attempt", "id", "retry", "message"];

/// The files of a small stack.
const STACK: [(&str, &str); 7] = [
    (
        "csctl.yaml",
        "apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1\nconfig: {kubernetesVersion: v1.34.0, clusterStackName: harbor, provider: {type: docker}}\n",
    ),
    (
        "cluster-class/Chart.yaml",
        "apiVersion: v2\nname: docker-harbor-1-34-cluster-class\ntype: application\nversion: v0\n",
    ),
    ("cluster-class/values.yaml", "{}\n"),
    (
        "cluster-addon/Chart.yaml",
        "apiVersion: v2\nname: docker-harbor-1-34-cluster-addon\ntype: application\nversion: v0\n",
    ),
    ("cluster-addon/values.yaml", "{}\n"),
    ("cluster-addon-values.yaml", "values: |\n  {}\n"),
    (
        "node-images.yaml",
        "apiVersion: x/v1\nfileStoreNodeImages:\n- {url: 'release:disk.raw', name: ubuntu-v1.raw, format: raw}\n",
    ),
];

/// No text, and more than a provider holds back.
fn disk() -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..400 * 1024).map(|_| next()).collect()
}

/// Two releases with the same image, which nobody has written to for a while.
pub(crate) static RELEASES: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let stack = TempDir::new().expect("a folder");
    for (path, text) in STACK {
        let file = stack.path().join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    let releases = root.path().join(RELEASES_DIRECTORY);
    for version in ["v1", "v2"] {
        let versioning = Versioning::Given(version.parse().expect("a version"));
        pack::create(stack.path(), &releases, &versioning).expect("a release");
        let release = releases.join(format!("docker-harbor-1-34-{version}"));
        fs::write(release.join("disk.raw"), disk()).expect("a file");
        let metadata = release.join("metadata.yaml");
        let text = fs::read_to_string(&metadata).expect("metadata");
        // The images of the second release are those of the first.
        fs::write(&metadata, text.replace("nodeImage: v2", "nodeImage: v1")).expect("metadata");
    }
    // The source takes what is still; with the clock of a test it would wait for that in vain.
    let runtime = Builder::new_current_thread().enable_all().build();
    let source = DirectorySource::new(root.path());
    runtime.expect("a runtime").block_on(async {
        for tag in [FIRST, SECOND] {
            source.open(&tag.parse().expect("a tag")).await.expect("a release");
        }
    });
    root
});

fn release(tag: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": RELEASE,
        "metadata": { "name": tag, "namespace": "fleet" }, "spec": { "store": "default" },
    })
}

/// An API server with the namespace of the objects.
fn begin(fault: Option<(usize, Fault)>) -> Server {
    let server = Server::new(&KINDS, fault);
    server.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "fleet" } }));
    server
}

fn args(flags: &[&str], store: &Path, cache: &Path) -> Args {
    let store = format!("default={}", store.display());
    let releases = RELEASES.path().display().to_string();
    let cache = cache.display().to_string();
    let args = [
        "provider-operator",
        "--providers=filestore",
        "--filestore",
        &store,
        "--local",
        "--release-dir",
        &releases,
        "--cache-dir",
        &cache,
        "--drain=0s",
    ];
    let is_named = flags.iter().any(|flag| flag.starts_with("--installation="));
    let installation = (!is_named).then_some("--installation=here");
    let args = CommandLine::try_parse_from(args.iter().chain(installation.iter()).chain(flags))
        .expect("arguments")
        .args();
    assert_eq!(args.check(), Ok(()));
    args
}

fn tidings(registry: &mut Registry) -> Tidings {
    operator_kit::client::install_crypto();
    let readiness = Readiness::default();
    Tidings {
        watches: readiness.gate("watches"),
        readiness,
        metrics: Metrics::register(registry),
        tenure: Tenure::of_everything(),
    }
}

fn ends() -> Ends {
    Ends {
        stop: CancellationToken::new(),
        fenced: CancellationToken::new(),
    }
}

/// What comes of a journey while an operator works.
fn operated<T>(
    runtime: &Runtime,
    server: &Server,
    store: &Path,
    flags: &[&str],
    journey: impl AsyncFnOnce() -> T,
) -> T {
    counted(runtime, server, store, flags, journey).0
}

/// The same, and what is counted by then.
fn counted<T>(
    runtime: &Runtime,
    server: &Server,
    store: &Path,
    flags: &[&str],
    journey: impl AsyncFnOnce() -> T,
) -> (T, String) {
    let cache = TempDir::new().expect("a folder");
    let args = args(flags, store, cache.path());
    let (mut registry, mut page) = (registry(), String::new());
    let came = runtime.block_on(async {
        let ends = ends();
        let operating = operate(&args, server.client(), tidings(&mut registry), ends.clone());
        beside(operating, &ends.stop, journey()).await
    });
    text::encode(&mut page, &registry).expect("a page");
    (came, page)
}

/// What there is at the end of a part of the journey.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    objects: End,
    /// Names and sizes, with those of the hidden ones.
    files: Vec<(String, u64)>,
}

fn part(server: &Server, store: &Path) -> Part {
    Part {
        objects: end(server, &HISTORY),
        files: files(store),
    }
}

fn files(store: &Path) -> Vec<(String, u64)> {
    let mut files: Vec<(String, u64)> = fs::read_dir(store)
        .expect("the store")
        .map(|entry| entry.expect("a file"))
        .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.is_file()))
        .map(|entry| {
            let size = entry.metadata().expect("a file").len();
            (entry.file_name().to_string_lossy().into_owned(), size)
        })
        // What is for the provider alone has the number of the attempt in its name.
        .filter(|(name, _)| name.starts_with("ubuntu"))
        .collect();
    files.sort();
    files
}

/// The journey: a release, another one with the same image, the end of the first, the end of the second.
fn parts() -> [fn(&Server); 4] {
    [
        |server| server.apply(&release(FIRST)),
        |server| server.apply(&release(SECOND)),
        |server| delete(server, FIRST),
        |server| delete(server, SECOND),
    ]
}

fn delete(server: &Server, tag: &str) {
    if !server.find(RELEASE, tag).is_null() {
        server.delete(RELEASE, tag);
    }
}

/// Goes the way with this fault.
fn play(fault: Option<(usize, Fault)>) -> Played<Part> {
    let server = begin(fault);
    let store = TempDir::new().expect("a folder");
    let parts = operated(&paused(), &server, store.path(), &[], async || {
        let mut ended = Vec::new();
        for happens in parts() {
            happens(&server);
            sleep(LONG).await;
            ended.push(part(&server, store.path()));
        }
        ended
    });
    let (struck, calls) = server.struck();
    Played { parts, struck, calls }
}

fn image_of(part: &Part) -> Option<&Value> {
    let mut images = part.objects.iter().filter(|(key, _)| key.0 == IMAGE);
    let image = images.next().map(|(_, image)| image);
    assert!(images.next().is_none(), "one image: {:#?}", part.objects);
    image
}

/// Else equal ends might be equally wrong.
fn assert_is_the_journey(parts: &[Part]) {
    let [made, shared, kept, gone] = parts else {
        panic!("four parts: {parts:#?}");
    };
    let ready = |part: &Part, tag: &str| {
        let found = part.objects.iter().find(|(key, _)| key.0 == RELEASE && key.2 == tag);
        found.is_some_and(|(_, object)| object["status"]["ready"] == true)
    };
    let size = disk().len() as u64;
    for part in [made, shared, kept] {
        let image = image_of(part).expect("an image");
        assert_eq!(image["status"]["ready"], true, "{image:#}");
        let of_name = |part: &Part| part.files.iter().find(|(name, _)| name == "ubuntu-v1.raw").cloned();
        assert_eq!(
            of_name(part),
            Some(("ubuntu-v1.raw".to_owned(), size)),
            "{:?}",
            part.files
        );
    }
    let owners = |part: &Part| {
        let image = image_of(part).expect("an image");
        let owners = image["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        owners
            .iter()
            .map(|owner| owner["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(ready(made, FIRST) && ready(shared, FIRST) && ready(shared, SECOND) && ready(kept, SECOND));
    assert_eq!(
        (owners(made), owners(shared).len(), owners(kept)),
        (vec![FIRST.to_owned()], 2, vec![SECOND.to_owned()])
    );
    let left: Vec<&Key> = gone
        .objects
        .iter()
        .map(|(key, _)| key)
        .filter(|key| !key.1.is_empty())
        .collect();
    assert!(left.is_empty() && gone.files.is_empty(), "{gone:#?}");
}

fn assert_part(part: &Part, expected: &Part, when: &str) {
    assert_same(&part.objects, &expected.objects, when);
    assert_eq!(part.files, expected.files, "{when}");
}

#[test]
fn a_release_makes_an_image_shares_it_and_takes_it_away_when_it_is_the_last() {
    assert_is_the_journey(&play(None).parts);
}

fn every_call_may_fail(fault: Fault) {
    with_every_call_failing(fault, FEWEST, play, assert_part);
}

#[test]
fn whichever_call_is_refused_the_end_is_the_same() {
    every_call_may_fail(Fault::Refused);
}

#[test]
fn whichever_answer_is_lost_the_end_is_the_same() {
    every_call_may_fail(Fault::AnswerLost);
}

/// Works until the API server has been called so often, and dies without another word. What it was about to do in its cloud it may still have done.
fn die_after(server: &Server, store: &Path, calls: usize) {
    let cache = TempDir::new().expect("a folder");
    let args = args(&[], store, cache.path());
    let runtime = paused();
    server.cut_off_after(Some(calls));
    runtime.block_on(async {
        let working = operate(&args, server.client(), tidings(&mut registry()), ends());
        tokio::select! {
            _ = working => {}
            () = sleep(LONG) => {}
        }
    });
    // What it had begun goes with it.
    drop(runtime);
    server.cut_off_after(None);
}

#[test]
fn whenever_the_process_dies_the_next_one_goes_on_to_the_same_end() {
    let expected = play(None).parts;
    for at in 1.. {
        let server = begin(None);
        let store = TempDir::new().expect("a folder");
        server.apply(&release(FIRST));
        die_after(&server, store.path(), at);
        let has_died = server.calls() >= at;
        let ended = operated(&paused(), &server, store.path(), &[], async || {
            let mut ended = Vec::new();
            for (number, happens) in parts().iter().enumerate() {
                // The first one came to the one that died.
                if number > 0 {
                    happens(&server);
                }
                sleep(LONG).await;
                ended.push(part(&server, store.path()));
            }
            ended
        });
        for (number, (part, expected)) in ended.iter().zip(&expected).enumerate() {
            assert_part(part, expected, &format!("after part {number}, dead after {at} calls"));
        }
        if !has_died {
            assert!(at > FEWEST / 2, "{at} deaths were tried");
            break;
        }
    }
}
