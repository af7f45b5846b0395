//! The walk of an expression. A failure is a value like others until nobody absorbs it.

use std::collections::BTreeMap;

use super::{
    Missing, Outcome,
    budget::Budget,
    functions, operators,
    value::{Entries, List, TYPES, Value},
};
use crate::{
    syntax::{Expression, Kind, Literal, Macro, Node},
    words::cut,
};

/// Why a part has no value.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    Missing(Missing),
    Wrong(String),
    /// The budget is used up. Nothing absorbs this.
    TooMuch,
}

pub(super) type Evaluated<'a> = Result<Value<'a>, Failure>;

impl Failure {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Missing(missing) => Outcome::Missing(missing),
            Self::Wrong(message) => Outcome::Wrong { message },
            Self::TooMuch => Outcome::Wrong {
                message: "the expression costs too much for objects of this size: walk over fewer elements, or over \
                          fewer lists within lists"
                    .to_owned(),
            },
        }
    }
}

/// The variables of the macros around a part, from the inside out.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'a> {
    innermost: Option<&'s Variable<'s, 'a>>,
}

pub(super) struct Variable<'s, 'a> {
    name: &'a str,
    value: Value<'a>,
    /// What is walked over and which element this is, for its path.
    range: &'a Node,
    place: usize,
    around: Scope<'s, 'a>,
}

impl<'s, 'a> Scope<'s, 'a> {
    pub(super) const TOP: Self = Self { innermost: None };

    fn find(self, name: &str) -> Option<&'s Variable<'s, 'a>> {
        let variable = self.innermost?;
        if variable.name == name {
            Some(variable)
        } else {
            variable.around.find(name)
        }
    }
}

pub(super) struct Walk<'a> {
    pub(super) expression: &'a Expression,
    objects: &'a BTreeMap<String, Option<serde_json::Value>>,
    pub(super) budget: &'a Budget,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        expression: &'a Expression,
        objects: &'a BTreeMap<String, Option<serde_json::Value>>,
        budget: &'a Budget,
    ) -> Self {
        Self {
            expression,
            objects,
            budget,
        }
    }

    /// What a part gives.
    pub(super) fn value(&self, node: &'a Node, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        self.budget.take(1)?;
        match &node.kind {
            Kind::Literal(literal) => self.literal(literal),
            Kind::Name(name) => self.named(node, name, scope),
            Kind::Select { operand, field } => self.select(node, operand, field, scope),
            Kind::Has { operand, field } => self.presence(node, operand, field, scope),
            Kind::Index { operand, index } => self.index(node, operand, index, scope),
            Kind::Call {
                function,
                target,
                arguments,
            } => self.call(node, function, target.as_deref(), arguments, scope),
            Kind::Macro { .. } => self.each(node, scope),
            Kind::List(elements) => {
                let elements: Result<_, _> = elements.iter().map(|element| self.value(element, scope)).collect();
                elements.map(|elements| Value::List(List::Made(elements)))
            }
            Kind::Map(entries) => self.map(entries, scope),
            Kind::Not(operand) => match self.value(operand, scope)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => Err(self.wrong(node, &format!("negates a {}", other.type_name()))),
            },
            Kind::Negate(operand) => {
                let value = self.value(operand, scope)?;
                operators::negate(&value).map_err(|problem| self.wrong(node, &problem))
            }
            Kind::And(operands) => self.junction(operands, false, scope),
            Kind::Or(operands) => self.junction(operands, true, scope),
            Kind::Binary { operator, left, right } => {
                let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                let result = operators::apply(self.budget, *operator, &left, &right);
                result.map_err(|problem| problem.failure(self, node))
            }
            Kind::Choice {
                condition,
                then,
                otherwise,
            } => match self.value(condition, scope)? {
                Value::Bool(true) => self.value(then, scope),
                Value::Bool(false) => self.value(otherwise, scope),
                other => Err(self.wrong(condition, &format!("is of type {} and not bool", other.type_name()))),
            },
        }
    }

    fn literal(&self, literal: &'a Literal) -> Evaluated<'a> {
        Ok(match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::Int(*value),
            Literal::Uint(value) => Value::Uint(*value),
            Literal::Double(value) => Value::Double(*value),
            Literal::Text(text) => Value::borrowed(text),
            Literal::Bytes(bytes) => {
                self.budget.take_bytes(bytes.len())?;
                Value::Bytes(bytes.as_slice().into())
            }
        })
    }

    fn named(&self, node: &Node, name: &str, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        if let Some(variable) = scope.find(name) {
            return Ok(variable.value.clone());
        }
        match self.objects.get(name) {
            Some(Some(object)) => Ok(Value::of_json(object)),
            Some(None) => Err(Failure::Missing(Missing::Object {
                object: name.to_owned(),
            })),
            None => match TYPES.into_iter().find(|type_name| *type_name == name) {
                Some(type_name) => Ok(Value::Type(type_name)),
                None => Err(self.wrong(node, "is no object of the condition")),
            },
        }
    }

    fn select(&self, node: &Node, operand: &'a Node, field: &str, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let found = self.field(node, operand, field, scope)?;
        found.ok_or_else(|| self.missing(node, scope))
    }

    fn presence(&self, node: &Node, operand: &'a Node, field: &str, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let found = self.field(node, operand, field, scope)?;
        Ok(Value::Bool(found.is_some()))
    }

    fn field(
        &self,
        node: &Node,
        operand: &'a Node,
        field: &str,
        scope: Scope<'_, 'a>,
    ) -> Result<Option<Value<'a>>, Failure> {
        match self.value(operand, scope)? {
            Value::Map(entries) => operators::entry(self.budget, &entries, &Value::borrowed(field)),
            Value::List(_) => Err(self.wrong(node, "asks a list for a field")),
            // Also of a text or a number: the next object may have a map there.
            _ => Ok(None),
        }
    }

    fn index(&self, node: &Node, operand: &'a Node, index: &'a Node, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let (operand, index) = (self.value(operand, scope)?, self.value(index, scope)?);
        let found = match (&operand, &index) {
            (Value::Map(entries), _) => operators::entry(self.budget, entries, &index)?,
            (Value::List(list), _) => match operators::position(&index) {
                Some(place) => usize::try_from(place).ok().and_then(|place| list.get(place)),
                None => return Err(self.wrong(node, "asks a list for an element by something that is no whole number")),
            },
            _ => None,
        };
        found.ok_or_else(|| self.missing(node, scope))
    }

    fn call(
        &self,
        node: &Node,
        function: &str,
        target: Option<&'a Node>,
        arguments: &'a [Node],
        scope: Scope<'_, 'a>,
    ) -> Evaluated<'a> {
        let operands: Result<Vec<_>, _> = target
            .into_iter()
            .chain(arguments)
            .map(|operand| self.value(operand, scope))
            .collect();
        let result = functions::call(self.budget, function, target.is_some(), &operands?);
        result.map_err(|problem| problem.failure(self, node))
    }

    fn map(&self, entries: &'a [(Node, Node)], scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let mut made: Vec<(Value<'a>, Value<'a>)> = Vec::new();
        'entries: for (key, value) in entries {
            let (key, value) = (self.value(key, scope)?, self.value(value, scope)?);
            for (other, earlier) in &mut made {
                if operators::equal(self.budget, other, &key)? {
                    *earlier = value;
                    continue 'entries;
                }
            }
            made.push((key, value));
        }
        Ok(Value::Map(Entries::Made(made.into())))
    }

    /// `||` if the value that decides is true, `&&` if it is false. One operand that decides makes up for others that failed.
    fn junction(&self, operands: &'a [Node], decides: bool, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let mut undecided = Undecided::new(decides);
        for operand in operands {
            let value = self.value(operand, scope);
            if undecided.is_decided_by(self, operand, value)? {
                return Ok(Value::Bool(decides));
            }
        }
        undecided.result()
    }

    /// A macro: what is asked of, or made of, each element of a list or each key of a map.
    fn each(&self, node: &'a Node, scope: Scope<'_, 'a>) -> Evaluated<'a> {
        let Kind::Macro {
            which,
            range,
            variable,
            condition,
            transform,
        } = &node.kind
        else {
            return Err(self.wrong(node, "is no macro"));
        };
        let elements = self.elements(range, scope)?;
        let mut undecided = Undecided::new(*which == Macro::Exists);
        let mut made = Vec::new();
        let mut times = 0_u64;
        for place in 0..elements.len() {
            self.budget.take(1)?;
            let Some(value) = elements.get(place) else { break };
            let variable = Variable {
                name: variable,
                value: value.clone(),
                range,
                place,
                around: scope,
            };
            let inner = Scope {
                innermost: Some(&variable),
            };
            let asked = condition
                .as_deref()
                .map(|condition| (condition, self.value(condition, inner)));
            if let (Macro::All | Macro::Exists, Some((condition, answer))) = (which, asked.clone()) {
                if undecided.is_decided_by(self, condition, answer)? {
                    return Ok(Value::Bool(undecided.decides));
                }
                continue;
            }
            if let Some((condition, answer)) = asked
                && !self.truth(condition, answer?)?
            {
                continue;
            }
            times += 1;
            made.push(
                transform
                    .as_deref()
                    .map_or(Ok(value), |transform| self.value(transform, inner))?,
            );
        }
        match which {
            Macro::All | Macro::Exists => undecided.result(),
            Macro::ExistsOne => Ok(Value::Bool(times == 1)),
            Macro::Filter | Macro::Map => Ok(Value::List(List::Made(made.into()))),
        }
    }

    /// What a macro walks over.
    fn elements(&self, range: &'a Node, scope: Scope<'_, 'a>) -> Result<List<'a>, Failure> {
        match self.value(range, scope)? {
            Value::List(list) => Ok(list),
            Value::Map(entries) => {
                self.budget.take(entries.len())?;
                Ok(List::Made(entries.keys().into()))
            }
            other => Err(self.wrong(
                range,
                &format!("is a {} and has no elements to walk over", other.type_name()),
            )),
        }
    }

    fn truth(&self, node: &Node, value: Value<'_>) -> Result<bool, Failure> {
        match value {
            Value::Bool(value) => Ok(value),
            other => Err(self.wrong(node, &format!("is of type {} and not bool", other.type_name()))),
        }
    }

    pub(super) fn wrong(&self, node: &Node, problem: &str) -> Failure {
        let (position, written) = (self.expression.position(node), self.expression.written(node));
        Failure::Wrong(format!("{position}: {} {problem}", cut(written)))
    }

    fn missing(&self, node: &Node, scope: Scope<'_, 'a>) -> Failure {
        Failure::Missing(Missing::Path {
            path: cut(&self.path(node, scope)),
        })
    }

    /// The path of a part from its object on: a variable of a macro is the element that it stands for.
    fn path(&self, node: &Node, scope: Scope<'_, 'a>) -> String {
        match &node.kind {
            Kind::Name(name) => match scope.find(name) {
                Some(variable) => format!("{}[{}]", self.path(variable.range, variable.around), variable.place),
                None => name.clone(),
            },
            Kind::Select { operand, field } => format!("{}.{field}", self.path(operand, scope)),
            Kind::Index { operand, index } => {
                format!("{}[{}]", self.path(operand, scope), self.expression.written(index))
            }
            _ => self.expression.written(node).to_owned(),
        }
    }
}

/// Answers of which one would decide, and none did so far.
struct Undecided {
    decides: bool,
    failure: Option<Failure>,
}

impl Undecided {
    fn new(decides: bool) -> Self {
        Self { decides, failure: None }
    }

    /// Takes one answer. Only a used up budget ends it.
    fn is_decided_by(&mut self, walk: &Walk<'_>, node: &Node, answer: Evaluated<'_>) -> Result<bool, Failure> {
        match answer.and_then(|value| walk.truth(node, value)) {
            Ok(value) => Ok(value == self.decides),
            Err(Failure::TooMuch) => Err(Failure::TooMuch),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                Ok(false)
            }
        }
    }

    fn result<'a>(self) -> Evaluated<'a> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(Value::Bool(!self.decides)),
        }
    }
}
