//! What the words of the command line ask for, in the order in which Helm looks at them.

use std::env;
use std::sync::Arc;

use helm::answers::{Answers, Moment};
use helm::command_line::ValueArguments;
use helm::{Printing, Profile, RenderOptions};

use crate::Failure;
use crate::chance;
use crate::flags::Given;
use crate::inputs;
use crate::table;

/// What was asked for.
pub(crate) enum Request {
    /// A text about the program.
    Help,
    /// A render.
    Render(Box<Arguments>),
}

/// A render as asked for.
pub(crate) struct Arguments {
    pub(crate) chart: String,
    pub(crate) values: ValueArguments,
    pub(crate) options: RenderOptions,
    pub(crate) printing: Printing,
    pub(crate) output: Output,
}

/// Where manifests go besides the standard output.
pub(crate) struct Output {
    /// The folder to write files to.
    pub(crate) folder: Option<String>,
    /// Whether they lie in a folder named like the release.
    pub(crate) by_release: bool,
    /// What is not valid is written too.
    pub(crate) debug: bool,
}

/// The name of a release for which none is given. Helm generates none here either.
const NO_NAME: &str = "release-name";

impl Request {
    /// Reads the words after the name of the program.
    pub(crate) fn read(words: Vec<String>) -> Result<Self, Failure> {
        let (given, profile) = table::read(words)?;
        for warning in &given.warnings {
            eprintln!("{warning}");
        }
        if given.is_on("help") {
            return Ok(Self::Help);
        }
        Arguments::read(&given, profile).map(Box::new).map(Self::Render)
    }
}

impl Arguments {
    fn read(given: &Given, profile: &'static Profile) -> Result<Self, Failure> {
        if given.words.is_empty() {
            return Err(Failure(
                "\"helm template\" requires at least 1 argument\n\nUsage:  helm template [NAME] [CHART] [flags]"
                    .to_owned(),
            ));
        }
        table::refuse(given)?;
        let mut options = RenderOptions {
            kube_version: given
                .text("kube-version")
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            api_versions: given.all("api-versions"),
            include_crds: given.is_on("include-crds"),
            is_upgrade: given.is_on("is-upgrade"),
            check_schemas: !given.is_on("skip-schema-validation"),
            profile,
            answers: answers(given)?,
            ..RenderOptions::new(NO_NAME, namespace(given))
        };
        options.check_kube_version()?;
        if let Some(file) = given.text("ca-file").filter(|file| !file.is_empty()) {
            inputs::check_certificates(file, profile)?;
        }
        check_dry_run(given, profile)?;
        let chart = name_and_chart(given, &mut options)?;
        Ok(Self {
            chart,
            values: values(given),
            options,
            printing: Printing {
                hooks: !given.is_on("no-hooks"),
                tests: !given.is_on("skip-tests"),
                only: given.all("show-only"),
            },
            output: Output {
                folder: given
                    .text("output-dir")
                    .filter(|folder| !folder.is_empty())
                    .map(str::to_owned),
                by_release: given.is_on("release-name"),
                debug: given.is_on("debug"),
            },
        })
    }
}

/// Sets the name of the release and gives the chart.
fn name_and_chart(given: &Given, options: &mut RenderOptions) -> Result<String, Failure> {
    let name_template = given.text("name-template").filter(|text| !text.is_empty());
    let (name, chart) = match (given.words.as_slice(), name_template) {
        ([chart], None) => (NO_NAME.to_owned(), chart),
        ([chart], Some(template)) => (options.name_from(template)?, chart),
        ([name, chart], None) if !given.is_on("generate-name") => (name.clone(), chart),
        ([_, _], _) => {
            let flag = if given.is_on("generate-name") {
                "generate-name"
            } else {
                "name-template"
            };
            return Err(Failure(format!("cannot set --{flag} and also specify a name")));
        }
        (words, _) => {
            let others = words.get(2..).unwrap_or_default().join(", ");
            return Err(Failure(format!(
                "expected at most two arguments, unexpected arguments: {others}"
            )));
        }
    };
    options.release_name = name;
    Ok(chart.clone())
}

/// A render is always a dry run; what would ask a cluster during it is refused.
fn check_dry_run(given: &Given, profile: &Profile) -> Result<(), Failure> {
    let Some(run) = given.text("dry-run") else {
        return Ok(());
    };
    let fault = match run {
        "server" => format!(
            "--dry-run={run} asks a cluster, which is never done here: say what it knows with --kube-version and \
             --api-versions"
        ),
        _ if table::is_helm_3(profile) => match run {
            "" | "unset" | "client" | "true" | "none" | "false" => return Ok(()),
            _ => "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server".to_owned(),
        },
        "client" => return Ok(()),
        "unset" => {
            eprintln!("level=WARN msg=\"--dry-run is deprecated and should be replaced with '--dry-run=client'\"");
            return Ok(());
        }
        "1" | "t" | "T" | "true" | "TRUE" | "True" => {
            eprintln!(
                "level=WARN msg=\"boolean '--dry-run={run}' flag is deprecated and must be replaced with \
                 '--dry-run=client'\""
            );
            return Ok(());
        }
        "none" | "0" | "f" | "F" | "false" | "FALSE" | "False" => {
            format!("invalid dry-run value ({run:?}). Must be \"server\" or \"client\"")
        }
        _ => format!("invalid dry-run value ({run:?}). Must be \"none\", \"server\", or \"client\""),
    };
    Err(Failure(fault))
}

fn values(given: &Given) -> ValueArguments {
    ValueArguments {
        files: given.all("values"),
        set_json: given.all("set-json"),
        set: given.all("set"),
        set_string: given.all("set-string"),
        set_file: given.all("set-file"),
        set_literal: given.all("set-literal"),
    }
}

fn answers(given: &Given) -> Result<Arc<dyn Answers>, Failure> {
    let number = |name: &str, end: u64| match given.text(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) if number <= end => Ok(Some(number)),
            _ => Err(Failure(format!(
                "--{name} wants a whole number from 0 to {end}, not {text:?}"
            ))),
        },
    };
    let now = number("now", i64::MAX.unsigned_abs())?.map(|seconds| Moment {
        seconds: seconds.cast_signed(),
        nanoseconds: 0,
    });
    chance::answers(number("seed", u64::MAX)?, now)
}

/// As Helm without a configuration of clients, which is not read here.
fn namespace(given: &Given) -> String {
    let asked = given.text("namespace").map(str::to_owned);
    let asked = asked.or_else(|| env::var("HELM_NAMESPACE").ok());
    asked
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "default".to_owned())
}
