//! `values.schema.json`: JSON Schema of drafts 4 to 2020-12 as Helm reads it, with Helm's messages.
//!
//! Nothing is fetched: a schema can refer to itself and to what json-schema.org publishes. Regular expressions have Go's syntax. What a schema
//! may cost is bounded, in compiling as in checking.

mod address;
mod compile;
mod document;
mod draft;
mod failure;
mod format;
mod keywords;
mod number;
mod registry;
mod validate;

use std::sync::{Arc, OnceLock};

use compile::{Compiled, compile};
use document::Json;

use crate::chart::dependencies::{Instance, table};
use crate::value::Map;

/// The schema of a chart. Compiled when it is first needed, because Helm finds its mistakes only then.
#[derive(Debug)]
pub(crate) struct Schema {
    text: Arc<[u8]>,
    compiled: OnceLock<Result<Compiled, String>>,
}

impl Schema {
    pub(crate) fn new(text: impl Into<Arc<[u8]>>) -> Self {
        Self {
            text: text.into(),
            compiled: OnceLock::new(),
        }
    }

    /// What is wrong with values or with the schema, in Helm's words.
    fn problem(&self, values: &Map) -> Option<String> {
        let compiled = match self.compiled.get_or_init(|| compile(&self.text)) {
            Ok(compiled) => compiled,
            Err(problem) => return Some(problem.clone()),
        };
        match validate::problems(compiled, &Json::of_map(values)) {
            Ok(lines) => lines.map(|lines| lines + "\n"),
            Err(problem) => Some(problem),
        }
    }
}

/// Checks the coalesced values of a chart and all below it. The error is Helm's text.
pub(crate) fn check(chart: &Instance, values: &Map) -> Result<(), String> {
    let problems = problems(chart, values);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{problems}"
    ))
}

fn problems(chart: &Instance, values: &Map) -> String {
    let mut text = String::new();
    if let Some(problem) = chart.schema().and_then(|schema| schema.problem(values)) {
        text = format!("{}:\n{problem}", chart.metadata.name);
    }
    for child in &chart.dependencies {
        let section = table(values, &child.metadata.name).unwrap_or_default();
        text.push_str(&problems(child, &section));
    }
    text
}
