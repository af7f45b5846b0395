//! What Helm says on its error output of charts that render nonetheless, in the form of each profile. Decides nothing about charts.

use std::fmt;

use crate::format::quoted;
use crate::profile::Profile;
use crate::text::{is_print, is_space};

/// What Helm would say on its error output. Displays as the words alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    said: Said,
    form: WarningForm,
}

/// What the lines of warnings look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarningForm {
    /// The Go file and line of Helm 3.19 that says it, and the words.
    FileAndLine,
    /// Keys and values: `level=WARN msg="…" chart=…`.
    KeysAndValues,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Of values that do not fit over each other.
    Values {
        /// The line of Helm 3.19 that says it.
        line: u16,
        /// Whether it calls itself a warning.
        is_warning: bool,
        words: String,
    },
    /// A tag leads to something else than a boolean.
    Tag { tag: String, chart: String },
    /// So does a condition.
    Condition { path: String, chart: String },
    /// There is nothing to import; the chart is told unless the import was asked for by name.
    NoImport { key: String, chart: Option<String> },
    /// A hook of an event that there is not.
    UnknownHook { events: String },
    /// A schema refers to what nothing can load. Helm 3 refuses such a schema.
    UnresolvedUrn { urn: String },
    /// A chart says in `requirements.yaml` what its version says in `Chart.yaml`.
    OldRequirements,
    /// Likewise in `requirements.lock` what belongs into `Chart.lock`.
    OldLock,
    /// The chart says that nobody should use it any more.
    Deprecated,
    /// Nothing is rendered. Helm 3 says so only in its error.
    Failed { step: &'static str, problem: String },
}

const OLD_REQUIREMENTS: &str = "Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.";
const OLD_LOCK: &str =
    "Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.";

impl Warning {
    pub(crate) const fn new(said: Said, profile: &Profile) -> Self {
        Self {
            said,
            form: profile.warnings,
        }
    }

    /// The line that Helm writes, without its line break.
    pub fn line(&self) -> String {
        match self.form {
            WarningForm::FileAndLine => self.file_and_line(),
            WarningForm::KeysAndValues => self.keys_and_values(),
        }
    }

    fn file_and_line(&self) -> String {
        let (place, level) = match &self.said {
            Said::Values {
                line,
                is_warning: false,
                ..
            } => return format!("coalesce.go:{line}: {self}"),
            Said::Values { line, .. } => return format!("coalesce.go:{line}: warning: {self}"),
            Said::Tag { .. } => ("dependencies.go:95", "Warning"),
            Said::Condition { .. } => ("dependencies.go:64", "Warning"),
            Said::NoImport { chart: None, .. } => ("dependencies.go:287", "Warning"),
            Said::NoImport { .. } => ("dependencies.go:270", "Warning"),
            Said::UnknownHook { .. } => ("manifest_sorter.go:199", "info"),
            Said::OldRequirements => ("load.go:120", "Warning"),
            Said::OldLock => ("load.go:138", "Warning"),
            Said::Deprecated => return format!("WARNING: {self}"),
            Said::UnresolvedUrn { .. } | Said::Failed { .. } => return self.to_string(),
        };
        format!("{place}: {level}: {self}")
    }

    fn keys_and_values(&self) -> String {
        let not_boolean = "returned non-bool value".to_owned();
        let (level, mut parts) = match &self.said {
            Said::Values { is_warning, words, .. } => {
                let prefix = if *is_warning { "warning: " } else { "" };
                ("INFO", vec![("msg", format!("{prefix}{words}"))])
            }
            Said::Tag { tag, .. } => ("WARN", vec![("msg", not_boolean), ("tag", tag.clone())]),
            Said::Condition { path, .. } => ("WARN", vec![("msg", not_boolean), ("path", path.clone())]),
            Said::NoImport { chart, .. } => {
                let from = if chart.is_some() { " from chart" } else { "" };
                ("WARN", vec![("msg", format!("ImportValues missing table{from}"))])
            }
            Said::UnknownHook { events } => (
                "INFO",
                vec![
                    ("msg", "skipping unknown hooks".to_owned()),
                    ("hookTypes", events.clone()),
                ],
            ),
            Said::UnresolvedUrn { urn } => ("WARN", vec![("msg", UNRESOLVED.to_owned()), ("urn", urn.clone())]),
            Said::OldRequirements | Said::OldLock => ("INFO", vec![("msg", format!("Warning: {self}"))]),
            Said::Deprecated => ("WARN", vec![("msg", "this chart is deprecated".to_owned())]),
            Said::Failed { step, problem } => ("ERROR", vec![("msg", (*step).to_owned()), ("error", problem.clone())]),
        };
        match &self.said {
            Said::Tag { chart, .. } | Said::Condition { chart, .. } => parts.push(("chart", chart.clone())),
            Said::NoImport { key, chart } => {
                parts.extend(chart.clone().map(|chart| ("chart", chart)));
                parts.push(("error", no_table(key)));
            }
            _ => {}
        }
        let parts = parts.iter().map(|(key, value)| format!(" {key}={}", logged(value)));
        format!("level={level}{}", parts.collect::<String>())
    }
}

const UNRESOLVED: &str = "unresolved URN reference ignored; using permissive schema";

fn no_table(key: &str) -> String {
    format!("{} is not a table", quoted(key))
}

/// A value as Go's `log/slog` writes it: in quotes where it could be misread.
fn logged(value: &str) -> String {
    let is_plain = |character: char| match character {
        ' ' | '=' | '"' | char::REPLACEMENT_CHARACTER => false,
        '\\' => true,
        character => is_print(character) && !is_space(character),
    };
    if value.is_empty() || !value.chars().all(is_plain) {
        quoted(value)
    } else {
        value.to_owned()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.said {
            Said::Values { words, .. } => formatter.write_str(words),
            Said::Tag { tag, chart } => write!(formatter, "Tag '{tag}' for chart {chart} returned non-bool value"),
            Said::Condition { path, chart } => {
                write!(
                    formatter,
                    "Condition path '{path}' for chart {chart} returned non-bool value"
                )
            }
            Said::NoImport { key, chart: None } => write!(formatter, "ImportValues missing table: {}", no_table(key)),
            Said::NoImport {
                key,
                chart: Some(chart),
            } => write!(
                formatter,
                "ImportValues missing table from chart {chart}: {}",
                no_table(key)
            ),
            Said::UnknownHook { events } => write!(formatter, "skipping unknown hook: {}", quoted(events)),
            Said::UnresolvedUrn { urn } => write!(formatter, "{UNRESOLVED}: {urn}"),
            Said::OldRequirements => formatter.write_str(OLD_REQUIREMENTS),
            Said::OldLock => formatter.write_str(OLD_LOCK),
            Said::Deprecated => formatter.write_str("This chart is deprecated"),
            Said::Failed { step, problem } => write!(formatter, "{step}: {problem}"),
        }
    }
}
