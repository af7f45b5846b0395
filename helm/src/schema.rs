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

use std::sync::{Arc, Mutex, PoisonError};

use compile::{Compiled, compile};
use document::Json;
use indexmap::IndexSet;

use crate::bounds::{self, BoundError};
use crate::url::HostRule;
use crate::value::Map;

/// How a version of Helm reads schemas and checks values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchemaRules {
    /// Which hosts URLs may have.
    pub(crate) hosts: HostRule,
    pub(crate) urns: Urns,
    pub(crate) checks: Checks,
}

/// What becomes of a reference to a URN that is none of the schema's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urns {
    /// Nothing can load it.
    Refused,
    /// It stands for the schema `true`.
    AllowAll,
}

/// How values are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Numbers are equal to strings that read as they do, items behind those with schemas of their own are counted from the first of
    /// them, names that are refused have no place, and an address of mail is quoted that only begins with a quote.
    Faulty,
    /// Without these faults.
    Mended,
}

/// The schema of a chart. Compiled when it is first needed, because Helm finds its mistakes only then.
#[derive(Debug)]
pub(crate) struct Schema {
    text: Arc<[u8]>,
    /// By rules, of which a chart sees few.
    compiled: Mutex<Vec<(SchemaRules, Arc<Kept>)>>,
}

/// A schema once compiled, or Helm's words about what is wrong with it.
#[derive(Debug)]
struct Kept {
    compiled: Result<Compiled, String>,
    /// URNs in it that allow everything because nothing can load them.
    unresolved: Vec<String>,
    /// What compiling took. Every render pays it, so that none has more steps left than another.
    steps: u64,
}

impl Schema {
    pub(crate) fn new(text: impl Into<Arc<[u8]>>) -> Self {
        Self {
            text: text.into(),
            compiled: Mutex::default(),
        }
    }

    /// What is wrong with values or with the schema. Adds the URNs that allow everything because nothing can load them.
    pub(crate) fn problem(
        &self,
        values: &Map,
        rules: SchemaRules,
        unresolved: &mut IndexSet<String>,
    ) -> Option<Problem> {
        let kept = match self.compiled(rules) {
            Ok(kept) => kept,
            Err(bound) => return Some(Problem::of_schema(bound.to_string())),
        };
        unresolved.extend(kept.unresolved.iter().cloned());
        let compiled = match &kept.compiled {
            Ok(compiled) => compiled,
            Err(problem) => return Some(Problem::of_schema(problem.clone())),
        };
        match validate::failure(compiled, &Json::of_map(values), rules, None) {
            Ok(failure) => failure.map(|failure| Problem {
                findings: failure.findings(),
                text: failure.lines() + "\n",
            }),
            Err(problem) => Some(Problem::of_schema(problem)),
        }
    }

    /// What is wrong with the schema itself, in Helm's words.
    pub(crate) fn mistake(&self, rules: SchemaRules) -> Option<String> {
        match self.compiled(rules) {
            Ok(kept) => kept.compiled.as_ref().err().cloned(),
            Err(bound) => Some(bound.to_string()),
        }
    }

    /// The compiled schema. Of a render that ends before there is one, nothing is kept.
    fn compiled(&self, rules: SchemaRules) -> Result<Arc<Kept>, BoundError> {
        let all = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all()
            .iter()
            .find(|(of, _)| *of == rules)
            .map(|(_, kept)| Arc::clone(kept));
        if let Some(kept) = known {
            bounds::spend(kept.steps)?;
            return Ok(kept);
        }
        let before = bounds::work();
        let (compiled, unresolved) = compile(&self.text, rules);
        bounds::check()?;
        let steps = bounds::work() - before;
        let kept = Arc::new(Kept {
            compiled,
            unresolved,
            steps,
        });
        all().push((rules, Arc::clone(&kept)));
        Ok(kept)
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
