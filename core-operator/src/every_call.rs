//! The whole operator before an API server in memory, of whose calls the n-th fails, for every n: discovery, lists, watches, reads and writes alike.

mod addons;
mod behind;
mod contract;
mod hidden;
mod hostile;
mod kinds;
mod nested;
mod provider;
mod returning;
mod secrets;
mod shared;
mod wakes;

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use clap::Parser;
use operator_kit::lease::{Fence, Tenure};
use operator_kit::telemetry::{Readiness, registry};
use operator_kit::workload::{Dial, WorkloadMetrics};
use prometheus_client::registry::Registry;
use release::pack::{self, Versioning};
use release::source::{DirectorySource, RELEASES_DIRECTORY};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use operator_kit::in_memory::journey::{End, Played, assert_same, beside, end, paused, with_every_call_failing};
use operator_kit::in_memory::{Fault, Key, Served, Server};

use self::kinds::{KINDS, PROVIDER_KIND};
use crate::args::Args;
use crate::census::Census;
use crate::metrics::{Metrics, Supply};
use crate::operator::{Tidings, operate};
use crate::tasks::Tasks;
use crate::workloads::Outside;

/// Longer than every wait between retries. No time goes by for it: the clock stands still while something is done, and leaps when nothing is.
const LONG: Duration = Duration::from_mins(4);

/// The journey has more calls than this, or it is not the one that was meant.
const FEWEST: usize = 60;

/// How many calls a part may have besides those that it has without a fault: the tries of what failed, and a look at everything anew. Each part
/// lasts for minutes, in which a loop has thousands.
const BESIDES: usize = 60;

/// A part of the journey: what there is after it, and how many calls it took.
struct Part {
    end: End,
    calls: usize,
}

/// The files of a small stack.
const STACK: [(&str, &str); 8] = [
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
        "cluster-class/templates/class.yaml",
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nmetadata:\n  name: {{ .Release.Name }}-{{ .Chart.Version }}\nspec:\n  \
         infrastructure:\n    ref:\n      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n      kind: DockerClusterTemplate\n      \
         name: {{ .Release.Name }}-{{ .Chart.Version }}-cluster\n",
    ),
    (
        "cluster-class/templates/cluster.yaml",
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: DockerClusterTemplate\nmetadata:\n  \
         name: {{ .Release.Name }}-{{ .Chart.Version }}-cluster\nspec: {template: {spec: {loadBalancer: {}, image: ours}}}\n",
    ),
    (
        "cluster-addon/Chart.yaml",
        "apiVersion: v2\nname: docker-harbor-1-34-cluster-addon\ntype: application\nversion: v0\n",
    ),
    ("cluster-addon/values.yaml", "{}\n"),
    ("cluster-addon-values.yaml", "values: |\n  {}\n"),
];

/// What the third release has besides.
const SECRET: (&str, &str) = (
    "cluster-class/templates/secret.yaml",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ndata: {password: cGxhdGFlYTQ3OQ==}\n",
);

/// Three releases, which nobody has written to for a while.
static RELEASES: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let with_secret: Vec<_> = STACK.into_iter().chain([SECRET]).collect();
    publish(root.path(), "docker-harbor-1-34", &STACK, &["v1", "v2"]);
    publish(root.path(), "docker-harbor-1-34", &with_secret, &["v3"]);
    root
});

/// Versions of a stack with these files.
fn publish<T: AsRef<[u8]>>(root: &Path, stem: &str, files: &[(&str, T)], versions: &[&str]) {
    let stack = TempDir::new().expect("a folder");
    for (path, text) in files {
        let file = stack.path().join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    for version in versions {
        let versioning = Versioning::Given(version.parse().expect("a version"));
        pack::create(stack.path(), &root.join(RELEASES_DIRECTORY), &versioning).expect("a release");
    }
    // The source takes what is still; with the clock of a test it would wait for that in vain.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let source = DirectorySource::new(root);
    runtime.expect("a runtime").block_on(async {
        for version in versions {
            let tag = format!("{stem}-{version}").parse().expect("a tag");
            source.open(&tag).await.expect("a release");
        }
    });
}

fn stack(versions: &[&str]) -> Value {
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
        "metadata": { "name": "harbor", "namespace": "fleet" },
        "spec": {
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false, "versions": versions,
            "providerRef": {
                "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackReleaseTemplate", "name": "images",
            },
        },
    })
}

fn template(size: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackReleaseTemplate",
        "metadata": { "name": "images", "namespace": "fleet" },
        "spec": { "template": { "spec": { "size": size } } },
    })
}

/// A cluster of a class.
fn cluster(class: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "wharf", "namespace": "fleet" },
        "spec": { "topology": { "class": class, "version": "v1.34.0" } },
    })
}

/// A definition for each kind, as far as the operator looks at it.
fn definition(kind: &Served) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group) },
    })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn tidings(registry: &mut Registry) -> Tidings {
    tidings_of(registry, Tenure::of_everything())
}

fn tidings_of(registry: &mut Registry, tenure: Tenure) -> Tidings {
    let readiness = Readiness::default();
    Tidings {
        watches: readiness.gate("watches"),
        shards: readiness.open_gate("shards"),
        readiness,
        census: Census::register(registry, &tenure),
        metrics: Metrics::register(registry),
        supply: Supply::register(registry),
        tasks: Tasks::register(registry),
        tenure,
        workloads: Outside {
            fence: Fence::default(),
            metrics: WorkloadMetrics::default(),
            wires: None,
        },
    }
}

/// The journey: a release with a provider, damage, another template, an upgrade while a Cluster uses the old release, the end of the Cluster and of
/// all.
async fn travel(server: &Server) -> Vec<Part> {
    let tag = "docker-harbor-1-34-v1";
    let image = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerClusterTemplate",
        "metadata": { "name": format!("{tag}-cluster"), "namespace": "fleet" },
        "spec": { "template": { "spec": { "image": "theirs" } } },
    });
    let parts: [&dyn Fn(); 6] = [
        &|| {
            server.apply(&template("small"));
            server.apply(&stack(&["v1"]));
        },
        &|| {
            server.delete("ClusterClass", tag);
            server.apply(&image);
        },
        &|| server.apply(&template("large")),
        &|| {
            server.apply(&cluster(tag));
            server.apply(&stack(&["v2"]));
        },
        &|| server.delete("Cluster", "wharf"),
        &|| server.delete("ClusterStack", "harbor"),
    ];
    let mut ended = Vec::new();
    for part in parts {
        let before = server.calls();
        part();
        sleep(LONG).await;
        ended.push(Part {
            end: end(server, &[]),
            calls: server.calls() - before,
        });
    }
    ended
}

/// Goes the way with this fault.
fn play(fault: Option<(usize, Fault)>) -> Played<Part> {
    let server = begin(fault);
    let parts = operated(&server, async |_| travel(&server).await);
    let (struck, calls) = server.struck();
    Played { parts, struck, calls }
}

/// An API server with definitions of all kinds.
fn begin(fault: Option<(usize, Fault)>) -> Server {
    let server = Server::new(&KINDS, fault);
    server.apply(&namespace("fleet"));
    for kind in KINDS.iter().filter(|kind| kind.group.contains("x-k8s.io")) {
        server.apply(&definition(kind));
    }
    server
}

/// What comes of a journey while an operator works.
fn operated<T>(server: &Server, journey: impl AsyncFnOnce(&Registry) -> T) -> T {
    operated_with(server, RELEASES.path(), &[], journey)
}

/// The same with these releases and further flags.
fn operated_with<T>(server: &Server, releases: &Path, flags: &[&str], journey: impl AsyncFnOnce(&Registry) -> T) -> T {
    operated_over(None, server, (releases, flags), journey)
}

/// The same with these wires to the clusters of Clusters.
fn operated_over<T>(
    wires: Option<Arc<dyn Dial>>,
    server: &Server,
    (releases, flags): (&Path, &[&str]),
    journey: impl AsyncFnOnce(&Registry) -> T,
) -> T {
    let cache = TempDir::new().expect("a folder");
    let args = args(releases, cache.path(), flags);
    paused().block_on(async {
        let mut registry = registry();
        let mut tidings = tidings(&mut registry);
        tidings.workloads.wires = wires;
        let stop = CancellationToken::new();
        let operating = operate(&args, server.client(), tidings, None, stop.clone());
        beside(operating, &stop, journey(&registry)).await
    })
}

fn args(releases: &Path, cache: &Path, flags: &[&str]) -> Args {
    let args = [
        "core-operator".as_ref(),
        "--local".as_ref(),
        // Whatever changes there is told by the file system, and nothing does.
        "--rescan-interval=24h".as_ref(),
        "--release-dir".as_ref(),
        releases.as_os_str(),
        "--cache-dir".as_ref(),
        cache.as_os_str(),
    ];
    Args::try_parse_from(args.into_iter().chain(flags.iter().map(AsRef::as_ref))).expect("arguments")
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, waiting).await.expect("it is so in the end");
}

fn every_call_may_fail(fault: Fault) {
    operator_kit::client::install_crypto();
    assert_is_the_journey(&play(None).parts);
    with_every_call_failing(fault, FEWEST, play, |part, expected, when| {
        assert_same(&part.end, &expected.end, when);
        let most = expected.calls + BESIDES;
        assert!(part.calls <= most, "{when}: {} calls, at most {most}", part.calls);
    });
}

/// Else equal ends might be equally wrong.
fn assert_is_the_journey(parts: &[Part]) {
    let ends: Vec<&End> = parts.iter().map(|part| &part.end).collect();
    let [installed, repaired, adjusted, in_use, upgraded, empty] = ends[..] else {
        unreachable!("there are six parts");
    };
    let find = |end: &End, kind: &str, name: &str| {
        let found = end.iter().find(|(key, _)| key.0 == kind && key.2 == name);
        found.map(|(_, object)| object.clone()).unwrap_or_default()
    };
    let (old, new) = ("docker-harbor-1-34-v1", "docker-harbor-1-34-v2");
    let release = find(installed, "ClusterStackRelease", old);
    assert_eq!(release["status"]["ready"], true, "{release:#}");
    let provider = |end: &End, name: &str| find(end, PROVIDER_KIND, name)["spec"]["size"].clone();
    assert_eq!(provider(installed, old), "small");
    assert_same(repaired, installed, "after the repair");
    assert_eq!(provider(adjusted, old), "large");
    for class in [old, new] {
        assert!(!find(in_use, "ClusterClass", class).is_null(), "{class}: {in_use:#?}");
    }
    assert_eq!(provider(upgraded, new), "large");
    assert_eq!(find(upgraded, "ClusterStackRelease", new)["status"]["ready"], true);
    assert!(upgraded.iter().all(|(key, _)| !key.2.starts_with(old)), "{upgraded:#?}");
    let left: Vec<&Key> = empty
        .iter()
        .map(|(key, _)| key)
        .filter(|key| !key.1.is_empty())
        .collect();
    assert_eq!(
        left,
        [&(
            "DockerClusterStackReleaseTemplate",
            "fleet".to_owned(),
            "images".to_owned()
        )]
    );
}

#[test]
fn whichever_call_is_refused_the_end_is_the_same() {
    every_call_may_fail(Fault::Refused);
}

#[test]
fn whichever_answer_is_lost_the_end_is_the_same() {
    every_call_may_fail(Fault::AnswerLost);
}

#[tokio::test]
async fn api_server_in_memory_answers_as_a_real_one() {
    let server = Server::new(&KINDS, None);
    server.apply(&namespace("fleet"));
    let answers = contract::answers(&server.client(), "fleet").await.expect("answers");
    let expected = contract::expected().expect("answers of a real API server");
    let differences = contract::differences(&answers, &expected);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
