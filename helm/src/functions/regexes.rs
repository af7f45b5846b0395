//! Regular expressions. Patterns have Go's syntax ([`super::patterns`] translates them); matching is linear in the text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex::{Captures, Regex};

use super::patterns::{Pattern, translate};
use super::{Called, Function, mismatch};
use crate::bounds::{check_bytes, check_items, note_work};
use crate::format::quote;
use crate::text;
use crate::value::Type::{Int, Str};
use crate::value::{List, Value};

/// How many compiled patterns a thread keeps.
const MAX_COMPILED: usize = 256;

/// How many steps of a template take about as long as compiling a pattern.
const STEPS_TO_COMPILE: u64 = 1_000;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[Str, Str], |arguments| {
        let [Value::Str(pattern), Value::Str(text)] = arguments else {
            return Err(mismatch());
        };
        match compiled(pattern) {
            Ok(matcher) => is_match(&matcher, text),
            Err(Refusal::Go(_)) => Ok(Value::Bool(false)),
            Err(refusal) => Err(refusal.returned()),
        }
    }),
    Function::new("mustRegexMatch", &[Str, Str], |arguments| {
        returning(arguments, is_match)
    }),
    Function::new("regexFind", &[Str, Str], |arguments| panicking(arguments, find)),
    Function::new("mustRegexFind", &[Str, Str], |arguments| returning(arguments, find)),
    Function::new("regexFindAll", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::panicked, find_all)
    }),
    Function::new("mustRegexFindAll", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::returned, find_all)
    }),
    Function::new("regexSplit", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::panicked, split)
    }),
    Function::new("mustRegexSplit", &[Str, Str, Int], |arguments| {
        counted(arguments, Refusal::returned, split)
    }),
    Function::new("regexReplaceAll", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::panicked, true)
    }),
    Function::new("mustRegexReplaceAll", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::returned, true)
    }),
    Function::new("regexReplaceAllLiteral", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::panicked, false)
    }),
    Function::new("mustRegexReplaceAllLiteral", &[Str, Str, Str], |arguments| {
        replaced(arguments, Refusal::returned, false)
    }),
    Function::new("regexQuoteMeta", &[Str], quote_meta),
];

/// A compiled pattern and what it was made from.
struct Matcher {
    regex: Regex,
    needs_ascii: bool,
}

/// Why a pattern was not compiled.
#[derive(Clone)]
enum Refusal {
    /// Go refuses it too; the pattern and Go's text.
    Go(Rc<(Vec<u8>, String)>),
    /// Go would take it.
    Ours(Rc<str>),
}

impl Refusal {
    /// The error of the functions that return one.
    fn returned(self) -> String {
        match self {
            Self::Go(refused) => refused.1.clone(),
            Self::Ours(reason) => reason.to_string(),
        }
    }

    /// The error of the functions that panic.
    fn panicked(self) -> String {
        match self {
            Self::Go(refused) => {
                let (pattern, error) = &*refused;
                let can_backquote = !pattern.contains(&b'`')
                    && text::runes(pattern).all(|rune| {
                        rune.character
                            .is_some_and(|character| character == '\t' || !character.is_control())
                    });
                let shown = if can_backquote {
                    format!("`{}`", text::lossy(pattern))
                } else {
                    text::lossy(&quote(pattern))
                };
                format!("regexp: Compile({shown}): {error}")
            }
            Self::Ours(reason) => reason.to_string(),
        }
    }
}

type Compiled = Result<Rc<Matcher>, Refusal>;

fn compiled(pattern: &[u8]) -> Compiled {
    thread_local! {
        static COMPILED: RefCell<HashMap<Vec<u8>, Compiled>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|known| {
        if let Some(result) = known.get(pattern) {
            return result.clone();
        }
        if known.len() >= MAX_COMPILED {
            known.clear();
        }
        note_work(STEPS_TO_COMPILE);
        let result = compile(pattern);
        known.insert(pattern.to_vec(), result.clone());
        result
    })
}

fn compile(pattern: &[u8]) -> Compiled {
    let refused = |error: String| Refusal::Go(Rc::new((pattern.to_vec(), error)));
    let Ok(text) = str::from_utf8(pattern) else {
        return Err(refused("error parsing regexp: invalid UTF-8".to_owned()));
    };
    let Pattern { rust, needs_ascii } =
        translate(text).map_err(|error| refused(format!("error parsing regexp: {error}")))?;
    let regex = Regex::new(&rust)
        .map_err(|error| Refusal::Ours(format!("regular expression `{text}` is not supported: {error}").into()))?;
    Ok(Rc::new(Matcher { regex, needs_ascii }))
}

impl Matcher {
    /// The text to match, if this pattern means the same for it as in Go.
    fn searchable<'t>(&self, text: &'t [u8]) -> Result<&'t str, String> {
        let text = str::from_utf8(text).map_err(|_| "matching text that is not UTF-8 is not supported".to_owned())?;
        if self.needs_ascii && !text.is_ascii() {
            return Err("matching \\B in text that is not ASCII is not supported".to_owned());
        }
        Ok(text)
    }
}

type Match = fn(&Matcher, &[u8]) -> Called;

fn returning(arguments: &[Value], matching: Match) -> Called {
    let [Value::Str(pattern), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    matching(&*compiled(pattern).map_err(Refusal::returned)?, text)
}

fn panicking(arguments: &[Value], matching: Match) -> Called {
    let [Value::Str(pattern), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    matching(&*compiled(pattern).map_err(Refusal::panicked)?, text)
}

fn is_match(matcher: &Matcher, text: &[u8]) -> Called {
    Ok(Value::Bool(matcher.regex.is_match(matcher.searchable(text)?)))
}

fn find(matcher: &Matcher, text: &[u8]) -> Called {
    Ok(Value::from(
        matcher
            .regex
            .find(matcher.searchable(text)?)
            .map_or("", |found| found.as_str()),
    ))
}

/// Runs a function whose third argument is the largest number of results, without limit when negative.
fn counted(arguments: &[Value], refused: fn(Refusal) -> String, run: fn(&Regex, &str, usize) -> Vec<String>) -> Called {
    let [Value::Str(pattern), Value::Str(text), Value::Int(limit, _)] = arguments else {
        return Err(mismatch());
    };
    let matcher = compiled(pattern).map_err(refused)?;
    let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
    let parts = run(&matcher.regex, matcher.searchable(text)?, limit);
    check_items(parts.len())?;
    Ok(Value::List(List::strings(parts.into_iter().map(String::into_bytes))))
}

fn find_all(regex: &Regex, text: &str, limit: usize) -> Vec<String> {
    regex
        .find_iter(text)
        .take(limit)
        .map(|found| found.as_str().to_owned())
        .collect()
}

fn split(regex: &Regex, text: &str, limit: usize) -> Vec<String> {
    if limit == 0 {
        return Vec::new();
    }
    if text.is_empty() && !regex.as_str().is_empty() {
        return vec![String::new()];
    }
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for found in regex.find_iter(text).take(limit) {
        if parts.len() + 1 == limit {
            break;
        }
        end = found.start();
        // An empty match at the very start separates nothing.
        if found.end() != 0 {
            parts.push(text[start..end].to_owned());
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(text[start..].to_owned());
    }
    parts
}

fn replaced(arguments: &[Value], refused: fn(Refusal) -> String, expands: bool) -> Called {
    let [Value::Str(pattern), Value::Str(text), Value::Str(replacement)] = arguments else {
        return Err(mismatch());
    };
    let matcher = compiled(pattern).map_err(refused)?;
    let text = matcher.searchable(text)?;
    let mut out = Vec::with_capacity(text.len());
    let mut end = 0;
    for captures in matcher.regex.captures_iter(text) {
        let Some(found) = captures.get(0) else { continue };
        out.extend_from_slice(&text.as_bytes()[end..found.start()]);
        if expands {
            expand(replacement, &captures, &mut out);
        } else {
            out.extend_from_slice(replacement);
        }
        check_bytes(out.len())?;
        end = found.end();
    }
    out.extend_from_slice(&text.as_bytes()[end..]);
    Ok(Value::from(out))
}

/// Writes a replacement: `$1`, `${1}`, `$name`, `${name}` and `$$`. A name is as long as it can be.
fn expand(template: &[u8], captures: &Captures<'_>, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
        } else if let Some((name, after)) = reference(rest) {
            let group = match name.parse::<usize>() {
                Ok(number) if name == "0" || !name.starts_with('0') => captures.get(number),
                _ => captures.name(name),
            };
            out.extend_from_slice(group.map_or(b"", |group| group.as_str().as_bytes()));
            rest = after;
        } else {
            out.push(b'$');
        }
    }
    out.extend_from_slice(rest);
}

/// The name after a dollar sign, and what follows it.
fn reference(text: &[u8]) -> Option<(&str, &[u8])> {
    let body = text.strip_prefix(b"{").unwrap_or(text);
    let length: usize = text::runes(body)
        .take_while(|rune| {
            let character = rune.or_replacement();
            character == '_' || text::is_letter(character) || text::is_digit(character)
        })
        .map(|rune| rune.bytes.len())
        .sum();
    let (name, rest) = body.split_at(length);
    let name = str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    if body.len() == text.len() {
        Some((name, rest))
    } else {
        Some((name, rest.strip_prefix(b"}")?))
    }
}

fn quote_meta(arguments: &[Value]) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    let mut quoted = Vec::with_capacity(text.len());
    for byte in text.iter() {
        if b"\\.+*?()|[]{}^$".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    Ok(Value::from(quoted))
}
