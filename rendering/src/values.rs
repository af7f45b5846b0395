//! Values of add-on charts: `cluster-addon-values.yaml` of a release and `overwrite.yaml` of a stage's chart, which are templates over the
//! objects of a cluster.
//!
//! What is written there is what the Go operator makes of it (`docs/reference/values.md`): Go's template language with the functions of
//! slim-sprig, then Helm's reading of `--values`. Files that end with `.tera` are Tera templates over the same roots. Nothing but the
//! objects takes part: no environment, network, file, clock or randomness. What a cluster is given besides lies over that, as further files of
//! `--values` do; templates do not see it, and no error repeats it.

mod error;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helm::command_line::ValueArguments;
use helm::yaml::{self, Node};
use helm::{Limits, OtherChart, OtherLanguage as _, go_text};
use serde_json::{Map, Value};

use crate::objects::{to_exact_node, to_json};
use crate::tera;
use crate::{HelmProfile, Renderer, deadline, digest, engine_profile};

pub use error::ValuesError;

/// How long a template of values may run, in either language. Real ones take microseconds.
const DEADLINE: Duration = tera::DEADLINE;

/// What a template of values may use up, if it is Go's: a tenth of the steps of a chart.
const LIMITS: Limits = Limits {
    steps: 1_000_000,
    depth: 20_000,
    output: 16 << 20,
};

/// What a template of values may write, in bytes. No API server would store so much.
const MAX_WRITTEN: usize = 1 << 20;

/// The end of the names of Tera templates.
const TERA: &str = ".tera";

/// A file with a template of values.
#[derive(Clone, Copy, Debug)]
pub struct ValuesTemplate<'a> {
    /// Its path in the release or in the archive of the add-ons, as errors name it: `cni/overwrite.yaml`. One that ends with `.tera` is a Tera
    /// template, every other one is Go's.
    pub path: &'a str,
    /// Its text.
    pub text: &'a [u8],
}

impl<'a> ValuesTemplate<'a> {
    /// As the only file of its language.
    fn alone(self, root: Node) -> OtherChart<'a> {
        OtherChart {
            folder: "",
            root,
            files: vec![(self.path, self.text)],
        }
    }

    fn failed(self, source: go_text::TextError) -> ValuesError {
        let file = self.path.to_owned();
        ValuesError::Go { file, source }
    }
}

/// What templates of values see.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// `.Cluster`: the Cluster in the API version that the release names.
    pub cluster: &'a Value,
    /// `.ControlPlane`: what the Cluster refers to; the key is not there when it refers to nothing.
    pub control_plane: Option<&'a Value>,
    /// `.InfraCluster`: likewise.
    pub infra_cluster: Option<&'a Value>,
}

/// Values that lie over those of a template. Nothing of them is told to anybody.
#[derive(Clone, Copy)]
pub struct ValuesDocument<'a> {
    /// How errors name it.
    pub name: &'a str,
    /// A mapping, in YAML; nothing is no values.
    pub text: &'a [u8],
}

impl fmt::Debug for ValuesDocument<'_> {
    /// Its name and size alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut document = formatter.debug_struct("ValuesDocument");
        document.field("name", &self.name).field("bytes", &self.text.len());
        document.finish_non_exhaustive()
    }
}

impl ValuesDocument<'_> {
    /// What it says, as Helm reads it.
    pub fn read(self, profile: HelmProfile) -> Result<Value, ValuesError> {
        let failed = |line| ValuesError::Document {
            name: self.name.to_owned(),
            line,
        };
        // The words about what is wrong quote it.
        let document = yaml::read(self.text).map_err(|error| match error {
            yaml::Error::Syntax { line, .. } => failed(line),
            yaml::Error::Content(_) | yaml::Error::NotJson(_) | yaml::Error::Bound(_) => failed(None),
        })?;
        if !matches!(document.node, Node::Null | Node::Map(_)) {
            return Err(failed(None));
        }
        let values = merged(&[self.text], profile);
        values.map(to_json).map_err(|_| failed(None))
    }
}

/// The values that a chart gets over its own.
#[derive(Clone, PartialEq)]
pub struct ChartValues {
    /// An object, for [`RenderRequest::values`](crate::RenderRequest::values). Whole numbers are integers here, whatever they were in the text.
    pub values: Value,
    /// `sha256:<hex>` of the canonical JSON of the values: equal values, equal digest, whatever of the objects went into them.
    pub digest: String,
}

impl fmt::Debug for ChartValues {
    /// Their digest alone: what a cluster is given is nobody's business.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = formatter.debug_struct("ChartValues");
        values.field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl ChartValues {
    /// No values: those of a chart without a template of values.
    pub fn none() -> Self {
        Self::of(Value::Object(Map::new()))
    }

    fn of(values: Value) -> Self {
        let digest = digest::of_json(&values);
        Self { values, digest }
    }
}

impl Renderer {
    /// The values that a template gives for a cluster, as the Helm version of the stack reads them, and what lies over them, of which the last counts.
    /// Blocks while the template runs, four seconds at most.
    ///
    /// The values are the text under the key `values`, if that is a text, else all that the template writes. A template that writes nothing,
    /// or comments alone, gives no values, and so does none.
    pub fn values(
        &self,
        template: Option<ValuesTemplate<'_>>,
        over: &[ValuesDocument<'_>],
        roots: Roots<'_>,
        profile: HelmProfile,
    ) -> Result<ChartValues, ValuesError> {
        let written = template
            .map(|template| self.written(template, roots, DEADLINE))
            .transpose()?;
        let taken = match (template, &written) {
            (Some(template), Some(written)) => taken(template.path, written, profile)?,
            _ => None,
        };
        if over.is_empty() {
            return Ok(taken.map_or_else(ChartValues::none, |taken| ChartValues::of(to_json(taken.values))));
        }
        for document in over {
            document.read(profile)?;
        }
        let texts = taken.iter().map(|taken| &*taken.text);
        let texts: Vec<&[u8]> = texts.chain(over.iter().map(|document| document.text)).collect();
        // Each of them has been read by itself.
        let values = merged(&texts, profile).map_err(|_| ValuesError::Together)?;
        Ok(ChartValues::of(to_json(values)))
    }

    /// What a template writes, if it does within that time.
    fn written(&self, template: ValuesTemplate<'_>, roots: Roots<'_>, limit: Duration) -> Result<Vec<u8>, ValuesError> {
        let over = Arc::<AtomicBool>::default();
        let roots = roots.to_node();
        let written = deadline::within(limit, &over, || {
            if template.path.ends_with(TERA) {
                self.write_as_tera(template, roots, &over)
            } else {
                write_as_go(template, &roots, &over)
            }
        });
        written.map_err(ValuesError::Watch)?.map_err(|error| {
            if over.load(Ordering::Relaxed) {
                error.late(limit)
            } else {
                error
            }
        })
    }

    /// Whether a template can give values at all, whatever the cluster is: one that is none, or calls what looks at anything but the objects of the
    /// cluster, cannot. Executes nothing. Blocks, four seconds at most.
    pub fn check_values(&self, template: ValuesTemplate<'_>) -> Result<(), ValuesError> {
        let over = Arc::<AtomicBool>::default();
        if template.path.ends_with(TERA) {
            let checked = self.tera_language(&over).check(&[template.alone(Node::empty_map())]);
            checked.map_err(|problem| ValuesError::of_tera(template.path, problem))
        } else {
            let checked = go_text::check(template.path, template.text, LIMITS, &over);
            checked.map_err(|source| template.failed(source))
        }
    }

    fn write_as_tera(
        &self,
        template: ValuesTemplate<'_>,
        root: Node,
        over: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, ValuesError> {
        let mut outputs = self
            .tera_language(over)
            .render(&[template.alone(root)])
            .map_err(|problem| ValuesError::of_tera(template.path, problem))?;
        // One file, one output.
        Ok(outputs.pop().unwrap_or_default())
    }
}

impl Roots<'_> {
    fn to_node(self) -> Node {
        let roots = [
            ("Cluster", Some(self.cluster)),
            ("ControlPlane", self.control_plane),
            ("InfraCluster", self.infra_cluster),
        ];
        let roots = roots
            .into_iter()
            .filter_map(|(name, object)| Some((name.to_owned(), to_exact_node(object?))));
        Node::Map(roots.collect::<BTreeMap<_, _>>())
    }
}

fn write_as_go(template: ValuesTemplate<'_>, roots: &Node, over: &Arc<AtomicBool>) -> Result<Vec<u8>, ValuesError> {
    let written = go_text::execute(template.path, template.text, roots, LIMITS, over);
    written.map_err(|source| template.failed(source))
}

/// The names of the functions that Go's templates of values can call, in no particular order.
pub fn values_functions() -> impl Iterator<Item = &'static str> {
    go_text::function_names()
}

/// Values that a template gives.
struct Taken<'w> {
    text: Cow<'w, [u8]>,
    values: Node,
}

/// What Helm takes of what a template wrote, if that is anything.
fn taken<'w>(file: &str, written: &'w [u8], profile: HelmProfile) -> Result<Option<Taken<'w>>, ValuesError> {
    let file = || file.to_owned();
    if written.len() > MAX_WRITTEN {
        let bytes = written.len();
        return Err(ValuesError::TooLong { file: file(), bytes });
    }
    let document = yaml::read(written).map_err(|source| ValuesError::Read { file: file(), source })?;
    let text = match &document.node {
        Node::Null => return Ok(None),
        Node::Map(entries) => entries.get("values").and_then(Node::as_text),
        _ => return Err(ValuesError::NoMapping { file: file() }),
    };
    let text = match text {
        Some(text) => Cow::Owned(text.as_bytes().to_vec()),
        None => Cow::Borrowed(written),
    };
    let arguments = ValueArguments {
        files: vec![file()],
        ..ValueArguments::default()
    };
    let values = arguments.values(engine_profile(profile), &mut |_| Ok(text.to_vec()));
    let values = values.map_err(|source| ValuesError::Take { file: file(), source })?;
    Ok(Some(Taken { text, values }))
}

/// All of these over each other, as with several times `--values`.
fn merged(texts: &[&[u8]], profile: HelmProfile) -> Result<Node, helm::command_line::ValuesError> {
    let arguments = ValueArguments {
        files: vec![String::new(); texts.len()],
        ..ValueArguments::default()
    };
    // They are read once each, in their order.
    let mut texts = texts.iter();
    let mut next = || texts.next().map(|text| text.to_vec()).unwrap_or_default();
    arguments.values(engine_profile(profile), &mut |_| Ok(next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    const PAGE: &str = include_str!("../../docs/reference/values.md");

    #[test]
    fn the_page_tells_the_limits_as_they_are() {
        let Limits { steps, depth, output } = LIMITS;
        for row in [
            format!("| time | {DEADLINE:?} | `did not end within {DEADLINE:?}` |"),
            format!("| {steps} | `template takes more than {steps} steps` |"),
            format!("| {output} bytes | `templates make more than {output} bytes` |"),
            format!("| {MAX_WRITTEN} bytes | `{MAX_WRITTEN} are allowed: shorten a loop` |"),
            format!("more than {depth} deep"),
        ] {
            assert!(PAGE.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_go_template_that_is_stopped_at_its_time_is_worth_another_try() {
        // Seconds of work, in steps of which each takes long.
        let text = b"{{ $text := repeat 800000 \"a\" }}{{ range until 300 }}{{ $_ := sha1sum $text }}{{ end }}";
        let path = "cni/overwrite.yaml";
        let roots = Roots {
            cluster: &Value::Null,
            control_plane: None,
            infra_cluster: None,
        };
        let limit = Duration::from_millis(1);
        let written = Renderer::new(0).written(ValuesTemplate { path, text }, roots, limit);
        let error = written.unwrap_err();
        assert!(matches!(error, ValuesError::Deadline { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Transient);
        assert_eq!(error.place(), Some((path, None)));
    }
}
