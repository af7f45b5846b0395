//! `cargo xtask fuzz coverage`: the program in `fuzz`, which looks for inputs that lead a parser of remote bytes where none has led it.

mod record;

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context;
use clap::ValueEnum;

use self::record::Searched;
use crate::{screen, step::Step, workspace::Workspace};

/// The folder of the program: a workspace of its own.
const FOLDER: &str = "fuzz";
/// Named, so that the flags are those of the program and not of what builds it.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// What `cargo-fuzz` passes, without the sanitizers that only a nightly toolchain has: the program has no unsafe code of ours to watch.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// In MiB: above what the limits let one input take.
const MEMORY: usize = 1024;
/// In seconds: what takes longer counts as hanging.
const SLOWEST: usize = 60;
/// In bytes, above what most parsers take: what is longer is refused before anything is parsed.
const LONGEST: usize = 1 << 17;

#[derive(clap::Args)]
#[command(
    after_help = "Needs a C++ compiler for libFuzzer. Inputs that reach something new gather in fuzz/corpus.\n\n\
                        An input that is found lies in fuzz/artifacts. Make it small, put it where fuzz/README.md says, and the tests \
                        of its crate try it from then on.\n\n\
                        Examples:\n  cargo xtask fuzz coverage template --minutes 10\n  cargo xtask fuzz coverage --minutes 3 --record\n\n\
                        Exit codes: 0 nothing was found, 1 something was, 2 wrong arguments."
)]
pub(crate) struct Arguments {
    /// What reads the inputs; otherwise all of them, one after the other
    target: Option<Target>,
    /// How long to search with each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
    /// Write what all of them tried and found into docs/track-record.md
    #[arg(long, conflicts_with = "target")]
    record: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Target {
    /// The parser of templates
    Template,
    /// The readers of documents: YAML, JSON, TOML
    Yaml,
    /// The loader of charts; an input is a tar archive
    Chart,
    /// A whole render; an input is a chart's files, separated by lines of =
    Render,
    /// The index of a web server
    Index,
    /// The manifest of a release in a registry
    Manifest,
    /// Everything else that registries answer with: tags, tokens, errors, referrers, manifests of signatures
    Registry,
    /// What the API of GitHub answers with: releases, assets, errors
    Github,
    /// Retry-After, Location, Link, WWW-Authenticate; an input has one header in a line
    Headers,
    /// The archives of a release; an input is a tar archive
    Archive,
    /// metadata.yaml, clusteraddon.yaml, node-images.yaml, hashes.json
    Descriptions,
    /// sha256sums.txt
    Sums,
    /// What vouches for a release, as the store has it, to the verdict
    Evidence,
    /// A bundle of sigstore, to the verdict
    Bundle,
    /// Public keys to trust, in PEM form
    Keys,
    /// A trust root to trust
    Root,
    /// ClusterStacks and ClusterStackReleases
    Resources,
    /// Objects of others: health, topology, admission, changes of CRDs
    Strangers,
    /// The bodies that webhooks are sent
    Reviews,
    /// Kubeconfigs of workload clusters
    Kubeconfig,
}

impl Target {
    /// As the program knows it, and its folders of inputs.
    const fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Yaml => "yaml",
            Self::Chart => "chart",
            Self::Render => "render",
            Self::Index => "index",
            Self::Manifest => "manifest",
            Self::Registry => "registry",
            Self::Github => "github",
            Self::Headers => "headers",
            Self::Archive => "archive",
            Self::Descriptions => "descriptions",
            Self::Sums => "sums",
            Self::Evidence => "evidence",
            Self::Bundle => "bundle",
            Self::Keys => "keys",
            Self::Root => "root",
            Self::Resources => "resources",
            Self::Strangers => "strangers",
            Self::Reviews => "reviews",
            Self::Kubeconfig => "kubeconfig",
        }
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = workspace.root.join(FOLDER);
    build(workspace, &folder)?;
    let targets = match &arguments.target {
        Some(target) => std::slice::from_ref(target),
        None => Target::value_variants(),
    };
    let mut all = Vec::new();
    for target in targets {
        all.push(search(workspace, &folder, target.name(), arguments.minutes)?);
    }
    if arguments.record {
        record::write(workspace, arguments.minutes, &all)?;
    }
    let found: usize = all.iter().map(|searched| searched.found).sum();
    if found > 0 {
        screen::say(&format!("{found} inputs were found; they are in {FOLDER}/artifacts"));
        return Ok(ExitCode::FAILURE);
    }
    screen::say("nothing was found");
    Ok(ExitCode::SUCCESS)
}

fn build(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo
        .current_dir(folder)
        .env("RUSTFLAGS", INSTRUMENTED)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .args(["build", "--release", "--target", PLATFORM]);
    let build = Step::new(workspace, "build the fuzzing", cargo);
    build.silent_when_quick().run().map(drop)
}

/// Searches with one target. It ends at the first input that it finds, which is no error; that it ends badly without one is.
fn search(workspace: &Workspace, folder: &Path, target: &'static str, minutes: u32) -> anyhow::Result<Searched> {
    let [corpus, artifacts] = ["corpus", "artifacts"].map(|kind| folder.join(kind).join(target));
    for inputs in [&corpus, &artifacts] {
        fs::create_dir_all(inputs).with_context(|| format!("failed to create {}", inputs.display()))?;
    }
    let count = || Ok::<_, anyhow::Error>(fs::read_dir(&artifacts)?.count());
    let before = count()?;
    let mut program = std::process::Command::new(folder.join("target").join(PLATFORM).join("release").join("fuzz"));
    program.current_dir(folder).env("FUZZ_TARGET", target).args([
        format!("corpus/{target}"),
        format!("seeds/{target}"),
        format!("-artifact_prefix=artifacts/{target}/"),
        format!("-max_total_time={}", u64::from(minutes) * 60),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-timeout={SLOWEST}"),
        format!("-max_len={LONGEST}"),
        "-print_final_stats=1".to_owned(),
    ]);
    let title = format!("fuzz {target} by coverage");
    let finished = Step::new(workspace, &title, program).finish()?;
    let found = count()?.saturating_sub(before);
    anyhow::ensure!(
        finished.status.success() || found > 0,
        "{title} ended with {} and without an input: {}",
        finished.status,
        finished.log.display()
    );
    let log = fs::read(&finished.log).with_context(|| format!("failed to read {}", finished.log.display()))?;
    Ok(Searched {
        target,
        seconds: finished.elapsed.as_secs(),
        log: String::from_utf8_lossy(&log).into_owned(),
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_is_known_to_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let program = read("fuzz/src/main.rs") + &read("release/src/fuzzing.rs");
        for target in Target::value_variants() {
            let name = target.name();
            assert!(program.contains(&format!("(\"{name}\", ")), "the program has no {name}");
            let seeds = fs::read_dir(root.join("fuzz/seeds").join(name)).unwrap();
            assert!(seeds.count() > 0, "{name} has no seeds");
        }
        assert_eq!(program.matches("    (\"").count(), Target::value_variants().len());
    }
}
