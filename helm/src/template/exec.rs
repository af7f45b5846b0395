//! Executes templates: walks their nodes and writes the output. Expressions are evaluated in `evaluate`, calls in `call`.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::syntax::{Branch, DOLLAR, Name, NodeId, NodeKind, Source, Tree};
use super::{Operand, Templates, is_true, parse};
use crate::format;
use crate::text;
use crate::value::{Bytes, Element, IntType, List, Shape, Value};

/// How often one name may be included within itself.
const MAX_NESTED_INCLUDES: usize = 1_000;

/// What one render may use up. The defaults are far beyond what real charts need.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes evaluated.
    pub steps: u64,
    /// Nested templates, blocks and parentheses together.
    pub depth: usize,
    /// Bytes made: what templates write, those included counted each time, and what functions give.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 200_000_000,
            depth: 20_000,
            output: 1 << 30,
        }
    }
}

/// A template that failed while it ran. Displays with Go's text, as Helm 3 shows it.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct ExecError {
    text: String,
}

impl ExecError {
    /// The error as Helm prints it: of `fail` and `required` only the place and the message remain.
    pub fn helm_text(&self) -> String {
        let mut parts = self.text.splitn(3, ": ").skip(1);
        if let (Some(location), Some(rest)) = (parts.next(), parts.next())
            && let Some(start) = rest.find(ERROR_START)
            && let Some(end) = rest.rfind(ERROR_END)
            && let Some(message) = rest.get(start + ERROR_START.len()..end)
        {
            return format!("execution error at ({location}): {message}");
        }
        self.text.clone()
    }
}

const ERROR_START: &str = "HELM_ERR_START";
const ERROR_END: &str = "HELM_ERR_END";

/// Marks the message of `fail` or `required`, so that it can be told from the places it passes on its way up.
pub(crate) fn marked_error(message: &[u8]) -> String {
    format!("{ERROR_START}{}{ERROR_END}", text::lossy(message))
}

/// Why an execution stopped: the text that the next template up wraps.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<format::FormatError> for Failure {
    fn from(error: format::FormatError) -> Self {
        Self(error.to_string())
    }
}

pub(super) type Executed<T> = Result<T, Failure>;

/// What follows after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The templates that a running template can see: those of the chart, or those plus what a `tpl` text defined.
struct Scope {
    own: HashMap<Arc<str>, Tree>,
    outer: Option<Rc<Self>>,
}

/// One template being executed.
pub(super) struct Frame {
    pub(super) name: Arc<str>,
    pub(super) source: Arc<Source>,
    /// The node that an error would be reported at.
    pub(super) at: Cell<NodeId>,
    /// Where its variables begin.
    base: usize,
}

/// Runs the templates of one render.
pub struct Executor<'t> {
    templates: &'t Templates,
    scope: Option<Rc<Scope>>,
    limits: Limits,
    steps: u64,
    depth: usize,
    written: usize,
    output: Vec<u8>,
    variables: Vec<(Name, Operand)>,
    included: HashMap<Bytes, usize>,
    parsed: HashMap<Bytes, Rc<[Tree]>>,
}

impl<'t> Executor<'t> {
    /// An executor for one render; its limits cover everything it executes.
    pub fn new(templates: &'t Templates, limits: Limits) -> Self {
        Self {
            templates,
            scope: None,
            limits,
            steps: 0,
            depth: 0,
            written: 0,
            output: Vec::new(),
            variables: Vec::new(),
            included: HashMap::new(),
            parsed: HashMap::new(),
        }
    }

    /// Executes a template; gives its output without the `<no value>` marks of missing values, as Helm does.
    ///
    /// Must run on a deep stack ([`super::on_deep_stack`]) when the limit of depth is the default.
    pub fn execute(&mut self, name: &str, data: Value) -> Result<Vec<u8>, ExecError> {
        let output = self
            .execute_named(name, data)
            .map_err(|Failure(text)| ExecError { text })?;
        Ok(without_marks(&output))
    }

    fn execute_named(&mut self, name: &str, data: Value) -> Executed<Vec<u8>> {
        let Some(tree) = self.find(name) else {
            return Err(Failure(format!(
                "template: no template {} associated with template \"gotpl\"",
                quoted(name.as_bytes())
            )));
        };
        self.capture(&tree, data)
    }

    fn find(&self, name: &str) -> Option<Tree> {
        let mut scope = self.scope.as_ref();
        while let Some(layer) = scope {
            if let Some(tree) = layer.own.get(name) {
                return Some(tree.clone());
            }
            scope = layer.outer.as_ref();
        }
        self.templates.find(name).cloned()
    }

    /// Executes a tree into a buffer of its own.
    fn capture(&mut self, tree: &Tree, data: Value) -> Executed<Vec<u8>> {
        let outer = std::mem::take(&mut self.output);
        let result = self.run(tree, Operand::from(data));
        let output = std::mem::replace(&mut self.output, outer);
        result.map(|()| output)
    }

    fn run(&mut self, tree: &Tree, dot: Operand) -> Executed<()> {
        let base = self.variables.len();
        let frame = Frame {
            name: tree.name.clone(),
            source: tree.source.clone(),
            at: Cell::new(tree.root),
            base,
        };
        self.variables.push((DOLLAR, dot.clone()));
        let result = self.walk(&frame, &dot, tree.root);
        self.variables.truncate(base);
        result.map(|_| ())
    }

    /// Helm's `include`.
    pub(crate) fn include(&mut self, name: &Bytes, data: Value) -> Executed<Value> {
        let nested = self.included.entry(name.clone()).or_default();
        if *nested > MAX_NESTED_INCLUDES {
            return Err(Failure(format!(
                "rendering template has a nested reference name: {}: unable to execute template",
                text::lossy(name)
            )));
        }
        *nested += 1;
        let result = self.execute_named(&text::lossy(name), data);
        if let Some(nested) = self.included.get_mut(name) {
            *nested -= 1;
        }
        result.map(Value::from)
    }

    /// Helm's `tpl`: the text is parsed and executed with all templates in sight; what it defines stays within it.
    pub(crate) fn expand(&mut self, template: &Bytes, data: Value) -> Executed<Value> {
        let trees = match self.parsed.get(template) {
            Some(trees) => trees.clone(),
            None => {
                let trees: Rc<[Tree]> = parse::parse("gotpl", template, self.templates.functions)
                    .map_err(|error| Failure(format!("cannot parse template {}: {error}", quoted(template))))?
                    .into();
                self.parsed.insert(template.clone(), trees.clone());
                trees
            }
        };
        let mut own = HashMap::new();
        for tree in trees.iter() {
            if !tree.is_empty() || self.find(&tree.name).is_none() {
                own.insert(tree.name.clone(), tree.clone());
            }
        }
        let Some(tree) = trees.iter().find(|tree| &*tree.name == "gotpl") else {
            return Ok(Value::from(""));
        };
        let outer = self.scope.take();
        self.scope = Some(Rc::new(Scope {
            own,
            outer: outer.clone(),
        }));
        let result = self.capture(tree, data);
        self.scope = outer;
        let output = result.map_err(|Failure(text)| {
            Failure(format!(
                "error during tpl function execution for {}: {text}",
                quoted(template)
            ))
        })?;
        Ok(Value::from(without_marks(&output)))
    }

    pub(super) fn step(&mut self, frame: &Frame, node: NodeId) -> Executed<()> {
        frame.at.set(node);
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(self.error(frame, format!("template takes more than {} steps", self.limits.steps)));
        }
        Ok(())
    }

    /// Runs `work` one level deeper.
    pub(super) fn deeper<T>(&mut self, frame: &Frame, work: impl FnOnce(&mut Self) -> Executed<T>) -> Executed<T> {
        if self.depth >= self.limits.depth {
            return Err(self.error(
                frame,
                format!("exceeded maximum template depth ({})", self.limits.depth),
            ));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// An error at the current node, in Go's words.
    #[expect(clippy::unused_self, reason = "every other way to fail goes through the executor")]
    pub(super) fn error(&self, frame: &Frame, message: impl AsRef<str>) -> Failure {
        let node = frame.at.get();
        Failure(format!(
            "template: {}: executing {} at <{}>: {}",
            frame.source.location(node),
            quoted(frame.name.as_bytes()),
            frame.source.describe(node),
            message.as_ref()
        ))
    }

    fn write(&mut self, frame: &Frame, bytes: &[u8]) -> Executed<()> {
        self.output.extend_from_slice(bytes);
        self.count_output(frame, bytes.len())
    }

    fn count_output(&mut self, frame: &Frame, bytes: usize) -> Executed<()> {
        self.written += bytes;
        if self.written > self.limits.output {
            return Err(self.error(frame, format!("templates make more than {} bytes", self.limits.output)));
        }
        Ok(())
    }

    /// Counts what a function made, so that templates cannot fill the memory without writing.
    pub(super) fn charge(&mut self, frame: &Frame, value: &Value) -> Executed<()> {
        let bytes = match value {
            Value::Str(text) | Value::Bytes(text) => text.len(),
            Value::List(list) => size_of_val(list.items()),
            _ => size_of::<Value>(),
        };
        self.count_output(frame, bytes)
    }

    fn walk(&mut self, frame: &Frame, dot: &Operand, node: NodeId) -> Executed<Flow> {
        self.step(frame, node)?;
        match frame.source.kind(node) {
            NodeKind::List(nodes) => return self.deeper(frame, |executor| executor.walk_list(frame, dot, nodes)),
            NodeKind::Text(range) => self.write(frame, &frame.source.text[range.clone()])?,
            NodeKind::Action(pipe) => self.walk_action(frame, dot, node, *pipe)?,
            NodeKind::If(branch) => return self.walk_branch(frame, dot, branch, false),
            NodeKind::With(branch) => return self.walk_branch(frame, dot, branch, true),
            NodeKind::Range(branch) => self.walk_range(frame, dot, node, branch)?,
            NodeKind::Template { name, pipe } => self.walk_template(frame, dot, name, *pipe)?,
            NodeKind::Break => return Ok(Flow::Break),
            NodeKind::Continue => return Ok(Flow::Continue),
            _ => return Err(self.error(frame, "unknown node")),
        }
        Ok(Flow::Next)
    }

    fn walk_list(&mut self, frame: &Frame, dot: &Operand, nodes: &[NodeId]) -> Executed<Flow> {
        for node in nodes {
            let flow = self.walk(frame, dot, *node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn walk_action(&mut self, frame: &Frame, dot: &Operand, node: NodeId, pipe: NodeId) -> Executed<()> {
        let value = self.pipeline(frame, dot, pipe)?;
        if matches!(frame.source.kind(pipe), NodeKind::Pipe(pipe) if !pipe.declared.is_empty()) {
            return Ok(());
        }
        frame.at.set(node);
        let before = self.output.len();
        if value.is_invalid() {
            self.output.extend_from_slice(NO_VALUE);
        } else {
            format::print_action(&value.value, &mut self.output)
                .map_err(|error| self.error(frame, error.to_string()))?;
        }
        self.count_output(frame, self.output.len() - before)
    }

    fn walk_branch(&mut self, frame: &Frame, dot: &Operand, branch: &Branch, is_with: bool) -> Executed<Flow> {
        let mark = self.variables.len();
        let value = self.pipeline(frame, dot, branch.pipe)?;
        let flow = if is_true(&value.value) {
            self.walk(frame, if is_with { &value } else { dot }, branch.list)?
        } else if let Some(else_list) = branch.else_list {
            self.walk(frame, dot, else_list)?
        } else {
            Flow::Next
        };
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn walk_range(&mut self, frame: &Frame, dot: &Operand, node: NodeId, branch: &Branch) -> Executed<()> {
        frame.at.set(node);
        let mark = self.variables.len();
        let value = self.pipeline(frame, dot, branch.pipe)?;
        let has_run = self.iterate(frame, branch, value.value)?;
        if let Some(else_list) = branch.else_list.filter(|_| !has_run) {
            self.walk(frame, dot, else_list)?;
        }
        self.variables.truncate(mark);
        Ok(())
    }

    /// Whether there was anything to iterate over.
    fn iterate(&mut self, frame: &Frame, branch: &Branch, value: Value) -> Executed<bool> {
        match value {
            Value::Nil => Ok(false),
            Value::Int(count, int_type) => self.iterate_integers(frame, branch, count, int_type),
            Value::Bytes(bytes) => {
                let items = bytes
                    .iter()
                    .map(|byte| Value::Int(i64::from(*byte), IntType::Uint8))
                    .collect();
                self.iterate(frame, branch, Value::List(List::of(Element::Int, items)))
            }
            Value::List(list) => {
                for (index, item) in (0..).zip(list.items()) {
                    let element = Operand::element(item.clone(), list.element());
                    if self.iteration(frame, branch, Operand::from(Value::int(index)), element)? == Flow::Break {
                        break;
                    }
                }
                Ok(!list.items().is_empty())
            }
            Value::Map(map) => {
                let entries = map.to_vec();
                let has_run = !entries.is_empty();
                for (key, item) in entries {
                    let element = Operand::element(item, map.element());
                    if self.iteration(frame, branch, Operand::from(Value::Str(key)), element)? == Flow::Break {
                        break;
                    }
                }
                Ok(has_run)
            }
            Value::Obj(ref object) => match object.shape() {
                Shape::Map(map) => self.iterate(frame, branch, Value::Map(map)),
                Shape::List(list) => self.iterate(frame, branch, Value::List(list)),
                Shape::Struct(_) | Shape::Pointer(_) => Err(self.not_iterable(frame, &value)),
            },
            Value::Bool(_) | Value::Float(_) | Value::Str(_) => Err(self.not_iterable(frame, &value)),
        }
    }

    fn not_iterable(&self, frame: &Frame, value: &Value) -> Failure {
        match format::sprint(std::slice::from_ref(value)) {
            Ok(printed) => self.error(frame, format!("range can't iterate over {}", text::lossy(&printed))),
            Err(error) => self.error(frame, error.to_string()),
        }
    }

    fn iterate_integers(&mut self, frame: &Frame, branch: &Branch, count: i64, int_type: IntType) -> Executed<bool> {
        if let NodeKind::Pipe(pipe) = frame.source.kind(branch.pipe)
            && pipe.declared.len() > 1
        {
            return Err(self.error(
                frame,
                format!("can't use {count} to iterate over more than one variable"),
            ));
        }
        for number in 0..count {
            let element = Operand::from(Value::Int(number, int_type));
            if self.iteration(frame, branch, Operand::default(), element)? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn iteration(&mut self, frame: &Frame, branch: &Branch, index: Operand, element: Operand) -> Executed<Flow> {
        let mark = self.variables.len();
        if let NodeKind::Pipe(pipe) = frame.source.kind(branch.pipe) {
            // With one variable it is the element, with two the index comes first.
            let values = match pipe.declared.len() {
                0 => Vec::new(),
                1 => vec![element.clone()],
                _ => vec![index, element.clone()],
            };
            let first = mark - values.len().min(mark);
            for (position, (name, value)) in pipe.declared.iter().zip(values).enumerate() {
                if pipe.is_assignment {
                    self.assign(frame, *name, value)?;
                } else {
                    self.variables[first + position].1 = value;
                }
            }
        }
        let flow = self.walk(frame, &element, branch.list)?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn walk_template(&mut self, frame: &Frame, dot: &Operand, name: &str, pipe: Option<NodeId>) -> Executed<()> {
        let Some(tree) = self.find(name) else {
            return Err(self.error(frame, format!("template {} not defined", quoted(name.as_bytes()))));
        };
        let data = match pipe {
            Some(pipe) => self.pipeline(frame, dot, pipe)?,
            None => Operand::default(),
        };
        self.run(&tree, data)
    }

    /// Declares a variable in the current block.
    pub(super) fn declare(&mut self, name: Name, value: Operand) {
        self.variables.push((name, value));
    }

    pub(super) fn assign(&mut self, frame: &Frame, name: Name, value: Operand) -> Executed<()> {
        match self.variables[frame.base..]
            .iter_mut()
            .rfind(|(known, _)| *known == name)
        {
            Some(variable) => {
                variable.1 = value;
                Ok(())
            }
            None => Err(self.undefined(frame, name)),
        }
    }

    pub(super) fn variable(&self, frame: &Frame, name: Name) -> Executed<Operand> {
        match self.variables[frame.base..].iter().rfind(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(self.undefined(frame, name)),
        }
    }

    fn undefined(&self, frame: &Frame, name: Name) -> Failure {
        self.error(frame, format!("undefined variable: {}", frame.source.name_of(name)))
    }
}

const NO_VALUE: &[u8] = b"<no value>";

fn without_marks(output: &[u8]) -> Vec<u8> {
    text::replace_all(output, NO_VALUE, b"")
}

fn quoted(text: &[u8]) -> String {
    text::lossy(&format::quote(text))
}
