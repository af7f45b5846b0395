//! `cargo xtask fuzz coverage`: the program in `fuzz`, which looks for inputs that lead a parser of remote bytes where none has led it.

use std::{fs, process::ExitCode};

use anyhow::Context;

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
                        Example:\n  cargo xtask fuzz coverage template --minutes 10\n\n\
                        Exit codes: 0 nothing was found, 1 something was, 2 wrong arguments."
)]
pub(crate) struct Arguments {
    /// What reads the inputs
    target: Target,
    /// How long to search
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
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
        }
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = workspace.root.join(FOLDER);
    let target = arguments.target.name();
    let mut cargo = workspace.cargo();
    cargo
        .current_dir(&folder)
        .env("RUSTFLAGS", INSTRUMENTED)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .args(["build", "--release", "--target", PLATFORM]);
    Step::new(workspace, "build the fuzzing", cargo)
        .silent_when_quick()
        .run()?;
    for inputs in ["corpus", "artifacts"].map(|kind| folder.join(kind).join(target)) {
        fs::create_dir_all(&inputs).with_context(|| format!("failed to create {}", inputs.display()))?;
    }
    let mut program = std::process::Command::new(folder.join("target").join(PLATFORM).join("release").join("fuzz"));
    program.current_dir(&folder).env("FUZZ_TARGET", target).args([
        format!("corpus/{target}"),
        format!("seeds/{target}"),
        format!("-artifact_prefix=artifacts/{target}/"),
        format!("-max_total_time={}", u64::from(arguments.minutes) * 60),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-timeout={SLOWEST}"),
        format!("-max_len={LONGEST}"),
    ]);
    let searched = Step::new(workspace, &format!("fuzz {target} by coverage"), program).run()?;
    screen::say(&format!(
        "nothing was found; what was tried: {}",
        searched.log.display()
    ));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::ValueEnum;

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
