//! What is wrong with a chart whatever its values are: everything is read and parsed, and nothing executed.

use std::sync::Arc;

use super::{RenderError, capabilities, check_installable, check_kube_version};
use crate::bounds;
use crate::chart::dependencies::can_be_off;
use crate::chart::{Chart, Loaded};
use crate::functions::FunctionTable;
use crate::layout::{CrdFile, base_name, is_of_crds};
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
    /// Whether the file is in a chart that values may switch off, by a condition or tags: where they do, nothing is wrong with it.
    pub is_optional: bool,
}

impl FileProblem {
    pub(crate) fn new(file: String, line: Option<usize>, message: String) -> Self {
        Self {
            file,
            line,
            message,
            function: None,
            is_optional: false,
        }
    }
}

impl Chart {
    /// What is wrong with the files of the chart and of all charts in it: `Chart.yaml` and `values.yaml` that Helm cannot read, a chart that is not for
    /// the Kubernetes version, schemas that are none, files of `crds/` that are no YAML if those are asked for, and texts that are no templates, which
    /// includes calls of functions that do not exist. Of each file the first thing, and of the files in another language the first file, apart for
    /// charts that values [may switch off](FileProblem::is_optional). What a template makes of values is not found, because no template runs.
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
    is_optional: bool,
}

/// How a chart takes part in renders.
#[derive(Clone, Copy)]
struct Part {
    /// Values may switch it off, or one that it is in.
    is_optional: bool,
    /// What it declares is looked at. Helm does not look below a chart that declares nothing.
    is_heard: bool,
}

impl<'a> Trial<'a> {
    fn outermost(&mut self, chart: &'a Loaded) {
        let profile = self.options.profile;
        if let Err(problem) = chart.check(profile) {
            self.problems.push(problem.located(profile));
        }
        let capabilities = capabilities(self.options);
        let checked = [
            check_installable(chart, profile),
            capabilities.and_then(|capabilities| check_kube_version(chart, &capabilities, profile)),
        ];
        for problem in checked.into_iter().filter_map(Result::err) {
            let message = RenderError::new(problem, profile, false).to_string();
            self.problems
                .push(FileProblem::new("Chart.yaml".to_owned(), None, message));
        }
        let part = Part {
            is_optional: false,
            is_heard: true,
        };
        self.chart(chart, "", part);
        self.other_language();
    }

    /// `folder` is that of the chart, with a slash behind it unless it is the outermost one.
    fn chart(&mut self, chart: &'a Loaded, folder: &str, part: Part) {
        let Part { is_optional, is_heard } = part;
        let profile = self.options.profile;
        if let Some(message) = chart.schema.as_ref().and_then(|schema| schema.mistake(profile.schemas)) {
            let problem = FileProblem::new(format!("{folder}values.schema.json"), None, message);
            self.add(part, problem);
        }
        if self.options.include_crds {
            self.crds(chart, folder, part);
        }
        self.templates(chart, folder, part);
        let is_heard = is_heard && chart.metadata.dependencies.is_some();
        for inner in &chart.dependencies {
            let is_switched = || can_be_off(&inner.metadata, &chart.metadata, profile.versions);
            let part = Part {
                is_optional: is_optional || (is_heard && is_switched()),
                is_heard,
            };
            self.chart(inner, &format!("{folder}charts/{}/", inner.folder), part);
        }
    }

    fn crds(&mut self, chart: &Loaded, folder: &str, part: Part) {
        for file in chart.files.iter().filter(|file| is_of_crds(&file.name)) {
            let source = format!("{folder}{}", file.name);
            let data = Arc::clone(&file.data);
            let Err(error) = CrdFile { source, data }.manifests(self.options) else {
                continue;
            };
            // Lines in the message are those of the document.
            let line = error.line.filter(|line| *line > 1);
            let message = match line {
                Some(_) => format!("{}, in the document that begins here", error.problem),
                None => error.problem,
            };
            self.add(part, FileProblem::new(error.source_file, line, message));
        }
    }

    fn templates(&mut self, chart: &'a Loaded, folder: &str, part: Part) {
        let language = self.options.other_language.as_ref();
        let is_other = |name: &str| language.is_some_and(|language| name.ends_with(language.suffix()));
        let is_used = |name: &str| !chart.metadata.is_library() || base_name(name).starts_with('_');
        let mut others = Vec::new();
        for file in chart.templates.iter().filter(|file| is_used(&file.name)) {
            let path = format!("{folder}{}", file.name);
            if is_other(&file.name) {
                others.push((path, &*file.data));
            } else {
                self.template(path, &file.data, part);
            }
        }
        if !others.is_empty() {
            self.others.push(Others {
                folder: format!("{folder}templates"),
                files: others,
                is_optional: part.is_optional,
            });
        }
    }

    fn template(&mut self, path: String, text: &Arc<[u8]>, part: Part) {
        if let Err(error) = self.templates.parse_file(&path, text) {
            let function = error.unknown_function().map(str::to_owned);
            let problem = FileProblem {
                function,
                ..FileProblem::new(path, Some(error.line), error.message)
            };
            self.add(part, problem);
        }
    }

    fn other_language(&mut self) {
        let Some(language) = &self.options.other_language else {
            return;
        };
        // One answer tells one file: that of a chart which may be off must not stand for others.
        for is_optional in [false, true] {
            let charts = self.others.iter().filter(|chart| chart.is_optional == is_optional);
            let charts = charts.map(|chart| OtherChart {
                folder: &chart.folder,
                root: Node::empty_map(),
                files: chart.files.iter().map(|(path, text)| (path.as_str(), *text)).collect(),
            });
            let charts: Vec<_> = charts.collect();
            if charts.is_empty() {
                continue;
            }
            if let Err(OtherProblem { template, line, source }) = language.check(&charts) {
                self.problems.push(FileProblem {
                    is_optional,
                    ..FileProblem::new(template, line, source.to_string())
                });
            }
        }
    }

    fn add(&mut self, part: Part, problem: FileProblem) {
        self.problems.push(FileProblem {
            is_optional: part.is_optional,
            ..problem
        });
    }
}
