//! How deep templates include and extend each other. Tera follows them however deep they go, each level on the stack.

use std::collections::{BTreeMap, BTreeSet};

/// How many templates may include or extend each other, one in the other.
pub(crate) const MAX_DEPTH: usize = 16;

/// What includes too deep, by name, and how that is put.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooDeep {
    pub(super) name: String,
    pub(super) message: String,
}

/// Checks the templates of one chart, given as names and texts. Cycles are left to Tera, which names them.
pub(super) fn check<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), TooDeep> {
    let mut uses = BTreeMap::new();
    for (name, text) in files {
        uses.insert(name, used(name, text)?);
    }
    let mut depths = BTreeMap::new();
    uses.keys()
        .try_for_each(|name| depth(name, &uses, &mut Vec::new(), &mut depths).map(drop))
}

/// How many levels a template has, itself included. `above` are the templates that have led to it.
fn depth<'a>(
    name: &'a str,
    uses: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    above: &mut Vec<&'a str>,
    known: &mut BTreeMap<&'a str, usize>,
) -> Result<usize, TooDeep> {
    let too_deep = || TooDeep {
        name: name.to_owned(),
        message: format!("templates include or extend each other more than {MAX_DEPTH} deep"),
    };
    if above.len() >= MAX_DEPTH {
        return Err(too_deep());
    }
    if let Some(known) = known.get(name) {
        return Ok(*known);
    }
    let mut deepest = 0;
    above.push(name);
    for used in uses
        .get(name)
        .into_iter()
        .flatten()
        .filter(|used| uses.contains_key(**used))
    {
        if !above.contains(used) {
            deepest = deepest.max(depth(used, uses, above, known)?);
        }
    }
    above.pop();
    if deepest >= MAX_DEPTH {
        return Err(too_deep());
    }
    known.insert(name, deepest + 1);
    Ok(deepest + 1)
}

/// The templates that a text includes or extends; perhaps more, because comments and raw parts are read too.
fn used<'a>(name: &str, text: &'a str) -> Result<BTreeSet<&'a str>, TooDeep> {
    let mut used = BTreeSet::new();
    for tag in text.split("{%").skip(1) {
        let tag = tag.strip_prefix('-').unwrap_or(tag).trim_ascii_start();
        let Some(rest) = ["include", "extends"].iter().find_map(|word| tag.strip_prefix(word)) else {
            continue;
        };
        let rest = rest.trim_ascii_start();
        let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`')) else {
            continue;
        };
        let quoted = rest[1..].split(quote).next().unwrap_or_default();
        if quoted.contains('\\') {
            return Err(TooDeep {
                name: name.to_owned(),
                message: "the name of a template is written without backslashes".to_owned(),
            });
        }
        used.insert(quoted);
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Templates named by number, each of which uses the next one.
    fn chain(length: usize, tag: &str) -> Vec<(String, String)> {
        let text = |number: usize| match number + 1 {
            next if next == length => String::new(),
            next => tag.replace('?', &next.to_string()),
        };
        (0..length).map(|number| (number.to_string(), text(number))).collect()
    }

    fn checked(files: &[(String, String)]) -> Result<(), TooDeep> {
        check(files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    #[test]
    fn as_many_templates_as_the_limit_says_may_use_each_other() {
        for tag in [
            "{% include \"?\" %}",
            "{%- include '?' -%}",
            "{%include`?`%}",
            "{%\n\tinclude\n\"?\"%}",
            "{% extends \"?\" %}",
            "a {{ b }} {% if c %}{% include \"?\" %}{% endif %}",
        ] {
            assert_eq!(checked(&chain(MAX_DEPTH, tag)), Ok(()), "{tag}");
            let error = checked(&chain(MAX_DEPTH + 1, tag)).unwrap_err();
            assert_eq!(
                error.message, "templates include or extend each other more than 16 deep",
                "{tag}"
            );
            assert!(checked(&chain(5_000, tag)).is_err(), "{tag}");
        }
    }

    #[test]
    fn templates_that_were_looked_at_before_those_that_use_them_count_as_deep_as_they_are() {
        // Each uses the one before it, and they are looked at by name.
        let upwards = |length: usize| -> Vec<(String, String)> {
            let text = |number: usize| match number.checked_sub(1) {
                Some(used) => format!("{{% include \"{used:02}\" %}}"),
                None => String::new(),
            };
            (0..length)
                .map(|number| (format!("{number:02}"), text(number)))
                .collect()
        };
        assert_eq!(checked(&upwards(MAX_DEPTH)), Ok(()));
        let error = checked(&upwards(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(error.name, MAX_DEPTH.to_string());
    }

    #[test]
    fn many_ways_to_the_same_template_are_looked_at_once() {
        let level = |number: usize| {
            let next = number + 1;
            let text = format!("{{% include \"a{next}\" %}}{{% include \"b{next}\" %}}");
            ["a", "b"].map(|letter| (format!("{letter}{number}"), text.clone()))
        };
        let files: Vec<_> = (0..MAX_DEPTH - 1).flat_map(level).collect();
        assert_eq!(checked(&files), Ok(()));
    }

    #[test]
    fn what_uses_itself_is_left_to_tera() {
        let files = [("a", "{% include \"b\" %}"), ("b", "{% include \"a\" %}")];
        assert_eq!(check(files.into_iter()), Ok(()));
    }

    #[test]
    fn a_name_that_hides_behind_escapes_is_refused() {
        let error = check([("a", "{% include \"\\u0062\" %}")].into_iter()).unwrap_err();
        assert_eq!(error.message, "the name of a template is written without backslashes");
    }
}
