//! `cargo xtask`: the two commands of the README (`test`, `demo`) and every other chore.
//!
//! This file knows the words of the command line and the exit codes. What a chore consists of is decided in its own module; how a step is
//! run and shown, in [`step`].

// The programs' own: what is wrong with them is said before anything is built.
#[path = "../../e2e/src/arguments.rs"]
mod arguments;
mod check;
mod coverage;
mod lab;
mod new_provider;
#[path = "../../helm/oracle/src/arguments.rs"]
mod oracle_arguments;
mod process;
mod regenerate;
mod screen;
mod setup;
mod step;
mod summary;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    arguments::{
        BenchCommand, ConformanceProviderArguments, ControlPlaneCommand, DemoArguments, DemoProvider, SoakArguments,
        StormArguments,
    },
    lab::Profile,
    oracle_arguments::{ConformanceArguments, FuzzCommand, OracleBenchCommand},
    setup::Parts,
    step::MissingTool,
    workspace::Workspace,
};

/// Chores of the repository
///
/// Every command starts from nothing: what it needs (Go, a control plane of etcd and kube-apiserver, CRDs, Helm as an oracle for tests) is
/// fetched or built once, kept in the cache folder (`$XDG_CACHE_HOME/stackwright` or `~/.cache/stackwright`) under a hash of its content, and
/// never built again.
///
/// Each step says where its log is. A failing step ends with its last useful lines and the command that repeats it alone.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 120)]
#[command(
    after_help = "Exit codes: 0 all good, 1 a step failed, 2 wrong arguments, 3 this machine lacks a program.\n\
                        demo, storm, soak, bench, control-plane, conformance, conformance-provider and fuzz end with the exit code of what they run."
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Fetch and build what tests and demo need; quick when it is all there
    Setup,
    /// Set up, build, and run every test of the workspace
    #[command(
        after_help = "Real releases: set STACKWRIGHT_CORPUS to the absolute path of a corpus of them, and journeys use it too.\n\n\
                            Examples:\n  cargo xtask test\n  cargo xtask test -p planning\n  cargo xtask test deleted_release\n  \
                            cargo xtask test --matrix --positions\n  cargo xtask test -p e2e journey -- --test-threads 1"
    )]
    Test(test::Arguments),
    /// The gates before a commit: formatting, clippy, licences and sources of dependencies, documentation
    Check,
    /// One `ClusterStack` becomes usable on a real API server, follows an upgrade, repairs damage and cleans up, with `--provider` its node images too; then one
    /// Cluster of the real Cluster API gets its add-ons, and is upgraded, damaged, mended and deleted
    Demo(DemoArguments),
    /// Journeys of the operator in bad weather: seeded faults between it and the API server, and what must hold afterwards
    Storm(StormArguments),
    /// Releases that come and go for hours, in bad weather, under one operator: what it holds over time, and whether that grows
    Soak(SoakArguments),
    /// Measure: prints a table, and with `--json FILE` writes the same as JSON
    #[command(subcommand)]
    Bench(Bench),
    /// Render charts with the real Helm and with ours, and compare what they answer
    Conformance(ConformanceArguments),
    /// Hold somebody's operator of a provider, on a cluster on which it runs, against the contract with the core operator
    ConformanceProvider(Box<ConformanceProviderArguments>),
    /// Search for what the chart engine and the parsers of remote bytes do wrong with made-up input
    #[command(subcommand)]
    Fuzz(Fuzz),
    /// A control plane to play with: etcd, kube-apiserver and kube-controller-manager as plain processes
    #[command(subcommand)]
    ControlPlane(ControlPlaneCommand),
    /// Begin a provider of node images: a crate that passes the suite of all providers, its kinds, and every line that names it
    #[command(
        after_help = "What it changes must be committed before, and what it adds is seen by git diff afterwards.\n\n\
                            Examples:\n  cargo xtask new-provider acme\n  cargo xtask new-provider opennebula --prefix OpenNebula"
    )]
    NewProvider(new_provider::Arguments),
    /// Write the generated files anew (CRDs, roles, golden files); the tests compare them
    Regenerate,
}

/// The benchmarks of two programs under one word.
#[derive(Subcommand)]
enum Bench {
    #[command(flatten)]
    Lab(BenchCommand),
    #[command(flatten)]
    Oracle(OracleBenchCommand),
}

/// The searches of the oracle, and those that need nothing to compare with.
#[derive(Subcommand)]
enum Fuzz {
    #[command(flatten)]
    Oracle(FuzzCommand),
    /// Look for input for which a parser does not hold what it promises, guided by what each input reaches
    Coverage(coverage::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().chore) {
        Ok(code) => code,
        Err(error) => {
            screen::failure(&error);
            exit_code_of(&error)
        }
    }
}

fn run(chore: &Chore) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match chore {
        Chore::Setup => {
            setup::run(&workspace, Parts::All)?;
            screen::say(&format!(
                "the lab is ready: .lab/lab.json, parts in {}",
                workspace.cache.display()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Chore::Test(arguments) => test::run(&workspace, arguments),
        Chore::Check => check::run(&workspace),
        Chore::Storm(StormArguments { mutant: Some(_), .. }) => lab::become_lab_with_mutants(&workspace),
        Chore::Demo(DemoArguments {
            provider: DemoProvider::Openstack,
            ..
        }) => lab::become_lab(&workspace, Parts::OpenStack, Profile::Debug),
        Chore::Demo(arguments) if arguments.plays_clusters() => {
            lab::become_lab(&workspace, Parts::Clusters, Profile::Debug)
        }
        Chore::Demo(_) | Chore::Storm(_) => lab::become_lab(&workspace, Parts::ControlPlane, Profile::Debug),
        Chore::ConformanceProvider(_) => lab::become_guest(&workspace),
        Chore::ControlPlane(_) => lab::become_control_plane(&workspace),
        // Its releases come from a real registry too.
        Chore::Bench(Bench::Lab(BenchCommand::Operator(_) | BenchCommand::Memory(_))) => {
            lab::become_lab(&workspace, Parts::All, Profile::Release)
        }
        Chore::Bench(Bench::Lab(BenchCommand::Images(_))) => lab::become_lab_for_images(&workspace),
        Chore::Bench(Bench::Lab(_)) | Chore::Soak(_) => {
            lab::become_lab(&workspace, Parts::ControlPlane, Profile::Release)
        }
        Chore::Bench(Bench::Oracle(_)) | Chore::Conformance(_) | Chore::Fuzz(Fuzz::Oracle(_)) => {
            lab::become_oracle(&workspace)
        }
        Chore::Fuzz(Fuzz::Coverage(arguments)) => coverage::run(&workspace, arguments),
        Chore::NewProvider(arguments) => new_provider::run(&workspace, arguments),
        Chore::Regenerate => regenerate::run(&workspace),
    }
}

fn exit_code_of(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<MissingTool>().is_some() {
        ExitCode::from(3)
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_what_the_programs_take_are_found_before_anything_is_built() {
        for (line, words) in [
            ("demo --releases /nowhere", "there is no such directory"),
            ("demo --namespace Demo", "small letters, digits and -"),
            ("demo --kubeconfig /nowhere", "there is no such file"),
            ("demo --provider docker", "possible values: none, filestore, openstack"),
            ("demo --provider filestore --releases /", "cannot be used with"),
            (
                "bench images everything",
                "possible values: upload, many, broken, cancel, idle",
            ),
            ("bench images --record idle", "cannot be used with"),
            ("bench addons --record hooks", "cannot be used with"),
            ("bench addons --servers 0", "0 is not in 1..=16"),
            ("demo --nonsense", "unexpected argument '--nonsense'"),
            (
                "storm --journey elsewhere",
                "possible values: install, upgrade, repair, remove, provider, shared, addons, life, all",
            ),
            ("storm --seed 1 --seeds 2", "cannot be used with"),
            ("bench converge --releases 0", "0 is not in 1..=100000"),
            ("bench operator --releases 3", "3 is not in 4..=100000"),
            ("soak --minutes 0", "0 is not in 1..=10000"),
            ("bench", "Usage: cargo xtask bench <COMMAND>"),
            ("control-plane up now", "unexpected argument 'now'"),
            ("conformance --charts /nowhere", "there is no such directory"),
            ("conformance-provider --kubeconfig /nowhere", "there is no such file"),
            (
                "conformance-provider --kubeconfig Cargo.toml --kind AcmeRelease --release acme-scs-1-34-v1",
                "as in AcmeClusterStackRelease",
            ),
            (
                "conformance-provider --kubeconfig Cargo.toml --kind AcmeClusterStackRelease --release V1",
                "as in acme-scs-1-34-v1",
            ),
            (
                "conformance --profile v2.17",
                "possible values: v3.19, v4.1, v4.2, v4.3",
            ),
            ("fuzz helm --minutes 0", "0 is not in 1..=10000"),
            ("fuzz coverage tempate", "a similar value exists: 'template'"),
            ("bench render --nonsense", "unexpected argument '--nonsense'"),
        ] {
            let understood = Arguments::try_parse_from(["xtask"].into_iter().chain(line.split(' ')));
            let Err(error) = understood else {
                panic!("{line} is understood");
            };
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
