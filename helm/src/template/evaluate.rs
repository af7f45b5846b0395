//! Evaluates pipelines, commands and operands: constants, variables, fields, chains. Calls are decided in `call`.

use std::rc::Rc;

use super::Operand;
use super::exec::{Executed, Executor, Frame, Missing};
use super::failure::Failure;
use super::syntax::{Name, NodeId, NodeKind, Number};
use crate::objects::{Complex, ValuesMethods};
use crate::value::{GoObject as _, Map, Shape, Value};

impl Executor<'_> {
    pub(super) fn pipeline(&mut self, frame: &Frame, dot: &Operand, node: NodeId) -> Executed<Operand> {
        self.step(frame, node)?;
        let NodeKind::Pipe(pipe) = frame.source.kind(node) else {
            return Err(self.error(frame, "not a pipeline"));
        };
        let mut value = None;
        for command in frame.source.nodes(pipe.commands) {
            let result = self.deeper(frame, |executor| executor.command(frame, dot, *command, value.take()))?;
            value = Some(result.unboxed());
        }
        let value = value.unwrap_or_default();
        for name in frame.source.names(pipe.declared) {
            if pipe.is_assignment {
                self.assign(frame, *name, value.clone())?;
            } else {
                self.declare(*name, value.clone());
            }
        }
        Ok(value)
    }

    fn command(&mut self, frame: &Frame, dot: &Operand, command: NodeId, last: Option<Operand>) -> Executed<Operand> {
        let NodeKind::Command(arguments) = frame.source.kind(command) else {
            return Err(self.error(frame, "not a command"));
        };
        let arguments = frame.source.nodes(*arguments);
        let first = arguments[0];
        match frame.source.kind(first) {
            NodeKind::Field(fields) => {
                self.step(frame, first)?;
                let fields = frame.source.names(*fields);
                return self.fields(frame, dot, dot.clone(), fields, first, arguments, last);
            }
            NodeKind::Chain { .. } => return self.chain(frame, dot, first, arguments, last),
            NodeKind::Identifier(function) => {
                self.step(frame, first)?;
                return self.call_function(frame, dot, function, command, arguments, last);
            }
            NodeKind::Pipe(_) => {
                self.refuse_arguments(frame, arguments, last.as_ref())?;
                return self.pipeline(frame, dot, first);
            }
            NodeKind::Variable { .. } => return self.variable_node(frame, dot, first, arguments, last),
            _ => {}
        }
        self.step(frame, first)?;
        self.refuse_arguments(frame, arguments, last.as_ref())?;
        match frame.source.kind(first) {
            NodeKind::Nil => Err(self.error(frame, "nil is not a command")),
            NodeKind::Dot => Ok(dot.clone()),
            _ => self.constant(frame, first),
        }
    }

    fn refuse_arguments(&self, frame: &Frame, arguments: &[NodeId], last: Option<&Operand>) -> Executed<()> {
        if arguments.len() > 1 || last.is_some() {
            let described = frame.source.describe(arguments[0]);
            return Err(self.error(frame, format!("can't give argument to non-function {described}")));
        }
        Ok(())
    }

    /// A constant where no type is asked for: its syntax tells the type.
    pub(super) fn constant(&mut self, frame: &Frame, node: NodeId) -> Executed<Operand> {
        frame.at.set(node);
        let value = match frame.source.kind(node) {
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::String { value, .. } => Value::from(frame.source.content(*value)),
            NodeKind::Number(number) => return self.number(frame, number),
            _ => {
                let described = frame.source.describe(node);
                return Err(self.error(frame, format!("can't evaluate command {described:?}")));
            }
        };
        Ok(Operand::from(value))
    }

    fn number(&self, frame: &Frame, number: &Number) -> Executed<Operand> {
        let text = frame.source.text_of(number.text);
        let is_hexadecimal_integer =
            matches!(text, [b'0', b'x' | b'X', _, ..]) && !text.iter().any(|byte| matches!(byte, b'p' | b'P'));
        let is_character = text.starts_with(b"'");
        let looks_float = text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'p' | b'P'));
        if let Some((real, imaginary)) = number.complex {
            return Ok(Operand::from(Value::Obj(Rc::new(Complex(real, imaginary)))));
        }
        match (number.float, number.int) {
            (Some(float), _) if !is_hexadecimal_integer && !is_character && looks_float => {
                Ok(Operand::from(Value::Float(float)))
            }
            (_, Some(int)) => Ok(Operand::from(Value::int(int))),
            _ => Err(self.error(frame, format!("{} overflows int", crate::text::lossy(text)))),
        }
    }

    pub(super) fn chain(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        self.step(frame, node)?;
        let NodeKind::Chain { node: start, fields } = frame.source.kind(node) else {
            return Err(self.error(frame, "not a chain"));
        };
        let (start, fields) = (*start, frame.source.names(*fields));
        let receiver = match frame.source.kind(start) {
            NodeKind::Nil => {
                let described = frame.source.describe(node);
                return Err(self.error(frame, format!("indirection through explicit nil in {described}")));
            }
            NodeKind::Pipe(_) => {
                frame.at.set(start);
                self.pipeline(frame, dot, start)?
            }
            NodeKind::Identifier(function) => {
                frame.at.set(start);
                let value = self.call_function(frame, dot, function, start, &[], None)?;
                // What a function gives is still in the interface that it declares.
                let is_boxed = matches!(value.value, Value::Nil);
                Operand { is_boxed, ..value }
            }
            _ => self.constant(frame, start)?,
        };
        self.fields(frame, dot, receiver, fields, node, arguments, last)
    }

    pub(super) fn variable_node(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        self.step(frame, node)?;
        let NodeKind::Variable { name, fields } = frame.source.kind(node) else {
            return Err(self.error(frame, "not a variable"));
        };
        let value = self.variable(frame, *name)?;
        if fields.is_empty() {
            if !arguments.is_empty() {
                self.refuse_arguments(frame, arguments, last.as_ref())?;
            }
            return Ok(value);
        }
        self.fields(frame, dot, value, frame.source.names(*fields), node, arguments, last)
    }

    /// Walks `.a.b.c`; only the last one may be a method with arguments.
    #[expect(
        clippy::too_many_arguments,
        reason = "the receiver, the way along it and the arguments at its end"
    )]
    pub(super) fn fields(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        mut receiver: Operand,
        fields: &[Name],
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        for end in 1..fields.len() {
            receiver = self.field(frame, dot, &receiver, &fields[..end], node, &[], None)?;
        }
        if fields.is_empty() {
            return Ok(receiver);
        }
        self.field(frame, dot, &receiver, fields, node, arguments, last)
    }

    /// The last field of a path.
    #[expect(
        clippy::too_many_arguments,
        reason = "the receiver, its field and the arguments of a method"
    )]
    fn field(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        receiver: &Operand,
        path: &[Name],
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let Some(name) = path.last().map(|field| frame.source.name_of(*field)) else {
            return Ok(receiver.clone());
        };
        let has_arguments = arguments.len() > 1 || last.is_some();
        match &receiver.value {
            Value::Nil if receiver.is_boxed => {
                let message = format!("nil pointer evaluating interface {{}}.{name}");
                return Err(self.unreadable(frame, node, path, message));
            }
            Value::Nil => return Ok(Operand::default()),
            Value::Map(map) if map.name().is_some() => {
                let methods = ValuesMethods(map.clone());
                return match methods.method(name) {
                    Some(signature) => self.call_method(frame, dot, &methods, name, signature, node, arguments, last),
                    None => self.entry(frame, map, name, has_arguments),
                };
            }
            Value::Map(map) => return self.entry(frame, map, name, has_arguments),
            Value::Obj(object) => {
                if let Some(signature) = object.method(name) {
                    return self.call_method(frame, dot, &**object, name, signature, node, arguments, last);
                }
                if let Shape::Map(map) = object.shape() {
                    return self.entry(frame, &map, name, has_arguments);
                }
                if let Some(value) = object.field(name) {
                    if has_arguments {
                        let message = format!("{name} has arguments but cannot be invoked as function");
                        return Err(self.error(frame, message));
                    }
                    return Ok(Operand::from(value));
                }
                if object.hidden_fields().contains(&name) {
                    let type_name = object.type_name();
                    let message = format!("{name} is an unexported field of struct type {type_name}");
                    return Err(self.error(frame, message));
                }
            }
            _ => {}
        }
        let message = format!("can't evaluate field {name} in type {}", receiver.type_name());
        Err(self.unreadable(frame, node, path, message))
    }

    fn unreadable(&self, frame: &Frame, node: NodeId, path: &[Name], message: String) -> Failure {
        self.error(frame, message)
            .of_value(frame.source.describe_path(node, path))
    }

    fn entry(&self, frame: &Frame, map: &Map, name: &str, has_arguments: bool) -> Executed<Operand> {
        if has_arguments {
            return Err(self.error(frame, format!("{name} is not a method but has arguments")));
        }
        let value = match map.get(name) {
            Some(value) => value,
            None if self.missing == Missing::Nothing => return Ok(Operand::default()),
            None => map.element().zero(),
        };
        Ok(Operand::element(value, map.element()))
    }
}
