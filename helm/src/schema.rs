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
    pub(crate) fn problem(&self, values: &Map) -> Option<String> {
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
