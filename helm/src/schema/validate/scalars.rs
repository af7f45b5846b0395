//! Keywords about strings, numbers and single values.

use super::Visit;
use crate::schema::document::Json;
use crate::schema::failure::single_quoted;
use crate::schema::keywords::Bound;
use crate::schema::number::{Decimal, localized};

/// What `const` wants.
pub(super) fn wanted_value(wanted: &Json) -> String {
    if wanted.is_container() {
        "'const' failed".to_owned()
    } else {
        format!("value must be {}", display(wanted))
    }
}

/// What `enum` wants.
pub(super) fn wanted_values(wanted: &[Json]) -> String {
    if wanted.iter().any(Json::is_container) {
        return "'enum' failed".to_owned();
    }
    if let [only] = wanted {
        return format!("value must be {}", display(only));
    }
    let wanted: Vec<String> = wanted.iter().map(display).collect();
    format!("value must be one of {}", wanted.join(", "))
}

pub(super) fn wrong_format(value: &Json, format: &str, problem: &str) -> String {
    format!("{} is not valid {format}: {problem}", display(value))
}

fn display(value: &Json) -> String {
    match value {
        Json::Null => "<nil>".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(text) => text.clone(),
        Json::Text(text) => single_quoted(text),
        Json::List(_) | Json::Map(_) => "value".to_owned(),
    }
}

impl Visit<'_, '_> {
    pub(super) fn text(&mut self, text: &str) {
        let rules = &self.subschema.text;
        if rules.least.is_some() || rules.most.is_some() {
            self.work.spend(text.len() as u64 / 64);
            self.size("Length", text.chars().count(), rules.least, rules.most);
        }
        if let Some(pattern) = &rules.pattern
            && !self.matches(pattern, text)
        {
            self.fail(|| {
                let (text, pattern) = (single_quoted(text), single_quoted(&pattern.text));
                format!("{text} does not match pattern {pattern}")
            });
        }
    }

    pub(super) fn number(&mut self, text: &str) {
        let rules = &self.subschema.number;
        let Some(number) = Decimal::parse(text) else { return };
        let mut check = |keyword: &str, bound: &Option<Bound>, is_met: fn(&Decimal, &Decimal) -> bool| {
            if let Some(bound) = bound.as_ref().filter(|bound| !is_met(&number, &bound.number)) {
                let (got, want) = (localized(text), localized(&bound.text));
                self.fail(|| format!("{keyword}: got {got}, want {want}"));
            }
        };
        check("minimum", &rules.minimum, |number, bound| number >= bound);
        check("maximum", &rules.maximum, |number, bound| number <= bound);
        check("exclusiveMinimum", &rules.exclusive_minimum, |number, bound| {
            number > bound
        });
        check("exclusiveMaximum", &rules.exclusive_maximum, |number, bound| {
            number < bound
        });
        check("multipleOf", &rules.divisor, Decimal::is_multiple_of);
    }
}
