//! The state of one render's executions: output, variables, the templates in sight, and the limits of all of it. Nodes are walked in
//! `walk`, expressions evaluated in `evaluate`, functions called in `call`.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::failure::{EXPANDED, ExecError, Failure};
use super::origin::Origins;
use super::syntax::{DOLLAR, Name, NodeId, Source, Tree};
use super::{Operand, Templates, parse};
use crate::answers::{Answers, Asker};
use crate::bounds::{BYTES_PER_STEP, allow_work, beyond, note_work, take_work};
use crate::format;
use crate::text;
use crate::value::{Bytes, Map, Value};

/// How often one name may be included within itself.
const MAX_NESTED_INCLUDES: usize = 1_000;

/// How much of a text for `tpl` is parsed in about the time of a step.
const BYTES_PARSED_PER_STEP: usize = 4;

/// What one render may use up. By default it takes less than 512 MiB of memory, its chart included, whatever the chart does
/// (`tests/hostile/memory.rs` measures it), and real charts pass (`cargo xtask conformance`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes evaluated, and what functions do besides: one for every 256 bytes they are given, for example.
    pub steps: u64,
    /// Nested templates, blocks and parentheses together.
    pub depth: usize,
    /// Bytes made: what templates write, those included counted each time, and what functions make.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 10_000_000,
            depth: 20_000,
            output: 128 << 20,
        }
    }
}

pub(super) type Executed<T> = Result<T, Failure>;

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
    pub(super) base: usize,
    /// It is the file that is executed, and not called by a template.
    is_file: bool,
}

/// Runs the templates of one render.
pub struct Executor<'t> {
    templates: &'t Templates,
    scope: Option<Rc<Scope>>,
    limits: Limits,
    steps: u64,
    depth: usize,
    written: usize,
    pub(super) output: Vec<u8>,
    /// Who wrote the output of the file.
    origins: Origins,
    pub(super) variables: Vec<(Name, Operand)>,
    included: HashMap<Bytes, usize>,
    parsed: HashMap<Bytes, Rc<[Tree]>>,
    /// Maps that may have come to contain themselves.
    changed: Vec<Map>,
    cancelled: Arc<AtomicBool>,
    is_cancelled: bool,
    pub(super) missing: Missing,
    pub(super) asker: Asker,
}

/// What a key gives that a map does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Helm's choice: the zero value of what the map holds. Of a nil interface there are no fields.
    Zero,
    /// Go's own: no value at all, of which all fields are no value either.
    Nothing,
}

impl<'t> Executor<'t> {
    /// An executor for one render; its limits cover everything it executes.
    pub fn new(templates: &'t Templates, limits: Limits, answers: Arc<dyn Answers>) -> Self {
        Self {
            templates,
            scope: None,
            limits,
            steps: 0,
            depth: 0,
            written: 0,
            output: Vec::new(),
            origins: Origins::default(),
            variables: Vec::new(),
            included: HashMap::new(),
            parsed: HashMap::new(),
            changed: Vec::new(),
            cancelled: Arc::default(),
            is_cancelled: false,
            missing: Missing::Zero,
            asker: Asker::new(answers),
        }
    }

    /// Stops at the next step after the flag was raised.
    #[must_use]
    pub fn cancelled_by(self, cancelled: Arc<AtomicBool>) -> Self {
        Self { cancelled, ..self }
    }

    /// Executes a template; gives its output without the `<no value>` marks of missing values, as Helm does.
    ///
    /// Must run on a deep stack ([`super::on_deep_stack`]) when the limit of depth is the default.
    pub fn execute(&mut self, name: &str, data: Value) -> Result<Vec<u8>, ExecError> {
        let output = self.execute_marked(name, data)?;
        if is_marked(&output) {
            self.origins.remove(&output, NO_VALUE);
        }
        Ok(without_marks(output))
    }

    /// The same without what Helm asks of Go, for texts that are no files of a chart: with the marks, and with nothing for missing keys.
    pub(crate) fn execute_as_go(&mut self, name: &str, data: Value) -> Result<Vec<u8>, ExecError> {
        self.missing = Missing::Nothing;
        self.execute_marked(name, data)
    }

    fn execute_marked(&mut self, name: &str, data: Value) -> Result<Vec<u8>, ExecError> {
        self.asker.begin(name);
        self.origins = Origins::default();
        self.execute_named(name, data, true).map_err(|failure| {
            let lacks = self.asker.refused.take();
            ExecError::new(failure, lacks, self.is_cancelled)
        })
    }

    /// Which parts of the file wrote the output that [`Executor::execute`] gave last.
    pub(crate) fn take_origins(&mut self) -> Origins {
        std::mem::take(&mut self.origins)
    }

    /// Notes which node writes next, or calls what does.
    pub(super) fn note_origin(&mut self, frame: &Frame, part: usize, is_text: bool) {
        if frame.is_file {
            self.origins.add(self.output.len(), part, is_text);
        }
    }

    /// Frees maps that contain themselves, which nothing else would: empties all that templates put maps or lists into, and the maps
    /// within. Values given to [`Executor::execute`] may be among them.
    pub fn dismantle(self) {
        let mut pending = self.changed;
        while let Some(map) = pending.pop() {
            let entries = std::mem::take(&mut *map.entries_mut());
            pending.extend(entries.into_values().filter_map(|value| match value {
                Value::Map(inner) => Some(inner),
                _ => None,
            }));
        }
    }

    pub(super) fn remember_changed(&mut self, arguments: &[Value]) {
        if let [Value::Map(map), given @ ..] = arguments
            && given
                .iter()
                .any(|value| matches!(value, Value::Map(_) | Value::List(_)))
        {
            self.changed.push(map.clone());
        }
    }

    fn execute_named(&mut self, name: &str, data: Value, is_file: bool) -> Executed<Vec<u8>> {
        let Some(tree) = self.find(name) else {
            return Err(Failure::from(format!(
                "template: no template {} associated with template \"gotpl\"",
                quoted(name.as_bytes())
            )));
        };
        self.capture(&tree, data, is_file)
    }

    pub(super) fn find(&self, name: &str) -> Option<Tree> {
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
    fn capture(&mut self, tree: &Tree, data: Value, is_file: bool) -> Executed<Vec<u8>> {
        let outer = std::mem::take(&mut self.output);
        let result = self.run(tree, &Operand::from(data), is_file);
        let output = std::mem::replace(&mut self.output, outer);
        result.map(|()| output)
    }

    pub(super) fn run(&mut self, tree: &Tree, dot: &Operand, is_file: bool) -> Executed<()> {
        let base = self.variables.len();
        let frame = Frame {
            name: tree.name.clone(),
            source: tree.source.clone(),
            at: Cell::new(tree.root),
            base,
            is_file,
        };
        self.variables.push((DOLLAR, dot.clone()));
        let result = self.walk(&frame, dot, tree.root);
        self.variables.truncate(base);
        result.map(|_| ())
    }

    /// Helm's `include`.
    pub(crate) fn include(&mut self, name: &Bytes, data: Value) -> Executed<Value> {
        let nested = self.included.entry(name.clone()).or_default();
        if *nested > MAX_NESTED_INCLUDES {
            return Err(Failure::from(format!(
                "rendering template has a nested reference name: {}: unable to execute template",
                text::lossy(name)
            )));
        }
        *nested += 1;
        let result = self.execute_named(&text::lossy(name), data, false);
        if let Some(nested) = self.included.get_mut(name) {
            *nested -= 1;
        }
        result.map(Value::from)
    }

    /// Helm's `tpl`: the text is parsed and executed with all templates in sight; what it defines stays within it.
    pub(crate) fn expand(&mut self, template: &Bytes, data: Value) -> Executed<Value> {
        let trees = self.parsed(template)?;
        let mut own = HashMap::new();
        for tree in trees.iter() {
            if !tree.is_empty() || self.find(&tree.name).is_none() {
                own.insert(tree.name.clone(), tree.clone());
            }
        }
        let Some(tree) = trees.iter().find(|tree| &*tree.name == EXPANDED) else {
            return Ok(Value::from(""));
        };
        let outer = self.scope.take();
        self.scope = Some(Rc::new(Scope {
            own,
            outer: outer.clone(),
        }));
        let result = self.capture(tree, data, false);
        self.scope = outer;
        let output = result.map_err(|failure| failure.expanding(template))?;
        Ok(Value::from(without_marks(output)))
    }

    /// The trees of a text for `tpl`. Charts expand the same few texts again and again.
    fn parsed(&mut self, template: &Bytes) -> Executed<Rc<[Tree]>> {
        if let Some(trees) = self.parsed.get(template) {
            return Ok(trees.clone());
        }
        note_work((template.len() / BYTES_PARSED_PER_STEP) as u64);
        let trees: Rc<[Tree]> = parse::parse(EXPANDED, &template[..].into(), self.templates.functions)
            .map_err(|error| Failure::from(format!("cannot parse template {}: {error}", quoted(template))))?
            .into();
        self.written += trees.first().map_or(0, Tree::memory);
        if self.written > self.limits.output {
            return Err(Failure::from(self.too_much_output()));
        }
        self.parsed.insert(template.clone(), trees.clone());
        Ok(trees)
    }

    pub(super) fn step(&mut self, frame: &Frame, node: NodeId) -> Executed<()> {
        frame.at.set(node);
        self.count_steps(frame, 1)
    }

    #[inline]
    pub(super) fn count_steps(&mut self, frame: &Frame, steps: u64) -> Executed<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.steps || self.cancelled.load(Ordering::Relaxed) {
            return Err(self.stopped(frame));
        }
        Ok(())
    }

    /// Why there is no further step.
    #[cold]
    fn stopped(&mut self, frame: &Frame) -> Failure {
        if self.steps > self.limits.steps {
            let message = beyond(format!("template takes more than {} steps", self.limits.steps));
            return self.error(frame, message);
        }
        self.is_cancelled = true;
        self.error(frame, "the render was cancelled")
    }

    /// Runs `work` one level deeper.
    pub(super) fn deeper<T>(&mut self, frame: &Frame, work: impl FnOnce(&mut Self) -> Executed<T>) -> Executed<T> {
        if self.depth >= self.limits.depth {
            return Err(self.error(
                frame,
                beyond(format!("exceeded maximum template depth ({})", self.limits.depth)),
            ));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// An error at the current node, in Go's words.
    #[expect(
        clippy::unused_self,
        reason = "called beside the other ends of a step, which change the executor"
    )]
    pub(super) fn error(&self, frame: &Frame, message: impl Into<String>) -> Failure {
        Failure::from(message.into()).at(&frame.name, &frame.source, frame.at.get(), None)
    }

    pub(super) fn write(&mut self, frame: &Frame, bytes: &[u8]) -> Executed<()> {
        self.output.extend_from_slice(bytes);
        self.count_output(frame, bytes.len())
    }

    pub(super) fn count_output(&mut self, frame: &Frame, bytes: usize) -> Executed<()> {
        self.written += bytes;
        if self.written > self.limits.output {
            return Err(self.error(frame, self.too_much_output()));
        }
        Ok(())
    }

    fn too_much_output(&self) -> String {
        beyond(format!("templates make more than {} bytes", self.limits.output))
    }

    /// Counts what a function was given, because a step that reads megabytes is more than one, and allows it what is left.
    pub(super) fn count_given<'v>(
        &mut self,
        frame: &Frame,
        arguments: impl Iterator<Item = &'v Value>,
    ) -> Executed<()> {
        let bytes: usize = arguments.map(Value::own_bytes).sum();
        self.count_steps(frame, (bytes / BYTES_PER_STEP) as u64)?;
        allow_work(self.limits.steps - self.steps);
        Ok(())
    }

    /// Counts what a function noted besides. A function that failed in templates within has no more to count, and its error is the one to tell.
    pub(super) fn count_work(&mut self, frame: &Frame, function: NodeId) -> Executed<()> {
        match take_work() {
            0 => Ok(()),
            steps => {
                let argument = frame.at.replace(function);
                self.count_steps(frame, steps)?;
                frame.at.set(argument);
                Ok(())
            }
        }
    }

    /// Counts what a function made, so that templates cannot fill the memory without writing.
    pub(super) fn count_made(&mut self, frame: &Frame, value: &Value) -> Executed<()> {
        self.count_output(frame, value.unshared_bytes())
    }
}

/// What Go writes for a missing value; Helm takes it out of the finished text.
pub(super) const NO_VALUE: &[u8] = b"<no value>";

fn is_marked(output: &[u8]) -> bool {
    text::find(output, NO_VALUE).is_some()
}

fn without_marks(output: Vec<u8>) -> Vec<u8> {
    if is_marked(&output) {
        text::replace_all(&output, NO_VALUE, b"")
    } else {
        output
    }
}

pub(super) fn quoted(text: &[u8]) -> String {
    text::lossy(&format::quote(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn a_map_that_a_template_put_into_itself_is_freed() {
        for template in [
            r#"{{ $_ := set . "self" . }}"#,
            r#"{{ $_ := set . "list" (list (dict "self" .)) }}"#,
            r#"{{ $_ := merge . (dict "inner" (dict "self" .)) }}"#,
        ] {
            let mut templates = Templates::new(Profile::V3_19.functions());
            templates.parse("t", template.as_bytes()).unwrap();
            let map = Map::new();
            map.insert("inner", Map::new());
            let mut executor = Executor::new(&templates, Limits::default(), Arc::new(crate::answers::Refusing));
            executor.execute("t", Value::Map(map.clone())).unwrap();
            assert!(map.is_shared(), "{template}");
            executor.dismantle();
            assert!(!map.is_shared(), "{template}");
        }
    }
}
