//! Calls functions and methods: counts and checks arguments against the declared Go signature.
//!
//! All error texts that Go's reflection would give come from here; a function never sees an argument of a wrong type.

use super::exec::{Executed, Executor, Frame};
use super::failure::Failure;
use super::syntax::{NodeId, NodeKind};
use super::{Operand, is_true};
use crate::answers::Ask;
use crate::functions::{Body, Function, slim};
use crate::objects::time::{DURATION, duration};
use crate::time::Duration;
use crate::value::{Element, GoObject, IntType, Signature, Type, Value};

impl Executor<'_> {
    /// Calls a function. `arguments` begins with the function itself, unless it is empty; `last` came down the pipeline.
    pub(super) fn call_function(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        function: &'static Function,
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let name = function.name;
        let nodes = arguments.get(1..).unwrap_or_default();
        self.check_count(frame, name, function.signature, nodes, last.is_some())?;
        if let Body::And | Body::Or = function.body {
            return self.short_circuit(frame, dot, matches!(function.body, Body::Or), nodes, last);
        }
        let result = match function.body {
            Body::Operands(body) => {
                let operands: Vec<Operand> = self.arguments(frame, dot, function.signature, nodes, last)?;
                body(&operands).map_err(Failure::from)
            }
            body => {
                let values: Vec<Value> = self.arguments(frame, dot, function.signature, nodes, last)?;
                self.apply(frame, body, name, nodes, &values)
            }
        };
        self.count_work(frame, node)?;
        match result {
            Ok(value) => {
                self.count_made(frame, &value)?;
                Ok(Operand::from(value))
            }
            Err(failure) => Err(failure.at(&frame.name, &frame.source, node, Some(name))),
        }
    }

    fn apply(
        &mut self,
        frame: &Frame,
        body: Body,
        function: &'static str,
        nodes: &[NodeId],
        arguments: &[Value],
    ) -> Executed<Value> {
        match body {
            Body::Pure(body) => body(arguments).map_err(Failure::from),
            Body::Decimal(from, body) => body(&slim::with_decimals(arguments, from)).map_err(Failure::from),
            Body::Changing(body) => {
                self.remember_changed(arguments);
                body(arguments).map_err(Failure::from)
            }
            Body::Asking(body) => {
                let ask = Ask {
                    asker: &mut self.asker,
                    function,
                    arguments,
                };
                body(ask).map_err(Failure::from)
            }
            Body::Engine(body) => body(self, arguments),
            Body::Call | Body::And | Body::Or | Body::Operands(_) => {
                Err(Failure::from(not_callable(frame, nodes, arguments.first())))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the method, its receiver and its arguments")]
    pub(super) fn call_method(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        receiver: &dyn GoObject,
        name: &str,
        signature: Signature,
        node: NodeId,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let nodes = arguments.get(1..).unwrap_or_default();
        self.check_count(frame, name, signature, nodes, last.is_some())?;
        if let Some(problem) = receiver.uncallable(name) {
            return Err(self.error(frame, problem));
        }
        let values: Vec<Value> = self.arguments(frame, dot, signature, nodes, last)?;
        let result = receiver.call(name, &values);
        self.count_work(frame, node)?;
        match result {
            Ok(value) => {
                self.count_made(frame, &value)?;
                Ok(Operand::from(value))
            }
            Err(text) => Err(Failure::from(text).at(&frame.name, &frame.source, node, Some(name))),
        }
    }

    fn check_count(
        &self,
        frame: &Frame,
        name: &str,
        signature: Signature,
        nodes: &[NodeId],
        has_last: bool,
    ) -> Executed<()> {
        let declared = signature.parameters.len();
        let given = nodes.len() + usize::from(has_last);
        if signature.variadic && given < declared - 1 {
            let message = format!(
                "wrong number of args for {name}: want at least {} got {}",
                declared - 1,
                nodes.len()
            );
            return Err(self.error(frame, message));
        }
        if !signature.variadic && given != declared {
            return Err(self.error(
                frame,
                format!("wrong number of args for {name}: want {declared} got {given}"),
            ));
        }
        Ok(())
    }

    /// `and` and `or` stop at the argument that decides, and give it back.
    fn short_circuit(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        is_or: bool,
        nodes: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let mut value = Operand::default();
        for node in nodes {
            value = self.argument(frame, dot, Type::Reflect, *node)?;
            if is_true(&value.value) == is_or {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// The arguments as the function takes them, counted.
    fn arguments<T: From<Operand> + AsRef<Value>>(
        &mut self,
        frame: &Frame,
        dot: &Operand,
        signature: Signature,
        nodes: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Vec<T>> {
        let parameter = |index: usize| match signature.parameters.get(index) {
            Some(parameter) => *parameter,
            None => signature.parameters.last().copied().unwrap_or(Type::Any),
        };
        let mut arguments: Vec<T> = Vec::with_capacity(nodes.len() + usize::from(last.is_some()));
        for (index, node) in nodes.iter().enumerate() {
            arguments.push(self.argument(frame, dot, parameter(index), *node)?.into());
        }
        if let Some(last) = last {
            arguments.push(self.assignable(frame, last, parameter(nodes.len()))?.into());
        }
        self.count_given(frame, arguments.iter().map(AsRef::as_ref))?;
        Ok(arguments)
    }

    fn argument(&mut self, frame: &Frame, dot: &Operand, parameter: Type, node: NodeId) -> Executed<Operand> {
        self.step(frame, node)?;
        let operand = match frame.source.kind(node) {
            NodeKind::Dot => dot.clone(),
            NodeKind::Nil if parameter.can_be_nil() => {
                return Ok(Operand {
                    value: Value::Nil,
                    is_boxed: parameter == Type::Any,
                });
            }
            NodeKind::Nil => return Err(self.error(frame, format!("cannot assign nil to {}", parameter.name()))),
            NodeKind::Field(fields) => {
                let fields = frame.source.names(*fields);
                self.fields(frame, dot, dot.clone(), fields, node, &[], None)?
            }
            NodeKind::Variable { .. } => self.variable_node(frame, dot, node, &[], None)?,
            NodeKind::Pipe(_) => self.pipeline(frame, dot, node)?,
            NodeKind::Identifier(function) => self.call_function(frame, dot, function, node, &[], None)?,
            NodeKind::Chain { .. } => self.chain(frame, dot, node, &[], None)?,
            _ => return self.constant_argument(frame, parameter, node),
        };
        self.assignable(frame, operand, parameter)
    }

    /// A constant takes the type of the parameter, when its syntax allows that.
    fn constant_argument(&mut self, frame: &Frame, parameter: Type, node: NodeId) -> Executed<Operand> {
        let expected = match (parameter, frame.source.kind(node)) {
            (Type::Any | Type::Reflect, _) => return self.constant(frame, node),
            (Type::Bool, NodeKind::Bool(value)) => return Ok(Operand::from(Value::Bool(*value))),
            (Type::Str, NodeKind::String { value, .. }) => {
                return Ok(Operand::from(Value::from(frame.source.content(*value))));
            }
            (Type::Int | Type::Int64, NodeKind::Number(number)) if let Some(int) = number.int => {
                let int_type = if parameter == Type::Int {
                    IntType::Int
                } else {
                    IntType::Int64
                };
                return Ok(Operand::from(Value::Int(int, int_type)));
            }
            (Type::Float64, NodeKind::Number(number)) if let Some(float) = number.float => {
                return Ok(Operand::from(Value::Float(float)));
            }
            (Type::Named(name), kind) if name == DURATION => match kind {
                NodeKind::Number(number) if let Some(int) = number.int => {
                    return Ok(Operand::from(duration(Duration(int))));
                }
                _ => "integer",
            },
            (Type::Uint32, NodeKind::Number(number)) if let Some(uint) = number.uint => {
                // Go drops what does not fit.
                return Ok(Operand::from(Value::int64((uint & u64::from(u32::MAX)).cast_signed())));
            }
            (Type::Bool, _) => "bool",
            (Type::Str, _) => "string",
            (Type::Int | Type::Int64, _) => "integer",
            (Type::Uint32, _) => "unsigned integer",
            (Type::Float64, _) => "float",
            _ => {
                let described = frame.source.describe(node);
                let message = format!("can't handle {described} for arg of type {}", parameter.name());
                return Err(self.error(frame, message));
            }
        };
        Err(self.error(
            frame,
            format!("expected {expected}; found {}", frame.source.describe(node)),
        ))
    }

    /// Checks that a value can be given to a parameter.
    fn assignable(&self, frame: &Frame, operand: Operand, parameter: Type) -> Executed<Operand> {
        match (parameter, &operand.value) {
            (Type::Any, Value::Obj(object)) => {
                return Ok(object.boxed().map_or_else(|| operand.clone(), Operand::from));
            }
            (Type::Any | Type::Reflect, _) => return Ok(operand),
            _ => {}
        }
        if operand.is_invalid() {
            if parameter.can_be_nil() {
                return Ok(operand);
            }
            return Err(self.error(frame, format!("invalid value; expected {}", parameter.name())));
        }
        match fit(operand.value, parameter) {
            Ok(value) => Ok(Operand::from(value)),
            Err(type_name) => Err(self.error(
                frame,
                format!("wrong type for value; expected {}; got {type_name}", parameter.name()),
            )),
        }
    }
}

/// Why the first argument of `call` cannot be called.
fn not_callable(frame: &Frame, nodes: &[NodeId], callee: Option<&Value>) -> String {
    let Some(callee) = callee.filter(|value| !matches!(value, Value::Nil)) else {
        return "call of nil".to_owned();
    };
    let name = match (nodes.first(), callee) {
        (Some(node), _) => frame.source.describe(*node),
        (None, Value::Str(text)) => crate::text::lossy(text),
        (None, other) => format!("<{} Value>", other.type_name()),
    };
    format!("non-function {name} of type {}", callee.type_name())
}

/// The value as the parameter sees it, or the name of its type when it cannot be assigned.
fn fit(value: Value, parameter: Type) -> Result<Value, String> {
    let fits = match (&value, parameter) {
        (Value::Bool(_), Type::Bool)
        | (Value::Float(_), Type::Float64)
        | (Value::Str(_), Type::Str)
        | (Value::Bytes(_), Type::Bytes)
        | (Value::Int(_, IntType::Int), Type::Int)
        | (Value::Int(_, IntType::Int64), Type::Int64) => true,
        (Value::List(list), Type::Strings) => list.element() == Element::Str,
        (Value::List(list), Type::List) => list.element() == Element::Any,
        // A named map type is assignable to the plain one and loses its name.
        (Value::Map(map), Type::Map) if map.element() == Element::Any => return Ok(Value::Map(map.unnamed())),
        (Value::Map(map), Type::StringMap) => map.element() == Element::Str,
        (other, Type::Named(name)) => other.type_name() == name,
        _ => false,
    };
    match value {
        value if fits => Ok(value),
        Value::Nil => Err("interface {}".to_owned()),
        value => Err(value.type_name()),
    }
}
