//! The walk of an expression that finds the type of every part.

use std::{
    collections::{BTreeMap, BTreeSet},
    ptr,
};

use super::{
    Finding, Severity,
    types::{BOOL, LIST, MAP, NUMBER, Type},
};
use crate::{
    evaluation::TYPES,
    nearest::{instead, offer},
    schemas::{ObjectKind, Schemas, Shape},
    syntax::{Expression, Kind, Literal, Macro, Node},
    words::{cut, cut_to},
};

/// Why something is not wrong that the table does not know.
pub(super) const MAY_BE_NEWER: &str = "the one that is meant is newer, and may have it: not checked";

/// Characters of a message.
const LONGEST_MESSAGE: usize = 400;

/// The variables of the macros around a part, from the inside out.
#[derive(Clone, Copy)]
pub(super) struct Scope<'c, 's> {
    innermost: Option<&'c Variable<'c, 's>>,
}

struct Variable<'c, 's> {
    name: &'s str,
    element: Type<'s>,
    path: String,
    around: Scope<'c, 's>,
}

impl<'c, 's> Scope<'c, 's> {
    pub(super) const TOP: Self = Self { innermost: None };

    fn find(self, name: &str) -> Option<&'c Variable<'c, 's>> {
        let variable = self.innermost?;
        if variable.name == name {
            Some(variable)
        } else {
            variable.around.find(name)
        }
    }
}

pub(super) struct Walk<'s> {
    expression: &'s Expression,
    objects: &'s BTreeMap<String, ObjectKind>,
    schemas: &'s Schemas,
    findings: Vec<Finding>,
    /// What the expression asks for with `has()`, as it is written.
    asked: BTreeSet<String>,
    /// The parts without which the expression never holds.
    needed: Vec<&'s Node>,
    /// Paths of which nothing is known, and that were noted.
    noted: BTreeSet<String>,
}

impl<'s> Walk<'s> {
    pub(super) fn new(
        expression: &'s Expression,
        objects: &'s BTreeMap<String, ObjectKind>,
        schemas: &'s Schemas,
    ) -> Self {
        Self {
            expression,
            objects,
            schemas,
            findings: Vec::new(),
            asked: asked(expression, &expression.root),
            needed: needed(&expression.root),
            noted: BTreeSet::new(),
        }
    }

    pub(super) fn findings(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.position);
        self.findings
    }

    /// The type of a part. Finds something to say about it and all parts below.
    pub(super) fn type_of(&mut self, node: &'s Node, scope: Scope<'_, 's>) -> Type<'s> {
        match &node.kind {
            Kind::Literal(literal) => Type::of_literal(literal),
            Kind::Name(name) => self.named(node, name, scope),
            Kind::Select { operand, field } => {
                let from = self.type_of(operand, scope);
                self.field(node, operand, &from, field, scope)
            }
            Kind::Has { operand, field } => {
                let from = self.type_of(operand, scope);
                self.field(node, operand, &from, field, scope);
                Type::Bool
            }
            Kind::Index { operand, index } => self.element(node, operand, index, scope),
            Kind::Call {
                function,
                target,
                arguments,
            } => self.call(node, function, target.as_deref(), arguments, scope),
            Kind::Macro { .. } => self.each(node, scope),
            Kind::List(elements) => self.list(elements, scope),
            Kind::Map(entries) => {
                for (key, value) in entries {
                    self.type_of(key, scope);
                    self.type_of(value, scope);
                }
                Type::Map
            }
            Kind::Not(operand) => {
                self.truth(operand, scope);
                Type::Bool
            }
            Kind::Negate(operand) => self.negative(operand, scope),
            Kind::And(operands) | Kind::Or(operands) => {
                for operand in operands {
                    self.truth(operand, scope);
                }
                Type::Bool
            }
            Kind::Binary { operator, left, right } => self.binary(node, *operator, left, right, scope),
            Kind::Choice {
                condition,
                then,
                otherwise,
            } => {
                self.truth(condition, scope);
                let (then, otherwise) = (self.type_of(then, scope), self.type_of(otherwise, scope));
                if then.kinds() == otherwise.kinds() {
                    then
                } else {
                    Type::Any
                }
            }
        }
    }

    fn list(&mut self, elements: &'s [Node], scope: Scope<'_, 's>) -> Type<'s> {
        let types: Vec<_> = elements.iter().map(|element| self.type_of(element, scope)).collect();
        let first = types.first().and_then(Type::declared);
        let alike = first.is_some() && types.iter().all(|element| element.declared() == first);
        let element = types.into_iter().next().filter(|_| alike);
        Type::List(element.unwrap_or(Type::Any).into())
    }

    fn negative(&mut self, operand: &'s Node, scope: Scope<'_, 's>) -> Type<'s> {
        let of = self.type_of(operand, scope);
        if !of.may_be(NUMBER) {
            self.error(operand, scope, &format!("is {} and has no negative", of.told()));
        }
        of
    }

    fn truth(&mut self, node: &'s Node, scope: Scope<'_, 's>) {
        let found = self.type_of(node, scope);
        if !found.may_be(BOOL) {
            self.error(
                node,
                scope,
                &format!("is {} and not true or false: compare it with something", found.told()),
            );
        }
    }

    fn named(&mut self, node: &'s Node, name: &'s str, scope: Scope<'_, 's>) -> Type<'s> {
        if let Some(variable) = scope.find(name) {
            return variable.element.clone();
        }
        if let Some(kind) = self.objects.get(name) {
            return self.object(node, kind, scope);
        }
        if TYPES.contains(&name) {
            return Type::Name;
        }
        let offer = offer(name, self.objects.keys().map(String::as_str));
        self.error(
            node,
            scope,
            &format!("no object of the condition has the key {name}{offer}"),
        );
        Type::Any
    }

    fn object(&mut self, node: &Node, kind: &ObjectKind, scope: Scope<'_, 's>) -> Type<'s> {
        if let Some(place) = self.schemas.of(kind) {
            return Type::Of(place);
        }
        let ObjectKind { api_version, kind } = kind;
        let message = format!("no schema of {kind} in {api_version} is known: its fields are not checked");
        self.note(node, scope, &message);
        Type::Any
    }

    /// The type of a field of something.
    fn field(
        &mut self,
        node: &'s Node,
        operand: &'s Node,
        from: &Type<'s>,
        field: &str,
        scope: Scope<'_, 's>,
    ) -> Type<'s> {
        let message = match from {
            Type::Of(place) => match place.shape() {
                Shape::Object(fields) => match fields.get(field) {
                    Some(found) => return Type::Of(found),
                    None if let Some(version) = place.older() => {
                        let offer = offer(field, fields.names());
                        let message = format!("Kubernetes {version} has no field {field}{offer}; {MAY_BE_NEWER}");
                        self.note(node, scope, &message);
                        return Type::Any;
                    }
                    None if fields.is_open => {
                        self.note(
                            node,
                            scope,
                            "the schema does not describe it, and allows it: not checked",
                        );
                        return Type::Any;
                    }
                    None => format!("there is no field {field}{}", instead(field, fields.names())),
                },
                Shape::Map(values) => return Type::Of(values),
                Shape::Any => {
                    self.note(operand, scope, "the schema does not say what is in it: not checked");
                    return Type::Any;
                }
                Shape::List(_) => format!("{field} is asked of a list: ask its elements, with exists() or all()"),
                _ => format!("{field} is asked of {}, which has no fields", from.told()),
            },
            Type::Any | Type::Map => return Type::Any,
            _ => format!("{field} is asked of {}, which has no fields", from.told()),
        };
        if self.is_asked(node) {
            self.note(node, scope, &format!("{message} (has() is never true of it here)"));
        } else {
            self.error(node, scope, &message);
        }
        Type::Any
    }

    /// Whether the expression makes sure that it is there.
    fn is_asked(&self, node: &Node) -> bool {
        let written = self.expression.written(node);
        matches!(node.kind, Kind::Has { .. })
            || self.asked.iter().any(|asked| {
                let rest = written.strip_prefix(asked.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
    }

    /// Whether the expression never holds where this part does not.
    pub(super) fn is_needed(&self, node: &Node) -> bool {
        self.needed.iter().any(|needed| ptr::eq(*needed, node))
    }

    fn element(&mut self, node: &'s Node, operand: &'s Node, index: &'s Node, scope: Scope<'_, 's>) -> Type<'s> {
        let from = self.type_of(operand, scope);
        let by = self.type_of(index, scope);
        if !from.may_be(LIST | MAP) {
            self.error(operand, scope, &format!("is {} and has no elements", from.told()));
            return Type::Any;
        }
        if !from.may_be(MAP) && !by.may_be(NUMBER) {
            self.error(
                index,
                scope,
                &format!("is {}, and an element of a list is asked for by its number", by.told()),
            );
            return Type::Any;
        }
        if let (Type::Of(_), Kind::Literal(Literal::Text(name))) = (&from, &index.kind) {
            return self.field(node, operand, &from, name, scope);
        }
        match &from {
            Type::List(element) => (**element).clone(),
            Type::Of(place) => match place.shape() {
                Shape::List(element) | Shape::Map(element) => Type::Of(element),
                _ => Type::Any,
            },
            _ => Type::Any,
        }
    }

    fn each(&mut self, node: &'s Node, scope: Scope<'_, 's>) -> Type<'s> {
        let Kind::Macro {
            which,
            range,
            variable,
            condition,
            transform,
        } = &node.kind
        else {
            return Type::Any;
        };
        let of = self.type_of(range, scope);
        if !of.may_be(LIST | MAP) {
            self.error(
                range,
                scope,
                &format!("is {} and has no elements to walk over", of.told()),
            );
        }
        let variable = Variable {
            name: variable,
            element: of.element(),
            path: format!("{}[]", self.path(range, scope)),
            around: scope,
        };
        let inner = Scope {
            innermost: Some(&variable),
        };
        if let Some(condition) = condition {
            self.truth(condition, inner);
        }
        let made = transform.as_deref().map(|transform| self.type_of(transform, inner));
        match which {
            Macro::All | Macro::Exists | Macro::ExistsOne => Type::Bool,
            Macro::Filter | Macro::Map => Type::List(made.unwrap_or_else(|| variable.element.clone()).into()),
        }
    }

    /// The path of a part from its object on: a variable of a macro is any element of what it walks over.
    pub(super) fn path(&self, node: &Node, scope: Scope<'_, 's>) -> String {
        match &node.kind {
            Kind::Name(name) => scope
                .find(name)
                .map_or_else(|| name.clone(), |variable| variable.path.clone()),
            Kind::Select { operand, field } | Kind::Has { operand, field } => {
                format!("{}.{field}", self.path(operand, scope))
            }
            Kind::Index { operand, index } => {
                format!("{}[{}]", self.path(operand, scope), self.expression.written(index))
            }
            _ => self.expression.written(node).to_owned(),
        }
    }

    pub(super) fn error(&mut self, node: &Node, scope: Scope<'_, 's>, message: &str) {
        self.find(Severity::Error, node, &self.path(node, scope), message);
    }

    /// Says once of each path what could not be checked.
    pub(super) fn note(&mut self, node: &Node, scope: Scope<'_, 's>, message: &str) {
        let path = self.path(node, scope);
        if self.noted.insert(path.clone()) {
            self.find(Severity::Note, node, &path, message);
        }
    }

    fn find(&mut self, severity: Severity, node: &Node, path: &str, message: &str) {
        self.findings.push(Finding {
            severity,
            position: self.expression.position(node),
            path: cut(path),
            message: cut_to(message, LONGEST_MESSAGE),
        });
    }
}

/// Every path in a `has()`, as it is written.
fn asked(expression: &Expression, node: &Node) -> BTreeSet<String> {
    let below = node.kind.children();
    let mut found: BTreeSet<_> = below.into_iter().flat_map(|child| asked(expression, child)).collect();
    if let Kind::Has { operand, field } = &node.kind {
        found.insert(format!("{}.{field}", expression.written(operand)));
    }
    found
}

/// The parts without which a part is never true: all that `&&` joins, and what one of several elements has to be.
fn needed(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::And(operands) => operands.iter().flat_map(needed).collect(),
        Kind::Macro {
            which: Macro::Exists | Macro::ExistsOne,
            condition: Some(condition),
            ..
        } => needed(condition),
        _ => vec![node],
    }
}
