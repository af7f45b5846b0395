//! The command line of `helm-oracle`, with the help that teaches it.
//!
//! `cargo xtask` compiles this file too: it shows help and refuses mistakes before it builds anything. So there is nothing here but clap,
//! and what is looked at is there before any build.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};

/// The versions of Helm that are compared with, as the lab names their binaries.
const PROFILES: [&str; 4] = ["v3.19", "v4.1", "v4.2", "v4.3"];

fn profile() -> PossibleValuesParser {
    PossibleValuesParser::new(PROFILES)
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask conformance\n  \
    cargo xtask conformance --profile v4.2 --charts ~/charts --json conformance.json\n  \
    cargo xtask conformance --chart postgresql --keep /tmp/differences\n\n\
    Real charts: set STACKWRIGHT_CORPUS to the absolute path of a corpus, and its folder `charts` is rendered too.\n\n\
    Exit codes: 0 everything is alike, 1 something is different or no chart was rendered, 2 wrong arguments or a report that cannot be written, \
    3 what is needed cannot be built.")]
pub(crate) struct ConformanceArguments {
    /// Only this version of Helm; may be repeated
    #[arg(long = "profile", value_name = "PROFILE", value_parser = profile())]
    pub(crate) profiles: Vec<String>,
    /// The charts: every *.tgz in this folder, however deep, instead of those of the repository and of the corpus
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub(crate) charts: Option<PathBuf>,
    /// Only charts whose path below the folder contains this; may be repeated
    #[arg(long = "chart", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Write counts and differences as JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep both answers of every difference in this folder, to look at them with diff
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

/// What can be measured against the real Helm.
#[derive(Debug, Subcommand)]
pub(crate) enum OracleBenchCommand {
    /// Render charts in this process, in a new one, and with the real Helm: times, their ratios, and memory
    Render(RenderArguments),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    STACKWRIGHT_CORPUS=~/corpus cargo xtask bench render --json docs/benchmarks/render.json\n\n\
    Needs kube-prometheus-stack and podinfo in the folder `charts` of the corpus. Takes several minutes.")]
pub(crate) struct RenderArguments {
    /// Write the same as JSON, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What can be searched for differences.
#[derive(Debug, Subcommand)]
pub(crate) enum FuzzCommand {
    /// Generate templates, values and YAML, and look for what the real Helm answers otherwise
    Helm(FuzzArguments),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  cargo xtask fuzz helm --minutes 60 --profile v4.3\n\n\
    Exit codes: 0 nothing was found, 1 something is different.")]
pub(crate) struct FuzzArguments {
    /// How long to search
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) minutes: u32,
    /// Only this version of Helm; may be repeated
    #[arg(long = "profile", value_name = "PROFILE", value_parser = profile())]
    pub(crate) profiles: Vec<String>,
    /// Generate the same templates again: the seed that an earlier search printed [default: the time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Add the smallest template of each difference to this file [default: helm/tests/micro/found.txt]
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
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
