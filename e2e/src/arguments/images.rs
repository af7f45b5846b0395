//! What `bench images` can be told.

use clap::{Args, ValueEnum};

use super::BenchArguments;

#[derive(Args, Debug)]
pub(crate) struct ImagesArguments {
    /// Which measures; all without this
    #[arg(value_enum, value_name = "MEASURE", conflicts_with = "record")]
    pub(crate) measures: Vec<ImagesMeasure>,
    /// Size of the image that is uploaded
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub(crate) mebibytes: u32,
    /// How often it is uploaded
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) rounds: u32,
    /// Images at once
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(crate) images: u16,
    /// Size of each of them
    #[arg(long, value_name = "MIB", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) each: u32,
    /// Size of the image whose source breaks every 3 MiB
    // A host is asked a hundred times at once, and five times a second from then on: with more than 300 MiB that would be measured.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(4..=4000))]
    pub(crate) broken: u32,
    /// How often a transfer is given up
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) cancels: u32,
    /// Images that are ready while nothing is to be done
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) idle_images: u32,
    /// How long to look at them
    #[arg(long, value_name = "SECONDS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    #[command(flatten)]
    pub(crate) common: BenchArguments,
}

/// What `bench images` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagesMeasure {
    /// One large image beside curl, and the memory that it takes
    Upload,
    /// Many at once, and the memory that they take
    Many,
    /// A source that breaks every 3 MiB beside one that does not
    Broken,
    /// From the end of the wish for an image until nothing of it is left
    Cancel,
    /// Ready images: what is written and asked while nothing is to be done
    Idle,
}
