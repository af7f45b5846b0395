//! What is wrong with a chart whatever its values are: everything is read and parsed, and nothing executed.

use std::sync::Arc;

use super::{RenderError, check_installable};
use crate::bounds;
use crate::chart::{Chart, Loaded};
use crate::functions::FunctionTable;
use crate::layout::base_name;
use crate::options::{OtherChart, OtherProblem, RenderOptions};
use crate::template::{StackError, Templates, on_deep_stack};
use crate::yaml::Node;

/// Something that is wrong with a file of a chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct FileProblem {
    /// The file, by its path in the folder of the outermost chart; empty for the folder. An archive stands for the folder in it:
    /// `charts/web-1.0.0.tgz/values.yaml`.
    pub file: String,
    /// The line in it, from 1, where one is known and not part of the message.
    pub line: Option<usize>,
    /// What is wrong, in the words of Helm or of the other language.
    pub message: String,
    /// The function that the file calls and that there is not, where that is what is wrong.
    pub function: Option<String>,
}

impl FileProblem {
    pub(crate) fn new(file: String, line: Option<usize>, message: String) -> Self {
        Self {
            file,
            line,
            message,
            function: None,
        }
    }
}

impl Chart {
    /// What is wrong with the files of the chart and of all charts in it, also of those that values would switch off: `Chart.yaml` and `values.yaml`
    /// that Helm cannot read, schemas that are none, and texts that are no templates, which includes calls of functions that do not exist. Of each
    /// file the first thing, and of the files in another language the first file. What a template makes of values is not found, because no template runs.
    ///
    /// Runs on a thread of its own, because templates may nest deeply, and returns when it is done.
    pub fn problems(&self, options: &RenderOptions) -> Result<Vec<FileProblem>, StackError> {
        on_deep_stack(|| {
            bounds::begin(options.limits.steps, &options.cancelled);
            let mut trial = Trial {
                options,
                templates: Templates::new(FunctionTable::of(options.profile.functions)),
                others: Vec::new(),
                problems: Vec::new(),
            };
            trial.outermost(self.root());
            trial.problems
        })
    }
}

/// The charts as far as they were looked at.
struct Trial<'a> {
    options: &'a RenderOptions,
    /// Knows the functions. Stays empty.
    templates: Templates,
    others: Vec<Others<'a>>,
    problems: Vec<FileProblem>,
}

/// The files in another language of one chart.
struct Others<'a> {
    folder: String,
    files: Vec<(String, &'a [u8])>,
}

impl<'a> Trial<'a> {
    fn outermost(&mut self, chart: &'a Loaded) {
        let profile = self.options.profile;
        if let Err(problem) = chart.check(profile) {
            self.problems.push(problem.located(profile));
        }
        if let Err(problem) = check_installable(chart, profile) {
            let message = RenderError::new(problem, profile, false).to_string();
            self.add("Chart.yaml".to_owned(), message);
        }
        self.chart(chart, "");
        self.other_language();
    }

    /// `folder` is that of the chart, with a slash behind it unless it is the outermost one.
    fn chart(&mut self, chart: &'a Loaded, folder: &str) {
        let options = self.options;
        let rules = options.profile.schemas;
        if let Some(message) = chart.schema.as_ref().and_then(|schema| schema.mistake(rules)) {
            self.add(format!("{folder}values.schema.json"), message);
        }
        let language = options.other_language.as_ref();
        let is_other = |name: &str| language.is_some_and(|language| name.ends_with(language.suffix()));
        let is_used = |name: &str| !chart.metadata.is_library() || base_name(name).starts_with('_');
        let mut others = Vec::new();
        for file in chart.templates.iter().filter(|file| is_used(&file.name)) {
            let path = format!("{folder}{}", file.name);
            if is_other(&file.name) {
                others.push((path, &*file.data));
            } else {
                self.template(path, &file.data);
            }
        }
        if !others.is_empty() {
            self.others.push(Others {
                folder: format!("{folder}templates"),
                files: others,
            });
        }
        for inner in &chart.dependencies {
            self.chart(inner, &format!("{folder}charts/{}/", inner.folder));
        }
    }

    fn template(&mut self, path: String, text: &Arc<[u8]>) {
        if let Err(error) = self.templates.parse_file(&path, text) {
            let function = error.unknown_function().map(str::to_owned);
            self.problems.push(FileProblem {
                function,
                ..FileProblem::new(path, Some(error.line), error.message)
            });
        }
    }

    fn other_language(&mut self) {
        let Some(language) = self.options.other_language.as_ref().filter(|_| !self.others.is_empty()) else {
            return;
        };
        let charts = self.others.iter().map(|chart| OtherChart {
            folder: &chart.folder,
            root: Node::empty_map(),
            files: chart.files.iter().map(|(path, text)| (path.as_str(), *text)).collect(),
        });
        let checked = language.check(&charts.collect::<Vec<_>>());
        if let Err(OtherProblem { template, line, source }) = checked {
            self.problems.push(FileProblem::new(template, line, source.to_string()));
        }
    }

    fn add(&mut self, file: String, message: String) {
        self.problems.push(FileProblem::new(file, None, message));
    }
}
