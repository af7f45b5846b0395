//! The command line of `lab`, with the help that teaches it.
//!
//! `cargo xtask` compiles this file too: it shows help and refuses mistakes before it builds anything. So there is nothing here but clap,
//! and what is looked at is there before any build.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};

// The path is named because this file is compiled in two places.
#[path = "arguments/addons.rs"]
pub(crate) mod addons;
#[path = "arguments/images.rs"]
pub(crate) mod images;

use self::{addons::AddonsArguments, images::ImagesArguments};

/// What `control-plane` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ControlPlaneCommand {
    /// Start one in the background and print its kubeconfig; when it already runs, only print
    ///
    /// It takes some four seconds, half a gigabyte of memory and one port of the loopback interface, and stays until
    /// `down`, or until the machine stops. Its data goes with it.
    Up {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        furnishing: Furnishing,
    },
    /// Stop it and remove its data
    Down(Place),
    /// Print the path of its kubeconfig: export KUBECONFIG=$(cargo xtask control-plane kubeconfig)
    Kubeconfig(Place),
    /// Ask it with the kubectl that was built with it: cargo xtask control-plane kubectl get namespaces
    Kubectl {
        #[command(flatten)]
        place: Place,
        /// What kubectl is to do
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<OsString>,
    },
    /// Run one in the foreground until SIGTERM or Ctrl-C
    Serve {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        furnishing: Furnishing,
    },
}

/// What it is to have beyond the plain API.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Furnishing {
    /// Install the CRDs of cluster stacks and of Cluster API 1.10 with its docker and OpenStack providers
    #[arg(long)]
    pub(crate) crds: bool,
    /// Run the scheduler and the controllers of Deployments, Jobs and their like too
    #[arg(long)]
    pub(crate) workloads: bool,
    /// Have the audit log show what was sent, too, as `bench` needs it
    #[arg(long)]
    pub(crate) audit_bodies: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Place {
    /// The folder of its data, logs, keys and kubeconfig; one control plane for each
    #[arg(long, default_value_os_t = default_folder())]
    pub(crate) dir: PathBuf,
}

/// In the checkout that this was compiled in.
fn default_folder() -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    room.parent().unwrap_or(room).join(".lab/control-plane")
}

/// Exit codes: 0 measured, whatever the numbers are; 1 something failed; 2 wrong arguments; 130 interrupted.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Bring node images into a real Glance: how fast beside curl, in how much memory, from a source that breaks, until it is quiet
    #[command(after_help = "Examples:\n  cargo xtask bench images --record\n  \
                            cargo xtask bench images upload --mebibytes 64 --rounds 2     one of the measures, in small\n  \
                            cargo xtask bench images idle --idle-images 10 --seconds 60")]
    Images(ImagesArguments),
    /// Bring add-ons into a fleet of clusters: how fast beside a raw writer, how soon, at what cost while nothing is to be done
    #[command(after_help = "Examples:\n  cargo xtask bench addons --record\n  \
                            cargo xtask bench addons --clusters 20 --samples 10 --seconds 20     a first look, in a few minutes\n  \
                            cargo xtask bench addons install upgrade --clusters 50               some of the measures")]
    Addons(AddonsArguments),
    /// All of the following, one after the other
    #[command(
        after_help = "Examples:\n  cargo xtask bench operator --releases 100    a first look, in a few minutes\n  \
                            cargo xtask bench operator --record          the tables of docs/benchmarks.md, in half an hour"
    )]
    Operator(OperatorArguments),
    /// Bring releases of a class and templates from a directory to ready, beside a raw writer that sends the same bodies
    #[command(after_help = "Examples:\n  cargo xtask bench converge --record\n  \
                            cargo xtask bench converge --releases 200 --stacks 4 --objects 7")]
    Converge(ConvergeArguments),
    /// Look for a minute at an operator that has nothing to do, while fifty stacks have it poll GitHub
    #[command(after_help = "Example:\n  cargo xtask bench idle --releases 500 --seconds 300")]
    Idle(IdleArguments),
    /// Look at the memory of an operator whose releases came from every kind of source, with webhooks on
    #[command(after_help = "Example:\n  cargo xtask bench memory --releases 40")]
    Memory(MemoryArguments),
    /// Publish releases on GitHub, one at a time, and see when the last object of each is there
    #[command(after_help = "Example:\n  cargo xtask bench reaction --samples 10")]
    Reaction(ReactionArguments),
    /// End an operator, by SIGTERM and by SIGKILL, and see when the next one is right about what has changed meanwhile
    #[command(after_help = "Example:\n  cargo xtask bench restart --releases 100")]
    Restart(RestartArguments),
    /// Download and verify large releases, beside curl and sha256sum
    #[command(after_help = "Example:\n  cargo xtask bench download --mebibytes 16 --rounds 3")]
    Download(DownloadArguments),
}

/// Where a benchmark says what it found, besides standard output.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Output {
    /// Write the same as JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write it into docs/benchmarks.md and docs/benchmarks/ of this checkout
    #[arg(long)]
    pub(crate) record: bool,
}

/// What every benchmark takes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    pub(crate) output: Output,
    /// A control plane that is already there, from `cargo xtask control-plane up --crds --audit-bodies`
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct OperatorArguments {
    /// Of everything at most so much, to try it out: so many releases, a third of the time, a tenth of the samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub(crate) releases: Option<u32>,
    /// Write it into docs/benchmarks.md and docs/benchmarks/ of this checkout
    #[arg(long)]
    pub(crate) record: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ConvergeArguments {
    /// Releases in all; without this and --stacks: 100, 300, 1,000 and 3,000, 50 in a stack, and 1,000 in one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) releases: Option<u32>,
    /// Stacks that the releases are spread over [default: one for each 50 releases]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) stacks: Option<u32>,
    /// Objects of each release: a class and templates
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(4..=200))]
    pub(crate) objects: u32,
    /// Connections of the raw writer
    // Twice what the operator uses, so that the raw writer never waits for a connection that the operator would have had.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: u16,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
pub(crate) struct IdleArguments {
    /// Ready releases, of which up to 50 and at most half came from GitHub, each in a stack of its own; without this: 100, then 1,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) releases: Option<u32>,
    /// How long to look
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
pub(crate) struct MemoryArguments {
    /// Ready releases, a quarter from each kind of source
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    pub(crate) releases: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ReactionArguments {
    /// Releases that are published
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) samples: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RestartArguments {
    /// Ready releases, 50 in a stack
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) releases: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
pub(crate) struct DownloadArguments {
    /// Size of each release; an archive may have 100
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=90))]
    pub(crate) mebibytes: u32,
    /// How often, each time with other bytes
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The operator looks after stacks whose releases come and go, while requests meet faults. One line for each \
                        interval tells what it holds; at the end, how much that grows in an hour. The first quarter of the time \
                        is not judged: what is remembered fills then.\n\nExit codes: 0 nothing grows, 1 something does or \
                        something failed, 2 wrong arguments, 3 too few samples to say, 130 it was interrupted.\n\nExamples:\n  \
                        cargo xtask soak --minutes 2 --stacks 10\n  cargo xtask soak --minutes 120"
)]
pub(crate) struct SoakArguments {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) minutes: u32,
    /// How many stacks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) stacks: u16,
    /// Which weather, and what happens to which stack
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Time between two lines
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) interval: u32,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all went well, 1 something failed, 2 wrong arguments, 130 it was interrupted.\n\nExamples:\n  \
                        cargo xtask demo                              a ClusterStack, then a Cluster with add-ons: about two minutes\n  \
                        cargo xtask demo --part clusters              the Cluster alone\n  \
                        cargo xtask demo --provider filestore         with node images, which come into a directory\n  \
                        cargo xtask demo --provider openstack         with node images, which come into a Glance of its own\n  \
                        cargo xtask demo --provider filestore | cat   the same in plain lines, at full speed"
)]
pub(crate) struct DemoArguments {
    /// Where node images come to: the releases of the demo have one then, and a second operator brings it there
    ///
    /// The image comes from a slow web server, so that there is something to see: how much of it is there, how fast it comes and how long
    /// the rest takes. It goes on where it was when the server breaks off, and stops at once when nobody wants it any more.
    #[arg(long, value_enum, default_value_t = DemoProvider::None, conflicts_with = "releases")]
    pub(crate) provider: DemoProvider,
    /// Play this part alone
    ///
    /// With --provider, --releases or --kubeconfig the first part is all there is: the second one has clusters and releases of its own.
    #[arg(long, value_enum, conflicts_with_all = ["provider", "releases", "kubeconfig"])]
    pub(crate) part: Option<DemoPart>,
    /// Play with the newest releases of one stack in this directory instead of our own; it is only read
    ///
    /// Its folders, or those in its `cluster-stacks/`, are named after their tags, as in docker-harbor-1-34-v1. Of several
    /// stacks the one with the most releases is taken.
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub(crate) releases: Option<PathBuf>,
    /// Play in a cluster that is already there, and remove from it what the demo added
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The namespace of the demo, which must not be there yet
    #[arg(long, value_name = "NAME", default_value = "stackwright-demo", value_parser = namespace)]
    pub(crate) namespace: String,
    /// Stop before the last act of each part, to look around by hand; Ctrl-C goes on
    #[arg(long)]
    pub(crate) keep: bool,
    /// How long to wait before and after each deed for those who read along; not at all without a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=60))]
    pub(crate) pause: u64,
}

impl DemoArguments {
    /// Whether the second part is played.
    pub(crate) fn plays_clusters(&self) -> bool {
        match self.part {
            Some(part) => part == DemoPart::Clusters,
            None => self.provider == DemoProvider::None && self.releases.is_none() && self.kubeconfig.is_none(),
        }
    }
}

/// Parts of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPart {
    /// The life of one ClusterStack
    Stacks,
    /// The life of one Cluster and its add-ons, on the real Cluster API
    Clusters,
}

/// Places for node images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoProvider {
    /// Nowhere: the releases need none
    None,
    /// A directory of the demo; it needs nothing else
    Filestore,
    /// A real Keystone and Glance, which the demo starts; they need Python 3.11
    Openstack,
}

#[derive(Args, Debug)]
#[command(
    after_help = "A seed decides which requests meet which fault, not how tasks and clocks interleave: run the seed of a failure several \
                        times.\n\nExit codes: 0 every run held (with --mutant: one did not), 1 one did not (with --mutant: \
                        all held), 2 wrong arguments, 130 it was interrupted.\n\nExamples:\n  \
                        cargo xtask storm --seeds 500\n  cargo xtask storm --journey upgrade --seed 17 --times 10"
)]
pub(crate) struct StormArguments {
    /// Which way to go
    #[arg(long, value_enum, default_value_t = StormJourney::All)]
    pub(crate) journey: StormJourney,
    /// How many seeds, counted from 0
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seeds: u64,
    /// Only this seed
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,
    /// How often to run each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) times: u64,
    /// Plant this bug in the operator, and end well when the storm finds it
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) mutant: Option<Mutant>,
    /// Runs at a time
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
}

/// Bugs that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mutant {
    /// A status is written whatever was written since it was read
    StatusWithoutVersion,
    /// The inventory is written after the objects that it lists
    LateInventory,
    /// What could not be read is taken for gone
    UnreadIsGone,
    /// Before the Clusters are known, nothing is in use, and the API server is not asked
    UnlistedIsUnused,
}

/// The ways, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StormJourney {
    /// Two releases become usable
    Install,
    /// A new release takes the place of the old one, whose objects are pruned
    Upgrade,
    /// Objects are deleted, changed and robbed of their labels, and put back
    Repair,
    /// The stack is deleted, and what a cluster uses goes after the cluster
    Remove,
    /// A release waits for its provider, whose template changes
    Provider,
    /// Two processes share stacks by Lease, and a source fails
    Shared,
    /// A cluster gets its add-ons, goes to the next release, and is deleted
    Addons,
    /// Subscribe, upgrade, drop a version, delete
    Life,
    /// Each of them
    All,
}

#[derive(Args, Debug)]
#[command(
    after_help = "What it does: it makes one release object of the kind, as the core operator would, and watches what the operator under test does \
                        with it until it is ready, at rest, disturbed and deleted; then two more that are deleted early. The operator must run \
                        already, look after the namespace, and be able to get the release from where it gets releases. What the kind needs besides, such as \
                        a Secret with credentials, must be in the namespace, which --namespace names then.\n\nNothing of it stays on the cluster, \
                        also after Ctrl-C; in a cloud, the operator under test deletes what it made. The contract, row by row: \
                        docs/contract/provider.md.\n\nExit codes: 0 no MUST failed, 1 one did or the test could not be made, 2 wrong arguments, \
                        130 it was interrupted.\n\nExamples:\n  \
                        cargo xtask conformance-provider --kubeconfig ~/.kube/config --kind AcmeClusterStackRelease \\\n      \
                        --release acme-scs-1-34-v1\n  \
                        cargo xtask conformance-provider --kubeconfig ~/.kube/config --kind OpenStackClusterStackRelease \\\n      \
                        --release openstack-scs-1-34-v1 --other-release openstack-scs-1-34-v2 --namespace images \\\n      \
                        --spec identity.yaml --break 'openstack image set --deactivate ubuntu-capi-image-v1.34.1' --json report.json"
)]
pub(crate) struct ConformanceProviderArguments {
    /// The cluster
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) kubeconfig: PathBuf,
    /// Kind of the release objects of the operator under test
    #[arg(long, value_name = "KIND", value_parser = release_kind)]
    pub(crate) kind: String,
    /// A release that the operator can get, such as acme-scs-1-34-v1: the object is named like it
    #[arg(long, value_name = "TAG", value_parser = object_name)]
    pub(crate) release: String,
    /// A second one of the same stack; if it needs the same image, that image must be shared
    ///
    /// Without this, the second object is named like a release that nobody has.
    #[arg(long, value_name = "TAG", value_parser = object_name)]
    pub(crate) other_release: Option<String>,
    /// Where to make the objects: a namespace that is there; without this, one is made and removed
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// YAML or JSON: the spec of the release objects, as `spec.template.spec` of a template has it; empty without this
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) spec: Option<PathBuf>,
    /// A command for sh that makes an image unusable behind the operator's back; readiness must go back then
    ///
    /// It finds KUBECONFIG, NAMESPACE and RELEASE in its environment. Without it, that row is not shown.
    #[arg(long = "break", value_name = "CMD")]
    pub(crate) breaking: Option<String>,
    /// Write the rows as JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Longest time until a release is ready, or gone: as long as an image takes
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
    /// How long nothing may be written when nothing happens; the contract says 60
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) rest: u64,
}

/// A kind as the contract has it.
fn release_kind(text: &str) -> Result<String, &'static str> {
    let prefix = text.strip_suffix("ClusterStackRelease").unwrap_or_default();
    let is_name = prefix.starts_with(|letter: char| letter.is_ascii_uppercase())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("the kind of a provider's release objects is a name and ClusterStackRelease, as in AcmeClusterStackRelease")
    }
}

/// A DNS subdomain, RFC 1123.
fn object_name(text: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().last()];
        ends.iter().all(|end| end.is_some_and(is_plain)) && label.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    if text.len() <= 253 && text.split('.').all(is_label) {
        Ok(text.to_owned())
    } else {
        Err("a tag has small letters, digits, - and ., as in acme-scs-1-34-v1")
    }
}

fn directory(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_dir() {
        Ok(path)
    } else if path.exists() {
        Err("it is no directory")
    } else {
        Err("there is no such directory")
    }
}

fn file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_dir() {
        Err("it is a directory")
    } else if path.exists() {
        Ok(path)
    } else {
        Err("there is no such file")
    }
}

/// A DNS label, RFC 1123.
fn namespace(text: &str) -> Result<String, &'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    if text.len() <= 63
        && ends.iter().all(|end| end.is_some_and(plain))
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
    {
        Ok(text.to_owned())
    } else {
        Err("a namespace has up to 63 small letters, digits and -, the last not at its ends")
    }
}
