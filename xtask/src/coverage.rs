//! `cargo xtask fuzz coverage`: the programs of `helm/fuzz`, which look for inputs that lead the chart engine where none has led it.

use std::{fs, process::ExitCode};

use anyhow::Context;

use crate::{screen, step::Step, workspace::Workspace};

/// The folder of the programs: a workspace of its own.
const FOLDER: &str = "helm/fuzz";
/// Named, so that the flags are those of the programs and not of what builds them.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// What `cargo-fuzz` passes, without the sanitizers that only a nightly toolchain has: the programs have no unsafe code of ours to watch.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// In MiB: above what the limits of the engine let one input take.
const MEMORY: usize = 1024;
/// In seconds: what takes longer counts as hanging.
const SLOWEST: usize = 60;

#[derive(clap::Args)]
#[command(
    after_help = "Needs a C++ compiler for libFuzzer. Inputs that reach something new gather in helm/fuzz/corpus.\n\n\
                        An input that is found lies in helm/fuzz/artifacts. Make it small, put it into helm/tests/hostile/found, and the tests \
                        of the crate try it from then on.\n\n\
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
}

impl Target {
    /// The program and its folders of inputs.
    const fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Yaml => "yaml",
            Self::Chart => "chart",
            Self::Render => "render",
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
        .args(["build", "--release", "--target", PLATFORM, "--bin", target]);
    Step::new(workspace, &format!("build the fuzzing of {target}"), cargo)
        .silent_when_quick()
        .run()?;
    for inputs in ["corpus", "artifacts"].map(|kind| folder.join(kind).join(target)) {
        fs::create_dir_all(&inputs).with_context(|| format!("failed to create {}", inputs.display()))?;
    }
    let mut program = std::process::Command::new(folder.join("target").join(PLATFORM).join("release").join(target));
    program.current_dir(&folder).args([
        format!("corpus/{target}"),
        format!("seeds/{target}"),
        format!("-artifact_prefix=artifacts/{target}/"),
        format!("-max_total_time={}", u64::from(arguments.minutes) * 60),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-timeout={SLOWEST}"),
    ]);
    let searched = Step::new(workspace, &format!("fuzz {target} by coverage"), program).run()?;
    screen::say(&format!(
        "nothing was found; what was tried: {}",
        searched.log.display()
    ));
    Ok(ExitCode::SUCCESS)
}
