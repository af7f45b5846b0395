//! Flags of the ways to workload clusters.

use operator_kit::workload::addresses::Addresses;

/// How workload clusters are reached; of use with --cluster-addons only.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkloadArgs {
    /// Requests a second to one workload cluster that are sustained; 0 is no limit. None of them counts for another cluster, or for --qps.
    #[arg(long, default_value_t = 20.0, value_name = "RATE")]
    pub(crate) workload_qps: f64,

    /// Requests to one workload cluster that may go at once before --workload-qps takes hold.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub(crate) workload_burst: u32,

    /// Reach workload clusters on the machine of the operator itself, as tests have them. Whoever writes kubeconfigs may send the operator to any port there.
    #[arg(long)]
    pub(crate) allow_workload_loopback: bool,
}

impl WorkloadArgs {
    /// Where workload clusters may be.
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses {
            loopback: self.allow_workload_loopback,
        }
    }

    /// The flags that were given, where that can be told.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.allow_workload_loopback
            .then_some("--allow-workload-loopback")
            .into_iter()
    }
}
