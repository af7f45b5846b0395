//! Command line and environment: beside the flags that all operators share, the only place of the operator that reads either.

mod hooks;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};
use operator_kit::flags::{Address, LeaseArgs, LogArgs, RequestArgs, ScopeArgs, address, bytes, duration};
use operator_kit::telemetry::Collector;
use sourcing::{DownloadArgs, UsualArgs};

pub(crate) use self::workloads::WorkloadArgs;

use self::hooks::HookArgs;
use crate::clusters::Keeps;

/// Turns releases of cluster stacks into usable ClusterClasses, and keeps them so.
///
/// Watches ClusterStack and ClusterStackRelease objects, finds releases in the source, renders their class charts in-process, applies
/// the objects with status per object, follows upgrades, repairs drift and cleans up. Brings the add-ons of a release to the Clusters of its class,
/// stage by stage, and answers the lifecycle hooks of Cluster API. Flags and environment variables of the Go cluster-stack-operator are accepted
/// where they have a meaning here.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "core-operator",
    version,
    after_help = "EXAMPLES:\n  Releases from a directory, outside of a cluster:\n    core-operator --kubeconfig ~/.kube/config --leader-elect=false --local --release-dir ./releases\n\n  \
The directory holds one folder per release: ./releases/cluster-stacks/docker-harbor-1-34-v1/metadata.yaml …\n  \
A release is taken when nobody has written to its folder for a moment, and its bytes are final then.\n  \
Whoever copies slowly gives the folder a name that begins with a dot and renames it when it is complete.",
    // The Lease by which this and the Go operator never work at once.
    mut_arg("leader_elect_name", |flag| flag.default_value("clusterstack.x-k8s.io")),
)]
pub(crate) struct Args {
    /// Kubeconfig file; without it $KUBECONFIG or ~/.kube/config, or else the service account of the Pod.
    #[arg(long, env = "STACKWRIGHT_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) usual: UsualArgs,

    /// How often the folder is looked at even when the file system reports no change.
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub(crate) rescan_interval: Duration,

    #[command(flatten)]
    pub(crate) download: DownloadArgs,

    /// Most bytes of memory for what charts were rendered to, such as 512Ki or 16Mi; 0 keeps nothing. Clusters whose add-ons have equal values share
    /// it, and what is not kept is rendered again before it is written.
    #[arg(long, default_value = "16Mi", value_parser = bytes, value_name = "BYTES")]
    pub(crate) render_cache_max_bytes: u64,

    /// A trust root of sigstore in JSON, for stacks that trust an identity and name no Secret with a trust root. Read anew every minute.
    #[arg(long, value_name = "FILE")]
    pub(crate) trusted_root_file: Option<PathBuf>,

    /// How many releases, stacks and add-ons of clusters are worked on at once, unless one of the flags below says otherwise.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) concurrency: u16,

    /// How many ClusterStacks are worked on at once.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) clusterstack_concurrency: Option<u16>,

    /// How many ClusterStackReleases are worked on at once.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) clusterstackrelease_concurrency: Option<u16>,

    /// How many ClusterAddons are worked on at once; without effect with --cluster-addons=false.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) clusteraddon_concurrency: Option<u16>,

    /// Look after the add-ons of Clusters whose class is of a cluster stack: apply them stage by stage in the workload clusters, keep them so, and answer the
    /// lifecycle hooks of Cluster API. With false nobody does.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) cluster_addons: bool,

    #[command(flatten)]
    pub(crate) requests: RequestArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// Divide the work into so many shards, by namespace and stack, each with a Lease, which the replicas share; with 1 one of them does everything. All
    /// replicas need the same number: those with another one wait until the last with the old one has ended.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,

    /// Address of /metrics (stacks, releases and add-ons by readiness, requests to the API server, memory, processor time); "0" serves none.
    #[arg(long, default_value = ":8080", value_parser = address, value_name = "ADDRESS")]
    pub(crate) metrics_bind_address: Address,

    /// Address of /healthz and /readyz; "0" serves none.
    #[arg(long, default_value = ":9440", value_parser = address, value_name = "ADDRESS")]
    pub(crate) health_probe_bind_address: Address,

    /// Port of the validating webhooks (HTTPS, on every address); 0 lets the system choose.
    #[arg(long, default_value_t = crds::webhooks::PORT, value_name = "PORT")]
    pub(crate) webhook_port: u16,

    /// Folder with tls.crt and tls.key of the webhooks, read anew when they change. Without it /tmp/k8s-webhook-server/serving-certs is used if
    /// it is there at the start; webhooks are not served otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) webhook_cert_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// Send spans of reconciles, objects and requests to this OpenTelemetry collector (OTLP over HTTP), such as
    /// `http://collector.observability:4318`; none are made when empty. The other OTEL_* variables of exporters and samplers count too.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true, default_value = "", value_parser = collector, value_name = "URL")]
    pub(crate) otlp_endpoint: CollectorAddress,

    /// A bug to plant.
    #[cfg(feature = "mutants")]
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) mutant: Option<operator_kit::mutants::Mutant>,

    /// Store every decision (what was observed, when, and the plan) as JSON files in this folder, for replay.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

impl Args {
    /// What is kept of Clusters for that.
    pub(crate) fn keeps(&self) -> Keeps {
        if self.cluster_addons {
            Keeps::Facts
        } else {
            Keeps::Classes
        }
    }

    /// What flags ask for together and cannot be had, in words for whoever set them.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.usual.source().map_err(|error| error.to_string())?;
        if self.shards > 1 && !self.lease.leader_elect {
            return Err("--shards needs --leader-elect: replicas share shards by Leases".to_owned());
        }
        Ok(())
    }

    /// The flags that were given and do nothing, for a word in the log.
    pub(crate) fn without_effect(&self) -> Vec<&'static str> {
        if self.cluster_addons {
            return Vec::new();
        }
        let concurrency = self.clusteraddon_concurrency.map(|_| "--clusteraddon-concurrency");
        let others = self.hooks.given().chain(self.workloads.given());
        concurrency.into_iter().chain(others).collect()
    }
}

/// Where the Go operator has the certificate of its webhooks.
pub(crate) const DEFAULT_WEBHOOK_CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";
/// The same of its hook server.
pub(crate) const DEFAULT_HOOK_CERT_DIR: &str = "/tmp/k8s-hook-server/serving-certs";

/// Where spans go, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectorAddress(pub(crate) Option<Collector>);

fn collector(text: &str) -> Result<CollectorAddress, String> {
    if text.is_empty() {
        return Ok(CollectorAddress(None));
    }
    let collector = Collector::parse(text).map_err(|error| error.to_string())?;
    Ok(CollectorAddress(Some(collector)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use operator_kit::flags::check_reference;
    use sourcing::UsualSource;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_flags_of_the_go_operator_are_accepted() {
        let args = Args::try_parse_from([
            "core-operator",
            "--leader-elect=true",
            "--log-level=info",
            "--metrics-bind-address=127.0.0.1:8080",
            "--health-probe-bind-address=:9440",
            "--clusterstack-concurrency=2",
            "--clusterstackrelease-concurrency=3",
            "--qps=50",
            "--burst=100",
            "--local",
            "--release-dir=/releases",
            "--watch-filter=blue",
            "--namespace=fleet",
            "--leader-elect-namespace=cso-system",
            "--clusteraddon-concurrency=1",
            "--hook-port=9442",
            "--hook-cert-dir=/tmp/k8s-hook-server/serving-certs/",
        ])
        .expect("flags of the contract");
        assert_eq!(args.without_effect(), Vec::<&str>::new());
        assert!(args.cluster_addons);
        assert_eq!(args.clusteraddon_concurrency, Some(1));
        assert_eq!(args.hooks.hook_port, 9442);
        assert!(args.lease.leader_elect);
        assert!(matches!(args.usual.source(), Ok(UsualSource::Directory)));
        assert_eq!(
            (args.clusterstack_concurrency, args.clusterstackrelease_concurrency),
            (Some(2), Some(3))
        );
        assert_eq!(
            args.health_probe_bind_address.0.map(|address| address.port()),
            Some(9440)
        );
    }

    #[test]
    fn what_the_go_operator_does_without_flags_is_so_here() {
        let args = Args::try_parse_from(["core-operator"]).expect("no flags");
        let port = |address: Address| address.0.map(|address| address.port());
        assert_eq!(port(args.metrics_bind_address), Some(8080));
        assert_eq!(port(args.health_probe_bind_address), Some(9440));
        assert_eq!(args.webhook_port, 9443);
        assert_eq!(DEFAULT_WEBHOOK_CERT_DIR, "/tmp/k8s-webhook-server/serving-certs");
        // Its folder of releases, and the Lease by which the two never work at once.
        assert_eq!(args.usual.release_dir(), Path::new("/tmp/downloads"));
        assert_eq!(
            (args.lease.leader_elect, args.lease.leader_elect_name.as_str()),
            (true, "clusterstack.x-k8s.io")
        );
        assert_eq!(
            (args.scope.namespace.as_str(), args.scope.watch_filter.as_str()),
            ("", "")
        );
        assert_eq!(args.log.log_level, "info");
        assert_eq!((args.hooks.hook_port, args.hooks.hook_set.chosen()), (9442, None));
        assert_eq!(DEFAULT_HOOK_CERT_DIR, "/tmp/k8s-hook-server/serving-certs");
        assert_eq!(args.without_effect(), Vec::<&str>::new());
        assert!(args.cluster_addons);
    }

    #[test]
    fn the_reference_of_the_flags_is_the_generated_one() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/core-operator.md");
        let checked = check_reference(Args::command(), &file);
        assert_eq!(checked.map_err(|error| error.to_string()), Ok(()));
    }

    /// The flags that do nothing where nobody looks after add-ons, and all do something elsewhere.
    fn without_effect_and_without_addons(given: &[&str]) -> Vec<&'static str> {
        let parsed = |flags: &[&str]| Args::try_parse_from(flags).expect("flags").without_effect();
        assert_eq!(parsed(given), Vec::<&str>::new());
        parsed(&[given, &["--cluster-addons=false"]].concat())
    }

    #[test]
    fn flags_of_the_hook_server_have_effect_with_the_add_ons_of_clusters() {
        let given = [
            "core-operator",
            "--hook-cert-dir=/certs",
            "--hook-set=v1.10",
            "--hook-port=1",
            "--clusteraddon-concurrency=1",
        ];
        let flags = [
            "--clusteraddon-concurrency",
            "--hook-port",
            "--hook-cert-dir",
            "--hook-set",
        ];
        assert_eq!(without_effect_and_without_addons(&given), flags);
    }

    #[test]
    fn flags_of_the_ways_to_clusters_have_effect_with_their_add_ons() {
        let given = [
            "core-operator",
            "--workload-watches=4",
            "--workload-qps=0",
            "--workload-burst=1",
            "--allow-workload-loopback",
        ];
        let with = Args::try_parse_from(given).expect("flags");
        assert!(with.workloads.addresses().loopback);
        let flags = [
            "--workload-watches",
            "--workload-qps",
            "--workload-burst",
            "--allow-workload-loopback",
        ];
        assert_eq!(without_effect_and_without_addons(&given), flags);
        let usual = Args::try_parse_from(["core-operator"]).expect("no flags");
        assert!(!usual.workloads.addresses().loopback);
    }

    #[test]
    fn shards_without_leases_are_refused() {
        let check = |flags: &[&str]| {
            let flags = ["core-operator", "--local"].iter().chain(flags);
            Args::try_parse_from(flags).expect("flags").check()
        };
        assert_eq!(check(&["--leader-elect=false"]), Ok(()));
        assert_eq!(check(&["--shards=6"]), Ok(()));
        let refused = check(&["--shards=6", "--leader-elect=false"]).expect_err("refused");
        assert!(refused.contains("--leader-elect"), "{refused}");
    }

    #[test]
    fn bad_values_say_how_to_write_good_ones() {
        let message = |flag: &str| {
            Args::try_parse_from(["core-operator", flag])
                .expect_err("refused")
                .to_string()
        };
        assert!(message("--lease-duration=soon").contains("15s, 500ms or 1m30s"));
        assert!(message("--metrics-bind-address=eighty").contains(":8080 or 127.0.0.1:8080"));
        assert!(message("--cache-max-bytes=2GB").contains("512Mi or 2Gi"));
    }
}
