//! Walks the nodes of a template: what is written, which branch is taken, how often a body runs, which variables there are.
//! Knows nothing of how an expression gets its value: that is decided in `evaluate`.

use super::exec::{Executed, Executor, Frame, NO_VALUE, quoted};
use super::failure::Failure;
use super::syntax::{Branch, Inclusion, Name, NodeId, NodeKind};
use super::{Operand, is_true};
use crate::bounds::take_work;
use crate::format;
use crate::objects::time::counted;
use crate::text;
use crate::value::{Element, IntType, List, Shape, Value};

/// What follows after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

impl Executor<'_> {
    pub(super) fn walk(&mut self, frame: &Frame, dot: &Operand, node: NodeId) -> Executed<Flow> {
        self.step(frame, node)?;
        match frame.source.kind(node) {
            NodeKind::List(nodes) => {
                let nodes = frame.source.nodes(*nodes);
                return self.deeper(frame, |executor| executor.walk_list(frame, dot, nodes));
            }
            NodeKind::Text(span) => {
                self.note_origin(frame, span.start(), true);
                self.write(frame, frame.source.text_of(*span))?;
            }
            NodeKind::Action(pipe) => self.walk_action(frame, dot, node, *pipe)?,
            NodeKind::If(branch) => return self.walk_branch(frame, dot, branch, false),
            NodeKind::With(branch) => return self.walk_branch(frame, dot, branch, true),
            NodeKind::Range(branch) => self.walk_range(frame, dot, node, branch)?,
            NodeKind::Template(inclusion) => self.walk_template(frame, dot, node, inclusion)?,
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
        self.note_origin(frame, frame.source.offset(node), false);
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
            Value::Int(count, int_type) => {
                let count = int_type.number(count);
                self.iterate_integers(frame, branch, count, &value, |number| Value::Int(number, int_type))
            }
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
                    if self.iteration(frame, branch, Operand::from(Value::int(index)), &element)? == Flow::Break {
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
                    if self.iteration(frame, branch, Operand::from(Value::Str(key)), &element)? == Flow::Break {
                        break;
                    }
                }
                Ok(has_run)
            }
            Value::Obj(ref object) => {
                let shape = object.shape();
                self.count_steps(frame, take_work())?;
                match shape {
                    Shape::Map(map) => self.iterate(frame, branch, Value::Map(map)),
                    Shape::List(list) => self.iterate(frame, branch, Value::List(list)),
                    Shape::Struct(_) | Shape::Pointer(_) | Shape::Complex(..) => Err(self.not_iterable(frame, &value)),
                    Shape::Number(count, int_type) => {
                        let count = int_type.number(count);
                        self.iterate_integers(frame, branch, count, &value, |number| counted(&value, number))
                    }
                }
            }
            Value::Bool(_) | Value::Float(_) | Value::Str(_) => Err(self.not_iterable(frame, &value)),
        }
    }

    fn not_iterable(&self, frame: &Frame, value: &Value) -> Failure {
        match format::sprint_target(value) {
            Ok(printed) => self.error(frame, format!("range can't iterate over {}", text::lossy(&printed))),
            Err(error) => self.error(frame, error.to_string()),
        }
    }

    /// Counts up to a number; `element` gives each number the type that it has.
    fn iterate_integers(
        &mut self,
        frame: &Frame,
        branch: &Branch,
        count: i128,
        value: &Value,
        element: impl Fn(i64) -> Value,
    ) -> Executed<bool> {
        if let NodeKind::Pipe(pipe) = frame.source.kind(branch.pipe)
            && frame.source.names(pipe.declared).len() > 1
        {
            let shown = match format::sprint_target(value) {
                Ok(printed) => text::lossy(&printed),
                Err(error) => return Err(self.error(frame, error.to_string())),
            };
            let problem = format!("can't use {shown} to iterate over more than one variable");
            return Err(self.error(frame, problem));
        }
        let count = u64::try_from(count).unwrap_or(0);
        for number in 0..count {
            let element = Operand::from(element(number.cast_signed()));
            if self.iteration(frame, branch, Operand::default(), &element)? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn iteration(&mut self, frame: &Frame, branch: &Branch, index: Operand, element: &Operand) -> Executed<Flow> {
        let mark = self.variables.len();
        if let NodeKind::Pipe(pipe) = frame.source.kind(branch.pipe) {
            let declared = frame.source.names(pipe.declared);
            // With one variable it is the element, with two the index comes first.
            let values = match declared.len() {
                0 => Vec::new(),
                1 => vec![element.clone()],
                _ => vec![index, element.clone()],
            };
            let first = mark - values.len().min(mark);
            for (position, (name, value)) in declared.iter().zip(values).enumerate() {
                if pipe.is_assignment {
                    self.assign(frame, *name, value)?;
                } else {
                    self.variables[first + position].1 = value;
                }
            }
        }
        let flow = self.walk(frame, element, branch.list)?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn walk_template(&mut self, frame: &Frame, dot: &Operand, node: NodeId, included: &Inclusion) -> Executed<()> {
        let Inclusion { name, pipe } = included;
        let Some(tree) = self.find(name) else {
            return Err(self.error(frame, format!("template {} not defined", quoted(name.as_bytes()))));
        };
        let data = match pipe {
            Some(pipe) => self.pipeline(frame, dot, *pipe)?,
            None => Operand::default(),
        };
        self.note_origin(frame, frame.source.offset(node), false);
        self.run(&tree, &data, false)
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
