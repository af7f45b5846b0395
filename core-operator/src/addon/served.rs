//! Whether the conditions of stages can be meant of what the API server of their cluster serves: they are checked against the schemas that it publishes.
//!
//! When the release was admitted they were checked against its own CRDs and the kinds of Kubernetes; what else there is in a cluster, and in which version, only its
//! API server knows. It is asked when a stage with a condition is to be evaluated, for the index and then for the documents of the kinds that the condition is
//! about; and again when [`is_outlived`] says so. In between nobody asks, and a document that one cluster has shown is not read from another ([`Library`]).
//!
//! Nothing waits for schemas: where an API server publishes none, or too much, the condition is evaluated unchecked, and what is told of it says so.

mod library;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crds::conditions::one_line;
use crds::release_files::WaitForCondition;
use expressions::{Expression, Finding, ObjectKind, Schemas, Severity, check, part_of};
use kube::core::GroupVersionKind;
use operator_kit::crd_watch::Edition;
use operator_kit::parts::parts_of;
use operator_kit::published::{Index, PublishedError, document};
use planning::addon::{Checked, SchemasSeen, Verdict, checked, is_outlived};
use serde_json::Value;
use tokio::time::{Instant, timeout};

pub(in crate::addon) use self::library::Library;

use self::library::LARGEST;
use crate::objects::Place;

/// All that is read for one condition is read in this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Verdicts that are kept: a release has at most a hundred stages.
const MOST_VERDICTS: usize = 256;

/// Bytes of the expression that are repeated.
const LONGEST_EXPRESSION: usize = 200;

/// What is known of the schemas of one cluster.
#[derive(Default)]
pub(in crate::addon) struct Checks {
    of: Option<Circumstances>,
    index: Option<Result<Index, Trouble>>,
    /// When the index was read.
    read: Option<Instant>,
    /// Something could not be read that may be read later.
    is_passing: bool,
    verdicts: Vec<(WaitForCondition, Verdict)>,
}

/// What schemas depend on.
#[derive(Clone, Debug, PartialEq)]
struct Circumstances {
    edition: Edition,
    /// The version of Kubernetes that the control plane has reached.
    version: Option<String>,
}

/// Why there is no schema.
#[derive(Clone, Debug)]
struct Trouble {
    words: String,
    passes: bool,
}

/// A cluster whose conditions are checked.
pub(in crate::addon) struct Judge<'a> {
    pub(in crate::addon) place: &'a Place,
    pub(in crate::addon) library: &'a Library,
    /// The version of Kubernetes that its control plane has reached.
    pub(in crate::addon) version: Option<&'a str>,
    pub(in crate::addon) checks: &'a mut Checks,
}

impl Judge<'_> {
    /// Checks a condition.
    pub(in crate::addon) async fn check(&mut self, condition: &WaitForCondition, expression: &Expression) -> Checked {
        let kinds = kinds_of(condition);
        if kinds.is_empty() {
            let verdict = Verdict::Fits { note: None };
            return Checked { verdict, again: None };
        }
        let now = Instant::now().into_std();
        let changed = self.changed(&kinds);
        let of = Circumstances {
            edition: self.place.crds.edition(),
            version: self.version.map(str::to_owned),
        };
        if is_outlived(&self.checks.seen(&of, changed), self.checks.verdict(condition), now) {
            *self.checks = Checks {
                of: Some(of.clone()),
                ..Checks::default()
            };
        }
        let verdict = match self.checks.verdict(condition) {
            Some(known) => known.clone(),
            None => self.judge(condition, &kinds, expression).await,
        };
        checked(&self.checks.seen(&of, changed), verdict, now)
    }

    /// Since when these kinds are served as they are; nothing where they do not come and go.
    fn changed(&self, kinds: &BTreeMap<String, ObjectKind>) -> Option<Instant> {
        let crds = &self.place.crds;
        let may_change = kinds.values().any(|kind| crds.may_define(group_of(kind)));
        may_change.then(|| crds.edition().since())
    }

    /// Checks a condition of which nothing is known, and remembers what came of it.
    async fn judge(
        &mut self,
        condition: &WaitForCondition,
        kinds: &BTreeMap<String, ObjectKind>,
        expression: &Expression,
    ) -> Verdict {
        let verdict = if let Ok((schemas, note)) = timeout(PATIENCE, self.schemas(kinds)).await {
            let known = kinds.iter().filter(|(_, kind)| schemas.describes(kind));
            let known: Vec<&str> = known.map(|(key, _)| key.as_str()).collect();
            judged(&condition.conditions, check(expression, kinds, &schemas), &known, note)
        } else {
            let words = format!("they could not be read within {} s", PATIENCE.as_secs());
            self.checks.is_passing = true;
            // Other conditions do not wait as long again.
            self.checks.index = Some(Err(Trouble {
                words: words.clone(),
                passes: true,
            }));
            Verdict::Fits { note: Some(words) }
        };
        self.checks.read.get_or_insert_with(Instant::now);
        if self.checks.verdicts.len() >= MOST_VERDICTS {
            self.checks.verdicts.clear();
        }
        self.checks.verdicts.push((condition.clone(), verdict.clone()));
        verdict
    }

    /// The schemas of these kinds, as far as there are any, and what is to be said of the first that is not there though its kind is served.
    async fn schemas(&mut self, kinds: &BTreeMap<String, ObjectKind>) -> (Schemas, Option<String>) {
        let mut schemas = Schemas::without_table();
        let mut note = None;
        let kinds: BTreeSet<&ObjectKind> = kinds.values().collect();
        let mut by_document: BTreeMap<&str, Vec<&ObjectKind>> = BTreeMap::new();
        for kind in &kinds {
            by_document.entry(&kind.api_version).or_default().push(kind);
        }
        for (api_version, kinds) in by_document {
            match self.published(api_version, &kinds).await {
                Ok(found) => found.into_iter().for_each(|schema| schemas.add_openapi(schema)),
                Err(trouble) => {
                    self.checks.is_passing |= trouble.passes;
                    note.get_or_insert(trouble.words);
                }
            }
        }
        for kind in kinds.into_iter().filter(|kind| !schemas.describes(kind)) {
            // What is not served yet is checked when it is.
            if note.is_none() && self.place.serves(&gvk_of(kind)).await {
                let ObjectKind { api_version, kind } = kind;
                note = Some(format!("there is none of {kind} in {api_version}"));
            }
        }
        (schemas, note)
    }

    /// What the API server publishes now of those of these kinds, all of one group and version, that it has.
    async fn published(&mut self, api_version: &str, kinds: &[&ObjectKind]) -> Result<Vec<Arc<Value>>, Trouble> {
        let Some(hash) = self.hash(api_version).await? else {
            return Ok(Vec::new());
        };
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for kind in kinds {
            match self.library.get(&hash, kind) {
                Some(known) => found.extend(known),
                None => missing.push((*kind).clone()),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let trouble = |error| Trouble::of(&format!("those of {api_version}"), &error);
        let document = document(&self.place.client, api_version, &hash)
            .await
            .map_err(trouble)?;
        let part = part_of(document.content, &missing).map(Arc::new);
        if part.as_ref().is_some_and(|part| parts_of(part) > LARGEST) {
            return Err(trouble(PublishedError::Bound));
        }
        if document.is_as_named {
            let mut schemas = Schemas::without_table();
            if let Some(part) = &part {
                schemas.add_openapi(Arc::clone(part));
            }
            for kind in &missing {
                let part = part.as_ref().filter(|_| schemas.describes(kind));
                self.library.keep(&hash, kind, part);
            }
        }
        found.extend(part);
        Ok(found)
    }

    /// The hash of the document of a group and version; nothing if there is none.
    async fn hash(&mut self, api_version: &str) -> Result<Option<String>, Trouble> {
        if self.checks.index.is_none() {
            // What is told while it is on its way may be newer.
            self.checks.read = Some(Instant::now());
            let index = Index::read(&self.place.client).await;
            self.checks.index = Some(index.map_err(|error| Trouble::of("their index", &error)));
        }
        match &self.checks.index {
            Some(Ok(index)) => Ok(index.hash(api_version).map(str::to_owned)),
            Some(Err(trouble)) => Err(trouble.clone()),
            None => Ok(None),
        }
    }
}

impl Checks {
    /// In these circumstances, for a condition about kinds that were changed then.
    fn seen(&self, of: &Circumstances, changed: Option<Instant>) -> SchemasSeen {
        SchemasSeen {
            read: self.read.map(Instant::into_std),
            is_of_now: self.of.as_ref() == Some(of),
            is_passing: self.is_passing,
            changed: changed.map(Instant::into_std),
        }
    }

    fn verdict(&self, condition: &WaitForCondition) -> Option<&Verdict> {
        let mut verdicts = self.verdicts.iter();
        verdicts.find(|(of, _)| of == condition).map(|(_, verdict)| verdict)
    }
}

impl Trouble {
    /// In words of ours: each answer may have others.
    fn of(what: &str, error: &PublishedError) -> Self {
        Self {
            words: format!("{what} cannot be used, because {error}"),
            passes: error.passes(),
        }
    }
}

/// What follows from what was found with the schemas of the objects of these keys.
fn judged(text: &str, findings: Vec<Finding>, known: &[&str], note: Option<String>) -> Verdict {
    let (errors, notes): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Error);
    if let [first, more @ ..] = errors.as_slice() {
        let text = one_line(text, LONGEST_EXPRESSION);
        let more = match more.len() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let Finding { path, message, .. } = first;
        return Verdict::Unfit {
            message: format!(
                "`{text}` does not fit what the API server of the cluster serves: {path}: {message}{more}"
            ),
        };
    }
    // What is to be said of the others was said.
    let is_of_known = |finding: &&Finding| known.contains(&finding.path.split(['.', '[']).next().unwrap_or_default());
    let mut untyped = notes.iter().filter(is_of_known);
    let untyped = || {
        untyped
            .next()
            .map(|Finding { path, message, .. }| format!("{path}: {message}"))
    };
    Verdict::Fits {
        note: note.or_else(untyped),
    }
}

fn kinds_of(condition: &WaitForCondition) -> BTreeMap<String, ObjectKind> {
    let objects = condition.objects.iter();
    objects
        .map(|object| {
            let kind = ObjectKind::new(object.api_version.clone(), object.kind.clone());
            (object.key.clone(), kind)
        })
        .collect()
}

fn group_of(kind: &ObjectKind) -> &str {
    kind.api_version.split_once('/').map_or("", |(group, _)| group)
}

fn gvk_of(kind: &ObjectKind) -> GroupVersionKind {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    GroupVersionKind::gvk(group, version, &kind.kind)
}
