//! What stands between two values, and what is found in lists and maps.

use std::cmp::Ordering;

use super::{
    budget::Budget,
    value::{Entries, List, Text, Value},
    walk::{Failure, Walk},
};
use crate::syntax::{Node, Operator};

/// Why an operator or a function gives nothing.
pub(super) enum Problem {
    /// What is wrong with the operands.
    Operands(String),
    Failure(Failure),
}

pub(super) type Applied<'a> = Result<Value<'a>, Problem>;

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<String> for Problem {
    fn from(problem: String) -> Self {
        Self::Operands(problem)
    }
}

impl Problem {
    /// The same, with the part of the expression in which it happened.
    pub(super) fn failure(self, walk: &Walk<'_>, node: &Node) -> Failure {
        match self {
            Self::Operands(problem) => walk.wrong(node, &problem),
            Self::Failure(failure) => failure,
        }
    }
}

pub(super) fn apply<'a>(budget: &Budget, operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Applied<'a> {
    let ordered = |accepts: fn(Ordering) -> bool| match order(budget, left, right)? {
        Ordered::Incomparable => Err(unfit(operator, left, right)),
        Ordered::As(None) => Err("orders something that is not a number".to_owned().into()),
        Ordered::As(Some(ordering)) => Ok(Value::Bool(accepts(ordering))),
    };
    match operator {
        Operator::Equal => Ok(Value::Bool(equal(budget, left, right)?)),
        Operator::NotEqual => Ok(Value::Bool(!equal(budget, left, right)?)),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::In => contains(budget, left, right)?.ok_or_else(|| unfit(operator, left, right)),
        Operator::Add => match joined(budget, left, right)? {
            Some(joined) => Ok(joined),
            None => arithmetic(operator, left, right),
        },
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            arithmetic(operator, left, right)
        }
    }
}

fn unfit(operator: Operator, left: &Value<'_>, right: &Value<'_>) -> Problem {
    let (left, right) = (left.type_name(), right.type_name());
    Problem::Operands(format!(
        "has {left} and {right} around {}, which do not fit",
        operator.symbol()
    ))
}

/// Whether two values are the same. Numbers are by their value, whatever their type; values of other different types are not.
pub(super) fn equal(budget: &Budget, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Failure> {
    budget.take(1)?;
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Text(left), Value::Text(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            Ok(**left == **right)
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Value::Duration(left), Value::Duration(right)) => Ok(left == right),
        (Value::Timestamp(left), Value::Timestamp(right)) => Ok(left.utc() == right.utc()),
        (Value::Type(left), Value::Type(right)) => Ok(left == right),
        (Value::List(left), Value::List(right)) => lists_equal(budget, left, right),
        (Value::Map(left), Value::Map(right)) => maps_equal(budget, left, right),
        _ => Ok(matches!(number_order(left, right), Ordered::As(Some(Ordering::Equal)))),
    }
}

fn lists_equal(budget: &Budget, left: &List<'_>, right: &List<'_>) -> Result<bool, Failure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for index in 0..left.len() {
        if let (Some(left), Some(right)) = (left.get(index), right.get(index))
            && !equal(budget, &left, &right)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(budget: &Budget, left: &Entries<'_>, right: &Entries<'_>) -> Result<bool, Failure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    budget.take(left.len())?;
    for key in left.keys() {
        let (Some(left), Some(right)) = (entry(budget, left, &key)?, entry(budget, right, &key)?) else {
            return Ok(false);
        };
        if !equal(budget, &left, &right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a map has for a key.
pub(super) fn entry<'a>(budget: &Budget, entries: &Entries<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Failure> {
    match entries {
        Entries::Json(entries) => {
            let Value::Text(key) = key else { return Ok(None) };
            budget.take_bytes(key.len())?;
            Ok(entries.get(&**key).map(Value::of_json))
        }
        Entries::Made(entries) => {
            for (own, value) in entries.iter() {
                if equal(budget, own, key)? {
                    return Ok(Some(value.clone()));
                }
            }
            Ok(None)
        }
    }
}

/// The place in a list that a number means; none if it is not whole.
pub(super) fn position(index: &Value<'_>) -> Option<i128> {
    match index {
        Value::Double(index) => whole(*index),
        _ => integer(index),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what is beyond the type is beyond every list"
)]
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0).then_some(number as i128)
}

enum Ordered {
    /// No value of one type is before or after one of the other.
    Incomparable,
    /// None: one of them is not a number.
    As(Option<Ordering>),
}

fn order(budget: &Budget, left: &Value<'_>, right: &Value<'_>) -> Result<Ordered, Failure> {
    let ordering = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            (**left).cmp(&**right)
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.take_bytes(left.len().min(right.len()))?;
            left.cmp(right)
        }
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.utc().cmp(&right.utc()),
        _ => return Ok(number_order(left, right)),
    };
    Ok(Ordered::As(Some(ordering)))
}

/// How two numbers stand to each other.
fn number_order(left: &Value<'_>, right: &Value<'_>) -> Ordered {
    Ordered::As(match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(double), other) | (other, Value::Double(double)) => {
            let Some(whole) = integer(other) else {
                return Ordered::Incomparable;
            };
            let ordering = against_whole(*double, whole);
            if matches!(left, Value::Double(_)) {
                ordering
            } else {
                ordering.map(Ordering::reverse)
            }
        }
        _ => match (integer(left), integer(right)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => return Ordered::Incomparable,
        },
    })
}

fn integer(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// As cel-go does it: beyond the range of the whole numbers by the double, within it as doubles.
#[expect(clippy::cast_precision_loss, reason = "the real one compares as doubles too")]
fn against_whole(double: f64, whole: i128) -> Option<Ordering> {
    double.partial_cmp(&(whole as f64))
}

/// Whether a list has an element, or a map a key; nothing if the right side is neither.
fn contains<'a>(budget: &Budget, left: &Value<'a>, right: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
    match right {
        Value::List(list) => {
            for index in 0..list.len() {
                if let Some(element) = list.get(index)
                    && equal(budget, left, &element)?
                {
                    return Ok(Some(Value::Bool(true)));
                }
            }
            Ok(Some(Value::Bool(false)))
        }
        Value::Map(entries) => Ok(Some(Value::Bool(entry(budget, entries, left)?.is_some()))),
        _ => Ok(None),
    }
}

/// Two texts, bytes or lists as one.
fn joined<'a>(budget: &Budget, left: &Value<'a>, right: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
    Ok(Some(match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            budget.take_bytes(left.len().saturating_add(right.len()))?;
            Value::Text(Text::Made([&**left, &**right].concat().into()))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.take_bytes(left.len().saturating_add(right.len()))?;
            Value::Bytes([&**left, &**right].concat().into())
        }
        (Value::List(left), Value::List(right)) => {
            budget.take(left.len().saturating_add(right.len()))?;
            let elements = |list: &List<'a>| (0..list.len()).filter_map(|index| list.get(index)).collect::<Vec<_>>();
            Value::List(List::Made([elements(left), elements(right)].concat().into()))
        }
        _ => return Ok(None),
    }))
}

fn arithmetic<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Applied<'a> {
    let result = match (left, right) {
        (Value::Int(left), Value::Int(right)) => match operator {
            Operator::Add => left.checked_add(*right),
            Operator::Subtract => left.checked_sub(*right),
            Operator::Multiply => left.checked_mul(*right),
            Operator::Divide => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }
        .map(Value::Int),
        (Value::Uint(left), Value::Uint(right)) => match operator {
            Operator::Add => left.checked_add(*right),
            Operator::Subtract => left.checked_sub(*right),
            Operator::Multiply => left.checked_mul(*right),
            Operator::Divide => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }
        .map(Value::Uint),
        (Value::Double(left), Value::Double(right)) => Some(Value::Double(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            _ => return Err(unfit(operator, &Value::Double(*left), &Value::Double(*right))),
        })),
        _ => return in_time(operator, left, right),
    };
    result.ok_or_else(|| {
        let by_zero = matches!(right, Value::Int(0) | Value::Uint(0));
        let divides = matches!(operator, Operator::Divide | Operator::Remainder);
        Problem::Operands(if by_zero && divides {
            "divides by zero".to_owned()
        } else {
            out_of_range()
        })
    })
}

/// Sums and differences of timestamps and durations.
fn in_time<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Applied<'a> {
    let result = match (operator, left, right) {
        (Operator::Add, Value::Duration(left), Value::Duration(right)) => left.checked_add(*right).map(Value::Duration),
        (Operator::Subtract, Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        (Operator::Add, Value::Timestamp(moment), Value::Duration(duration))
        | (Operator::Add, Value::Duration(duration), Value::Timestamp(moment)) => {
            moment.plus(*duration).map(Value::Timestamp)
        }
        (Operator::Subtract, Value::Timestamp(moment), Value::Duration(duration)) => {
            let back = duration.checked_neg();
            back.and_then(|back| moment.plus(back)).map(Value::Timestamp)
        }
        (Operator::Subtract, Value::Timestamp(left), Value::Timestamp(right)) => {
            left.since(*right).map(Value::Duration)
        }
        _ => return Err(unfit(operator, left, right)),
    };
    result.ok_or_else(|| out_of_range().into())
}

pub(super) fn out_of_range() -> String {
    "leaves the range of its type".to_owned()
}

pub(super) fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>, String> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(out_of_range),
        Value::Double(value) => Ok(Value::Double(-value)),
        other => Err(format!("takes the negative of a {}", other.type_name())),
    }
}
