//! Values as `helm template` takes them from its command line: files, then assignments by kind, each over what was there.
//!
//! For people at a terminal and for tools that speak like Helm. Never for data that comes from elsewhere: an assignment names files.

mod assignments;

use assignments::{Assignment, Fault, assign};

use crate::bounds::{Apart, is_met};
use crate::chart::merge_values;
use crate::chart::values;
use crate::json;
use crate::profile::{Profile, SetJson};
use crate::yaml::Node;

/// The arguments of `helm template` that set values, each kind in the order given.
///
/// ```
/// use helm::command_line::ValueArguments;
///
/// let arguments = ValueArguments {
///     files: vec!["prod.yaml".to_owned()],
///     set: vec!["image.tag=v2,replicas=3".to_owned()],
///     ..ValueArguments::default()
/// };
/// let values = arguments.values(helm::Profile::V3_19, &mut |_| Ok(b"image: {name: web, tag: v1}".to_vec()))?;
/// assert_eq!(values.get("replicas"), Some(&helm::yaml::Node::Int(3)));
/// # Ok::<(), helm::command_line::ValuesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueArguments {
    /// `--values`, `-f`: names of YAML files.
    pub files: Vec<String>,
    /// `--set-json`: `a.b={"c": 1},d=2`, from Helm 4 on also a JSON object.
    pub set_json: Vec<String>,
    /// `--set`: `a.b=c,d[0]={1,2},e=null`
    pub set: Vec<String>,
    /// `--set-string`: like `--set`, but every value is a string.
    pub set_string: Vec<String>,
    /// `--set-file`: like `--set`, but every value names a file, whose content is the value.
    pub set_file: Vec<String>,
    /// `--set-literal`: `a.b=value`, where nothing in the value is special.
    pub set_literal: Vec<String>,
}

/// Why arguments give no values. Displays as Helm's error without `Error: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A file of values was not read.
    #[error("{0}")]
    ReadFile(String),
    /// A file of values is no mapping.
    #[error("failed to parse {file}: {problem}")]
    ParseFile {
        /// The name as given.
        file: String,
        /// What is wrong, in Helm's words.
        problem: String,
    },
    /// A text of `--set-json` is none.
    #[error("failed parsing --set-json data {0}")]
    Json(String),
    /// An object for `--set-json` is none.
    #[error("failed parsing --set-json data JSON: {0}")]
    JsonObject(String),
    /// Any of these, because of a limit that Helm does not have.
    #[error(transparent)]
    Limit(Box<Self>),
    /// Another assignment is none.
    #[error("failed parsing --{flag} data: {problem}")]
    Assignment {
        /// The flag, without hyphens.
        flag: &'static str,
        /// What is wrong, in Helm's words.
        problem: String,
    },
}

impl ValuesError {
    /// Whether a limit was met that Helm does not have.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_))
    }
}

/// Gives the content of a file by its name, or why there is none.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

impl ValueArguments {
    /// The values of all arguments: a mapping, in which integers of assignments stay integers and all other numbers are floats.
    pub fn values(&self, profile: &Profile, read_file: &mut ReadFile<'_>) -> Result<Node, ValuesError> {
        let _apart = Apart::within(u64::MAX, None);
        self.merged(profile, read_file).map_err(|problem| match problem {
            problem if is_met() => ValuesError::Limit(Box::new(problem)),
            problem => problem,
        })
    }

    fn merged(&self, profile: &Profile, read_file: &mut ReadFile<'_>) -> Result<Node, ValuesError> {
        let mut merged = Node::empty_map();
        for file in &self.files {
            let text = read_file(file).map_err(ValuesError::ReadFile)?;
            let values = values::read(&text, profile.values_files).map_err(|problem| ValuesError::ParseFile {
                file: file.clone(),
                problem,
            })?;
            merge_values(&mut merged, values);
        }
        for text in &self.set_json {
            set_json(text, profile, &mut merged)?;
        }
        let open_index = profile.open_index;
        let failed = |flag| move |Fault(problem)| ValuesError::Assignment { flag, problem };
        for text in &self.set {
            assign(text, Assignment::Typed, open_index, &mut merged).map_err(failed("set"))?;
        }
        for text in &self.set_string {
            assign(text, Assignment::Text, open_index, &mut merged).map_err(failed("set-string"))?;
        }
        for text in &self.set_file {
            assign(text, Assignment::File(read_file), open_index, &mut merged).map_err(failed("set-file"))?;
        }
        for text in &self.set_literal {
            assign(text, Assignment::Literal, open_index, &mut merged).map_err(failed("set-literal"))?;
        }
        Ok(merged)
    }
}

/// An object is laid over the values where the profile knows objects.
fn set_json(text: &str, profile: &Profile, merged: &mut Node) -> Result<(), ValuesError> {
    if profile.set_json != SetJson::AssignmentsOrObject || !text.trim().starts_with('{') {
        return assign(text, Assignment::Json, profile.open_index, merged)
            .map_err(|_| ValuesError::Json(text.to_owned()));
    }
    let object = json::decode(text.trim().as_bytes()).map_err(|_| ValuesError::JsonObject(text.to_owned()))?;
    merge_values(merged, object);
    Ok(())
}
