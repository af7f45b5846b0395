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

use crate::bounds::{self, BoundError};
use crate::value::Map;

/// The schema of a chart. Compiled when it is first needed, because Helm finds its mistakes only then.
#[derive(Debug)]
pub(crate) struct Schema {
    text: Arc<[u8]>,
    compiled: OnceLock<Kept>,
}

/// A schema once compiled, or Helm's words about what is wrong with it.
#[derive(Debug)]
struct Kept {
    compiled: Result<Compiled, String>,
    /// What compiling took. Every render pays it, so that none has more steps left than another.
    steps: u64,
}

impl Schema {
    pub(crate) fn new(text: impl Into<Arc<[u8]>>) -> Self {
        Self {
            text: text.into(),
            compiled: OnceLock::new(),
        }
    }

    /// What is wrong with values or with the schema.
    pub(crate) fn problem(&self, values: &Map) -> Option<Problem> {
        let compiled = match self.compiled().map(|kept| &kept.compiled) {
            Ok(Ok(compiled)) => compiled,
            Ok(Err(problem)) => return Some(Problem::of_schema(problem.clone())),
            Err(bound) => return Some(Problem::of_schema(bound.to_string())),
        };
        match validate::failure(compiled, &Json::of_map(values)) {
            Ok(failure) => failure.map(|failure| Problem {
                findings: failure.findings(),
                text: failure.lines() + "\n",
            }),
            Err(problem) => Some(Problem::of_schema(problem)),
        }
    }

    /// The compiled schema. Of a render that ends before there is one, nothing is kept.
    fn compiled(&self) -> Result<&Kept, BoundError> {
        if let Some(kept) = self.compiled.get() {
            bounds::spend(kept.steps)?;
            return Ok(kept);
        }
        let before = bounds::work();
        let compiled = compile(&self.text);
        bounds::check()?;
        let steps = bounds::work() - before;
        Ok(self.compiled.get_or_init(|| Kept { compiled, steps }))
    }
}

/// Why values are refused.
pub(crate) struct Problem {
    /// In Helm's words.
    pub(crate) text: String,
    /// The values, as JSON pointers, with what is wrong with them.
    pub(crate) findings: Vec<(String, String)>,
}

impl Problem {
    /// The schema cannot be used.
    fn of_schema(text: String) -> Self {
        Self {
            text,
            findings: Vec::new(),
        }
    }
}
