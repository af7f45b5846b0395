//! What stands around an operator, and what a function is given.

use std::slice;

use super::{
    types::{BYTES, DURATION, Kinds, LIST, MAP, NULL, NUMBER, ORDERED, TEXT, TIMESTAMP, Type},
    walk::{MAY_BE_NEWER, Scope, Walk},
};
use crate::{
    evaluation::{FUNCTIONS, Gives, METHODS, Signature, is_pattern},
    nearest::offer,
    syntax::{Kind, Literal, Node, Operator},
};

impl<'s> Walk<'s> {
    pub(super) fn binary(
        &mut self,
        node: &'s Node,
        operator: Operator,
        left: &'s Node,
        right: &'s Node,
        scope: Scope<'_, 's>,
    ) -> Type<'s> {
        let (of_left, of_right) = (self.type_of(left, scope), self.type_of(right, scope));
        match operator {
            Operator::Equal | Operator::NotEqual => {
                self.equality(node, operator, (left, &of_left), (right, &of_right), scope);
                Type::Bool
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                if !of_left.may_be(of_right.kinds() & ORDERED) || differ(&of_left, &of_right) {
                    self.unfit(node, operator, &of_left, &of_right, scope);
                }
                Type::Bool
            }
            Operator::In => {
                self.membership(node, (left, &of_left), (right, &of_right), scope);
                Type::Bool
            }
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
                self.arithmetic(node, operator, &of_left, &of_right, scope)
            }
        }
    }

    fn equality(
        &mut self,
        node: &'s Node,
        operator: Operator,
        (left, of_left): (&'s Node, &Type<'s>),
        (right, of_right): (&'s Node, &Type<'s>),
        scope: Scope<'_, 's>,
    ) {
        let is_null = of_left.kinds() == NULL || of_right.kinds() == NULL;
        if differ(of_left, of_right) || (!is_null && !of_left.may_be(of_right.kinds())) {
            self.unfit(node, operator, of_left, of_right, scope);
            return;
        }
        self.values(node, operator, (left, of_left), slice::from_ref(right), scope);
        self.values(node, operator, (right, of_right), slice::from_ref(left), scope);
    }

    /// Texts that a field is compared with are among those that it can have. Where none is, and the whole needs one of them, it never holds; elsewhere it may hold
    /// all the same.
    fn values(
        &mut self,
        node: &'s Node,
        operator: Operator,
        (field, of): (&'s Node, &Type<'s>),
        written: &'s [Node],
        scope: Scope<'_, 's>,
    ) {
        let values = of.values();
        if values.is_empty() {
            return;
        }
        let is_different = operator == Operator::NotEqual;
        let texts = written.iter().filter_map(|written| match &written.kind {
            Kind::Literal(Literal::Text(text)) => Some(text.as_str()),
            _ => None,
        });
        // What is different from nothing is there, which is worth a question of any field.
        let impossible: Vec<&str> = texts
            .filter(|text| !(values.contains(text) || is_different && text.is_empty()))
            .collect();
        if impossible.is_empty() {
            return;
        }
        let mut offers = impossible.iter().map(|text| offer(text, values.iter().copied()));
        let offer = offers.find(|offer| !offer.is_empty()).unwrap_or_default();
        let texts: Vec<_> = impossible.iter().map(|text| format!("{text:?}")).collect();
        let (texts, values) = (texts.join(" or "), values.join(", "));
        let is_fatal = !is_different && impossible.len() == written.len() && self.is_needed(node);
        let message = format!("is never {texts} but one of {values}{offer}");
        match of.older() {
            Some(version) => self.note(
                field,
                scope,
                &format!("in Kubernetes {version} it is one of {values} and not {texts}{offer}; {MAY_BE_NEWER}"),
            ),
            None if is_fatal => self.error(field, scope, &message),
            None => self.note(field, scope, &message),
        }
    }

    fn membership(
        &mut self,
        node: &'s Node,
        (left, of_left): (&'s Node, &Type<'s>),
        (right, of_right): (&'s Node, &Type<'s>),
        scope: Scope<'_, 's>,
    ) {
        if !of_right.may_be(LIST | MAP) {
            self.unfit(node, Operator::In, of_left, of_right, scope);
            return;
        }
        if let Kind::List(elements) = &right.kind {
            self.values(node, Operator::In, (left, of_left), elements, scope);
        }
        let element = of_right.element();
        if !of_left.may_be(element.kinds() | NULL) || differ(of_left, &element) {
            self.unfit(node, Operator::In, of_left, &element, scope);
        }
    }

    fn arithmetic(
        &mut self,
        node: &'s Node,
        operator: Operator,
        left: &Type<'s>,
        right: &Type<'s>,
        scope: Scope<'_, 's>,
    ) -> Type<'s> {
        let both = left.kinds() & right.kinds();
        let times = DURATION | TIMESTAMP;
        let fits = match operator {
            Operator::Add => {
                both & (NUMBER | TEXT | BYTES | LIST | DURATION) != 0 || (left.may_be(times) && right.may_be(times))
            }
            Operator::Subtract => {
                both & (NUMBER | DURATION | TIMESTAMP) != 0 || (left.may_be(TIMESTAMP) && right.may_be(DURATION))
            }
            _ => both & NUMBER != 0,
        };
        let mixes = differ(left, right) && !(left.may_be(times) && right.may_be(times));
        if !fits || mixes {
            self.unfit(node, operator, left, right, scope);
            return Type::Any;
        }
        match (left.declared(), right.declared()) {
            (Some(of_left), Some(of_right)) if of_left == of_right && !left.may_be(TIMESTAMP) => left.clone(),
            _ => Type::Any,
        }
    }

    fn unfit(&mut self, node: &'s Node, operator: Operator, left: &Type<'s>, right: &Type<'s>, scope: Scope<'_, 's>) {
        let (left, right, symbol) = (left.told(), right.told(), operator.symbol());
        let message = match operator {
            Operator::Equal => format!("compares {left} with {right}, which are never equal"),
            Operator::NotEqual => format!("compares {left} with {right}, which are always different"),
            Operator::In => format!("looks for {left} in {right}, where it never is"),
            _ => format!("has {left} and {right} around {symbol}, which do not fit"),
        };
        self.error(node, scope, &message);
    }

    pub(super) fn call(
        &mut self,
        node: &'s Node,
        function: &str,
        target: Option<&'s Node>,
        arguments: &'s [Node],
        scope: Scope<'_, 's>,
    ) -> Type<'s> {
        let on = target.map(|target| (target, self.type_of(target, scope)));
        let given: Vec<_> = arguments.iter().map(|argument| self.type_of(argument, scope)).collect();
        let known: &[Signature] = if on.is_some() { &METHODS } else { &FUNCTIONS };
        let Some(signature) = known.iter().find(|signature| signature.name == function) else {
            let message = unknown(function, on.is_some());
            self.error(node, scope, &message);
            return Type::Any;
        };
        if !(signature.fewest..=signature.most).contains(&given.len()) {
            let (wanted, given) = (signature.most, given.len());
            self.error(
                node,
                scope,
                &format!("{function}() takes {wanted} arguments and has {given}"),
            );
        }
        if let Some((target, of)) = &on
            && !of.may_be(called_on(function))
        {
            self.error(
                target,
                scope,
                &format!("is {}, of which there is no {function}()", of.told()),
            );
        }
        let operands: Vec<_> = target.into_iter().chain(arguments).collect();
        if let ("matches", [_, pattern]) = (function, operands.as_slice())
            && let Kind::Literal(Literal::Text(text)) = &pattern.kind
            && !is_pattern(text)
        {
            self.error(pattern, scope, "is no valid pattern, or a too large one");
        }
        match signature.gives {
            Gives::Bool => Type::Bool,
            Gives::Int => Type::Int,
            Gives::Uint => Type::Uint,
            Gives::Double => Type::Double,
            Gives::Text => Type::Text,
            Gives::Bytes => Type::Bytes,
            Gives::Duration => Type::Duration,
            Gives::Timestamp => Type::Timestamp,
            Gives::Type => Type::Name,
            // `dyn()` is there to make the language forget the type.
            Gives::Same => Type::Any,
        }
    }
}

/// Whether the language itself refuses two types, because it knows both.
fn differ(left: &Type<'_>, right: &Type<'_>) -> bool {
    matches!((left.declared(), right.declared()), (Some(left), Some(right)) if left != right)
}

/// What a method can be called on.
fn called_on(method: &str) -> Kinds {
    match method {
        "contains" | "startsWith" | "endsWith" | "matches" => TEXT,
        "size" => TEXT | BYTES | LIST | MAP,
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => TIMESTAMP | DURATION,
        _ => TIMESTAMP,
    }
}

fn unknown(function: &str, is_method: bool) -> String {
    const MACROS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];
    if is_method && MACROS.contains(&function) {
        return format!("{function}() takes a name for the element and what is asked of it: {function}(x, x > 0)");
    }
    let (own, other): (&[Signature], &[Signature]) = if is_method {
        (&METHODS, &FUNCTIONS)
    } else {
        (&FUNCTIONS, &METHODS)
    };
    if other.iter().any(|signature| signature.name == function) {
        let how = if is_method {
            "with all its arguments in brackets"
        } else {
            "on something, with a dot before it"
        };
        return format!("{function}() is called {how}");
    }
    let names = own.iter().map(|signature| signature.name);
    let names: Vec<_> = names.chain(MACROS.into_iter().filter(|_| is_method)).collect();
    format!("there is no function {function}(){}", offer(function, names))
}
