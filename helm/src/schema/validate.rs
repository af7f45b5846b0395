//! Whether a value satisfies a compiled schema, and if not, every reason, in the order in which Helm finds them. Where Helm takes the entries
//! of a Go map in random order, they are taken by name.

mod arrays;
mod combinations;
mod objects;
mod scalars;
mod unevaluated;

use std::cell::Cell;

use self::unevaluated::Unevaluated;
use super::SchemaRules;
use super::compile::Compiled;
use super::document::{Json, escape};
use super::draft::Draft;
use super::failure::Failure;
use super::keywords::{Id, Subschema, Type};
use super::registry::{Resources, location};
use crate::bounds::{self, beyond};
use crate::format::quoted;

/// How much one validation may look at.
const MAX_STEPS: u64 = 10_000_000;

/// How many steps are taken before the render pays for them.
const STEPS_PER_PAYMENT: u64 = 1 << 10;

/// How deeply schemas may lead to each other.
const MAX_DEPTH: usize = 2_000;

/// How many bytes of a message take about as long as looking at a value.
const BYTES_PER_STEP: u64 = 4;

/// What is wrong with a value, if anything is; the error is why that cannot be told. A value that is a schema has resources, each of which
/// is checked against the metaschema of its own draft.
pub(super) fn failure(
    compiled: &Compiled,
    value: &Json,
    rules: SchemaRules,
    resources: Option<&Resources>,
) -> Result<Option<Failure>, String> {
    let work = Work {
        rules,
        resources: resources.filter(|resources| resources.len() > 1),
        steps: Cell::default(),
        paid: Cell::default(),
        refused: Cell::default(),
        is_over: Cell::default(),
    };
    let found = whole(compiled, 0, value, &work, 0);
    work.pay();
    match work.refused.take() {
        Some(reason) => Err(reason),
        None => Ok(found.err()),
    }
}

/// Checks a value as the root of a document.
fn whole(compiled: &Compiled, id: Id, value: &Json, work: &Work<'_>, depth: usize) -> Result<(), Failure> {
    let subschema = &compiled.subschemas[id];
    let scope = Scope {
        compiled,
        id,
        keyword: "",
        value_depth: 0,
        depth,
        parent: None,
    };
    Visit {
        compiled,
        work,
        subschema,
        value,
        path: None,
        scope: &scope,
        is_quiet: false,
        unevaluated: Unevaluated::of(value, subschema, false),
        failures: Vec::new(),
    }
    .run()
    .map(|_| ())
}

/// What a validation goes by and has used up.
struct Work<'r> {
    rules: SchemaRules,
    /// Of a schema that is checked against a metaschema: what in it has a draft of its own.
    resources: Option<&'r Resources>,
    steps: Cell<u64>,
    /// How many of them the render has paid.
    paid: Cell<u64>,
    /// Why it came to its end.
    refused: Cell<Option<String>>,
    is_over: Cell<bool>,
}

impl Work<'_> {
    fn refuse(&self, reason: &str) {
        if !self.is_over.replace(true) {
            self.refused.set(Some(reason.to_owned()));
        }
    }

    fn spend(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
        if self.steps.get() > MAX_STEPS {
            self.refuse(beyond("values and schema take too many steps to compare"));
        }
        if self.steps.get() - self.paid.get() >= STEPS_PER_PAYMENT {
            self.pay();
        }
    }

    fn pay(&self) {
        let steps = self.steps.get() - self.paid.replace(self.steps.get());
        if let Err(bound) = bounds::spend(steps) {
            self.refuse(&bound.to_string());
        }
    }
}

/// The way to a value within the document.
#[derive(Clone, Copy)]
struct Path<'s> {
    token: &'s str,
    parent: Option<&'s Self>,
}

impl Path<'_> {
    fn pointer(path: Option<&Path<'_>>) -> String {
        path.map_or_else(String::new, |path| {
            let mut text = Path::pointer(path.parent);
            text.push('/');
            text.push_str(&escape(path.token));
            text
        })
    }
}

/// The way to a subschema.
#[derive(Clone, Copy)]
struct Scope<'s> {
    compiled: &'s Compiled,
    id: Id,
    /// The keyword of the reference that led here, if one did.
    keyword: &'s str,
    /// How many values lie around the one that is looked at.
    value_depth: usize,
    depth: usize,
    parent: Option<&'s Self>,
}

impl Scope<'_> {
    fn is_same_schema(&self, other: &Self) -> bool {
        self.id == other.id && std::ptr::eq(self.compiled, other.compiled)
    }

    fn location(&self) -> String {
        let subschema = &self.compiled.subschemas[self.id];
        location(&subschema.url, &subschema.pointer)
    }

    /// The keywords that led to the subschema.
    fn keyword_path(&self) -> String {
        let Some(parent) = self.parent else {
            return String::new();
        };
        let mut path = parent.keyword_path();
        if self.keyword.is_empty() {
            let (own, outer) = (self.location(), parent.location());
            path.push_str(own.get(outer.len()..).unwrap_or_default());
        } else {
            path.push('/');
            path.push_str(&escape(self.keyword));
        }
        path
    }
}

/// One subschema applied to one value.
struct Visit<'s, 'v> {
    compiled: &'s Compiled,
    work: &'s Work<'s>,
    subschema: &'s Subschema,
    value: &'v Json,
    path: Option<&'s Path<'s>>,
    scope: &'s Scope<'s>,
    /// Only whether there is a failure matters.
    is_quiet: bool,
    unevaluated: Unevaluated<'v>,
    failures: Vec<Failure>,
}

type Outcome<'v> = Result<Unevaluated<'v>, Failure>;

impl<'s, 'v> Visit<'s, 'v> {
    fn run(mut self) -> Outcome<'v> {
        self.work.spend(1 + self.unevaluated.len() as u64);
        if self.scope.depth > MAX_DEPTH {
            self.work.refuse("schema nests too deeply");
        }
        if self.work.is_over.get() {
            return Ok(self.unevaluated);
        }
        match self.subschema.always {
            Some(true) => return Ok(self.unevaluated),
            Some(false) => return Err(self.failure(|| "false schema".to_owned())),
            None => {}
        }
        if let Some(failure) = self.cycle().or_else(|| self.scalar_failure()) {
            return Err(failure);
        }
        if let Some(id) = self.subschema.reference {
            let referred = self.refer(id, "$ref");
            if self.subschema.draft < Draft::V2019 {
                return referred.map(|()| self.unevaluated);
            }
            self.add(referred);
        }
        match self.value {
            Json::Map(entries) => self.object(entries),
            Json::List(items) => self.array(items),
            Json::Text(text) => self.text(text),
            Json::Number(number) => self.number(number),
            Json::Null | Json::Bool(_) => {}
        }
        if self.failures.is_empty() || !self.is_quiet {
            self.other_references();
            self.combinations();
            self.rest();
        }
        if self.failures.is_empty() {
            Ok(self.unevaluated)
        } else {
            let at = self.at();
            Err(Failure::of_all(at, self.failures))
        }
    }

    /// A reference that leads back to a schema that is being applied to the same value.
    fn cycle(&self) -> Option<Failure> {
        let mut around = self.scope.parent;
        while let Some(scope) = around.filter(|scope| scope.value_depth == self.scope.value_depth) {
            self.work.spend(1);
            if scope.is_same_schema(self.scope) {
                return Some(self.failure(|| {
                    let (first, second) = (self.scope.keyword_path(), scope.keyword_path());
                    let url = self.scope.location();
                    format!(
                        "both {first} and {second} resolve to {} causing reference cycle",
                        quoted(&url)
                    )
                }));
            }
            around = scope.parent;
        }
        None
    }

    /// Checks that need no other subschema and make all others needless.
    fn scalar_failure(&self) -> Option<Failure> {
        let Subschema {
            types,
            value: wanted,
            values,
            format,
            ..
        } = self.subschema;
        if !types.allow(self.value) {
            return Some(self.failure(|| format!("got {}, want {}", Type::of(self.value).name(), types.names())));
        }
        if let Some(wanted) = wanted.as_ref().filter(|wanted| !self.equals(self.value, wanted)) {
            return Some(self.failure(|| scalars::wanted_value(wanted)));
        }
        if let Some(wanted) = values.as_ref().filter(|values| !self.is_among(values)) {
            return Some(self.failure(|| scalars::wanted_values(wanted)));
        }
        let problem = format.and_then(|format| Some((format, format.problem(self.value, self.work.rules)?)));
        problem.map(|(format, problem)| self.failure(|| scalars::wrong_format(self.value, format.name, &problem)))
    }

    fn is_among(&self, values: &[Json]) -> bool {
        let own = Type::of(self.value);
        values.iter().any(|wanted| Type::of(wanted) == own)
            && values.iter().any(|wanted| self.equals(self.value, wanted))
    }

    fn equals(&self, left: &Json, right: &Json) -> bool {
        let mut steps = 0;
        let is_equal = left.equals(right, self.work.rules.checks, &mut steps);
        self.work.spend(steps);
        is_equal
    }

    fn at(&self) -> String {
        if self.is_quiet {
            String::new()
        } else {
            Path::pointer(self.path)
        }
    }

    fn failure(&self, words: impl FnOnce() -> String) -> Failure {
        self.failure_of(words, Vec::new())
    }

    fn failure_of(&self, words: impl FnOnce() -> String, causes: Vec<Failure>) -> Failure {
        if self.is_quiet {
            return Failure::new(String::new(), String::new(), Vec::new());
        }
        let (at, words) = (self.at(), words());
        self.work.spend((at.len() + words.len()) as u64 / BYTES_PER_STEP);
        Failure::new(at, words, causes)
    }

    fn fail(&mut self, words: impl FnOnce() -> String) {
        let failure = self.failure(words);
        self.failures.push(failure);
    }

    fn fail_of(&mut self, words: impl FnOnce() -> String, causes: Vec<Failure>) {
        let failure = self.failure_of(words, causes);
        self.failures.push(failure);
    }

    fn add(&mut self, outcome: Result<(), Failure>) {
        self.failures.extend(outcome.err());
    }

    /// Applies another subschema to the same value.
    fn same(&mut self, id: Id, keyword: &str, is_quiet: bool) -> Result<(), Failure> {
        let scope = Scope {
            compiled: self.compiled,
            id,
            keyword,
            value_depth: self.scope.value_depth,
            depth: self.scope.depth + 1,
            parent: Some(self.scope),
        };
        let subschema = &self.compiled.subschemas[id];
        let is_asked = self.unevaluated.len() > 0;
        let (compiled, applied) = self.applied(id, self.path);
        let visit = Visit {
            compiled,
            work: self.work,
            subschema: applied,
            value: self.value,
            path: self.path,
            scope: &scope,
            is_quiet: self.is_quiet || is_quiet,
            unevaluated: Unevaluated::of(self.value, subschema, is_asked),
            failures: Vec::new(),
        };
        let left = visit.run()?;
        self.unevaluated.keep_common(&left);
        Ok(())
    }

    /// Applies another subschema to a part of the value.
    fn part(&mut self, id: Id, value: &'v Json, token: &str) -> Result<(), Failure> {
        let scope = Scope {
            compiled: self.compiled,
            id,
            keyword: "",
            value_depth: self.scope.value_depth + 1,
            depth: self.scope.depth + 1,
            parent: Some(self.scope),
        };
        let path = Path {
            token,
            parent: self.path,
        };
        let subschema = &self.compiled.subschemas[id];
        let (compiled, applied) = self.applied(id, Some(&path));
        let visit = Visit {
            compiled,
            work: self.work,
            subschema: applied,
            value,
            path: Some(&path),
            scope: &scope,
            is_quiet: self.is_quiet,
            unevaluated: Unevaluated::of(value, subschema, false),
            failures: Vec::new(),
        };
        visit.run().map(|_| ())
    }

    /// What is applied for a subschema: itself, or in place of a whole metaschema that of the draft which begins there.
    fn applied(&self, id: Id, path: Option<&Path<'_>>) -> (&'s Compiled, &'s Subschema) {
        let own = (self.compiled, &self.compiled.subschemas[id]);
        let Some(resources) = self.work.resources.filter(|_| id == 0) else {
            return own;
        };
        let pointer = Path::pointer(path);
        self.work.spend(pointer.len() as u64 / BYTES_PER_STEP);
        match resources.get(&pointer).map(|resource| resource.draft.metaschema()) {
            Some(Ok(metaschema)) => (metaschema, &metaschema.subschemas[0]),
            Some(Err(problem)) => {
                self.work.refuse(&problem);
                own
            }
            None => own,
        }
    }

    fn refer(&mut self, id: Id, keyword: &str) -> Result<(), Failure> {
        self.same(id, keyword, false)
            .map_err(|failure| failure.referred(self.at()))
    }

    /// References whose target depends on the way that led here.
    fn other_references(&mut self) {
        let subschemas = &self.compiled.subschemas;
        if let Some(mut id) = self.subschema.recursive_reference {
            if subschemas[id].is_recursive_anchor {
                let resource = |scope: &Scope<'_>| &subschemas[subschemas[scope.id].resource];
                id = self
                    .outermost(|scope| resource(scope).is_recursive_anchor.then_some(scope.id))
                    .unwrap_or(id);
            }
            let outcome = self.refer(id, "$recursiveRef");
            self.add(outcome);
        }
        if let Some((id, anchor)) = &self.subschema.dynamic_reference {
            let mut id = *id;
            if !anchor.is_empty() && subschemas[id].dynamic_anchor == *anchor {
                let anchors = |scope: &Scope<'_>| &subschemas[subschemas[scope.id].resource].dynamic_anchors;
                id = self
                    .outermost(|scope| anchors(scope).get(anchor).copied())
                    .unwrap_or(id);
            }
            let outcome = self.refer(id, "$dynamicRef");
            self.add(outcome);
        }
    }

    /// What the outermost schema on the way here gives that gives anything.
    fn outermost(&self, find: impl Fn(&Scope<'_>) -> Option<Id>) -> Option<Id> {
        let mut found = None;
        let mut scope = Some(self.scope);
        while let Some(around) = scope {
            self.work.spend(1);
            if std::ptr::eq(around.compiled, self.compiled) {
                found = find(around).or(found);
            }
            scope = around.parent;
        }
        found
    }

    /// What no other keyword looked at.
    fn rest(&mut self) {
        match (
            self.value,
            self.subschema.object.unevaluated,
            self.subschema.array.unevaluated,
        ) {
            (Json::Map(entries), Some(id), _) => {
                for name in std::mem::take(&mut self.unevaluated.properties) {
                    if let Some(value) = entries.get(name) {
                        let outcome = self.part(id, value, name);
                        self.add(outcome);
                    }
                }
            }
            (Json::List(items), _, Some(id)) => {
                for index in std::mem::take(&mut self.unevaluated.items) {
                    let outcome = self.part(id, &items[index], &index.to_string());
                    self.add(outcome);
                }
            }
            _ => {}
        }
    }
}
