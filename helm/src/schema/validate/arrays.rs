//! Keywords about arrays.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Visit;
use crate::schema::Checks;
use crate::schema::document::Json;
use crate::schema::draft::Draft;
use crate::schema::keywords::{Additional, Contains};
use crate::schema::number::{Decimal, localized_count};

/// So many items are compared each with each.
const FEW: usize = 20;

impl<'v> Visit<'_, 'v> {
    pub(super) fn array(&mut self, items: &'v [Json]) {
        let rules = &self.subschema.array;
        self.size("Items", items.len(), rules.least, rules.most);
        if rules.is_unique
            && let Some((first, second)) = self.duplicates(items)
        {
            let (first, second) = (localized_count(first), localized_count(second));
            self.fail(|| format!("items at {first} and {second} are equal"));
        }
        for (index, (item, id)) in items.iter().zip(&rules.first).enumerate() {
            let outcome = self.part(*id, item, &index.to_string());
            self.add(outcome);
        }
        let others = rules.first.len().min(items.len());
        match rules.rest {
            Some(Additional::Schema(id)) => {
                let start = match self.work.rules.checks {
                    Checks::Faulty => 0,
                    Checks::Mended => others,
                };
                for (index, item) in (start..).zip(&items[others..]) {
                    let outcome = self.part(id, item, &index.to_string());
                    self.add(outcome);
                }
            }
            Some(Additional::Allowed(false)) if others < items.len() => {
                let count = localized_count(items.len() - others);
                self.fail(|| format!("last {count} additionalItem(s) not allowed"));
            }
            Some(Additional::Allowed(_)) | None => {}
        }
        if let Some(contains) = &rules.contains {
            self.contains(items, contains);
        }
    }

    fn contains(&mut self, items: &'v [Json], wanted: &Contains) {
        let (mut failures, mut matched) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            if let Err(failure) = self.part(wanted.schema, item, &index.to_string()) {
                failures.push(failure);
                continue;
            }
            matched.push(index.to_string());
            if self.subschema.draft >= Draft::V2020 {
                self.unevaluated.items.remove(&index);
            }
        }
        let count = i64::try_from(matched.len()).unwrap_or(i64::MAX);
        let words = |bound: &str, wanted: i64| {
            let wanted = localized_count(wanted);
            let start = format!("{bound} {wanted} items required to match contains schema, but");
            match matched.len() {
                0 if bound == "min" => format!("{start} none matched"),
                count => format!(
                    "{start} matched {} items at {}",
                    localized_count(count),
                    matched.join(" ")
                ),
            }
        };
        match wanted.least {
            Some(least) if count < least => self.fail_of(|| words("min", least), failures),
            None if matched.is_empty() => self.fail_of(|| "no items match contains schema".to_owned(), failures),
            _ => {}
        }
        if let Some(most) = wanted.most.filter(|most| count > *most) {
            self.fail(|| words("max", most));
        }
    }

    /// The first item that was there before, with the place where it was.
    fn duplicates(&self, items: &[Json]) -> Option<(usize, usize)> {
        if self.work.rules.checks == Checks::Faulty && items.len() <= FEW {
            let pairs = (1..items.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
            return pairs
                .into_iter()
                .find(|(first, second)| self.equals(&items[*second], &items[*first]));
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let mut key = String::new();
            write_key(item, &mut key);
            self.work.spend(1 + key.len() as u64 / 16);
            if let Some(first) = seen.insert(key, index) {
                return Some((first, index));
            }
        }
        None
    }
}

/// A text that equal values share, and no others.
fn write_key(value: &Json, key: &mut String) {
    match value {
        Json::Null => key.push('n'),
        Json::Bool(value) => key.push(if *value { 't' } else { 'f' }),
        // Writing to a string cannot fail.
        Json::Number(text) => {
            let _ = match Decimal::parse(text) {
                Some(number) => write!(key, "{number:?}"),
                None => write!(key, "#{text}"),
            };
        }
        Json::Text(text) => {
            let _ = write!(key, "{}:{text}", text.len());
        }
        Json::List(items) => {
            key.push('[');
            for item in items {
                write_key(item, key);
            }
            key.push(']');
        }
        Json::Map(entries) => {
            key.push('{');
            for (name, value) in entries {
                let _ = write!(key, "{}:{name}", name.len());
                write_key(value, key);
            }
            key.push('}');
        }
    }
}
