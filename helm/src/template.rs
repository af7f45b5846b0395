//! Go's `text/template`, as Helm uses it: parsed once, executed many times.
//!
//! [`Templates`] is what a chart's files parse into; it is immutable, refers to no values and can be shared between
//! threads. An [`Executor`] runs the templates of one render: it owns the output, the limits and everything that
//! templates can change. Which functions exist is decided by the [`FunctionTable`] given to the parser.

mod call;
mod evaluate;
mod exec;
mod failure;
mod item;
mod lex;
pub(crate) mod literal;
mod operand;
mod origin;
mod parse;
mod stack;
mod syntax;
mod truth;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

pub use exec::{Executor, Limits};
pub use failure::{ExecError, Place};
pub(crate) use failure::{Failure, marked_error};
pub(crate) use operand::Operand;
pub(crate) use origin::{Origin, Output};
pub use parse::ParseError;
pub use stack::{StackError, on_deep_stack};
pub(crate) use truth::is_true;

use crate::functions::FunctionTable;
use syntax::Tree;

/// The named templates of one chart and its subcharts, which all share one namespace.
#[derive(Clone, Debug)]
pub struct Templates {
    functions: &'static FunctionTable,
    trees: HashMap<Arc<str>, Tree>,
    /// About what the texts and their trees take.
    memory: usize,
}

/// A parsed text: its own template and those defined in it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ParsedFile(Arc<[Tree]>);

impl ParsedFile {
    /// The first call of one of these functions.
    pub(crate) fn call_of(&self, functions: &[&str]) -> Option<(&'static str, Place)> {
        // All trees of a text have the same source.
        let Tree { name, source, .. } = self.0.first()?;
        let (function, node) = source.calls().find(|(function, _)| functions.contains(function))?;
        Some((function, Place::of_call(name, source, node, function)))
    }
}

/// How much memory the templates of a chart and its subcharts may take once parsed.
const MAX_TEMPLATES: usize = 128 << 20;

impl Templates {
    /// No templates yet; texts may use the functions of the table.
    pub fn new(functions: &'static FunctionTable) -> Self {
        Self {
            functions,
            trees: HashMap::new(),
            memory: 0,
        }
    }

    /// Parses a text under its own name and adds the templates defined in it.
    ///
    /// A template replaces an earlier one of the same name, unless it is nothing but space.
    pub fn parse(&mut self, name: &str, text: &[u8]) -> Result<(), ParseError> {
        let file = self.parse_file(name, &text.into())?;
        self.add_file(name, &file)
    }

    /// Parses a text without adding anything.
    pub(crate) fn parse_file(&self, name: &str, text: &Arc<[u8]>) -> Result<ParsedFile, ParseError> {
        Ok(ParsedFile(parse::parse(name, text, self.functions)?.into()))
    }

    /// Adds what parsing a text gave, unless all texts together take too much memory.
    pub(crate) fn add_file(&mut self, name: &str, file: &ParsedFile) -> Result<(), ParseError> {
        self.memory += file.0.first().map_or(0, Tree::memory);
        if self.memory > MAX_TEMPLATES {
            return Err(ParseError {
                file: name.to_owned(),
                line: 1,
                message: format!("templates take more than {MAX_TEMPLATES} bytes"),
            });
        }
        for tree in &*file.0 {
            self.add(tree.clone());
        }
        Ok(())
    }

    fn add(&mut self, tree: Tree) {
        if !tree.is_empty() || !self.trees.contains_key(&tree.name) {
            self.trees.insert(tree.name.clone(), tree);
        }
    }

    fn find(&self, name: &str) -> Option<&Tree> {
        self.trees.get(name)
    }
}
