//! Command line and environment: beside the flags that all operators share, the only place of the operator that reads either.

mod clouds;
mod jobs;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use operator_kit::flags::{Address, LeaseArgs, LogArgs, RequestArgs, ScopeArgs, address, duration};
use release::http::Network;
use sourcing::{DownloadArgs, UsualArgs};

use self::clouds::CloudArgs;
#[cfg(not(feature = "openstack"))]
pub(crate) use self::clouds::Nowhere;
use self::jobs::JobArgs;
pub(crate) use self::worker::WorkerArgs;
use crate::registry::{Given, Registry};

/// Brings the node images of cluster stacks into clouds, and keeps them there as they must be.
///
/// Watches the release objects of its providers, reads which images a release needs, makes one object for each of them, and brings each image into its
/// cloud: once, whole, verified, and under its name only then. What it made it removes when nobody needs it. Flags of the Go
/// cluster-stack-provider-openstack are accepted where they have a meaning here.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "provider-operator",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "EXAMPLES:\n  Images into OpenStack, releases from a directory, outside of a cluster:\n    \
provider-operator --kubeconfig ~/.kube/config --leader-elect=false --local --release-dir ./releases\n\n  \
Images into a directory, for which no cloud is needed, and from there to machines:\n    \
provider-operator --providers filestore --filestore default=/srv/images --serve-filestore :8088 --local --release-dir ./releases\n\n  \
An object FileStoreNodeImageRelease with `store: default` has its image as /srv/images/NAME then.\n  \
Which cloud an image of OpenStack comes into says the Secret of its object: clouds.yaml, and cacert if need be."
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Args,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Work until told to stop. The same as no command.
    Run(Box<Args>),
    /// Send one image and end: what the containers of Jobs run.
    Worker(WorkerArgs),
    /// List the images of this installation in clouds that no object is for any more, and delete them where asked to.
    ///
    /// Looks into the clouds that image objects name, and takes the flags that the operator runs with. Images younger than an hour are not listed: somebody
    /// may be about to write what they are for. Exits with 0 when no orphan is left, with 3 when there are some, and with 1 when not everything could be looked at
    /// or deleted; the list is on standard output, everything else on standard error.
    Orphans(Box<OrphansArgs>),
}

/// What is done about orphans.
#[derive(Clone, Debug, clap::Args)]
struct OrphansArgs {
    /// Delete those that were never verified; with --sweep-verified the others too. Without it nothing is changed.
    #[arg(long)]
    delete: bool,

    #[command(flatten)]
    run: Args,
}

/// What the process is for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// To work until told to stop.
    Run(Box<Args>),
    /// To list what nobody needs, and to delete it where asked to.
    Orphans(Box<Args>, Listing),
    /// To do what one Job is for.
    Worker(WorkerArgs),
}

impl CommandLine {
    /// What is to be run.
    pub(crate) fn asked(self) -> Asked {
        match self.command {
            Some(Command::Run(args)) => Asked::Run(args),
            Some(Command::Orphans(orphans)) => {
                let OrphansArgs { delete, run } = *orphans;
                Asked::Orphans(Box::new(run), Listing { is_deleting: delete })
            }
            Some(Command::Worker(args)) => Asked::Worker(args),
            None => Asked::Run(Box::new(self.run)),
        }
    }

    /// What the operator works with, where it is to work.
    #[cfg(test)]
    pub(crate) fn args(self) -> Args {
        match self.asked() {
            Asked::Run(args) | Asked::Orphans(args, _) => *args,
            Asked::Worker(args) => panic!("no operator: {args:?}"),
        }
    }
}

/// Orphans are to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// And those that may go are to be deleted.
    pub(crate) is_deleting: bool,
}

/// What the operator works with.
#[derive(Clone, Debug, clap::Args)]
// One cache belongs to one operator: each knows only what its own releases need.
#[command(
    mut_arg("cache_dir", |flag| flag.default_value("/tmp/stackwright-provider")),
    mut_arg("leader_elect_name", |flag| flag.help("Name of the Lease; PROVIDERS.provider.clusterstack.x-k8s.io when empty")),
)]
pub(crate) struct Args {
    /// Kubeconfig file; without it $KUBECONFIG or ~/.kube/config, or else the service account of the Pod.
    #[arg(long, env = "STACKWRIGHT_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The providers to serve: one or several of openstack, filestore and docker, such as filestore,openstack. All replicas need the same ones.
    #[arg(long, default_value = "openstack", value_delimiter = ',', value_name = "NAMES")]
    pub(crate) providers: Vec<String>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) usual: UsualArgs,

    #[command(flatten)]
    pub(crate) download: DownloadArgs,

    #[command(flatten)]
    pub(crate) clouds: CloudArgs,

    #[command(flatten)]
    pub(crate) jobs: JobArgs,

    /// How many objects are worked on at once. Waiting for clouds does not count: however slow they are, this need not be more.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) concurrency: u16,

    #[command(flatten)]
    pub(crate) requests: RequestArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// How long transfers may go on once the process was asked to stop. What is cut off is gone on with by the next process.
    #[arg(long, default_value = "20s", value_parser = duration, value_name = "DURATION")]
    pub(crate) drain: Duration,

    /// Address of /metrics (images by phase, transfers, requests to the API server, memory, processor time); "0" serves none.
    #[arg(long, default_value = ":8080", value_parser = address, value_name = "ADDRESS")]
    pub(crate) metrics_bind_address: Address,

    /// Address of /healthz and /readyz; "0" serves none.
    #[arg(long, default_value = ":9440", value_parser = address, value_name = "ADDRESS")]
    pub(crate) health_probe_bind_address: Address,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// Store every decision about an image (what was observed, when, and the step) as JSON files in this folder, for replay.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

impl Args {
    /// What flags ask for together and cannot be had, in words for whoever set them.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.usual.source().map_err(|error| error.to_string())?;
        self.check_clouds()?;
        self.jobs.check(&self.registry(None)?)
    }

    /// The same of what is about clouds alone.
    pub(crate) fn check_clouds(&self) -> Result<(), String> {
        self.clouds.check(&self.registry(None)?)
    }

    /// The providers that are to be served. Without a network they can be named, and ask nobody.
    #[cfg_attr(
        not(feature = "docker"),
        expect(unused_variables, reason = "the others connect by themselves")
    )]
    pub(crate) fn registry(&self, network: Option<&Network>) -> Result<Registry, String> {
        if self.providers.iter().all(String::is_empty) {
            return Err(format!("--providers names none; there are {}", crate::kinds::names()));
        }
        let given = Given {
            #[cfg(feature = "filestore")]
            filestores: self.clouds.filestores()?,
            #[cfg(feature = "docker")]
            registries: crate::registries::WebRegistries::of(network),
        };
        Registry::of(&self.providers, given).map_err(|error| error.to_string())
    }

    /// The Lease by which replicas that serve the same providers never work at once.
    pub(crate) fn lease_name(&self) -> String {
        if !self.lease.leader_elect_name.is_empty() {
            return self.lease.leader_elect_name.clone();
        }
        let mut providers = self.providers.clone();
        providers.sort();
        providers.dedup();
        format!("{}.provider.clusterstack.x-k8s.io", providers.join("-"))
    }
}

#[cfg(test)]
mod tests;
