//! Flags of the ways to the clusters that Clusters describe.

use operator_kit::workload::addresses::Addresses;

/// How the clusters are reached in which add-ons are; without effect with --cluster-addons=false.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkloadArgs {
    /// Most watches in one workload cluster, one of which is that of its CRDs. The kinds whose health matters are watched first, then the objects of others that
    /// a stage waits for, while it does; of what is beyond, kinds are listed every ten minutes, and such objects read every 15 seconds.
    #[arg(long, default_value_t = DEFAULT_WATCHES, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    pub(crate) workload_watches: u16,

    /// Requests a second to one workload cluster, on average; 0 means no limit of ours. They count for no other cluster, and not for --qps.
    #[arg(long, default_value_t = DEFAULT_QPS, value_name = "N")]
    pub(crate) workload_qps: u32,

    /// Requests to one workload cluster that may be made at once before --workload-qps holds them back.
    #[arg(long, default_value_t = DEFAULT_BURST, value_name = "N")]
    pub(crate) workload_burst: u32,

    /// Let workload clusters be on this machine itself (127.0.0.0/8 and ::1), for tests. Without it a kubeconfig with such an address is refused:
    /// whoever writes one could send the operator to services of its Pod and node.
    #[arg(long)]
    #[expect(clippy::doc_markdown, reason = "it is printed as it stands here")]
    pub(crate) allow_workload_loopback: bool,
}

const DEFAULT_WATCHES: u16 = 8;
const DEFAULT_QPS: u32 = 20;
const DEFAULT_BURST: u32 = 40;

impl WorkloadArgs {
    /// Where the API servers of workload clusters may be.
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses {
            loopback: self.allow_workload_loopback,
        }
    }

    /// The flags that were given, where that can be told.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--workload-watches", self.workload_watches != DEFAULT_WATCHES),
            ("--workload-qps", self.workload_qps != DEFAULT_QPS),
            ("--workload-burst", self.workload_burst != DEFAULT_BURST),
            ("--allow-workload-loopback", self.allow_workload_loopback),
        ];
        flags.into_iter().filter_map(|(flag, given)| given.then_some(flag))
    }
}
