//! Keywords that combine subschemas.

use super::Visit;
use crate::schema::number::localized_count;

impl Visit<'_, '_> {
    pub(super) fn combinations(&mut self) {
        if let Some(id) = self.subschema.not
            && self.same(id, "", true).is_ok()
        {
            self.fail(|| "'not' failed".to_owned());
        }
        self.all_of();
        self.any_of();
        self.one_of();
        let Some(condition) = &self.subschema.condition else {
            return;
        };
        let next = if self.same(condition.test, "", true).is_ok() {
            condition.then
        } else {
            condition.otherwise
        };
        if let Some(id) = next {
            let outcome = self.same(id, "", false);
            self.add(outcome);
        }
    }

    fn all_of(&mut self) {
        let mut failures = Vec::new();
        for id in &self.subschema.all_of {
            failures.extend(self.same(*id, "", false).err());
            if self.is_quiet && !failures.is_empty() {
                break;
            }
        }
        if !failures.is_empty() {
            self.fail_of(|| "'allOf' failed".to_owned(), failures);
        }
    }

    fn any_of(&mut self) {
        let (mut failures, mut has_match) = (Vec::new(), self.subschema.any_of.is_empty());
        for id in &self.subschema.any_of {
            if let Err(failure) = self.same(*id, "", false) {
                failures.push(failure);
                continue;
            }
            has_match = true;
            // What is left over depends on all of them.
            if self.unevaluated.len() == 0 {
                break;
            }
        }
        if !has_match {
            self.fail_of(|| "'anyOf' failed".to_owned(), failures);
        }
    }

    fn one_of(&mut self) {
        let (mut failures, mut matched) = (Vec::new(), None);
        for (index, id) in self.subschema.one_of.iter().enumerate() {
            match (self.same(*id, "", matched.is_some()), matched) {
                (Err(failure), None) => failures.push(failure),
                (Err(_), Some(_)) => {}
                (Ok(()), None) => matched = Some(index),
                (Ok(()), Some(first)) => {
                    let (first, second) = (localized_count(first), localized_count(index));
                    return self.fail(|| format!("'oneOf' failed, subschemas {first}, {second} matched"));
                }
            }
        }
        if matched.is_none() && !self.subschema.one_of.is_empty() {
            self.fail_of(|| "'oneOf' failed, none matched".to_owned(), failures);
        }
    }
}
