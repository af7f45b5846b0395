//! Keywords about objects.

use std::collections::BTreeMap;

use super::{Visit, whole};
use crate::schema::Checks;
use crate::schema::document::Json;
use crate::schema::draft::Draft;
use crate::schema::failure::{Failure, all_single_quoted, single_quoted};
use crate::schema::keywords::{Additional, Dependency, Id, Pattern};
use crate::schema::number::localized_count;

type Entries = BTreeMap<String, Json>;

impl<'v> Visit<'_, 'v> {
    pub(super) fn object(&mut self, entries: &'v Entries) {
        let rules = &self.subschema.object;
        self.size("Properties", entries.len(), rules.least, rules.most);
        let missing = self.missing(entries, &rules.required);
        match *missing {
            [] => {}
            [only] => self.fail(|| format!("missing property {}", single_quoted(only))),
            _ => self.fail(|| format!("missing properties {}", all_single_quoted(missing))),
        }
        if self.is_quiet && !self.failures.is_empty() {
            return;
        }
        for (name, dependency) in &rules.dependencies {
            match dependency {
                _ if !entries.contains_key(name) => {}
                Dependency::Properties(wanted) => self.depend(entries, name, wanted),
                Dependency::Schema(id) => {
                    let outcome = self.same(*id, "", false);
                    self.add(outcome);
                }
            }
        }
        self.properties(entries);
        if self.subschema.draft >= Draft::V6
            && let Some(id) = rules.names
        {
            self.names(entries, id);
        }
        for (name, id) in &rules.dependent_schemas {
            if entries.contains_key(name) {
                let outcome = self.same(*id, "", false);
                self.add(outcome);
            }
        }
        for (name, wanted) in &rules.dependent_required {
            if entries.contains_key(name) {
                self.depend(entries, name, wanted);
            }
        }
    }

    /// Bounds of a number of parts.
    pub(super) fn size(&mut self, parts: &str, size: usize, least: Option<i64>, most: Option<i64>) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let words = |keyword: &str, wanted: i64| {
            let (size, wanted) = (localized_count(size), localized_count(wanted));
            format!("{keyword}{parts}: got {size}, want {wanted}")
        };
        if let Some(least) = least.filter(|least| size < *least) {
            self.fail(|| words("min", least));
        }
        if let Some(most) = most.filter(|most| size > *most) {
            self.fail(|| words("max", most));
        }
    }

    fn missing<'n>(&self, entries: &Entries, wanted: &'n [String]) -> Vec<&'n str> {
        self.work.spend(wanted.len() as u64);
        let missing = wanted.iter().filter(|name| !entries.contains_key(*name));
        missing.map(String::as_str).collect()
    }

    fn depend(&mut self, entries: &Entries, name: &str, wanted: &[String]) {
        let missing = self.missing(entries, wanted);
        if !missing.is_empty() {
            let name = single_quoted(name);
            self.fail(|| format!("properties {} required, if {name} exists", all_single_quoted(missing)));
        }
    }

    fn properties(&mut self, entries: &'v Entries) {
        let rules = &self.subschema.object;
        let mut additional = Vec::new();
        for (name, value) in entries {
            if (self.is_quiet && !self.failures.is_empty()) || self.work.is_over.get() {
                return;
            }
            let mut is_evaluated = false;
            if let Some(id) = rules.properties.get(name) {
                is_evaluated = true;
                let outcome = self.part(*id, value, name);
                self.add(outcome);
            }
            for (pattern, id) in &rules.patterns {
                if self.matches(pattern, name) {
                    is_evaluated = true;
                    let outcome = self.part(*id, value, name);
                    self.add(outcome);
                }
            }
            if !is_evaluated {
                is_evaluated = rules.additional.is_some();
                match rules.additional {
                    Some(Additional::Allowed(false)) => additional.push(name.as_str()),
                    Some(Additional::Schema(id)) => {
                        let outcome = self.part(id, value, name);
                        self.add(outcome);
                    }
                    Some(Additional::Allowed(true)) | None => {}
                }
            }
            if is_evaluated {
                self.unevaluated.properties.remove(name.as_str());
            }
        }
        if !additional.is_empty() {
            self.fail(|| format!("additional properties {} not allowed", all_single_quoted(additional)));
        }
    }

    /// Names are values of their own, so what is wrong with them has no place in the object.
    fn names(&mut self, entries: &Entries, id: Id) {
        for name in entries.keys() {
            let value = Json::Text(name.clone());
            if let Err(failure) = whole(self.compiled, id, &value, self.work, self.scope.depth + 1) {
                let words = format!("invalid propertyName {}", single_quoted(name));
                let at = match self.work.rules.checks {
                    Checks::Faulty => String::new(),
                    Checks::Mended => self.at(),
                };
                self.failures.push(Failure::new(at, words, failure.ungrouped()));
            }
        }
    }

    pub(super) fn matches(&self, pattern: &Pattern, text: &str) -> bool {
        self.work.spend(1 + pattern.steps_to_compile() + text.len() as u64 / 16);
        if self.work.is_over.get() {
            return true;
        }
        pattern.is_match(text).unwrap_or_else(|| {
            let pattern = &pattern.text;
            self.work.refuse(&format!(
                "regular expression `{pattern}` of the schema is not supported"
            ));
            true
        })
    }
}
