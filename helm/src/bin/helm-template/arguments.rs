//! What the words of the command line ask for.

use std::env;

use helm::Profile;
use helm::answers::Moment;
use helm::command_line::ValueArguments;

use crate::Failure;
use crate::flags::{Flag, Given, Kind};

/// What was asked for.
pub(crate) enum Request {
    /// A text about the program.
    Help(String),
    /// A render.
    Render(Box<Arguments>),
}

/// A render as asked for.
pub(crate) struct Arguments {
    pub(crate) release_name: String,
    pub(crate) chart: String,
    pub(crate) namespace: String,
    pub(crate) profile: &'static Profile,
    pub(crate) kube_version: Option<String>,
    pub(crate) api_versions: Vec<String>,
    pub(crate) include_crds: bool,
    pub(crate) values: ValueArguments,
    /// In place of the system's randomness.
    pub(crate) seed: Option<u64>,
    /// In place of the clock.
    pub(crate) now: Option<Moment>,
}

const fn flag(name: &'static str, kind: Kind) -> Flag {
    Flag { name, short: None, kind }
}

const fn short(letter: char, name: &'static str, kind: Kind) -> Flag {
    Flag {
        name,
        short: Some(letter),
        kind,
    }
}

const FLAGS: &[Flag] = &[
    short('a', "api-versions", Kind::List),
    short('f', "values", Kind::List),
    short('h', "help", Kind::Switch),
    short('n', "namespace", Kind::Text),
    flag("include-crds", Kind::Switch),
    flag("kube-version", Kind::Text),
    flag("now", Kind::Text),
    flag("profile", Kind::Text),
    flag("seed", Kind::Text),
    flag("set", Kind::Texts),
    flag("set-file", Kind::Texts),
    flag("set-json", Kind::Texts),
    flag("set-literal", Kind::Texts),
    flag("set-string", Kind::Texts),
];

const HELP: &str = "Renders a chart as helm template does: the same bytes, the same errors.

Usage:
  helm-template [NAME] CHART [flags]
";

/// The name of a release for which none is given.
const NO_NAME: &str = "release-name";

impl Request {
    /// Reads the words after the name of the program.
    pub(crate) fn read(words: Vec<String>) -> Result<Self, Failure> {
        let given = Given::read(FLAGS, words).map_err(Failure)?;
        if given.is_on("help") {
            return Ok(Self::Help(HELP.to_owned()));
        }
        Arguments::read(&given).map(Box::new).map(Self::Render)
    }
}

impl Arguments {
    fn read(given: &Given) -> Result<Self, Failure> {
        let (release_name, chart) = match given.words.as_slice() {
            [] => {
                return Err(Failure(
                    "\"helm template\" requires at least 1 argument\n\nUsage:  helm template [NAME] [CHART] [flags]"
                        .to_owned(),
                ));
            }
            [chart] => (NO_NAME, chart),
            [name, chart] => (name.as_str(), chart),
            [_, _, others @ ..] => {
                return Err(Failure(format!(
                    "expected at most two arguments, unexpected arguments: {}",
                    others.join(", ")
                )));
            }
        };
        let number = |name: &str| match given.text(name) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| Failure(format!("--{name} is not a number: {text:?}"))),
        };
        let now: Option<u64> = number("now")?;
        Ok(Self {
            release_name: release_name.to_owned(),
            chart: chart.clone(),
            namespace: namespace(given),
            profile: profile(given)?,
            kube_version: given.text("kube-version").filter(|text| !text.is_empty()).map(str::to_owned),
            api_versions: given.all("api-versions"),
            include_crds: given.is_on("include-crds"),
            values: ValueArguments {
                files: given.all("values"),
                set_json: given.all("set-json"),
                set: given.all("set"),
                set_string: given.all("set-string"),
                set_file: given.all("set-file"),
                set_literal: given.all("set-literal"),
            },
            seed: number("seed")?,
            now: now.map(|seconds| Moment {
                seconds: seconds.try_into().unwrap_or(i64::MAX),
                nanoseconds: 0,
            }),
        })
    }
}

fn namespace(given: &Given) -> String {
    let asked = given.text("namespace").map(str::to_owned);
    let asked = asked.or_else(|| env::var("HELM_NAMESPACE").ok());
    asked.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned())
}

fn profile(given: &Given) -> Result<&'static Profile, Failure> {
    let Some(name) = given.text("profile") else {
        return Ok(Profile::V3_19);
    };
    Profile::by_name(name).ok_or_else(|| Failure(format!("there is no profile {name:?}")))
}
