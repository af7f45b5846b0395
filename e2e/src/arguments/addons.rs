//! What `bench addons` can be told.

use clap::{Args, ValueEnum};

use super::BenchArguments;

#[derive(Args, Debug)]
pub(crate) struct AddonsArguments {
    /// Which measures; all without this. What one of them needs of the others is done in any case
    #[arg(value_enum, value_name = "MEASURE", conflicts_with = "record")]
    pub(crate) measures: Vec<AddonsMeasure>,
    /// Clusters, each of which gets six objects of six kinds
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub(crate) clusters: u16,
    /// Real API servers that are the workload clusters; the objects of several clusters stand side by side in each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) servers: u16,
    /// How long to look at them while nothing is to be done
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Further clusters, whose API servers answer for the first time one after the other
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) samples: u32,
    /// Connections of the raw writer to each API server
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: u16,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

/// What `bench addons` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddonsMeasure {
    /// From new Clusters to complete add-ons, beside a raw writer that sends the same bodies
    Install,
    /// Complete add-ons: what is written, watched and held while nothing is to be done
    Idle,
    /// From another class of all Clusters to complete add-ons of its release, beside the raw writer
    Upgrade,
    /// Calls of lifecycle hooks while all Clusters get the class back that they had
    Hooks,
    /// From an API server that answers for the first time to the first object in it
    Reaction,
}
