//! Tries the charts of the add-ons of a release before the release is there for anybody. What they make of a cluster follows from a Cluster, and here
//! is none: nothing of them is executed. What can never work, whatever the Cluster, is refused where the one who can mend it sits.

use std::path::Path;

use crds::policy::HelmProfile;
use release::pack::{self, AddonChart, PackError, Prepared};
use rendering::{ChartBytes, FileProblem, Renderer, StackError, ValuesTemplate};
use thiserror::Error;

/// The Helm that has the most functions.
const NEWEST: HelmProfile = HelmProfile::V4_3;
/// Functions that look at the environment of a program: Helm takes them away from charts.
const OF_ENVIRONMENT: [&str; 2] = ["env", "expandenv"];

/// No cluster can have these add-ons.
#[derive(Debug, Error)]
pub(crate) enum Unusable {
    /// The charts are not what they were packed as.
    #[error(transparent)]
    Unpack(#[from] PackError),
    /// The system has no thread for the templates.
    #[error(transparent)]
    Try(#[from] StackError),
    /// A file of a chart is not what it must be.
    #[error("{at}: correct this file{meant}{more}, then make the release again: {problem}")]
    Chart {
        /// The file of the stack, with the line where one is known.
        at: String,
        /// What may be meant.
        meant: String,
        /// How many other files there are.
        more: String,
        problem: Box<FileProblem>,
    },
    /// A template of values can give none.
    #[error("{at}: correct this template{meant}, then make the release again: {problem}")]
    Values { at: String, meant: String, problem: String },
}

/// Refuses charts and templates of values that can never work. Gives what works with another Helm alone, or with some values alone, a sentence each.
pub(crate) fn check(prepared: &Prepared) -> Result<Vec<String>, Unusable> {
    let renderer = Renderer::new(0);
    let mut notes = Vec::new();
    for chart in prepared.addon_charts()? {
        check_values(&renderer, &chart)?;
        notes.extend(check_chart(&renderer, &chart, prepared.kubernetes())?);
    }
    Ok(notes)
}

fn check_chart(renderer: &Renderer, chart: &AddonChart, kubernetes: &str) -> Result<Vec<String>, Unusable> {
    let AddonChart { directory, files, .. } = chart;
    let profile = HelmProfile::default();
    let problems_with = |profile| renderer.problems(ChartBytes::Files(files.clone()), profile, kubernetes);
    let problems = problems_with(profile)?;
    if problems.is_empty() {
        return Ok(Vec::new());
    }
    let newest = problems_with(NEWEST)?;
    let (optional, mut others): (Vec<_>, Vec<_>) = problems.into_iter().partition(|problem| problem.is_optional);
    if !others.is_empty() && newest.iter().any(|problem| !problem.is_optional) {
        let problem = others.swap_remove(0);
        return Err(refusal(at(directory, &problem), problem, others.len()));
    }
    let of_newest = format!("with spec.policy.helmProfile {NEWEST} alone, not with {profile}");
    let first = others.first().map(|problem| (problem, of_newest.clone()));
    let optional = optional.iter().map(|problem| {
        let is_in_newest = newest.iter().any(|other| other.file == problem.file);
        let works = if is_in_newest {
            "the add-on works only where values switch this chart off".to_owned()
        } else {
            format!("{of_newest}, unless values switch this chart off")
        };
        (problem, works)
    });
    let works = first.into_iter().chain(optional);
    let notes = works.map(|(problem, works)| format!("{}: {works}: {problem}", at(directory, problem)));
    Ok(notes.collect())
}

fn refusal(at: String, problem: FileProblem, more: usize) -> Unusable {
    let known = rendering::chart_functions(HelmProfile::default());
    Unusable::Chart {
        at,
        meant: meant(problem.function.as_deref(), known),
        more: match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        },
        problem: Box::new(problem),
    }
}

/// The file of the stack, with the line where one is known.
fn at(directory: &Path, problem: &FileProblem) -> String {
    let file = directory.join(&problem.file);
    match problem.line {
        Some(line) => format!("{}:{line}", file.display()),
        None => file.display().to_string(),
    }
}

fn check_values(renderer: &Renderer, chart: &AddonChart) -> Result<(), Unusable> {
    let Some((path, text)) = &chart.values else {
        return Ok(());
    };
    let path = path.display().to_string();
    let checked = renderer.check_values(ValuesTemplate { path: &path, text });
    checked.map_err(|error| Unusable::Values {
        at: match error.place() {
            Some((_, Some(line))) => format!("{path}:{line}"),
            _ => path.clone(),
        },
        meant: match error.unknown_function() {
            Some(function) if rendering::chart_functions(NEWEST).any(|known| known == function) => {
                " (Helm's own functions are not there in templates of values)".to_owned()
            }
            function => meant(function, rendering::values_functions()),
        },
        problem: error.problem(),
    })
}

/// What may be meant by a function that there is not, as a part of a sentence.
fn meant(function: Option<&str>, known: impl Iterator<Item = &'static str>) -> String {
    match function {
        Some(function) if OF_ENVIRONMENT.contains(&function) => {
            " (charts see nothing of any environment: give it as a value)".to_owned()
        }
        Some(function) => match pack::nearest(function, known).as_slice() {
            [] => String::new(),
            near => format!(" (did you mean {}?)", near.join(" or ")),
        },
        None => String::new(),
    }
}
